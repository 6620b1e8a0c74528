/* Which allocations are samples: that they stand for all, how far off they are, what they may cost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/memory/gaps.h"
#include "agent/memory/records.h"
#include "arena_fixture.h"
#include "profile/profile.h"

#include <math.h>

struct agent agent;
__thread struct memory_thread memory_self;

/* ---- in place of the recorder and the clock ---- */

enum { WINDOW = 1 << 20, SHORTEST = WINDOW / 64 };

static struct wire_control control = {.allocation_window_bytes = WINDOW};
static uint32_t live_records;
static uint64_t cpu_ns;

uint32_t records_in_use(void)
{
    return live_records;
}

uint64_t __wrap_os_process_cpu_ns(void);
uint64_t __wrap_os_process_cpu_ns(void)
{
    return cpu_ns;
}

static int open_all(void **state)
{
    (void)state;
    if (!fixture_open(&agent.arena))
        return -1;
    agent.control = &control;
    live_records = 0;
    cpu_ns = 1000000000;
    memory_self = (struct memory_thread){.random = 1};
    gaps_begin();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static uint64_t interval(void)
{
    return agent.arena.header->memory.interval_bytes;
}

/* As malloc() does it. */
static bool allocate(struct memory_gap *gap, uint64_t size, struct memory_sample *sample)
{
    if (size < WIRE_LARGE_LEAST && (gap->left_bytes -= (int64_t)size) >= 0)
        return false;
    return gaps_choose(gap, size, size, sample);
}

/* ---- what samples stand for ---- */

enum { LINES = 5, RUNS = 200, STEPS = 60000 };

/* A program's lines: how large their blocks are, and how often they come.  One makes nearly all. */
static const struct {
    uint64_t size;
    unsigned often; /* in 1000 */
} lines[LINES] = {{48, 300}, {500, 600}, {5000, 60}, {30000, 20}, {100000, 20}};

struct sum {
    double true_bytes, bytes, square;
};

/* Another kind than the agent's, which it must not depend on. */
static unsigned random_below(uint64_t *state, unsigned limit)
{
    uint64_t x = *state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (unsigned)(x >> 33) % limit;
}

static void add_run(struct sum sums[static LINES], uint64_t seed, unsigned longer)
{
    memory_self.random = seed * 0x9E3779B97F4A7C15u | 1;
    gaps_begin();
    uint64_t random = seed * 0xBF58476D1CE4E5B9u | 1;
    for (int step = 0; step < STEPS; step++) {
        /* In the middle there is less room, and then more again. */
        live_records = step / (STEPS / 3) == 1 ? longer * 8192 : 0;
        if (step % 100 == 0)
            gaps_spend(0);
        unsigned chance = random_below(&random, 1000), line = 0;
        while (chance >= lines[line].often)
            chance -= lines[line++].often;
        struct memory_sample sample = {0};
        sums[line].true_bytes += (double)lines[line].size;
        if (!allocate(&memory_self.heap, lines[line].size, &sample))
            continue;
        sums[line].bytes += (double)sample.bytes;
        if (sample.hits)
            sums[line].square += (double)sample.bytes * (double)sample.bytes / sample.hits;
    }
}

/* How often is the truth within the half-width?  Of 200 runs 190 should be; three standard errors
 * of that are 9. */
static void check_half_widths(unsigned longer)
{
    unsigned within[LINES] = {0};
    double errors[LINES] = {0};
    for (uint64_t run = 1; run <= RUNS; run++) {
        struct sum sums[LINES] = {{0}};
        double all = 0;
        add_run(sums, run, longer);
        for (int i = 0; i < LINES; i++)
            all += sums[i].square;
        for (int i = 0; i < LINES; i++) {
            double error = sums[i].bytes - sums[i].true_bytes;
            within[i] += fabs(error) <= profile_memory_half_width(sums[i].square, all, 0);
            errors[i] += error / sums[i].true_bytes / RUNS;
        }
    }
    for (int i = 0; i < LINES; i++) {
        assert_true(within[i] >= 181);
        assert_true(fabs(errors[i]) < 0.04); /* 14 % in 200 runs: four standard errors */
    }
    assert_int_equal(within[LINES - 1], RUNS); /* large ones are exact */
}

static void half_widths_hold(void **state)
{
    (void)state;
    check_half_widths(0);
}

static void half_widths_hold_while_intervals_change(void **state)
{
    (void)state;
    check_half_widths(2);
}

/* The clock of clock.h: whatever is drawn, counted or large, it is what was asked for. */
static void what_was_asked_for_is_known_exactly(void **state)
{
    (void)state;
    uint64_t asked = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t size = i % 1000 == 0 ? 70000 : 1 + i * 7919 % 900;
        struct memory_sample sample;
        allocate(&memory_self.heap, size, &sample);
        asked += size;
        if (i % 10000 == 5000) {
            struct memory_gap *gap = &memory_self.heap;
            gaps_postpone(gap);
        }
        if (i % 10000 == 7000)
            gaps_set(&memory_self.heap, memory_self.heap.left_bytes / 3);
        assert_int_equal(memory_self.heap.given_bytes - (uint64_t)memory_self.heap.left_bytes,
                         asked);
    }
}

