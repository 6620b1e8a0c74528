#include "agent/memory/runners.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    RUNS = 64,   /* CPU samples kept between two looks */
    RUNNERS = 8, /* stacks that share what was touched between two looks */
};

/* node << 32 | is_native << 31 | microseconds */
static _Atomic uint64_t runs[RUNS];
static _Atomic uint32_t run_count;
static _Atomic uint32_t runs_seen;

/* Of the last look in which anybody ran. */
static struct runner {
    uint32_t node;
    uint64_t us, given_bytes;
} runners[RUNNERS];
static uint64_t runners_us, given_bytes;

void runners_ran(uint32_t node, bool is_native, uint64_t ns)
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

bool runners_are_new(void)
{
    return atomic_load_explicit(&run_count, memory_order_relaxed) != runs_seen;
}

void runners_forget(void)
{
    runs_seen = atomic_load_explicit(&run_count, memory_order_relaxed);
    runners_us = given_bytes = 0;
    for (int i = 0; i < RUNNERS; i++)
        runners[i] = (struct runner){0};
}

/* Native code where any ran: what a library maps is for that. */
void runners_find(void)
{
    uint32_t now = atomic_load_explicit(&run_count, memory_order_relaxed);
    uint32_t first = now - runs_seen > RUNS ? now - RUNS : runs_seen;
    bool any_native = false;
    for (uint32_t i = first; i != now; i++)
        any_native |= atomic_load_explicit(&runs[i % RUNS], memory_order_relaxed) >> 31 & 1;
    if (first == now)
        return;
    runners_forget();
    runs_seen = now;
    for (uint32_t i = first; i != now; i++) {
        uint64_t run = atomic_load_explicit(&runs[i % RUNS], memory_order_relaxed);
        if ((run >> 31 & 1) == any_native)
            add_runner((uint32_t)(run >> 32), run & INT32_MAX);
    }
}

/* Whoever is owed most, so that all get what their time is worth. */
uint32_t runners_choose(uint64_t bytes)
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
