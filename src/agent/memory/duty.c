#include "agent/memory/duty.h"

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/waits/sampler.h"
#include "os/os.h"

#include <link.h>

enum {
    WORDS_MAX = 2 * DUTY_FUNCTIONS,
    CYCLE_LEAST_NS = 8000000, /* closed and open, on average: as long as the sampler's pause, */
    CYCLE_MOST_NS = 64000000, /* in these limits */
    WINDOW_LEAST_NS = CYCLE_LEAST_NS / 32,
    OWED_MOST_NS = 12 * CYCLE_LEAST_NS, /* however long they are: passes must not stay away */
    CLOSED_MORE_NS = 4 * CYCLE_LEAST_NS,
    OPEN_MORE_NS = 2 * CYCLE_LEAST_NS,
    FEW_THREADS = 8,
    LOOK_NS = 20000000,      /* CPU time between two looks at what the program does, */
    LOOK_AGAIN_NS = 6000000, /* and where there are windows: it may begin to keep things */
    BUSY_LOOKS = 4, /* so many in a row, before windows begin: short bursts are seen whole */
    ALWAYS_OBJECTS = 4000000, /* at the start all are seen */
    KEPT_PART = 8,            /* a program that keeps one part in so many is seen all the time */
};
/* From how many allocations a second on what is seen stands for how much; that is kept until there
 * are fewer by CALM_PART. */
static const struct {
    double per_sec;
    uint32_t factor;
} steps[] = {{40e6, 8}, {15e6, 5}, {6e6, 3}};
#define CALM_PART 0.6
/* What a look at one costs the program: so much longer it needs for the same. */
#define LOOK_SEC 2.5e-9

_Atomic uint32_t duty_factor = 1, duty_window = 1;

static _Atomic uint64_t counted_objects, counted_bytes;
static struct duty_word words[WORDS_MAX];
static size_t word_count; /* 0: they cannot be switched */
static bool is_open;
static _Atomic uint64_t closed_at_ns; /* CLOCK_MONOTONIC; 0: it is open */
static _Atomic uint64_t missed_bytes; /* in windows that are open again */
static _Atomic uint64_t missed_per_sec;

void duty_count(uint64_t objects, uint64_t bytes)
{
    atomic_fetch_add_explicit(&counted_objects, objects, memory_order_relaxed);
    atomic_fetch_add_explicit(&counted_bytes, bytes, memory_order_relaxed);
}

/* ---- what is missed ---- */

static uint64_t missed_since(uint64_t closed_ns, uint64_t now_ns)
{
    double sec = closed_ns && now_ns > closed_ns ? (double)(now_ns - closed_ns) / 1e9 : 0;
    return (uint64_t)(sec * (double)atomic_load_explicit(&missed_per_sec, memory_order_relaxed));
}

uint64_t duty_missed_bytes(uint64_t now_mono_ns)
{
    uint64_t closed_ns = atomic_load_explicit(&closed_at_ns, memory_order_relaxed);
    return atomic_load_explicit(&missed_bytes, memory_order_relaxed) +
           missed_since(closed_ns, now_mono_ns);
}

static void note_switch(bool open)
{
    uint64_t now_ns = os_mono_ns();
    if (open)
        atomic_fetch_add(&missed_bytes, missed_since(atomic_load(&closed_at_ns), now_ns));
    else
        atomic_fetch_add(&duty_window, 1);
    atomic_store(&closed_at_ns, open ? 0 : now_ns);
}

/* ---- the switch ---- */

struct search {
    uintptr_t inside; /* an address in the interpreter's code */
    unsigned found[WORDS_MAX];
};

static void search_segment(struct search *search, uintptr_t start, size_t bytes)
{
    start = (start + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    for (size_t i = 0; i < bytes / sizeof(uintptr_t); i++) {
        _Atomic uintptr_t *place = (_Atomic uintptr_t *)start + i;
        uintptr_t value = atomic_load_explicit(place, memory_order_relaxed);
        if (!py_range_has(&agent.regions.agent, value))
            continue;
        for (size_t k = 0; k < word_count; k++)
            if (value == words[k].ours) {
                words[k].place = place;
                search->found[k]++;
            }
    }
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    bool is_it = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            search->inside - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            is_it = true;
    }
    for (int i = 0; i < info->dlpi_phnum && is_it; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W))
            search_segment(search, info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    }
    return is_it;
}

