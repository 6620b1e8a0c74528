/* The records of what tasks do: how sightings become time, places, names, and what library
 * functions say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/awaits.h"
#include "agent/core/agent.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "wire/limits.h"

struct agent agent;

enum { MS = 1000000, US = 1000 };

static struct wire_filter filter = {.directories = {"/p"}};
static struct fake_object *user, *other_user, *library;

static int open_all(void **state)
{
    faults_install(state);
    agent = (struct agent){.has_layout = true, .code_type = fake_code_type};
    if (!layout_select(&agent.layout, 0x030c01f0, 0, 0) || !fixture_open(&agent.arena) ||
        !tables_init(&agent.tables, &agent.arena))
        return -1;
    agent.tables.filter = &filter;
    fixture_grow_fully(&agent.arena);
    user = fake_code(&agent.layout, "/p/a.py", "f", 1);
    other_user = fake_code(&agent.layout, "/p/b.py", "g", 1);
    library = fake_code(&agent.layout, "/l/c.py", "h", 1);
    awaits_in_child(true);
    return awaits_begin() ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static uint32_t below(uint32_t parent, struct fake_object *code, int at)
{
    uint32_t id = tables_code(&agent.tables, &agent.layout, (uintptr_t)code);
    assert_true(id);
    return tables_node(&agent.tables, parent, WIRE_FRAME_PYTHON, id, at, 0);
}

static uint32_t used(enum wire_section_id section)
{
    return agent.arena.header->sections[section].used - 1;
}

static const struct wire_await *await_of(uint32_t node, enum wire_await_kind kind)
{
    const struct wire_await *found = NULL;
    for (uint32_t id = 1; id <= used(WIRE_AWAIT); id++) {
        const struct wire_await *await = arena_record(&agent.arena, WIRE_AWAIT, id);
        if (await->node == node && await->kind == kind) {
            assert_null(found); /* each is there once */
            found = await;
        }
    }
    assert_non_null(found);
    return found;
}

static const struct wire_place *place_of(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_PLACE, id);
}

/* ---- time ---- */

static void test_weights(void **state)
{
    faults_install(state);
    uint32_t node = below(0, user, 4), other = below(0, user, 8);
    for (int i = 0; i < 3; i++)
        awaits_see(node, WIRE_AWAIT_WAITS, i == 0);
    awaits_see(node, WIRE_AWAIT_READY, true);
    awaits_see(other, WIRE_AWAIT_TASKS, true);
    awaits_weigh(1000, 1);
    const struct wire_await *waits = await_of(node, WIRE_AWAIT_WAITS);
    assert_int_equal(waits->count, 3);
    assert_int_equal(waits->us, 3000);
    assert_int_equal(waits->busy_us, 1000);
    assert_int_equal(await_of(node, WIRE_AWAIT_READY)->us, 1000);
    assert_int_equal(await_of(node, WIRE_AWAIT_READY)->busy_us, 0);
    assert_int_equal(await_of(other, WIRE_AWAIT_TASKS)->us, 1000);
    assert_int_equal(await_of(other, WIRE_AWAIT_TASKS)->busy_us, 0);
    /* Each pass by itself. */
    awaits_weigh(1000, 1);
    assert_int_equal(waits->us, 3000);
    awaits_see(node, WIRE_AWAIT_WAITS, true);
    awaits_see(node, WIRE_AWAIT_WAITS, false);
    awaits_weigh(250, 2);
    assert_int_equal(waits->count, 5);
    assert_int_equal(waits->us, 4000);
    assert_int_equal(waits->busy_us, 1500);
    assert_int_equal(used(WIRE_AWAIT), 3);
}

static void see_tasks(uint32_t node, unsigned tasks)
{
    for (unsigned i = 0; i < tasks; i++)
        awaits_see(node, WIRE_AWAIT_WAITS, false);
}

/* Tasks that come and go between two looks may have done so at any time in between: those that
 * stay are known. */
