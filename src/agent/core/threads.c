#include "agent/core/threads.h"

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/kin.h"
#include "agent/cpu/owner.h"
#include "agent/hooks/signals.h"
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

/*
 * Unless a rate was asked for: as dense as the kernel's tick allows (a timer on a CPU clock goes
 * off at ticks, 1 to 10 ms apart), while samples cost no more than one part in COST_SHARE of the
 * CPU time.
 */
enum {
    DENSE_INTERVAL_NS = 1000000,
    SPARSE_INTERVAL_NS = 100000000, /* however dear samples are; and while switched off */
    DELIVERY_NS = 3000,             /* what the signal costs before and after the handler, about */
    COST_SHARE = 333,
    CREDIT_NS = 3000000, /* what they may cost before that is looked at: the first are dear */
};

/* Room for so many threads is made at once: all that there can be would be 76 MB of addresses. */
enum { CHUNK = 32 };
static _Atomic(struct thread *) chunks[THREADS_MAX / CHUNK];
static _Atomic unsigned used_count;
static _Atomic unsigned free_hint; /* start searching here */
static pthread_key_t end_key;
static bool has_end_key;
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static __thread struct thread *self __attribute__((tls_model("initial-exec")));

struct thread *threads_self(void)
{
    return self;
}

struct thread *threads_at(unsigned index)
{
    return &atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire)[index % CHUNK];
}

/* Of one that may never have been taken.  False: no room. */
static bool make_room(unsigned index)
{
    _Atomic(struct thread *) *chunk = &chunks[index / CHUNK];
    struct thread *there = atomic_load_explicit(chunk, memory_order_acquire);
    if (there)
        return true;
    struct thread *made = os_reserve(sizeof *made * CHUNK);
    if (!made)
        return false;
    for (unsigned i = 0; i < CHUNK; i++)
        made[i].index = index / CHUNK * CHUNK + i;
    if (!atomic_compare_exchange_strong(chunk, &there, made)) /* another thread was faster */
        os_release(made, sizeof *made * CHUNK);
    return true;
}

unsigned threads_used(void)
{
    return atomic_load_explicit(&used_count, memory_order_acquire);
}

static struct thread *take(void)
{
    unsigned start = atomic_load_explicit(&free_hint, memory_order_relaxed);
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        unsigned index = (start + i) % THREADS_MAX;
        if (!make_room(index))
            break;
        struct thread *thread = threads_at(index);
        uint32_t expected = THREAD_FREE;
        if (atomic_load_explicit(&thread->state, memory_order_relaxed) == THREAD_FREE &&
            atomic_compare_exchange_strong(&thread->state, &expected, THREAD_TAKEN)) {
            unsigned used = atomic_load(&used_count);
            while (used < index + 1 && !atomic_compare_exchange_weak(&used_count, &used, index + 1))
                ;
            atomic_store_explicit(&free_hint, index + 1, memory_order_relaxed);
            return thread;
        }
    }
    arena_lost(&agent.arena, WIRE_LOST_THREAD);
    return NULL;
}

void threads_free(struct thread *thread)
{
    atomic_store_explicit(&free_hint, thread->index, memory_order_relaxed);
    atomic_store(&thread->state, THREAD_FREE);
}

static uint32_t next_random(struct thread *thread)
{
    uint32_t x = thread->random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return thread->random = x;
}

static uint64_t mean_interval_ns(void)
{
    const struct wire_header *header = agent.arena.header;
    if (agent.control->flags & WIRE_FLAG_FIXED_RATE)
        return agent.control->cpu_interval_ns;
    uint64_t count = atomic_load_explicit(&header->handler_count, memory_order_relaxed);
    uint64_t ns = atomic_load_explicit(&header->handler_ns, memory_order_relaxed);
    uint64_t cost_ns = ns + count * DELIVERY_NS;
    uint64_t mean = cost_ns < CREDIT_NS ? DENSE_INTERVAL_NS : COST_SHARE * (cost_ns / count);
    return mean < SPARSE_INTERVAL_NS ? mean : SPARSE_INTERVAL_NS;
}

uint64_t threads_next_interval_ns(struct thread *thread)
{
    if (!atomic_load_explicit(&agent.control->on, memory_order_relaxed))
        return SPARSE_INTERVAL_NS;
    uint64_t mean = mean_interval_ns();
    /* Jitter keeps us out of step with a program that works in a rhythm of its own. */
    return mean / 2 + next_random(thread) % (mean + 1);
}

static uint16_t new_record(const struct thread *thread)
{
    uint32_t id = arena_append(&agent.arena, WIRE_THREAD, 1);
    if (!id)
        return 0;
    struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, id);
    record->ident = (uint64_t)thread->ident;
    record->tid = thread->tid;
    prctl(PR_GET_NAME, record->name);
    return (uint16_t)id;
}