/*
 * To change a function from the sampler thread must be one store:
 * PyMem_SetAllocator() copies the struct in pieces, and a thread that allocates
 * meanwhile would jump to half an address.
 */
void duty_init(uintptr_t inside, const struct duty_word *given, size_t count)
{
    struct search search = {.inside = inside};
    for (size_t i = 0; i < count; i++)
        words[i] = given[i];
    word_count = count;
    dl_iterate_phdr(search_module, &search);
    for (size_t i = 0; i < count; i++)
        if (search.found[i] != 1)
            word_count = 0;
    is_open = true;
}

/* Ours should be in front and are not: the profile says so. */
static bool say_hidden(bool hidden)
{
    if (hidden)
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_HIDDEN_OBJECTS);
    return false;
}

static bool switch_word(const struct duty_word *word, bool open)
{
    uintptr_t from = open ? word->original : word->ours;
    uintptr_t to = open ? word->ours : word->original;
    return atomic_compare_exchange_strong(word->place, &from, to) || from == to;
}

/*
 * Without the GIL: only functions change, the context and `free` are the same in
 * both states.  Acts only on what it knows: if somebody else's are in front
 * (tracemalloc), which have ours or the original behind them, nothing can be
 * switched, and the answer is false.  All or none: what one domain still saw while
 * it counts as closed would count too often.
 */
static bool set_open(bool open)
{
    if (open == is_open)
        return true;
    for (size_t i = 0; i < word_count; i++) {
        if (switch_word(&words[i], open))
            continue;
        while (i--)
            switch_word(&words[i], !open);
        return say_hidden(open);
    }
    is_open = open;
    note_switch(open);
    return true;
}

/* ---- what the program does ---- */

struct look {
    uint64_t cpu_ns, objects, bytes, live_bytes;
};

static struct look last;
static double objects_per_sec; /* while they are looked at */
static unsigned busy_looks;

static struct look look_now(uint64_t cpu_ns)
{
    return (struct look){
        .cpu_ns = cpu_ns,
        .objects = atomic_load_explicit(&counted_objects, memory_order_relaxed),
        .bytes = atomic_load_explicit(&counted_bytes, memory_order_relaxed),
        .live_bytes = atomic_load_explicit(&agent.arena.header->memory.live_python_bytes,
                                           memory_order_relaxed),
    };
}

static uint32_t factor_for(double rate, uint32_t factor)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (rate > steps[i].per_sec * (factor >= steps[i].factor ? CALM_PART : 1))
            return steps[i].factor;
    return 1;
}

/* CPU time of the program's threads.  The process's own clock would be cheaper, but stands still
 * for a tick while they run; of many threads the time on the wall must do. */
static int64_t progress_ns(void)
{
    unsigned count = threads_used();
    uint64_t sum = 0, cpu_ns;
    if (count > FEW_THREADS)
        return (int64_t)os_mono_ns();
    for (unsigned i = 0; i < count; i++) {
        const struct thread *thread = threads_at(i);
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == THREAD_LIVE &&
            os_thread_cpu_of(thread->tid, &cpu_ns))
            sum += cpu_ns;
    }
    return (int64_t)sum;
}

/*
 * Closed for a while of random length, then open, so that the program gets
 * equally far in each part.  That is measured by its CPU time, since this thread
 * may get its processor late, and has other work in between; what one window had
 * too much or too little, the next ones make up for.
 */
static struct {
    int64_t since_ns;  /* progress_ns() when it was opened or closed; 0: there was none yet */
    int64_t wanted_ns; /* that it is open */
    int64_t owed_ns;   /* by those before */
    int64_t open_ns;   /* those before, since the last look at what the program does */
    int64_t look_ns;   /* when that was */
} window;

/*
 * How much more there was since the last look than was seen: by how far the program got
 * meanwhile, and how far of that with an open window, not by what windows should be.  Where this
 * thread gets its processor late, single ones are far from that.
 */
static double times_seen(uint32_t factor)
{
    int64_t now_ns = progress_ns();
    int64_t unfinished_ns = window.since_ns ? now_ns - window.since_ns : 0;
    int64_t open_ns = window.open_ns + unfinished_ns, all_ns = now_ns - window.look_ns;
    window.look_ns = now_ns;
    window.open_ns = -unfinished_ns; /* is seen already */
    return factor > 1 && open_ns > 0 && all_ns > open_ns ? (double)all_ns / (double)open_ns
                                                         : (double)factor;
}