static void test_variance(void **state)
{
    faults_install(state);
    uint32_t node = below(0, user, 4), other = below(0, user, 8);
    see_tasks(node, 3);
    awaits_weigh(1000, 1);
    const struct wire_await *waits = await_of(node, WIRE_AWAIT_WAITS);
    double expected = 3000. * 3000 / 2, end = expected;
    assert_true(waits->square_us2 == expected + end);
    for (int i = 0; i < 100; i++) {
        see_tasks(node, 3);
        see_tasks(other, i % 2); /* as by chance: half of the time */
        awaits_weigh(1000, 1);
    }
    assert_true(waits->square_us2 == expected + end);
    const struct wire_await *turns = await_of(other, WIRE_AWAIT_WAITS);
    assert_true(turns->square_us2 == (99 + 1) * 1000. * 1000 / 2);
    see_tasks(node, 2); /* of which each stands for two */
    awaits_weigh(500, 2);
    expected += 500. * 500 / 2;
    end = 2000. * 2000 / 2;
    assert_true(waits->square_us2 == expected + end);
    awaits_weigh(2000, 1); /* they are gone, once */
    awaits_weigh(2000, 1);
    expected += 8000. * 8000 / 2;
    assert_true(waits->square_us2 == expected);
    see_tasks(node, 1);
    awaits_weigh(10, 1);
    assert_true(waits->square_us2 == expected + 10. * 10 / 2 + 10. * 10 / 2);
}

/* Parts of a microsecond do not add up to an error. */
static void test_parts(void **state)
{
    faults_install(state);
    uint32_t node = below(0, user, 4);
    for (int i = 0; i < 1000; i++) {
        awaits_see(node, WIRE_AWAIT_WAITS, true);
        awaits_weigh(10 + (i & 1 ? 0.75 : 0.25), 1);
    }
    assert_int_equal(await_of(node, WIRE_AWAIT_WAITS)->us, 10500);
    assert_int_equal(await_of(node, WIRE_AWAIT_WAITS)->busy_us, 10500);
}

static void test_blocks(void **state)
{
    faults_install(state);
    uint32_t node = below(0, user, 4), deeper = below(node, library, 2);
    struct awaits_stretch stretch = {0}, other = {0}, unseen = {0};
    awaits_block(&stretch, deeper, 7 * MS);
    awaits_block(&stretch, deeper, 3 * MS);
    awaits_block(&other, node, 6 * MS);
    awaits_block(&unseen, 0, 6 * MS);
    assert_int_equal(await_of(deeper, WIRE_AWAIT_BLOCKS)->us, 10000);
    assert_int_equal(await_of(deeper, WIRE_AWAIT_BLOCKS)->count, 1);
    assert_int_equal(await_of(node, WIRE_AWAIT_BLOCKS)->us, 6000);
    awaits_block_more(node, 5 * MS, 1);
    awaits_block_more(node, 0, 0);
    assert_int_equal(await_of(node, WIRE_AWAIT_BLOCKS)->us, 11000);
    assert_int_equal(await_of(node, WIRE_AWAIT_BLOCKS)->count, 2);
    assert_int_equal(used(WIRE_PLACE), 1); /* the same line of the user's */
    assert_int_equal(place_of(1)->longest_us, 10000);
    assert_int_equal(place_of(1)->at, 4);
    assert_int_equal(place_of(1)->peak, 0);
}

/* A stretch that goes over many instructions keeps those with most of it, largest first. */
static void test_stretch_parts(void **state)
{
    faults_install(state);
    struct awaits_stretch stretch = {0};
    for (int i = 1; i <= WIRE_PARTS_MAX + 2; i++)
        awaits_block(&stretch, below(0, user, 2 * i), (uint64_t)i * MS);
    awaits_block(&stretch, below(0, user, 2 * (WIRE_PARTS_MAX + 1)), 2 * MS);
    uint32_t first = stretch.parts[0].place;
    assert_int_equal(place_of(first)->at, 2 * (WIRE_PARTS_MAX + 1));
    assert_int_equal(stretch.node, below(0, user, 2 * (WIRE_PARTS_MAX + 1)));
    assert_int_equal(place_of(first)->longest_us, 38000);
    assert_int_equal(place_of(first)->parts[0].place, first);
    assert_int_equal(place_of(first)->parts[0].us, 9000);
    for (int i = 1; i < WIRE_PARTS_MAX; i++) {
        assert_true(place_of(first)->parts[i].place);
        assert_true(place_of(first)->parts[i].us <= place_of(first)->parts[i - 1].us);
    }
}

/* ---- places ---- */

