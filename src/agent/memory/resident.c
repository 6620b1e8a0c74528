#include "agent/memory/resident.h"

#include "agent/core/agent.h"
#include "agent/memory/looks.h"
#include "agent/memory/mapped.h"
#include "agent/memory/memory.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/memory/runners.h"
#include "os/os.h"

#include <errno.h>

enum {
    SAMPLER_PAGES = 4096, /* asked for at once where nothing is known to be resident */
    OWN_PAGES = 1024,     /* and from a thread of the program's, on its stack */
    LAST_STEPS = 32,      /* so often, of what is about to go, */
    FULL_STEPS = 4,       /* and of what need not be looked at */
    LOOK_NS = 2000000,    /* most CPU time for one look */
    END_NS = 20000000,
    LOOK_USUAL_NS = 100000,   /* what one is taken to cost before there was one */
    BRIEF_TIMES = 600,        /* looks take at most one such part of the time each: */
    ALL_TIMES = 1200,         /* those at what is likely to grow, those at all, */
    OWN_TIMES = 50,           /* and those of the program's threads, */
    OWN_AHEAD_NS = 250000000, /* which may be so much ahead of that: what goes is not seen again */
    PASSES_MAX = 5,           /* without a look while pages are touched */
    MAPPER_US = 1000,         /* mapping counts as so much of running */
    DEPARTING = 32,           /* ranges that cannot be forgotten at once */
};

static _Atomic uintptr_t lowest = UINTPTR_MAX, highest; /* nothing is followed outside */

/* Addresses from here on are of no program: ranges that the system is moving. */
#define LIMBO ((uintptr_t)1 << 63)

bool resident_init(void)
{
    looks_page_bytes = os_page_bytes();
    return mapped_init();
}

/* ---- ranges that go while the lock is not to be had ---- */

static struct {
    _Atomic uintptr_t start, end;
} departing[DEPARTING];
static _Atomic bool has_departing;

static void set_aside(uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < DEPARTING; i++) {
        uintptr_t expected = 0;
        if (atomic_compare_exchange_strong(&departing[i].start, &expected, start)) {
            atomic_store(&departing[i].end, end);
            atomic_store(&has_departing, true);
            return;
        } /* no room: it stays on the books, until a look finds that it is gone */
    }
}

static void forget_departing(void)
{
    if (!atomic_load_explicit(&has_departing, memory_order_acquire))
        return;
    atomic_store(&has_departing, false);
    for (int i = 0; i < DEPARTING; i++) {
        uintptr_t end = atomic_exchange(&departing[i].end, 0);
        if (end)
            mapped_remove(atomic_exchange(&departing[i].start, 0), end);
    }
}

bool resident_lock(void)
{
    if (!memory_lock())
        return false;
    forget_departing();
    return true;
}

/* ---- the sampler ---- */

static unsigned char sampler_pages[SAMPLER_PAGES];

/* Looks take so much time in all: the next one comes after that many times as long as one took. */
static uint64_t next_after(uint64_t now_mono_ns, uint64_t began_cpu_ns, unsigned times)
{
    return now_mono_ns + (os_thread_cpu_ns() - began_cpu_ns) * times;
}

/* The same, by the cheaper one of the last two: where the machine was slow for once, all that is
 * touched in the next second would be nobody's. */
static uint64_t next_but_for_one(uint64_t now_mono_ns, uint64_t began_cpu_ns, unsigned times,
                                 uint64_t *last_ns)
{
    uint64_t cost_ns = os_thread_cpu_ns() - began_cpu_ns;
    uint64_t less_ns = cost_ns < *last_ns ? cost_ns : *last_ns;
    *last_ns = cost_ns;
    return now_mono_ns + less_ns * times;
}

/* Allocators use what they have reserved from its start on: where nothing new is found next to what
 * was there, the rest is left to look_at_all(). */
static bool look_briefly(struct looks *look)
{
    uintptr_t from = 0;
    uint64_t clock = mapped_clock;
    if (!resident_lock())
        return false;
    runners_find();
    memory_unlock();
    look->which = LOOKS_STALE;
    bool is_done = looks_through(look, &from, LIMBO, UINT32_MAX);
    from = 0;
    look->which = LOOKS_GROWN;
    look->is_brief = true;
    is_done &= looks_through(look, &from, LIMBO, UINT32_MAX);
    look->is_brief = false;
    if (is_done)
        looks_clock = clock;
    return is_done;
}