/* What a window is to stand for, if the program allocates so often and keeps so little of it that
 * windows are enough. */
static uint32_t next_factor(uint32_t factor)
{
    struct look now = look_now(os_process_cpu_ns());
    uint64_t cpu_ns = now.cpu_ns - last.cpu_ns;
    if (cpu_ns < (factor > 1 ? LOOK_AGAIN_NS : LOOK_NS))
        return factor;
    double times = times_seen(factor);
    double allocated = (double)(now.bytes - last.bytes) * times;
    double kept = (double)(int64_t)(now.live_bytes - last.live_bytes);
    double rate = (double)(now.objects - last.objects) * times * 1e9 / (double)cpu_ns;
    objects_per_sec = rate;
    if (is_open) /* so that what was missed until now does not change */
        atomic_store(&missed_per_sec, (uint64_t)(allocated * 1e9 / (double)cpu_ns));
    last = now;
    uint32_t next = kept * KEPT_PART > allocated ? 1 : factor_for(rate, factor);
    busy_looks = next > 1 ? busy_looks + 1 : 0;
    return busy_looks >= BUSY_LOOKS && now.objects >= ALWAYS_OBJECTS ? next : 1;
}

/* ---- the sampler's pauses ---- */

static int64_t cycle_ns; /* of this pause */

static uint32_t random_below(uint32_t limit)
{
    static uint32_t random = 2463534242u;
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    return limit ? random % limit : 0;
}

static int64_t within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void close_window(void)
{
    int64_t now_ns = progress_ns();
    set_open(false);
    if (window.since_ns) {
        int64_t open_ns = now_ns - window.since_ns;
        window.open_ns += open_ns;
        window.owed_ns =
            within(window.owed_ns + window.wanted_ns - open_ns, -OWED_MOST_NS, OWED_MOST_NS);
    }
    window.since_ns = now_ns;
}

static void open_window(int64_t factor)
{
    int64_t now_ns = progress_ns();
    double closed_ns = (double)(now_ns - window.since_ns);
    double looking = objects_per_sec * LOOK_SEC; /* the part of the time that goes into that */
    set_open(true);
    window.since_ns = now_ns;
    window.wanted_ns =
        (int64_t)(closed_ns / (double)(factor - 1) / (1 - (looking < 0.5 ? looking : 0.5)));
}

static void one_cycle(int64_t factor)
{
    int64_t part_ns = (cycle_ns / 2 + random_below((uint32_t)cycle_ns)) / factor;
    close_window();
    /* Windows were so much too long that the next one cannot be as much shorter: closed longer. */
    int64_t excess_ns =
        within(WINDOW_LEAST_NS - part_ns - window.owed_ns, 0, CLOSED_MORE_NS / (factor - 1));
    sampler_pause((uint64_t)((part_ns + excess_ns) * (factor - 1)));
    open_window(factor);
    sampler_pause(
        (uint64_t)within(part_ns + window.owed_ns, WINDOW_LEAST_NS, part_ns + OPEN_MORE_NS));
}

/* Where there are to be windows now, the first is closed. */
static uint32_t choose_factor(void)
{
    uint32_t factor = word_count ? next_factor(atomic_load(&duty_factor)) : 1;
    if (factor > 1 && !set_open(false))
        factor = 1;
    atomic_store(&duty_factor, factor);
    if (factor <= 1) {
        set_open(true);
        window.since_ns = window.owed_ns = 0;
    }
    return factor;
}

void duty_sleep(uint64_t sleep_ns)
{
    cycle_ns = within((int64_t)sleep_ns, CYCLE_LEAST_NS, CYCLE_MOST_NS);
    for (uint64_t slept_ns = 0; slept_ns < sleep_ns; slept_ns += (uint64_t)cycle_ns) {
        uint32_t factor = choose_factor();
        if (factor <= 1) {
            sampler_pause(sleep_ns - slept_ns);
            return;
        }
        one_cycle(factor);
    }
}

void duty_in_child(void)
{
    last = (struct look){0};
    busy_looks = 0;
    atomic_store(&duty_factor, 1);
    is_open = false; /* the sampler may have been at it when the process forked */
    set_open(true);
    atomic_store(&missed_bytes, 0);
}
