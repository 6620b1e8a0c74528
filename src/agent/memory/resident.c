#include "agent/memory/resident.h"

#include "agent/core/agent.h"
#include "agent/core/check.h"
#include "agent/memory/mapped.h"
#include "agent/memory/memory.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "os/os.h"

#include <errno.h>

enum {
    SAMPLER_PAGES = 4096, /* asked for at once where nothing is known to be resident */
    OWN_PAGES = 1024,     /* and from a thread of the program's, on its stack */
    LAST_STEPS = 32,      /* so often, of what is about to go, */
    FULL_STEPS = 4,       /* and of what need not be looked at */
    LOOK_NS = 2000000,    /* most CPU time for one look */
    END_NS = 5000000,
    LOOK_EVERY = 400, /* looks take one such part of the time */
    PASSES_MAX = 5,   /* without a look while pages are touched */
    RUNS = 64,        /* CPU samples kept between two looks */
    RUNNERS = 8,      /* stacks that share what was touched between two looks */
    MAPPER_US = 1000, /* mapping counts as so much of running */
    DEPARTING = 32,   /* ranges that cannot be forgotten at once */
};

static size_t page_bytes;
static _Atomic uintptr_t lowest = UINTPTR_MAX, highest; /* nothing is followed outside */
static _Atomic uint64_t looked_clock; /* mapped_clock when the last whole look began */

/* Addresses from here on are of no program: ranges that the system is moving. */
#define LIMBO ((uintptr_t)1 << 63)

bool resident_init(void)
{
    page_bytes = os_page_bytes();
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

/* False: not now.  Leaves `busy` as memory_lock() does. */
static bool take_lock(void)
{
    if (!memory_lock())
        return false;
    forget_departing();
    return true;
}

/* ---- who runs ---- */

/* node << 32 | is_native << 31 | microseconds */
static _Atomic uint64_t runs[RUNS];
static _Atomic uint32_t run_count;
static uint32_t runs_seen;

/* Of the last look in which anybody ran. */
static struct runner {
    uint32_t node;
    uint64_t us, given_bytes;
} runners[RUNNERS];
static uint64_t runners_us, given_bytes;

void resident_ran(uint32_t node, bool is_native, uint64_t ns)
{
    uint64_t us = ns / 1000 < INT32_MAX ? ns / 1000 + 1 : INT32_MAX;
    uint32_t at = atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed) % RUNS;
    atomic_store_explicit(&runs[at], (uint64_t)node << 32 | (uint64_t)is_native << 31 | us,
                          memory_order_relaxed);
}

static void add_runner(uint32_t node, uint64_t us)
{
    for (int i = 0; i < RUNNERS; i++)
        if (!runners[i].us || runners[i].node == node) {
            runners[i].node = node;
            runners[i].us += us;
            runners_us += us;
            return;
        }
}

/* Native code where any ran: what a library maps is for that. */
static void find_runners(void)
{
    uint32_t now = atomic_load_explicit(&run_count, memory_order_relaxed);
    uint32_t first = now - runs_seen > RUNS ? now - RUNS : runs_seen;
    bool any_native = false;
    for (uint32_t i = first; i != now; i++)
        any_native |= atomic_load_explicit(&runs[i % RUNS], memory_order_relaxed) >> 31 & 1;
    if (first == now)
        return;
    runs_seen = now;
    runners_us = given_bytes = 0;
    for (int i = 0; i < RUNNERS; i++)
        runners[i] = (struct runner){0};
    for (uint32_t i = first; i != now; i++) {
        uint64_t run = atomic_load_explicit(&runs[i % RUNS], memory_order_relaxed);
        if ((run >> 31 & 1) == any_native)
            add_runner((uint32_t)(run >> 32), run & INT32_MAX);
    }
}

/* Whoever is owed most, so that all get what their time is worth. */
static uint32_t choose_runner(uint64_t bytes)
{
    struct runner *chosen = NULL;
    double most = 0;
    given_bytes += bytes;
    for (int i = 0; i < RUNNERS && runners[i].us; i++) {
        double owed = (double)given_bytes * (double)runners[i].us / (double)runners_us -
                      (double)runners[i].given_bytes;
        if (!chosen || owed > most) {
            chosen = &runners[i];
            most = owed;
        }
    }
    if (!chosen)
        return 0;
    chosen->given_bytes += bytes;
    return chosen->node;
}