static void test_places(void **state)
{
    faults_install(state);
    uint32_t line = below(0, user, 4);
    uint32_t ways[] = {below(line, library, 2), below(line, library, 6),
                       below(below(0, other_user, 2), user, 4)};
    uint32_t place = awaits_see(ways[0], WIRE_AWAIT_WAITS, false);
    assert_true(place);
    assert_int_equal(awaits_see(ways[1], WIRE_AWAIT_TASKS, false), place);
    assert_int_equal(awaits_see(ways[2], WIRE_AWAIT_WAITS, false), place);
    assert_int_equal(awaits_see(ways[2], WIRE_AWAIT_READY, false), place); /* does not wait */
    uint32_t next = awaits_see(below(0, user, 6), WIRE_AWAIT_WAITS, false);
    assert_int_not_equal(next, place);
    assert_int_equal(awaits_see(below(0, library, 6), WIRE_AWAIT_WAITS, false), 0);
    assert_int_equal(place_of(place)->code,
                     tables_code(&agent.tables, &agent.layout, (uintptr_t)user));
    assert_int_equal(place_of(place)->at, 4);
    awaits_end_round(1000, 1);
    assert_int_equal(place_of(place)->present_us, 1000);
    assert_int_equal(place_of(place)->peak, 3);
    assert_int_equal(place_of(next)->peak, 1);
    /* Nobody is there any more, and then fewer are. */
    awaits_end_round(1000, 1);
    assert_int_equal(place_of(place)->present_us, 1000);
    awaits_see(ways[0], WIRE_AWAIT_WAITS, false);
    awaits_end_round(500, 1);
    assert_int_equal(place_of(place)->present_us, 1500);
    assert_int_equal(place_of(place)->peak, 3);
    /* Who is only ready is not present. */
    awaits_see(ways[2], WIRE_AWAIT_READY, false);
    awaits_end_round(500, 1);
    assert_int_equal(place_of(place)->present_us, 1500);
}

static void test_peak_of_a_part(void **state)
{
    faults_install(state);
    uint32_t many = below(0, user, 4), one = below(0, user, 6), place = 0;
    for (int i = 0; i < 1000; i++)
        place = awaits_see(many, WIRE_AWAIT_WAITS, false);
    uint32_t lonely = awaits_see(one, WIRE_AWAIT_WAITS, false);
    awaits_raise(20);
    assert_int_equal(place_of(place)->peak, 20000);
    assert_int_equal(place_of(lonely)->peak, 0); /* one sighting is no twenty tasks */
    awaits_end_round(1000, 1);
    assert_int_equal(place_of(place)->peak, 20000);
    assert_int_equal(place_of(lonely)->peak, 1);
}

/* ---- names ---- */

static uint32_t a_place(int at)
{
    uint32_t place = awaits_see(below(0, user, at), WIRE_AWAIT_WAITS, false);
    assert_true(place);
    return place;
}

static const struct wire_name *last_name(void)
{
    return arena_record(&agent.arena, WIRE_NAME, used(WIRE_NAME));
}

static void test_names(void **state)
{
    faults_install(state);
    uint32_t place = a_place(4), other = a_place(6);
    uintptr_t text = (uintptr_t)fake_str(&agent.layout, "fetch");
    awaits_name(place, text, 0);
    assert_int_equal(last_name()->place, place);
    assert_int_equal(last_name()->text.bytes, 5);
    assert_int_equal(last_name()->width, 1);
    assert_memory_equal(arena_record(&agent.arena, WIRE_BLOB, last_name()->text.offset), "fetch",
                        6);
    awaits_name(place, (uintptr_t)fake_str(&agent.layout, "fetch"), 0); /* known */
    assert_int_equal(used(WIRE_NAME), 1);
    awaits_name(other, text, 0); /* at another place */
    assert_int_equal(used(WIRE_NAME), 2);
    awaits_name(place, 0, 17);
    assert_int_equal(last_name()->number, 17);
    assert_int_equal(last_name()->text.bytes, 0);
    awaits_name(place, 0, 17);
    awaits_name(place, 0, UINT64_C(17) << 32);
    assert_int_equal(used(WIRE_NAME), 4);
    assert_int_equal(place_of(place)->names, 3);
    assert_int_equal(place_of(other)->names, 1);
    awaits_name(place, (uintptr_t)fake_str(&agent.layout, ""), 0);
    awaits_name(place, 0x10, 0); /* not there */
    assert_int_equal(used(WIRE_NAME), 4);
}

