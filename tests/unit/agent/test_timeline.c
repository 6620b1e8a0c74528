/* The timeline: samples in a row as one entry, thinning when it is full, many writers meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/timeline.h"
#include "arena_fixture.h"

#include <pthread.h>
#include <sched.h>

struct agent agent;

enum { INTERVAL_NS = 10000000, START_NS = 1000000000 };
static struct wire_control control = {.cpu_interval_ns = INTERVAL_NS};

static int open_all(void **state)
{
    (void)state;
    if (!fixture_open(&agent.arena))
        return -1;
    agent.control = &control;
    agent.arena.header->start_mono_ns = START_NS;
    timeline_in_child(true);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static struct wire_section *section(void)
{
    return &agent.arena.header->sections[WIRE_LOG];
}

/* Also of what lies beyond those in use. */
static const struct wire_log *entry_at(uint32_t id)
{
    const char *first = (const char *)agent.arena.header + section()->offset;
    return (const struct wire_log *)first + id;
}

static void add_at(struct timeline_cursor *cursor, uint32_t node, enum wire_kind kind,
                   uint64_t at_ns, uint64_t ns)
{
    timeline_add(cursor, 3, node, kind, START_NS + at_ns, ns);
}

/* ---- one after the other ---- */

static void samples_in_a_row_are_one_entry(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0};
    for (uint64_t i = 0; i < 100; i++)
        add_at(&cursor, 7, WIRE_CPU_PYTHON, i * INTERVAL_NS, INTERVAL_NS);
    assert_int_equal(section()->used, 2);
    const struct wire_log *entry = entry_at(1);
    assert_int_equal(entry->at_ns, 0);
    assert_int_equal(entry->node, 7);
    assert_int_equal(entry->thread, 3);
    assert_int_equal(entry->kind, WIRE_CPU_PYTHON);
    assert_int_equal(entry->count, 100);
    assert_int_equal(entry->us, 1000000);
}

static void what_ends_an_entry(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0}, other = {0};
    add_at(&cursor, 7, WIRE_CPU_PYTHON, 0, INTERVAL_NS);
    add_at(&cursor, 8, WIRE_CPU_PYTHON, 1 * INTERVAL_NS, INTERVAL_NS); /* another stack, */
    add_at(&cursor, 8, WIRE_CPU_NATIVE, 2 * INTERVAL_NS, INTERVAL_NS); /* another kind, */
    add_at(&other, 8, WIRE_CPU_NATIVE, 3 * INTERVAL_NS, INTERVAL_NS);  /* another writer, */
    add_at(&cursor, 8, WIRE_CPU_NATIVE, 7 * INTERVAL_NS, INTERVAL_NS); /* but no short silence, */
    assert_int_equal(section()->used, 5);
    assert_int_equal(entry_at(3)->count, 2);
    add_at(&cursor, 8, WIRE_CPU_NATIVE, 40 * (uint64_t)INTERVAL_NS, INTERVAL_NS); /* a long one */
    assert_int_equal(section()->used, 6);
    assert_int_equal(entry_at(5)->at_ns, 40 * (uint64_t)INTERVAL_NS);
}

/* No length wraps, however long a program sleeps in one place. */
static void long_entries(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0};
    uint64_t minute_ns = 60000000000, sum_us = 0;
    for (uint64_t i = 0; i < 100; i++)
        add_at(&cursor, 7, WIRE_WAIT_SLEEP, i * minute_ns, minute_ns);
    for (uint32_t id = 1; id < section()->used; id++)
        sum_us += entry_at(id)->us;
    assert_int_equal(sum_us, 100 * minute_ns / 1000);
    assert_in_range(section()->used, 3, 10);
    add_at(&cursor, 8, WIRE_WAIT_SLEEP, 100 * minute_ns,
           200 * minute_ns); /* at once: 200 minutes */
    assert_int_equal(entry_at(section()->used - 1)->us, UINT32_MAX);
}

static void a_full_log(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0};
    uint32_t room = section()->committed - 1;
    for (uint32_t i = 0; i < room + 10; i++)
        add_at(&cursor, 1 + i % 2, WIRE_CPU_PYTHON, i * (uint64_t)INTERVAL_NS, INTERVAL_NS);
    assert_int_equal(section()->used, room + 1);
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_LOG_FULL], 10);
}