static uint32_t site_for(const struct mapped_piece *piece, uint64_t bytes)
{
    uint32_t node = piece->node;
    if (!node || (piece->is_arena && piece->born <= looked_clock))
        node = choose_runner(bytes);
    if (!node)
        node = piece->node;
    if (!node)
        node = tables_node(&agent.tables, 0, WIRE_FRAME_NO_PYTHON, 0, 0, 0);
    return node ? place_site(node, WIRE_SITE_MAPPED, piece->caller) : 0;
}

/* ---- looking ---- */

enum which {
    LOOK_STALE, /* what may have become less, */
    LOOK_GROWN, /* what may have become more, */
    LOOK_FULL,  /* what is resident in full: if it went, we were not told */
};

struct look {
    enum which which;
    bool is_baseline; /* what is found is nobody's */
    bool has_lock;    /* and keeps it */
    uint64_t until_cpu_ns;
    unsigned char *pages; /* what the system answers: a byte for each page, 1: resident */
    size_t page_count;    /* room */
};

struct step {
    uintptr_t start, end;
    uint64_t clock;
};

static bool is_full(const struct mapped_piece *piece)
{
    return piece->resident_bytes == piece->end - piece->start;
}

static bool is_due(const struct mapped_piece *piece, enum which which)
{
    if (which == LOOK_STALE)
        return piece->is_stale;
    if (piece->record)
        return is_full(piece) == (which == LOOK_FULL);
    return which == LOOK_GROWN && !piece->is_inherited && piece->low < piece->high;
}

/* What of the piece to look at now, at or behind `from` and before `to`.  False: nothing. */
static bool plan(const struct look *look, const struct mapped_piece *piece, uintptr_t from,
                 uintptr_t to, struct step *step)
{
    uintptr_t start = piece->record ? piece->start : piece->low;
    uintptr_t end = piece->record ? piece->end : piece->high;
    size_t most = piece->record ? (size_t)MAPPED_STEP_BYTES : look->page_count * page_bytes;
    if (!is_due(piece, look->which) || end <= from || start >= end || start >= to)
        return false;
    *step = (struct step){start, end, mapped_clock};
    if (piece->record && !is_full(piece)) /* where in it pages are is not known: all of it */
        return true;
    if (step->start < from)
        step->start = from;
    if (!piece->record && step->end > to)
        step->end = to;
    if (step->end - step->start > most)
        step->end = (step->start / most + 1) * most;
    return true;
}

/* The next range to be looked at.  Under the lock. */
static bool next_step(const struct look *look, uintptr_t from, uintptr_t to, struct step *step)
{
    for (size_t i = mapped_find(from); i < mapped_count() && mapped_at(i)->start < to; i++)
        if (plan(look, mapped_at(i), from, to, step))
            return true;
    return false;
}

/* What was found of a piece that had records before. */
static void recount(const struct step *step, size_t index, uint64_t resident)
{
    if (!mapped_carve(step->start, step->end, &index))
        return;
    struct mapped_piece *piece = mapped_at(index);
    uint64_t before = piece->resident_bytes;
    piece->is_stale = false;
    if (resident < before) {
        piece->record = records_shrink_mapped(piece->record, before - resident);
    } else if (resident > before) {
        records_grow_mapped(piece->record, records_site(piece->record), resident - before);
    }
    piece->resident_bytes = resident;
    mapped_join(index);
}

/* A part of a piece without records is resident now. */
static void claim(const struct look *look, uintptr_t start, uintptr_t end, uint64_t resident)
{
    size_t index;
    if (!mapped_carve(start, end, &index)) {
        memory_lost();
        return;
    }
    struct mapped_piece *piece = mapped_at(index);
    uint32_t site = look->is_baseline ? 0 : site_for(piece, resident);
    piece->record = site ? records_grow_mapped(0, site, resident) : 0;
    if (piece->record)
        piece->resident_bytes = resident;
    else
        piece->is_inherited = true;
    if (!piece->record && !look->is_baseline)
        memory_lost();
    mapped_join(index);
}