static void test_long_and_wide_names(void **state)
{
    faults_install(state);
    uint32_t place = a_place(4);
    char text[301];
    memset(text, 'x', 300);
    text[300] = '\0';
    awaits_name(place, (uintptr_t)fake_str(&agent.layout, text), 0);
    assert_int_equal(last_name()->text.bytes, WIRE_TASK_NAME_BYTES_MAX);
    struct fake_object *wide = fake_new(&agent.layout, fake_str_type);
    fake_put(wide, agent.layout.str_length, 3);
    uint32_t kind = 2u << agent.layout.str_kind_shift | 1u << agent.layout.str_compact_shift;
    memcpy((char *)wide + agent.layout.str_state, &kind, sizeof kind);
    memcpy((char *)wide + agent.layout.str_compact, u"äöü", 6);
    awaits_name(place, (uintptr_t)wide, 0);
    assert_int_equal(last_name()->text.bytes, 6);
    assert_int_equal(last_name()->width, 2);
    assert_memory_equal(arena_record(&agent.arena, WIRE_BLOB, last_name()->text.offset), u"äöü", 6);
}

static void test_many_names(void **state)
{
    faults_install(state);
    uint32_t place = a_place(4);
    assert_false(awaits_wants_name(0));
    for (unsigned i = 0; i < 300; i++)
        if (awaits_wants_name(place))
            awaits_name(place, 0, i % 150);
    assert_int_equal(place_of(place)->names, WIRE_NAMES_OF_PLACE_MAX);
    assert_int_equal(used(WIRE_NAME), WIRE_NAMES_OF_PLACE_MAX);
    assert_false(awaits_wants_name(place));
    uint32_t seen[WIRE_NAMES_OF_PLACE_MAX] = {0};
    for (uint32_t id = 1; id <= used(WIRE_NAME); id++) {
        const struct wire_name *name = arena_record(&agent.arena, WIRE_NAME, id);
        assert_true(name->number < WIRE_NAMES_OF_PLACE_MAX && !seen[name->number]++);
    }
}

/* Where the same few tasks are seen over and over, their names are hardly looked at. */
static void test_known_names(void **state)
{
    faults_install(state);
    uint32_t place = a_place(4);
    unsigned looks = 0;
    for (unsigned i = 0; i < 256 + 1600; i++)
        if (awaits_wants_name(place)) {
            awaits_name(place, 0, i % 5);
            looks++;
        }
    assert_in_range(looks, 256 + 99, 256 + 106);
    awaits_name(place, 0, 77); /* a new one: all are looked at again */
    for (unsigned i = 0; i < 256; i++)
        assert_true(awaits_wants_name(place));
}

/* ---- library frames ---- */

static uint32_t stack_of(const char *const (*functions)[2], unsigned count)
{
    uint32_t node = 0;
    for (unsigned i = 0; i < count; i++)
        node = below(node, fake_code(&agent.layout, functions[i][0], functions[i][1], 1), 4);
    return node;
}