/* In the thread itself: give it its timer and go live. */
static void begin(struct thread *thread)
{
    thread->tid = os_gettid();
    thread->ident = pthread_self();
    thread->random = (uint32_t)thread->tid * 2654435761u | 1;
    thread->log = (struct timeline_cursor){0};
    thread->begin_wall_ns = os_mono_ns();
    thread->begin_cpu_ns = thread->last_cpu_ns = os_thread_cpu_ns();
    thread->has_no_line = false;
    thread->loop = NULL;
    thread->poll_fd = -1;
    thread->polls = thread->epolls_made = thread->epolls_met = 0;
    thread->is_asked_again = false;
    thread->asked_ns = 0;
    atomic_store(&thread->place, 0);
    kin_begin(thread);
    atomic_store(&thread->tstate, 0);
    atomic_store(&thread->last_node, 0);
    thread->record = new_record(thread);
    atomic_fetch_add(&thread->serial, 1);
    thread->has_timer = os_timer_create(thread->tid, &thread->timer);
    if (!thread->has_timer)
        arena_lost(&agent.arena, WIRE_LOST_TIMER);
    self = thread;
    atomic_store(&thread->state, THREAD_LIVE);
    if (thread->has_timer)
        os_timer_arm(thread->timer,
                     1); /* at the next tick: of a short thread each part is as likely */
}

/* Once: its number may be another timer's afterwards, one of the program's own. */
static void delete_timer(struct thread *thread)
{
    if (atomic_exchange(&thread->has_timer, false))
        os_timer_delete(thread->timer);
}

/* The thread ends.  What it used since its last sample is left to its kin. */
static void end(void *argument)
{
    struct thread *thread = argument;
    if (self != thread)
        return;
    self = NULL; /* from here on a late signal finds nobody */
    if (!atomic_load(&agent.active))
        return;
    bool was_sampled = thread->has_timer;
    delete_timer(thread);
    uint64_t cpu = os_thread_cpu_ns();
    thread->end_cpu_ns = cpu;
    thread->end_wall_ns = os_mono_ns();
    if (was_sampled && atomic_load(&agent.control->on))
        kin_leave(thread, cpu - thread->last_cpu_ns);
    if (thread->record) {
        struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, thread->record);
        atomic_store(&record->cpu_ns, cpu - thread->begin_cpu_ns);
    }
    /* The sampler closes its descriptors for this thread and then frees the thread. */
    if (atomic_load(&agent.has_sampler))
        atomic_store(&thread->state, THREAD_ENDED);
    else
        threads_free(thread);
}

static void *run(void *argument)
{
    struct thread *thread = argument;
    void *(*start)(void *) = thread->start;
    void *start_argument = thread->start_argument;
    signals_inherit(thread->blocks_signal);
    begin(thread);
    if (has_end_key)
        pthread_setspecific(end_key, thread);
    return start(start_argument);
}

AGENT_EXPORT int pthread_create(pthread_t *ident, const pthread_attr_t *attributes,
                                void *(*start)(void *), void *argument)
{
    if (!real_create)
        *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    forks_check();
    struct thread *thread = atomic_load(&agent.active) ? take() : NULL;
    if (!thread)
        return real_create(ident, attributes, start, argument);
    thread->start = start;
    thread->start_argument = argument;
    thread->is_main = false;
    owner_begin(thread);
    thread->blocks_signal = signals_sample_is_blocked();
    int failed = real_create(ident, attributes, run, thread);
    if (failed)
        threads_free(thread);
    return failed;
}

bool threads_init(void)
{
    has_end_key = !pthread_key_create(&end_key, end);
    return make_room(0);
}

void threads_add_main(void)
{
    struct thread *thread = take();
    if (!thread)
        return;
    thread->is_main = true;
    thread->starter = NULL;
    thread->birth_node = 0;
    begin(thread);
    if (has_end_key)
        pthread_setspecific(end_key, thread);
}

void threads_stop(void)
{
    for (unsigned i = 0; i < threads_used(); i++)
        if (atomic_load(&threads_at(i)->state) == THREAD_LIVE)
            delete_timer(threads_at(i));
}

/* Timers are not inherited; descriptors are numbers of a table that only the parent has. */
void threads_in_child(bool is_recorded)
{
    unsigned used = threads_used();
    for (unsigned i = 0; i < used; i++) {
        struct thread *thread = threads_at(i);
        thread->seen_serial = 0;
        thread->syscall_fd = thread->delay_fd = -1;
        atomic_store(&thread->state, THREAD_FREE);
    }
    self = NULL;
    if (is_recorded)
        threads_add_main();
}