/* Runs of grains in which something is resident, those that are resident in full apart. */
static void claim_runs(const struct look *look, const struct step *step, size_t grain)
{
    uintptr_t run = 0;
    uint64_t run_bytes = 0;
    bool run_is_full = false;
    for (uintptr_t at = step->start, next; at < step->end; at = next) {
        next = (at / grain + 1) * grain;
        if (next > step->end)
            next = step->end;
        uint64_t bytes = 0;
        for (uintptr_t page = at; page < next; page += page_bytes)
            bytes += look->pages[(page - step->start) / page_bytes] & 1 ? page_bytes : 0;
        bool is_full = bytes == next - at;
        if (run &&
            (!bytes || is_full != run_is_full || (!is_full && at % MAPPED_STEP_BYTES == 0))) {
            claim(look, run, at, run_bytes);
            run = 0;
        }
        if (bytes && !run) {
            run = at;
            run_bytes = 0;
            run_is_full = is_full;
        }
        run_bytes += bytes;
    }
    if (run)
        claim(look, run, step->end, run_bytes);
}

/* Under the lock: what the system said of it holds if the program left it alone meanwhile. */
static void apply(const struct look *look, const struct step *step, bool is_there)
{
    size_t index = mapped_find(step->start);
    const struct mapped_piece *piece = index < mapped_count() ? mapped_at(index) : NULL;
    if (!piece || piece->start > step->start || piece->end < step->end ||
        piece->changed > step->clock)
        return;
    if (!is_there) { /* it went without our being told */
        mapped_remove(step->start, step->end);
        return;
    }
    if (!piece->record) {
        claim_runs(look, step, piece->grain_bytes);
        return;
    }
    uint64_t resident = 0;
    for (size_t i = 0; i < (step->end - step->start) / page_bytes; i++)
        resident += look->pages[i] & 1 ? page_bytes : 0;
    recount(step, index, resident);
}

/* From *at on, which is moved.  False: time is up, or the lock was not to be had. */
static bool look_through(const struct look *look, uintptr_t *at, uintptr_t to, unsigned steps)
{
    for (; steps; steps--) {
        struct step step;
        if (!look->has_lock && !take_lock())
            return false;
        bool is_more = next_step(look, *at, to, &step);
        if (!look->has_lock)
            memory_unlock();
        if (!is_more)
            return true;
        bool is_there = os_resident(step.start, step.end - step.start, look->pages);
        if (!look->has_lock && !take_lock())
            return false;
        apply(look, &step, is_there);
        if (!look->has_lock)
            memory_unlock();
        *at = step.end;
        if (look->until_cpu_ns && os_thread_cpu_ns() > look->until_cpu_ns)
            return false;
    }
    return false;
}

/* ---- the sampler ---- */

static unsigned char sampler_pages[SAMPLER_PAGES];

void resident_pass(uint64_t now_mono_ns)
{
    static uint64_t next_ns, last_faults, clock;
    static unsigned passes;
    static uintptr_t at, full_at; /* how far the looks have come that are under way */
    uint64_t faults;
    if (!atomic_load_explicit(&highest, memory_order_relaxed) || now_mono_ns < next_ns ||
        records_have_ended())
        return;
    faults = os_faults() + mapped_clock;
    if (faults == last_faults && !at)
        return;
    /* A sample is of the time before it: whoever touches these pages may not have had one yet. */
    if (atomic_load_explicit(&run_count, memory_order_relaxed) == runs_seen &&
        ++passes < PASSES_MAX)
        return;
    passes = 0;
    uint64_t began_ns = os_thread_cpu_ns();
    struct look look = {
        .which = LOOK_STALE,
        .is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed),
        .until_cpu_ns = began_ns + LOOK_NS,
        .pages = sampler_pages,
        .page_count = SAMPLER_PAGES,
    };
    uintptr_t from = 0;
    if (!at) {
        clock = mapped_clock;
        last_faults = faults;
    }
    if (!take_lock())
        return;
    find_runners();
    memory_unlock();
    if (!look_through(&look, &from, LIMBO, UINT32_MAX))
        last_faults = 0;
    look.which = LOOK_GROWN;
    if (look_through(&look, &at, LIMBO, UINT32_MAX)) {
        looked_clock = clock;
        at = 0;
    }
    look.which = LOOK_FULL;
    if (look_through(&look, &full_at, LIMBO, FULL_STEPS))
        full_at = 0;
    next_ns = now_mono_ns + (os_thread_cpu_ns() - began_ns) * LOOK_EVERY;
}

