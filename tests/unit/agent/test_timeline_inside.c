/* The timeline from the inside: what another thread, a handler or a fork does in the middle of an
 * entry or of a compaction; and waits that are told for hours and days. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/timeline.h"
#include "arena_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

struct agent agent;

enum { THREAD = 3, NODE = 7, MS = 1000000, INTERVAL_NS = 10 * MS };
#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

static struct wire_control control;
static struct timeline_cursor cursor;
static uint64_t now_ns;

/* ---- what happens inside ---- */

/* Called once, in the middle of an entry being added / of a compaction. */
static void (*in_append)(void);
static void (*in_compaction)(void);
static _Atomic uint32_t appended_published; /* entries that were handed out and looked published */

uint32_t __real_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count);
void *__real_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id);
uint32_t __wrap_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count);
void *__wrap_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id);

static void call_once(void (**function)(void))
{
    void (*call)(void) = *function;
    *function = NULL;
    if (call)
        call();
}

uint32_t __wrap_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count)
{
    call_once(&in_append);
    uint32_t id = __real_arena_append(arena, section, count);
    const struct wire_log *entry = id ? __real_arena_record(arena, section, id) : NULL;
    if (entry && atomic_load(&entry->kind))
        atomic_fetch_add(&appended_published, 1);
    return id;
}

void *__wrap_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id)
{
    call_once(&in_compaction);
    return __real_arena_record(arena, section, id);
}

/* ---- reading and writing ---- */

static int open_all(void **state)
{
    (void)state;
    control = (struct wire_control){.cpu_interval_ns = INTERVAL_NS, .on = 1};
    agent.control = &control;
    cursor = (struct timeline_cursor){0};
    in_append = in_compaction = NULL;
    appended_published = 0;
    if (!fixture_open(&agent.arena))
        return -1;
    fixture_grow_fully(&agent.arena);
    now_ns = agent.arena.header->start_mono_ns = 1000 * SECOND;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static struct wire_section *log_section(void)
{
    return &agent.arena.header->sections[WIRE_LOG];
}

static uint32_t entries(void)
{
    return log_section()->used - 1;
}

static const struct wire_log *entry(uint32_t id)
{
    return __real_arena_record(&agent.arena, WIRE_LOG, id);
}

static void add(uint32_t node, enum wire_kind kind, uint64_t ns)
{
    now_ns += ns;
    timeline_add(&cursor, THREAD, node, kind, now_ns - ns, ns);
}

/* ---- long ones ---- */

/* One wait of `total_ns`, told in steps from `least` to `most`: gives the sum over its entries. */
static uint64_t told_us(uint64_t total_ns, uint64_t least_ns, uint64_t most_ns)
{
    uint64_t step_ns = least_ns, sum_us = 0;
    for (uint64_t left_ns = total_ns; left_ns; left_ns -= step_ns) {
        step_ns = step_ns < most_ns ? step_ns + MS : least_ns;
        if (step_ns > left_ns)
            step_ns = left_ns;
        add(NODE, WIRE_WAIT_SLEEP, step_ns);
    }
    for (uint32_t i = 1; i <= entries(); i++) {
        assert_int_equal(entry(i)->at_ns / 1000, sum_us); /* no gaps, no overlaps */
        sum_us += entry(i)->us;
    }
    return sum_us;
}

/* A wait of an hour and more must not wrap: an entry has 32 bits of microseconds, 71 minutes. */
static void test_three_hours(void **state)
{
    (void)state;
    assert_int_equal(told_us(3 * HOUR, 10 * MS, 40 * MS), 3 * HOUR / 1000);
    assert_int_equal(entries(), 11); /* of 18 minutes each */
}

static void test_thirty_days(void **state)
{
    (void)state;
    assert_int_equal(told_us(30 * 24 * HOUR, SECOND, 2 * SECOND), 30 * 24 * HOUR / 1000);
}

static void test_longer_than_an_entry(void **state)
{
    (void)state;
    add(NODE, WIRE_WAIT_SLEEP, (UINT64_C(1) << 32) * 1000 + 5 * SECOND);
    assert_int_equal(entry(1)->us, UINT32_MAX);
    add(NODE, WIRE_WAIT_SLEEP, SECOND);
    assert_int_equal(entries(), 2); /* the full one stays as it is */
    assert_int_equal(entry(1)->us, UINT32_MAX);
    assert_int_equal(entry(2)->us, 1000000);
}

/* ---- compaction ---- */

/* Entries of one sample each, of node 1, 2, ..., until the log is as full as it may be. */
static uint32_t fill(void)
{
    uint32_t most = log_section()->capacity - log_section()->capacity / 16;
    while (log_section()->used < most)
        add(log_section()->used, WIRE_CPU_PYTHON, 10 * MS);
    return entries();
}

/* A writer that stood in an entry does not go on in what has moved there. */
static void test_old_cursors(void **state)
{
    (void)state;
    struct timeline_cursor old = {0};
    uint64_t then_ns = now_ns;
    timeline_add(&old, THREAD, NODE, WIRE_CPU_PYTHON, then_ns, 10 * MS); /* the first stays, */
    uint32_t full = fill(), kept = (full + 1) / 2;
    timeline_compact();
    assert_int_equal(entries(), kept);
    assert_int_equal(agent.arena.header->log_stride, 2);
    old.skip = 0;
    timeline_add(&old, THREAD, NODE, WIRE_CPU_PYTHON, then_ns, 10 * MS); /* and is not trusted */
    assert_int_equal(entry(1)->count, 1);
    assert_int_equal(old.id, kept + 1);
    assert_int_equal(entry(old.id)->count, 2); /* stands for the one that is skipped */
}

static void add_while_closed(void)
{
    uint32_t before = log_section()->used;
    struct timeline_cursor other = {0};
    timeline_add(&other, THREAD, NODE, WIRE_CPU_PYTHON, now_ns, 10 * MS);
    assert_int_equal(other.id, 0);
    assert_int_equal(log_section()->used, before);
}

/* A handler that interrupts the compaction, or runs beside it. */
static void test_writers_turn_back(void **state)
{
    (void)state;
    uint32_t full = fill();
    in_compaction = add_while_closed;
    timeline_compact();
    assert_null(in_compaction);
    assert_int_equal(entries(), (full + 1) / 2);
    cursor = (struct timeline_cursor){0};
    add(NODE, WIRE_CPU_PYTHON, 10 * MS); /* it is open again */
    assert_int_equal(entries(), (full + 1) / 2 + 1);
}

static void test_compaction_turns_back(void **state)
{
    (void)state;
    uint32_t full = fill();
    in_append = timeline_compact;
    add(NODE, WIRE_CPU_PYTHON, 10 * MS);
    assert_null(in_append);
    assert_int_equal(entries(), full + 1); /* nothing moved */
    assert_int_equal(agent.arena.header->log_stride, 1);
    add(NODE, WIRE_CPU_PYTHON, 10 * MS);
    assert_int_equal(entry(full + 1)->count, 2); /* and it is open again */
    timeline_compact();
    assert_int_equal(agent.arena.header->log_stride, 2);
}

/* ---- writers at once ---- */

static _Atomic bool is_over;

static void *write_entries(void *argument)
{
    struct timeline_cursor own = {0};
    for (uint32_t i = 1; !is_over; i++) {
        own.skip = 0; /* each is written, however often entries went */
        timeline_add(&own, THREAD, i % 5 ? NODE : i, WIRE_CPU_PYTHON, now_ns + i * 1000, 10 * MS);
    }
    return argument;
}

/* What is not in use must not look published: a reader may come while it is being filled. */
static void test_many_writers(void **state)
{
    (void)state;
    enum { WRITERS = 2, COMPACTIONS = 2000 };
    pthread_t threads[WRITERS];
    log_section()->capacity = log_section()->committed = 64;
    is_over = false;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_entries, NULL), 0);
    for (int done = 0; done < COMPACTIONS;) {
        timeline_compact(); /* mostly there is no need, or a writer is in the middle of it */
        done += agent.arena.header->log_stride == 2;
        agent.arena.header->log_stride = 1;
    }
    is_over = true;
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(appended_published, 0);
    for (uint32_t i = log_section()->used; i < 64; i++)
        assert_int_equal(entry(1)[i - 1].kind, WIRE_NONE); /* beyond what may be asked for */
}