static void calls_are_counted(void **state)
{
    (void)state;
    struct memory_sample sample;
    for (int i = 0; i < 100000; i++)
        allocate(&memory_self.heap, 100, &sample);
    double calls = (double)agent.arena.header->memory.calls;
    assert_true(fabs(calls - 100000) < 3000);
}

/* ---- how many there are ---- */

static void intervals_grow_with_what_lives(void **state)
{
    (void)state;
    assert_int_equal(interval(), SHORTEST);
    live_records = 8191;
    gaps_spend(0);
    assert_int_equal(interval(), SHORTEST);
    live_records = 8192;
    gaps_spend(0);
    assert_int_equal(interval(), 2 * SHORTEST);
    live_records = 3 * 8192;
    gaps_spend(0);
    assert_int_equal(interval(), 8 * SHORTEST);
    live_records = 60000;
    gaps_spend(0);
    assert_int_equal(interval(), WINDOW);
    live_records = 0;
    gaps_spend(0);
    assert_int_equal(interval(), SHORTEST);
}

/* Samples at a rate, for so long by the program's clock. */
static void spend_for(uint64_t ns, uint64_t samples)
{
    for (uint64_t i = 0; i < samples; i++) {
        cpu_ns += ns / samples;
        gaps_spend(4); /* a microsecond */
    }
}

static void samples_that_cost_too_much(void **state)
{
    (void)state;
    spend_for(1000000000, 29000); /* less than is there at once */
    assert_int_equal(interval(), SHORTEST);
    spend_for(100000000, 7000);
    assert_int_equal(interval(), 2 * SHORTEST); /* one step at a time */
    spend_for(100000000, 1000);
    assert_int_equal(interval(), 4 * SHORTEST);
    spend_for(100000000, 20000);
    assert_int_equal(interval(), WINDOW);
    /* As many as it may: nothing changes. */
    for (int i = 0; i < 100; i++) {
        spend_for(20000000, 90);
        gaps_keep_pace();
    }
    assert_int_equal(interval(), WINDOW);
    /* The program does not run, only the sampler does. */
    for (int i = 0; i < 50; i++) {
        cpu_ns += 100000;
        gaps_keep_pace();
    }
    assert_int_equal(interval(), WINDOW);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(interval(), WINDOW >> i);
        cpu_ns += 20000000;
        gaps_keep_pace();
    }
    assert_int_equal(interval(), SHORTEST);
}

static void a_clock_that_goes_back(void **state)
{
    (void)state;
    spend_for(100000000, 40000);
    assert_true(interval() > 8 * SHORTEST);
    uint64_t before = interval();
    cpu_ns -= 50000000;
    spend_for(0, 1001);
    assert_true(interval() >= before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(half_widths_hold),
        TEST(half_widths_hold_while_intervals_change),
        TEST(what_was_asked_for_is_known_exactly),
        TEST(calls_are_counted),
        TEST(intervals_grow_with_what_lives),
        TEST(samples_that_cost_too_much),
        TEST(a_clock_that_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