__attribute__((noinline)) void resident_end(bool has_lock)
{
    unsigned char pages[OWN_PAGES];
    uintptr_t at = 0;
    if (!atomic_load_explicit(&highest, memory_order_relaxed))
        return;
    struct look look = {
        .which = LOOK_GROWN,
        .has_lock = has_lock,
        .is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed),
        .until_cpu_ns = os_thread_cpu_ns() + END_NS,
        .pages = pages,
        .page_count = OWN_PAGES,
    };
    look_through(&look, &at, LIMBO, UINT32_MAX);
}

void resident_in_child(bool is_whole)
{
    uintptr_t at = 0;
    struct look look = {
        .which = LOOK_GROWN,
        .is_baseline = true,
        .has_lock = true,
        .until_cpu_ns = os_thread_cpu_ns() + LOOK_NS,
        .pages = sampler_pages,
        .page_count = SAMPLER_PAGES,
    };
    runs_seen = atomic_load(&run_count);
    runners_us = given_bytes = 0;
    for (int i = 0; i < RUNNERS; i++)
        runners[i] = (struct runner){0};
    for (size_t i = 0; i < mapped_count(); i++) {
        struct mapped_piece *piece = mapped_at(i);
        piece->is_inherited |= piece->record != 0;
        piece->is_stale = false;
        piece->record = piece->node = 0;
        piece->resident_bytes = 0;
    }
    if (is_whole)
        forget_departing();
    if (!is_whole || !look_through(&look, &at, LIMBO, UINT32_MAX))
        mapped_forget();
}

/* ---- for the hooks ---- */

static bool may_concern(uintptr_t start, size_t bytes)
{
    return start < atomic_load_explicit(&highest, memory_order_relaxed) &&
           start + bytes > atomic_load_explicit(&lowest, memory_order_relaxed) && bytes &&
           start % page_bytes == 0;
}

static uintptr_t end_of(uintptr_t start, size_t bytes)
{
    return start + ((bytes + page_bytes - 1) & ~(page_bytes - 1));
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

void resident_map(const void *start, size_t bytes, bool is_open, bool is_arena, const void *caller)
{
    memory_self.busy = true;
    int saved = errno;
    uint32_t frames, node = place_node(&frames);
    struct mapped_piece like = {.node = node, .caller = caller, .is_arena = is_arena};
    if (is_arena && is_open)
        resident_ran(node, true, MAPPER_US * 1000);
    if (take_lock()) {
        add((uintptr_t)start, end_of((uintptr_t)start, bytes), is_open, &like);
        memory_unlock();
    } else {
        memory_lost();
    }
    errno = saved;
}

/* What came since the last look is seen before it goes.  Gives back with the lock, or false. */
static __attribute__((noinline)) bool look_before(uintptr_t start, uintptr_t end)
{
    unsigned char pages[OWN_PAGES]; /* a function of its own for this room on the stack */
    struct look look = {.which = LOOK_GROWN, .pages = pages, .page_count = OWN_PAGES};
    struct step step;
    if (!take_lock())
        return false;
    if (!records_have_ended() && place_has_ended()) {
        resident_end(true);
        records_look_at_end();
    }
    if (records_have_ended() || !next_step(&look, start, end, &step))
        return true;
    look.is_baseline = !atomic_load_explicit(&agent.control->on, memory_order_relaxed);
    memory_unlock();
    look_through(&look, &start, end, LAST_STEPS);
    return take_lock();
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
    if (take_lock()) {
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
    if (take_lock()) {
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
    if (memory_self.busy || !take_lock()) {
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
    if (!take_lock()) { /* it stays where nobody looks */
        errno = saved;
        return;
    }
    size_t last = mapped_find(end_of(departed, bytes) - 1);
    struct mapped_piece like = {.node = node, .caller = caller};
    if (last < mapped_count())
        like.is_arena = mapped_at(last)->is_arena;
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
