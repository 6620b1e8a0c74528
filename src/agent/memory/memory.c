/*
 * The recorder: life cycle, the lock, recording.  gaps.c chooses the samples, place.c
 * says who allocates, records.c keeps what is recorded; see memory.h.
 */
#include "agent/memory/memory.h"

#include "agent/core/agent.h"
#include "agent/core/check.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/hooks/heap.h"
#include "agent/memory/blocks.h"
#include "agent/memory/clock.h"
#include "agent/memory/deferred.h"
#include "agent/memory/duty.h"
#include "agent/memory/gaps.h"
#include "agent/memory/objects.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/memory/resident.h"
#include "os/os.h"

#include <errno.h>

enum {
    SPINS = 200,
    FORK_WAIT_NS = 200000000, /* most forks are far shorter, also on a busy machine */
    FORK_WAIT_CPU_NS = 20000000,
    LOOK_EVERY = 4,       /* passes between two looks at the resident size */
    TIMED_EVERY = 16,     /* one sample in so many is timed, */
    TIMED_MOST_NS = 5000, /* and what took longer was interrupted */
};

__thread struct memory_thread memory_self __attribute__((tls_model("initial-exec")));

static bool is_set_up; /* in this process, or in one it was forked from */
static _Atomic bool active;
static _Atomic uint32_t locked;
static _Atomic uint64_t forking_since_ns;     /* a thread has the lock for that; 0: none */
static _Atomic uint64_t long_fork_ns;         /* the one, by that, that nobody waits for any more */
static struct deferred to_free[DEFERRED_MAX]; /* of the lock's holder */
static size_t to_free_count;

/* ---- the lock ---- */

static void forget_locked(void *block)
{
    uint32_t records = records_of(block);
    if (!blocks_is_slot(block))
        blocks_remove(block);
    if (atomic_load_explicit(&active, memory_order_relaxed))
        records_release(records);
    if (blocks_is_slot(block))
        blocks_give(block);
}

/* Blocks that could not be forgotten in time.  Those to be freed are kept for unlock(). */
static void forget_deferred(void)
{
    size_t count = deferred_take(to_free);
    for (size_t i = 0; i < count; i++) {
        void *block = to_free[i].block;
        forget_locked(block);
        CHECK_CHEAP(to_free_count <= i); /* what is read is not written over */
        if (!to_free[i].is_foreign && !blocks_is_slot(block))
            to_free[to_free_count++].block = block;
    }
}

/*
 * Also by the CPU time of whoever waits, since *began_cpu_ns: where the whole process or the
 * machine stood still, the fork could not go on either.  What one found holds for all.
 */
static bool forks_for_long(uint64_t *began_cpu_ns)
{
    uint64_t since_ns = atomic_load(&forking_since_ns);
    if (!since_ns)
        return false;
    if (atomic_load(&long_fork_ns) == since_ns)
        return true;
    uint64_t cpu_ns = os_thread_cpu_ns();
    if (!*began_cpu_ns)
        *began_cpu_ns = cpu_ns;
    if (os_mono_ns() - since_ns <= FORK_WAIT_NS || cpu_ns - *began_cpu_ns <= FORK_WAIT_CPU_NS)
        return false;
    atomic_store(&long_fork_ns, since_ns);
    return true;
}

/*
 * False: not now.  While a process forks, the thread that does it has the lock and
 * runs other libraries' fork handlers, which may wait for a lock that the calling
 * thread has, or for long: so nobody waits for that.
 */
static bool lock(void)
{
    uint64_t began_cpu_ns = 0;
    memory_self.busy = true;
    forks_check();
    for (unsigned spins = 1; atomic_exchange_explicit(&locked, 1, memory_order_acquire); spins++) {
        if (spins % SPINS)
            continue;
        forks_check();
        if (forks_for_long(&began_cpu_ns))
            return memory_self.busy = false;
        if (atomic_load_explicit(&active, memory_order_relaxed))
            os_yield();
    }
    forget_deferred();
    return true;
}

/* Freeing is the allocator's business, which has locks of its own: not under ours.  Apart from
 * unlock(), which must not need so much of a thread's stack. */
static __attribute__((noinline)) void unlock_and_free(void)
{
    void *freed[DEFERRED_MAX];
    size_t count = to_free_count;
    for (size_t i = 0; i < count; i++)
        freed[i] = to_free[i].block;
    to_free_count = 0;
    atomic_store_explicit(&locked, 0, memory_order_release);
    for (size_t i = 0; i < count; i++)
        heap_free_untracked(freed[i]);
}

static void unlock(void)
{
    CHECK_CHEAP(memory_is_locked());
    if (to_free_count)
        unlock_and_free();
    else
        atomic_store_explicit(&locked, 0, memory_order_release);
    memory_self.busy = false;
}

bool memory_lock(void)
{
    if (!lock())
        return false;
    if (atomic_load_explicit(&active, memory_order_relaxed))
        return true;
    unlock();
    return false;
}

void memory_unlock(void)
{
    unlock();
}

bool memory_is_locked(void)
{
    return memory_self.busy && atomic_load_explicit(&locked, memory_order_relaxed);
}

bool memory_is_ready(void)
{
    forks_check();
    return atomic_load_explicit(&active, memory_order_relaxed) && !memory_self.busy &&
           atomic_load_explicit(&agent.control->on, memory_order_relaxed);
}

/* A child that is not recorded has no arena, but frees blocks that it has from its parent. */
static bool has_arena(void)
{
    return agent.arena.header != NULL;
}

void memory_lost(void)
{
    if (has_arena())
        arena_lost(&agent.arena, WIRE_LOST_ALLOCATION);
}

/* ---- recording ---- */

