/* The tables over the arena: what is found again, limits, and many writers at once. */
#include "agent/core/tables.h"
#include "fake_python.h"
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_fixture.h"

#include <pthread.h>

static struct py_layout layout;
static struct arena arena;
static struct tables tables;

static int open_all(void **state)
{
    (void)state;
    return layout_select(&layout, 0x030c01f0, 0, 0) && fixture_open(&arena) &&
                   tables_init(&tables, &arena)
               ? 0
               : -1;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&arena);
}

static void test_same_thing_same_id(void **state)
{
    faults_install(state);
    uintptr_t f = (uintptr_t)fake_code(&layout, "/a.py", "f", 1);
    uintptr_t g = (uintptr_t)fake_code(&layout, "/a.py", "g", 1);
    uint32_t id = tables_code(&tables, &layout, f);
    assert_true(id);
    assert_int_equal(tables_code(&tables, &layout, f), id);
    assert_int_not_equal(tables_code(&tables, &layout, g), id);
    assert_int_equal(tables_code(&tables, &layout, 0x1000), 0);
    const struct wire_code *code = arena_record(&arena, WIRE_CODE, id);
    assert_memory_equal(arena_record(&arena, WIRE_BLOB, code->file.offset), "/a.py", 5);
    uint32_t root = tables_node(&tables, 0, WIRE_FRAME_PYTHON, id, 4, 0);
    assert_int_equal(tables_node(&tables, 0, WIRE_FRAME_PYTHON, id, 4, 0), root);
    assert_int_not_equal(tables_node(&tables, 0, WIRE_FRAME_PYTHON, id, 4, WIRE_NODE_DIRECT), root);
    assert_int_not_equal(tables_node(&tables, root, WIRE_FRAME_PYTHON, id, 4, 0), root);
    assert_true(tables_add(&tables, root, WIRE_CPU_PYTHON, 5000000, 0));
    assert_true(tables_add(&tables, root, WIRE_CPU_PYTHON, 7000000, 0));
    const struct wire_cell *cell = arena_record(&arena, WIRE_CELL, 1);
    assert_int_equal(cell->count, 2);
    assert_int_equal(cell->ns, 12000000);
    assert_int_equal(cell->square_us2, 25000000u + 49000000u);
    assert_false(tables_add(&tables, 0, WIRE_CPU_PYTHON, 1, 0));
}

/* A process that was stopped over the weekend has one wait whose square does not fit 64 bits. */
static void test_long_waits(void **state)
{
    faults_install(state);
    const uint64_t days_ns = UINT64_C(3) * 86400 * 1000000000;
    uint32_t root = tables_node(&tables, 0, WIRE_FRAME_INTERPRETER, 0, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_true(tables_add(&tables, root, WIRE_WAIT_SLEEP, days_ns, days_ns));
    const struct wire_cell *cell = arena_record(&arena, WIRE_CELL, 1);
    double us = (double)days_ns / 1000;
    assert_true(cell->square_us2 == 2 * us * us);
}

/* Recursion over ever new paths fills the node table; folding keeps the leaf and its callers. */
static void test_nearly_full(void **state)
{
    (void)state;
    fixture_grow_fully(&arena);
    uintptr_t a = (uintptr_t)fake_code(&layout, "/a.py", "a", 1);
    uintptr_t b = (uintptr_t)fake_code(&layout, "/a.py", "b", 1);
    struct py_frame frames[200];
    unsigned random = 1;
    for (int round = 0; round < 4000; round++) {
        for (int i = 0; i < 200; i++) {
            random = random * 1103515245 + 12345;
            frames[i] = (struct py_frame){random >> 16 & 1 ? a : b, 2 * (int)(random >> 20 & 3), 0};
        }
        struct py_walk walk = {.count = 200};
        uint32_t node = tables_stack(&tables, &layout, 0, frames, &walk);
        assert_true(node);
        const struct wire_node *leaf = arena_record(&arena, WIRE_NODE, node);
        assert_int_equal(leaf->at, frames[0].at);
        assert_int_equal(leaf->ref, tables_code(&tables, &layout, frames[0].code));
    }
    assert_true(arena.header->lost[WIRE_LOST_FOLDED] > 0);
    assert_int_equal(arena.header->lost[WIRE_LOST_TABLE_FULL], 0);
}

enum { WRITERS = 4, STACKS = 500, ROUNDS = 20000 };
static struct fake_object *codes[32];

static void make_stack(unsigned which, struct py_frame *frames, struct py_walk *walk)
{
    *walk = (struct py_walk){.count = 1 + which % 20};
    for (unsigned i = 0; i < walk->count; i++)
        frames[i] =
            (struct py_frame){(uintptr_t)codes[(which * 7 + i) % 32], (int)(which + i) * 2, 0};
}

static void *write_stacks(void *argument)
{
    struct py_frame frames[32];
    struct py_walk walk;
    unsigned random = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245 + 12345;
        make_stack((random >> 8) % STACKS, frames, &walk);
        uint32_t node = tables_stack(&tables, &layout, 0, frames, &walk);
        tables_add(&tables, node, WIRE_CPU_PYTHON, 1000, 0);
    }
    return NULL;
}

/* Writers at once: no time is lost, and every stack reads back as one that was written. */
static void test_many_writers(void **state)
{
    (void)state;
    fixture_grow_fully(&arena);
    for (int i = 0; i < 32; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%d", i);
        codes[i] = fake_code(&layout, "/a.py", name, i + 1);
    }
    pthread_t threads[WRITERS];
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_stacks, (void *)(i + 1)), 0);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    uint64_t count = 0, ns = 0;
    for (uint32_t id = 1; id < arena.header->sections[WIRE_CELL].used; id++) {
        const struct wire_cell *cell = arena_record(&arena, WIRE_CELL, id);
        count += cell->count;
        ns += cell->ns;
        if (!cell->count)
            continue; /* the loser of a race */
        struct py_frame frames[32];
        struct py_walk walk;
        bool found = false;
        for (unsigned which = 0; which < STACKS && !found; which++) {
            make_stack(which, frames, &walk);
            uint32_t node = cell->node, depth = 0;
            found = true;
            for (; node && depth < walk.count && found; depth++) {
                const struct wire_node *n = arena_record(&arena, WIRE_NODE, node);
                const struct wire_code *c = arena_record(&arena, WIRE_CODE, n->ref);
                found = c->address == frames[depth].code && n->at == frames[depth].at;
                node = n->parent;
            }
            found = found && !node && depth == walk.count;
        }
        assert_true(found);
    }
    assert_int_equal(count, WRITERS * ROUNDS);
    assert_int_equal(ns, (uint64_t)WRITERS * ROUNDS * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_thing_same_id, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_long_waits, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_nearly_full, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_many_writers, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