/* ---- forks ---- */

/* In a child, which has an arena of its own: 0 when the timeline is as new. */
static int use_as_new(void)
{
    arena_unmap(&agent.arena);
    if (!arena_create(&agent.arena, fixture_directory, true, 1))
        return 1;
    fixture_grow_fully(&agent.arena);
    agent.arena.header->start_mono_ns = now_ns;
    cursor = (struct timeline_cursor){0};
    timeline_in_child(true);
    add(NODE, WIRE_CPU_PYTHON, 10 * MS);
    int status = entries() == 1 ? 0 : 2;
    fill();
    timeline_compact();
    if (agent.arena.header->log_stride != 2)
        status = 3;
    unlink(agent.arena.path);
    return status;
}

static int child_status;

/* As if another thread had forked while this one is in the middle. */
static void fork_here(void)
{
    pid_t pid = fork();
    if (!pid)
        _exit(use_as_new());
    int status = -1;
    waitpid(pid, &status, 0);
    child_status = status;
}

static void test_fork_while_written(void **state)
{
    (void)state;
    child_status = -1;
    in_append = fork_here;
    add(NODE, WIRE_CPU_PYTHON, 10 * MS);
    assert_null(in_append);
    assert_int_equal(child_status, 0);
    assert_int_equal(entries(), 1);
}

static void test_fork_while_compacted(void **state)
{
    (void)state;
    fill();
    child_status = -1;
    in_compaction = fork_here;
    timeline_compact();
    assert_null(in_compaction);
    assert_int_equal(child_status, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_three_hours),  CASE(test_thirty_days),        CASE(test_longer_than_an_entry),
        CASE(test_old_cursors),  CASE(test_writers_turn_back),  CASE(test_compaction_turns_back),
        CASE(test_many_writers), CASE(test_fork_while_written), CASE(test_fork_while_compacted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