/* From where the last one came to. */
static bool look_at_all(struct looks *look)
{
    static uintptr_t at, full_at;
    look->which = LOOKS_FULL;
    if (looks_through(look, &full_at, LIMBO, FULL_STEPS))
        full_at = 0;
    look->which = LOOKS_GROWN;
    bool is_done = looks_through(look, &at, LIMBO, UINT32_MAX);
    if (is_done)
        at = 0;
    return is_done;
}

void resident_pass(uint64_t now_mono_ns)
{
    static uint64_t next_brief_ns, next_all_ns, seen, all_seen, brief_ns = LOOK_USUAL_NS;
    static unsigned passes;
    if (!atomic_load_explicit(&highest, memory_order_relaxed) || records_have_ended())
        return;
    uint64_t touched = os_faults() + mapped_clock, began_ns = os_thread_cpu_ns();
    struct looks look = {
        .is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed),
        .until_cpu_ns = began_ns + LOOK_NS,
        .pages = sampler_pages,
        .page_count = SAMPLER_PAGES,
    };
    /* A sample is of the time before it: whoever touches these pages may not have had one yet. */
    if (touched != seen && now_mono_ns >= next_brief_ns &&
        (runners_are_new() || ++passes >= PASSES_MAX)) {
        passes = 0;
        seen = look_briefly(&look) ? touched : 0;
        next_brief_ns = next_but_for_one(now_mono_ns, began_ns, BRIEF_TIMES, &brief_ns);
    }
    if (touched != all_seen && now_mono_ns >= next_all_ns) {
        began_ns = os_thread_cpu_ns();
        look.until_cpu_ns = began_ns + LOOK_NS;
        if (look_at_all(&look))
            all_seen = touched;
        next_all_ns = next_after(now_mono_ns, began_ns, ALL_TIMES);
    }
}

__attribute__((noinline)) void resident_end(bool has_lock)
{
    unsigned char pages[OWN_PAGES];
    uintptr_t at = 0;
    if (!atomic_load_explicit(&highest, memory_order_relaxed))
        return;
    struct looks look = {
        .which = LOOKS_STALE,
        .has_lock = has_lock,
        .is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed),
        .until_cpu_ns = os_thread_cpu_ns() + END_NS,
        .pages = pages,
        .page_count = OWN_PAGES,
    };
    looks_through(&look, &at, LIMBO, UINT32_MAX);
    at = 0;
    look.which = LOOKS_GROWN;
    looks_through(&look, &at, LIMBO, UINT32_MAX);
}

void resident_in_child(bool is_whole)
{
    uintptr_t at = 0;
    struct looks look = {
        .which = LOOKS_GROWN,
        .is_baseline = true,
        .has_lock = true,
        .until_cpu_ns = os_thread_cpu_ns() + LOOK_NS,
        .pages = sampler_pages,
        .page_count = SAMPLER_PAGES,
    };
    runners_forget();
    for (size_t i = 0; i < mapped_count(); i++) {
        struct mapped_piece *piece = mapped_at(i);
        piece->is_inherited |= piece->record != 0;
        piece->is_stale = false;
        piece->record = piece->node = 0;
        piece->resident_bytes = 0;
    }
    if (is_whole)
        forget_departing();
    if (!is_whole || !looks_through(&look, &at, LIMBO, UINT32_MAX))
        mapped_forget();
}

/* ---- for the hooks ---- */

static bool may_concern(uintptr_t start, size_t bytes)
{
    return start < atomic_load_explicit(&highest, memory_order_relaxed) &&
           start + bytes > atomic_load_explicit(&lowest, memory_order_relaxed) && bytes &&
           start % looks_page_bytes == 0;
}

static uintptr_t end_of(uintptr_t start, size_t bytes)
{
    return start + ((bytes + looks_page_bytes - 1) & ~(looks_page_bytes - 1));
}

static void widen(uintptr_t start, uintptr_t end)
{
    if (start < atomic_load_explicit(&lowest, memory_order_relaxed))
        atomic_store_explicit(&lowest, start, memory_order_relaxed);
    if (end > atomic_load_explicit(&highest, memory_order_relaxed))
        atomic_store_explicit(&highest, end, memory_order_relaxed);
}

static void add(uintptr_t start, uintptr_t end, bool is_open, const struct mapped_piece *like)
{
    mapped_remove(start, end); /* nothing is there any more, if anything was */
    if (mapped_add(start, end, is_open, like))
        widen(start, end);
    else
        memory_lost();
}