static void thinning(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0};
    fixture_grow_fully(&agent.arena);
    uint32_t limit = section()->capacity - section()->capacity / 16;
    for (uint32_t i = 1; i < limit; i++) {
        add_at(&cursor, 1 + i % 2, WIRE_CPU_PYTHON, i, 5000);
        if (i == limit - 2) {
            timeline_compact();
            assert_int_equal(section()->used, i + 1); /* not yet */
        }
    }
    timeline_compact();
    assert_int_equal(agent.arena.header->log_stride, 2);
    assert_int_equal(section()->used, 1 + limit / 2);
    for (uint32_t id = 1; id < section()->used; id++)
        assert_int_equal(entry_at(id)->at_ns, 2 * id - 1);
    for (uint32_t id = section()->used; id < limit; id++)
        assert_int_equal(entry_at(id)->kind, WIRE_NONE);
    /* From now on every other sample, each of which stands for two. */
    uint32_t used = section()->used;
    for (uint32_t i = 0; i < 100; i++)
        add_at(&cursor, 9, WIRE_CPU_PYTHON, limit + i, 5000);
    assert_int_equal(section()->used, used + 1); /* not continued: what it was has moved */
    assert_int_equal(entry_at(used)->count, 100);
    assert_int_equal(entry_at(used)->us, 50 * 5);
}

/* A child forked while another thread of its parent was writing, or the sampler was thinning. */
static void in_a_forked_child(void **state)
{
    (void)state;
    struct timeline_cursor cursor = {0};
    timeline_in_child(true);
    add_at(&cursor, 7, WIRE_CPU_PYTHON, 0, INTERVAL_NS);
    assert_int_equal(section()->used, 2);
}

/* ---- all at once ---- */

enum { WRITERS = 4, SAMPLES = 400000, NODES = 1000 };
static _Atomic bool is_over;
static unsigned thinned;

static void *write_many(void *argument)
{
    uint16_t me = (uint16_t)(uintptr_t)argument;
    struct timeline_cursor cursor = {0};
    uint32_t full = section()->capacity - section()->capacity / 17; /* a little beyond the limit */
    for (uint64_t i = 0; i < SAMPLES; i++) {                        /* two in a row are the same */
        uint32_t node = (uint32_t)(me * NODES + i / 2 % NODES);
        timeline_add(&cursor, me, node, WIRE_CPU_PYTHON, START_NS + i, 5000);
        while (atomic_load(&section()->used) > full) /* real ones are not that many */
            sched_yield();
    }
    return NULL;
}

static void *compact_often(void *argument)
{
    while (!atomic_load(&is_over)) {
        timeline_compact();
        if (atomic_exchange(&agent.arena.header->log_stride, 1) > 1)
            thinned++; /* and once more, soon */
    }
    return argument;
}

static void writers_while_it_is_thinned(void **state)
{
    (void)state;
    pthread_t writers[WRITERS], sampler;
    fixture_grow_fully(&agent.arena);
    assert_int_equal(pthread_create(&sampler, NULL, compact_often, NULL), 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_many, (void *)(i + 1)), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(sampler, NULL);
    assert_true(thinned >= 2);
    uint64_t last[WRITERS + 1] = {0}, found[WRITERS + 1] = {0};
    for (uint32_t id = 1; id < section()->used; id++) {
        const struct wire_log *entry = entry_at(id);
        assert_int_equal(entry->kind, WIRE_CPU_PYTHON);
        assert_in_range(entry->thread, 1, WRITERS);
        assert_int_equal(entry->node, entry->thread * NODES + entry->at_ns / 2 % NODES);
        assert_true(!found[entry->thread] || entry->at_ns > last[entry->thread]);
        /* A sample written just after it was thinned counts for two. */
        assert_true(entry->us % 5 == 0 && entry->us / 5 <= entry->count);
        last[entry->thread] = entry->at_ns;
        found[entry->thread]++;
    }
    for (int i = 1; i <= WRITERS; i++)
        assert_true(found[i]);
    for (uint32_t id = section()->used; id < section()->capacity; id++)
        assert_int_equal(entry_at(id)->kind, WIRE_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_in_a_row_are_one_entry),
        TEST(what_ends_an_entry),
        TEST(long_entries),
        TEST(a_full_log),
        TEST(thinning),
        TEST(in_a_forked_child),
        TEST(writers_while_it_is_thinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
