#include "agent/threads.h"

#include "agent/agent.h"
#include "agent/signals.h"
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

/* A run begins with dense samples, so that a short program has an answer too. */
enum { DENSE_SAMPLES = 150, DENSE_INTERVAL_NS = 1000000, OFF_INTERVAL_NS = 100000000 };

static struct slot *slots;
static _Atomic unsigned slots_used;
static _Atomic unsigned free_hint; /* start searching here */
static pthread_key_t end_key;
static bool has_end_key;
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static __thread struct slot *self __attribute__((tls_model("initial-exec")));

struct slot *threads_self(void)
{
    return self;
}

struct slot *threads_slot(unsigned index)
{
    return &slots[index];
}

unsigned threads_used(void)
{
    return atomic_load_explicit(&slots_used, memory_order_acquire);
}

static struct slot *take_slot(void)
{
    unsigned start = atomic_load_explicit(&free_hint, memory_order_relaxed);
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        unsigned index = (start + i) % SLOTS_MAX;
        struct slot *slot = &slots[index];
        uint32_t expected = SLOT_FREE;
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_FREE &&
            atomic_compare_exchange_strong(&slot->state, &expected, SLOT_TAKEN)) {
            unsigned used = atomic_load(&slots_used);
            while (used < index + 1 && !atomic_compare_exchange_weak(&slots_used, &used, index + 1))
                ;
            atomic_store_explicit(&free_hint, index + 1, memory_order_relaxed);
            return slot;
        }
    }
    arena_lost(&agent.arena, WIRE_LOST_SLOT);
    return NULL;
}

void threads_free(struct slot *slot)
{
    atomic_store_explicit(&free_hint, (unsigned)(slot - slots), memory_order_relaxed);
    atomic_store(&slot->state, SLOT_FREE);
}

static uint32_t next_random(struct slot *slot)
{
    uint32_t x = slot->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return slot->random = x;
}

uint64_t threads_next_interval_ns(struct slot *slot)
{
    uint64_t mean = agent.control->cpu_interval_ns;
    if (!atomic_load_explicit(&agent.control->on, memory_order_relaxed))
        return OFF_INTERVAL_NS;
    if (mean > DENSE_INTERVAL_NS && atomic_load_explicit(&agent.arena.header->handler_count,
                                                         memory_order_relaxed) < DENSE_SAMPLES)
        mean = DENSE_INTERVAL_NS;
    /* Jitter keeps us out of step with a program that works in a rhythm of its own. */
    return mean / 2 + next_random(slot) % (mean + 1);
}

static uint16_t new_record(const struct slot *slot)
{
    uint32_t id = arena_append(&agent.arena, WIRE_THREAD, 1);
    if (!id)
        return 0;
    struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, id);
    record->ident = (uint64_t)slot->ident;
    record->tid = slot->tid;
    prctl(PR_GET_NAME, record->name);
    return (uint16_t)id;
}

/* In the thread itself: give it its timer and go live. */
static void begin(struct slot *slot)
{
    slot->tid = os_gettid();
    slot->ident = pthread_self();
    slot->random = (uint32_t)slot->tid * 2654435761u | 1;
    slot->log = (struct log_cursor){0};
    slot->root_frame = 0;
    slot->root_misses = 0;
    slot->begin_wall_ns = os_mono_ns();
    slot->begin_cpu_ns = slot->last_cpu_ns = os_thread_cpu_ns();
    slot->carry_ns = slot->is_main ? 0 : atomic_exchange(&agent.arena.header->carry_ns, 0);
    atomic_store(&slot->tstate, 0);
    atomic_store(&slot->last_node, 0);
    slot->record = new_record(slot);
    atomic_fetch_add(&slot->serial, 1);
    slot->has_timer = os_timer_create(slot->tid, &slot->timer);
    if (!slot->has_timer)
        arena_lost(&agent.arena, WIRE_LOST_TIMER);
    self = slot;
    atomic_store(&slot->state, SLOT_LIVE);
    if (slot->has_timer) {
        uint64_t interval = threads_next_interval_ns(slot);
        os_timer_arm(slot->timer, interval > slot->carry_ns + 1 ? interval - slot->carry_ns : 1);
    }
}

/*
 * The thread ends.  What it used since its last sample is carried over to the
 * next thread that begins, so that many short threads are sampled as one long
 * one would be.
 */
static void end(void *argument)
{
    struct slot *slot = argument;
    if (self != slot)
        return;
    self = NULL; /* from here on a late signal finds nobody */
    if (slot->has_timer)
        os_timer_delete(slot->timer);
    uint64_t cpu = os_thread_cpu_ns();
    slot->end_cpu_ns = cpu;
    slot->end_wall_ns = os_mono_ns();
    if (atomic_load(&agent.control->on))
        atomic_fetch_add(&agent.arena.header->carry_ns, cpu - slot->last_cpu_ns + slot->carry_ns);
    if (slot->record) {
        struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, slot->record);
        atomic_store(&record->cpu_ns, cpu - slot->begin_cpu_ns);
    }
    /* The sampler closes its descriptors for this thread and then frees the slot. */
    if (atomic_load(&agent.has_sampler))
        atomic_store(&slot->state, SLOT_ENDED);
    else
        threads_free(slot);
}

static void *run(void *argument)
{
    struct slot *slot = argument;
    void *(*start)(void *) = slot->start;
    void *start_argument = slot->start_argument;
    signals_inherit(slot->blocks_signal);
    begin(slot);
    if (has_end_key)
        pthread_setspecific(end_key, slot);
    return start(start_argument);
}

AGENT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*start)(void *), void *argument)
{
    if (!real_create)
        *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    struct slot *slot = atomic_load(&agent.active) ? take_slot() : NULL;
    if (!slot)
        return real_create(thread, attributes, start, argument);
    slot->start = start;
    slot->start_argument = argument;
    slot->is_main = false;
    slot->blocks_signal = signals_sample_is_blocked();
    int failed = real_create(thread, attributes, run, slot);
    if (failed)
        threads_free(slot);
    return failed;
}

bool threads_init(void)
{
    slots = os_reserve(sizeof *slots * SLOTS_MAX);
    has_end_key = !pthread_key_create(&end_key, end);
    return slots != NULL;
}

void threads_add_main(void)
{
    struct slot *slot = take_slot();
    if (!slot)
        return;
    slot->is_main = true;
    begin(slot);
    if (has_end_key)
        pthread_setspecific(end_key, slot);
}

void threads_disown(void)
{
    self = NULL;
}

void threads_after_fork(void)
{
    unsigned used = threads_used();
    for (unsigned i = 0; i < used; i++)
        atomic_store(&slots[i].state, SLOT_FREE);
    threads_disown(); /* timers are not inherited */
    threads_add_main();
}
