#include "agent/memory/gaps.h"

#include "agent/core/agent.h"
#include "agent/memory/records.h"
#include "os/os.h"

enum {
    IDLE_BYTES = 1 << 20, /* until a thread that may not record asks again */
    WINDOW_LEAST = 4096,
    DENSE_LIVE = 8192, /* so many live with the shortest interval; as many with twice of it ... */
    DENSE_SHIFT = 6,
    PACE_SAMPLE = 6, /* what a sample costs, in frames of a stack: a tenth of a microsecond each */
    PACE_PER_SEC = 50000,    /* how many of these may be spent in the long run, */
    PACE_AHEAD = 300000,     /* and at once */
    PACE_LOOK = 10000,       /* a look at it when so many were spent, */
    PACE_LOOK_NS = 10000000, /* or the program ran for so long */
    COPIES_SHIFT = 3,        /* copies are many: their intervals are longer by this */
};

static _Atomic uint64_t interval_bytes;
static struct {
    uint64_t at_ns; /* of the last look, by the process's CPU clock */
    uint64_t spent; /* since then */
    int64_t left;   /* that may be spent at once */
    unsigned shift; /* intervals are longer by this */
} pace;

uint64_t gaps_random(void)
{
    uint64_t x = memory_self.random;
    if (!x)
        x = ((uint64_t)(uintptr_t)&memory_self ^ os_mono_ns()) * 0x9E3779B97F4A7C15u | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return memory_self.random = x;
}

static uint64_t interval_for(uint32_t live)
{
    uint64_t window = agent.control->allocation_window_bytes;
    uint32_t longer = live / DENSE_LIVE > pace.shift ? live / DENSE_LIVE : pace.shift;
    window >>= longer < DENSE_SHIFT ? DENSE_SHIFT - longer : 0;
    return window < WINDOW_LEAST ? WINDOW_LEAST : window;
}

static uint64_t large_bytes(void)
{
    uint64_t quarter = atomic_load_explicit(&interval_bytes, memory_order_relaxed) / 4;
    return quarter > WIRE_LARGE_LEAST ? quarter : WIRE_LARGE_LEAST;
}

void gaps_set(struct memory_gap *gap, int64_t left_bytes)
{
    gap->given_bytes += (uint64_t)(left_bytes - gap->left_bytes);
    gap->left_bytes = left_bytes;
}

void gaps_postpone(struct memory_gap *gap)
{
    gaps_set(gap, IDLE_BYTES);
    gap->weight_bytes = 0;
}

static void draw(struct memory_gap *gap)
{
    uint64_t mean = atomic_load_explicit(&interval_bytes, memory_order_relaxed);
    if (gap == &memory_self.copies)
        mean <<= COPIES_SHIFT;
    /* The first gap of a thread begins anywhere in an interval: short threads count right. */
    uint64_t least = gap->weight_bytes ? mean / 2 : 0;
    gaps_set(gap, gap->left_bytes + (int64_t)(least + gaps_random() % mean));
    gap->weight_bytes = mean;
}

static void count_calls(uint64_t count, uint32_t factor)
{
    atomic_fetch_add_explicit(&agent.arena.header->memory.calls, count / (factor ? factor : 1),
                              memory_order_relaxed);
}

bool gaps_choose(struct memory_gap *gap, uint64_t grown_bytes, uint64_t size_bytes,
                 struct memory_sample *sample)
{
    sample->from = size_bytes - grown_bytes;
    sample->size_bytes = size_bytes;
    sample->exact = size_bytes >= large_bytes();
    sample->hits = sample->factor = 0;
    if (sample->exact) {
        gap->given_bytes += grown_bytes; /* it is not counted down */
        sample->bytes = grown_bytes;
        sample->count = 1;
        return grown_bytes > 0;
    }
    if (size_bytes >= WIRE_LARGE_LEAST)
        gap->left_bytes -= (int64_t)grown_bytes;
    if (gap->left_bytes >= 0)
        return false;
    if (!gap->weight_bytes) { /* the first look of a thread, or after a pause */
        gaps_set(gap, -(int64_t)grown_bytes);
        draw(gap);
    }
    uint64_t weight = 0, overshoot = 0;
    while (gap->left_bytes < 0) {
        overshoot = (uint64_t)-gap->left_bytes;
        weight += gap->weight_bytes;
        sample->hits++;
        draw(gap);
    }
    if (!weight)
        return false;
    sample->bytes = weight;
    sample->from = overshoot < size_bytes ? size_bytes - overshoot : 0;
    sample->count = grown_bytes ? (weight + grown_bytes / 2) / grown_bytes : 1;
    if (!sample->count)
        sample->count = 1;
    count_calls(sample->count, gap->factor);
    return true;
}

static void set_interval(void)
{
    uint64_t bytes = interval_for(records_in_use());
    atomic_store_explicit(&interval_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&agent.arena.header->memory.interval_bytes, bytes, memory_order_relaxed);
}

/*
 * A program that allocates gigabytes a second, or deep down in its calls, would pay
 * more for samples than anybody needs: intervals become longer while it does, and
 * shorter again.  One step at a time: when few of a line's samples weigh far more than
 * the others, those that there are tell little about its error.
 */
void gaps_keep_pace(void)
{
    uint64_t now_ns = os_process_cpu_ns();
    uint64_t ran_ns = now_ns > pace.at_ns ? now_ns - pace.at_ns : 0;
    if (ran_ns < PACE_LOOK_NS && pace.spent < PACE_LOOK)
        return;
    int64_t due = (int64_t)(ran_ns / (1000000000 / PACE_PER_SEC));
    int64_t spent = (int64_t)pace.spent;
    pace.left += due - spent;
    if (pace.left > PACE_AHEAD)
        pace.left = PACE_AHEAD;
    if (pace.left < -PACE_AHEAD)
        pace.left = -PACE_AHEAD;
    if (pace.left < 0 && spent > due && pace.shift < DENSE_SHIFT)
        pace.shift++;
    else if (pace.shift && spent * 4 < due)
        pace.shift--;
    pace.spent = 0;
    pace.at_ns = now_ns;
    set_interval();
}

void gaps_spend(uint32_t frames)
{
    pace.spent += PACE_SAMPLE + frames;
    if (pace.spent >= PACE_LOOK) /* the sampler may get its processor late */
        gaps_keep_pace();
    set_interval();
}

void gaps_begin(void)
{
    pace.spent = 0;
    pace.left = PACE_AHEAD;
    pace.shift = 0;
    pace.at_ns = os_process_cpu_ns();
    set_interval();
    memory_self.heap = memory_self.objects = (struct memory_gap){0};
    memory_self.growth = memory_self.copies = (struct memory_gap){0};
}