/* 0: this one is not timed. */
static uint64_t begin_timing(void)
{
    return ++memory_self.events % TIMED_EVERY ? 0 : os_mono_ns();
}

static void end_timing(uint64_t began_ns)
{
    if (!began_ns || !has_arena())
        return;
    uint64_t ns = os_mono_ns() - began_ns;
    atomic_fetch_add_explicit(&agent.arena.header->memory.sample_ns,
                              TIMED_EVERY * (ns < TIMED_MOST_NS ? ns : TIMED_MOST_NS),
                              memory_order_relaxed);
}

void memory_record(const void *block, struct memory_sample *sample)
{
    memory_self.busy = true;
    int saved = errno;
    uint64_t began_ns = begin_timing();
    if (sample->kind == WIRE_SITE_MAPPED)
        memory_self.heap.given_bytes += sample->bytes; /* no gap has counted it */
    uint32_t frames, node = place_node(&frames);
    bool ok = false;
    if (lock()) {
        uint32_t site = place_site(node, sample->kind, sample->caller);
        ok = site && records_add(block, site, sample);
        if (ok)
            gaps_spend(frames);
        unlock();
    }
    if (!ok)
        memory_lost();
    end_timing(began_ns);
    errno = saved;
}

void memory_record_copy(const struct memory_sample *sample)
{
    memory_self.busy = true;
    int saved = errno;
    uint64_t began_ns = begin_timing();
    uint32_t frames, node = place_node(&frames), site = 0;
    if (lock()) {
        site = place_site(node, sample->kind, sample->caller);
        if (site) {
            gaps_spend(frames);
            records_add_copy(site, sample);
        }
        unlock();
    }
    if (!site)
        memory_lost();
    end_timing(began_ns);
    errno = saved;
}

void *memory_take_slot(size_t size_bytes, size_t align_bytes)
{
    void *slot = NULL;
    if (lock()) {
        slot = blocks_take(size_bytes, align_bytes);
        unlock();
    }
    if (!slot)
        memory_lost();
    return slot;
}

static bool forget(void *block, bool is_foreign)
{
    uint64_t began_ns = begin_timing();
    if (memory_self.busy || !lock()) {
        /* No room: a block is never freed then, a foreign one stays on the books. */
        if (!deferred_put(block, is_foreign) && is_foreign)
            memory_lost();
        return false;
    }
    forget_locked(block);
    unlock();
    end_timing(began_ns);
    return true;
}

bool memory_forget(void *block)
{
    return forget(block, false);
}

void memory_forget_foreign(void *block)
{
    forget(block, true);
}

void memory_give_slot(void *slot)
{
    memory_forget(slot);
}

bool memory_detach(const void *block, uint32_t *records)
{
    if (memory_self.busy || !lock())
        return false;
    *records = records_take(block);
    unlock();
    return true;
}

void memory_attach(const void *block, uint32_t records, uint64_t size_bytes)
{
    if (!records)
        return;
    if (!lock()) { /* they stay on the books, of no block */
        memory_lost();
        return;
    }
    if (atomic_load_explicit(&active, memory_order_relaxed) &&
        !records_put(block, records, size_bytes))
        memory_lost();
    unlock();
}

void memory_forget_modules(void)
{
    if (!atomic_load(&active) || memory_self.busy || !lock())
        return;
    place_forget_modules();
    unlock();
}

/* ---- life cycle ---- */

static void begin_counting(void)
{
    records_begin();
    gaps_begin();
    clock_begin();
}

void memory_prepare(void)
{
    if (agent.control->allocation_window_bytes)
        objects_prepare();
}

void memory_start(void)
{
    if (!agent.with_memory)
        return;
    memory_self.busy = true;
    bool has_room = blocks_init() && place_init() && resident_init();
    if (has_room) {
        begin_counting();
        heap_follow();
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_MEMORY);
        is_set_up = true;
        atomic_store(&active, true);
    }
    memory_self.busy = false;
    if (has_room && !objects_install())
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_NO_OBJECTS);
}

void memory_stop(void)
{
    atomic_store(&active, false);
}

void memory_before_fork(void)
{
    if (!is_set_up || memory_self.busy || !lock())
        return;
    atomic_store(&forking_since_ns, os_mono_ns());
    memory_self.forking = true; /* stays busy: other handlers may allocate */
}

void memory_in_parent(void)
{
    if (!memory_self.forking)
        return;
    memory_self.forking = false;
    atomic_store(&forking_since_ns, 0);
    unlock();
}

void memory_in_child(bool is_recorded)
{
    if (!is_set_up)
        return;
    /* Whoever held the lock is not in this process: it is ours now. */
    bool was_forking = memory_self.forking;
    memory_self.busy = true;
    memory_self.forking = false;
    atomic_store(&forking_since_ns, 0);
    atomic_store(&locked, 1);
    atomic_store(&active, is_recorded);
    if (!is_recorded)
        to_free_count = 0; /* perhaps half written: they are never freed */
    if (is_recorded) {
        blocks_forget();
        place_reset();
        duty_in_child();
        begin_counting();
        resident_in_child(was_forking);
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_MEMORY);
    }
    unlock();
}

void memory_end(void)
{
    if (!atomic_load(&active))
        return;
    if (!memory_self.busy)
        resident_end(false);
    records_look_at_end();
}

void memory_disown(void)
{
    memory_self.busy = true;
}

void memory_pass(void)
{
    static unsigned passes;
    if (!atomic_load(&active))
        return;
    if (lock()) {
        records_note_total();
        gaps_keep_pace();
        unlock();
    }
    resident_pass(os_mono_ns());
    memory_self.busy = true; /* as memory_disown() left it */
    if (passes++ % LOOK_EVERY == 0) {
        records_look();
        place_expire();
    }
}