static void test_judge(void **state)
{
    faults_install(state);
    static const char tasks[] = "/l/asyncio/tasks.py", trio[] = "/l/trio/_core/_run.py";
    static const struct {
        const char *functions[3][2];
        unsigned count;
        enum awaits_frame says;
    } cases[] = {
        {{{"/p/a.py", "main"}}, 1, AWAITS_PLAIN},
        {{{"/p/a.py", "main"}, {tasks, "wait_for"}}, 2, AWAITS_FOR_TASKS},
        {{{"/p/a.py", "main"}, {tasks, "sleep"}}, 2, AWAITS_PLAIN},
        {{{"/p/a.py", "main"}, {tasks, "wait_for"}, {"/l/x.py", "y"}}, 3, AWAITS_FOR_TASKS},
        /* The user's own code was called from there. */
        {{{"/p/a.py", "main"}, {tasks, "wait_for"}, {"/p/a.py", "read"}}, 3, AWAITS_PLAIN},
        /* The user's own function of that name. */
        {{{"/p/a.py", "wait_for"}}, 1, AWAITS_PLAIN},
        {{{"/p/asyncio/tasks.py", "wait_for"}}, 1, AWAITS_PLAIN},
        {{{"/p/a.py", "main"}, {"/l/asyncio/taskgroups.py", "TaskGroup.__aexit__"}},
         2,
         AWAITS_FOR_TASKS},
        {{{"/p/a.py", "main"}, {"/l/asyncio/taskgroups.py", "not__aexit__"}}, 2, AWAITS_PLAIN},
        {{{trio, "Runner.init"}}, 1, AWAITS_HIDDEN},
        {{{trio, "Runner.init"}, {trio, "Nursery._nested_child_finished"}}, 2, AWAITS_HIDDEN},
        {{{"/p/a.py", "main"}, {trio, "Runner.init"}}, 2, AWAITS_PLAIN},
        {{{"/p/a.py", "main"}, {trio, "Nursery._nested_child_finished"}}, 2, AWAITS_FOR_TASKS},
        {{{"/l/trio/_core/_entry_queue.py", "EntryQueue.task"}}, 1, AWAITS_HIDDEN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t node = stack_of(cases[i].functions, cases[i].count);
        for (int twice = 0; twice < 2; twice++) /* the second time it is remembered */
            assert_int_equal(awaits_judge(node), cases[i].says);
    }
    assert_int_equal(awaits_judge(0), AWAITS_PLAIN);
    assert_int_equal(awaits_judge(tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, 0, 0, 0)),
                     AWAITS_PLAIN);
}

/* ---- limits ---- */

static void test_full(void **state)
{
    faults_install(state);
    enum { MORE = 100 };
    for (int i = 0; i < WIRE_AWAITS_MAX + MORE; i++) {
        uint32_t place = awaits_see(below(0, user, 2 * i), WIRE_AWAIT_WAITS, false);
        assert_true(i < WIRE_PLACES_MAX - MORE ? place : i < WIRE_PLACES_MAX || !place);
    }
    awaits_weigh(10, 1);
    awaits_end_round(10, 1);
    uint64_t count = 0;
    for (uint32_t id = 1; id <= used(WIRE_AWAIT); id++) {
        const struct wire_await *await = arena_record(&agent.arena, WIRE_AWAIT, id);
        assert_int_equal(await->us, 10);
        count += await->count;
    }
    /* What found no room is not forgotten. */
    assert_int_equal(count + agent.arena.header->lost[WIRE_LOST_TABLE_FULL],
                     WIRE_AWAITS_MAX + MORE);
    assert_true(agent.arena.header->lost[WIRE_LOST_TABLE_FULL] >= MORE);
    assert_in_range(used(WIRE_PLACE), WIRE_PLACES_MAX - MORE, WIRE_PLACES_MAX - 1);
    awaits_block(&(struct awaits_stretch){0}, below(0, user, 2 * (WIRE_AWAITS_MAX + MORE)), MS);
    for (uint32_t place = 1; place <= used(WIRE_PLACE); place++)
        for (unsigned i = 0; i < 10; i++)
            awaits_name(place, 0, i);
    assert_int_equal(used(WIRE_NAME), WIRE_NAMES_MAX - 1);
}

static void test_in_child(void **state)
{
    faults_install(state);
    uint32_t node = below(0, user, 4);
    awaits_see(node, WIRE_AWAIT_WAITS, false);
    assert_int_equal(fixture_close(&agent.arena), 0);
    assert_true(fixture_open(&agent.arena));
    tables_reset(&agent.tables);
    awaits_in_child(true);
    awaits_weigh(1000, 1); /* of what the parent saw nothing is left */
    awaits_end_round(1000, 1);
    assert_int_equal(used(WIRE_AWAIT), 0);
    uint32_t place = awaits_see(below(0, other_user, 8), WIRE_AWAIT_WAITS, false);
    awaits_weigh(10, 1);
    awaits_end_round(10, 1);
    assert_int_equal(place, 1);
    assert_int_equal(place_of(1)->peak, 1);
    assert_int_equal(used(WIRE_AWAIT), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_weights),        CASE(test_variance),      CASE(test_parts),
        CASE(test_blocks),         CASE(test_stretch_parts), CASE(test_places),
        CASE(test_peak_of_a_part), CASE(test_names),         CASE(test_long_and_wide_names),
        CASE(test_many_names),     CASE(test_known_names),   CASE(test_judge),
        CASE(test_full),           CASE(test_in_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