void resident_map(const void *start, size_t bytes, bool is_open, bool is_pool, const void *caller)
{
    memory_self.busy = true;
    int saved = errno;
    uint32_t frames, node = place_node(&frames);
    struct mapped_piece like = {.node = node, .caller = caller, .is_pool = is_pool};
    if (is_pool && is_open)
        runners_ran(node, true, MAPPER_US * 1000);
    if (resident_lock()) {
        add((uintptr_t)start, end_of((uintptr_t)start, bytes), is_open, &like);
        memory_unlock();
    } else {
        memory_lost();
    }
    errno = saved;
}

/* What came since the last look is seen before it goes, unless that is asked for so often that it
 * would cost the program something.  Gives back with the lock, or false. */
static __attribute__((noinline)) bool look_before(uintptr_t start, uintptr_t end)
{
    static _Atomic uint64_t next_ns;
    unsigned char pages[OWN_PAGES]; /* a function of its own for this room on the stack */
    struct looks look = {.which = LOOKS_GROWN, .pages = pages, .page_count = OWN_PAGES};
    if (!resident_lock())
        return false;
    if (!records_have_ended() && place_has_ended()) {
        resident_end(true);
        records_look_at_end();
    }
    if (records_have_ended() || !looks_any(&look, start, end))
        return true;
    uint64_t now_ns = os_mono_ns(), due_ns = atomic_load_explicit(&next_ns, memory_order_relaxed);
    if (now_ns + OWN_AHEAD_NS < due_ns)
        return true;
    uint64_t began_ns = os_thread_cpu_ns();
    look.is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed);
    memory_unlock();
    looks_through(&look, &start, end, LAST_STEPS);
    atomic_store_explicit(&next_ns,
                          next_after(due_ns > now_ns ? due_ns : now_ns, began_ns, OWN_TIMES),
                          memory_order_relaxed);
    return resident_lock();
}

void resident_unmap(const void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address, end = end_of(start, bytes);
    if (!may_concern(start, bytes))
        return;
    int saved = errno;
    if (memory_self.busy || !look_before(start, end)) {
        set_aside(start, end);
    } else {
        mapped_remove(start, end);
        memory_unlock();
    }
    errno = saved;
}

void resident_before_discard(const void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address;
    if (memory_self.busy || !may_concern(start, bytes))
        return;
    int saved = errno;
    if (look_before(start, end_of(start, bytes)))
        memory_unlock();
    errno = saved;
}

void resident_open(const void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address;
    if (memory_self.busy || !may_concern(start, bytes))
        return;
    int saved = errno;
    if (resident_lock()) {
        mapped_open(start, end_of(start, bytes));
        memory_unlock();
    }
    errno = saved;
}

void resident_discard(const void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address;
    if (memory_self.busy || !may_concern(start, bytes))
        return;
    int saved = errno;
    if (resident_lock()) {
        mapped_discard(start, end_of(start, bytes));
        memory_unlock();
    }
    errno = saved;
}

/* Where ranges are while the system moves them: no addresses of any program, another one each. */
static uintptr_t new_limbo(void)
{
    static _Atomic uint32_t count;
    return LIMBO | (uintptr_t)(atomic_fetch_add(&count, 1) % 1024) << 52;
}

uintptr_t resident_depart(const void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address, end = end_of(start, bytes), limbo = 0;
    if (!may_concern(start, bytes))
        return 0;
    if (memory_self.busy || !resident_lock()) {
        set_aside(start, end); /* it is no longer known where it goes */
        return 0;
    }
    size_t index = mapped_find(start);
    if (index < mapped_count() && mapped_at(index)->start < end) {
        limbo = new_limbo();
        mapped_move(start, end, limbo);
    }
    memory_unlock();
    return limbo;
}

void resident_arrive(uintptr_t departed, size_t bytes, const void *to, size_t new_bytes,
                     const void *caller)
{
    uintptr_t start = (uintptr_t)to, end = end_of(start, bytes), new_end = end_of(start, new_bytes);
    memory_self.busy = true;
    int saved = errno;
    uint32_t frames, node = new_end > end ? place_node(&frames) : 0;
    if (!resident_lock()) { /* it stays where nobody looks */
        errno = saved;
        return;
    }
    size_t last = mapped_find(end_of(departed, bytes) - 1);
    struct mapped_piece like = {.node = node, .caller = caller};
    if (last < mapped_count())
        like.is_pool = mapped_at(last)->is_pool;
    mapped_remove(start, end > new_end ? end : new_end);
    mapped_move(departed, end_of(departed, bytes), start);
    widen(start, end);
    if (new_end < end)
        mapped_remove(new_end, end);
    else if (new_end > end)
        add(end, new_end, true, &like);
    memory_unlock();
    errno = saved;
}
