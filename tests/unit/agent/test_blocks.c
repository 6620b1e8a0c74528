/* Slots for small sampled blocks, and the table of where the others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/memory/blocks.h"

#include <string.h>

static int set_up(void **state)
{
    return blocks_init() ? 0 : -1;
}

static void slots_are_aligned_and_apart(void **state)
{
    enum { COUNT = 2000 };
    static unsigned char *slots[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t size = (size_t)(i * 37 % BLOCKS_SLOT_MAX) + 1, align = (size_t)16 << i % 7;
        slots[i] = blocks_take(size, align);
        assert_non_null(slots[i]);
        assert_true(blocks_is_slot(slots[i]) && blocks_is_slot(slots[i] + size - 1));
        assert_int_equal((uintptr_t)slots[i] % align, 0);
        assert_true(blocks_slot_bytes(slots[i]) >= size);
        assert_int_equal(*blocks_slot_size(slots[i]), size);
        assert_int_equal(*blocks_slot_record(slots[i]), 0);
        memset(slots[i], i & 0xFF, size);
        *blocks_slot_record(slots[i]) = (uint32_t)i + 1;
    }
    for (int i = 0; i < COUNT; i++) {
        size_t size = *blocks_slot_size(slots[i]);
        assert_int_equal(*blocks_slot_record(slots[i]), i + 1);
        assert_true(slots[i][0] == (i & 0xFF) && slots[i][size - 1] == (i & 0xFF));
    }
    for (int i = 0; i < COUNT; i++)
        blocks_give(slots[i]);
}

static void slots_are_reused(void **state)
{
    void *first = blocks_take(100, 16);
    *blocks_slot_record(first) = 7;
    blocks_give(first);
    void *second = blocks_take(120, 16);
    assert_ptr_equal(first, second);
    assert_int_equal(*blocks_slot_record(second), 0);
    blocks_give(second);
}

static void what_is_too_large_gets_no_slot(void **state)
{
    assert_null(blocks_take(BLOCKS_SLOT_MAX + 1, 16));
    assert_null(blocks_take(1, BLOCKS_SLOT_MAX * 2));
    char here;
    assert_false(blocks_is_slot(&here));
    assert_false(blocks_is_slot(NULL));
}

static void a_class_runs_out_in_the_end(void **state)
{
    unsigned taken = 0;
    static void *slots[80000];
    while (taken < 80000 && (slots[taken] = blocks_take(64, 16)))
        taken++;
    assert_in_range(taken, 60000, 79999);
    while (taken)
        blocks_give(slots[--taken]);
    void *again = blocks_take(64, 16);
    assert_non_null(again);
    blocks_give(again);
}

static const void *address(uintptr_t n)
{
    return (const void *)(n * 4096 + 16); /* as mapped blocks are */
}

static void the_table_finds_what_was_put(void **state)
{
    enum { COUNT = 20000 };
    unsigned kept = 0;
    static bool is_in[COUNT];
    for (uintptr_t i = 1; i < COUNT; i++) {
        assert_false(blocks_has(address(i)));
        is_in[i] = blocks_put(address(i), (uint32_t)i);
        kept += is_in[i];
    }
    assert_in_range(kept, COUNT * 99 / 100, COUNT);
    for (uintptr_t i = 1; i < COUNT; i++) {
        assert_int_equal(blocks_has(address(i)), is_in[i]);
        assert_int_equal(blocks_get(address(i)), is_in[i] ? i : 0);
    }
    for (uintptr_t i = 2; i < COUNT; i += 2) /* those that share a bucket with them stay */
        assert_int_equal(blocks_remove(address(i)), is_in[i] ? i : 0);
    for (uintptr_t i = 1; i < COUNT; i++)
        assert_int_equal(blocks_has(address(i)), is_in[i] && i % 2);
    assert_true(blocks_put(address(5), 77)); /* replaces */
    assert_int_equal(blocks_remove(address(5)), 77);
    assert_int_equal(blocks_remove(address(5)), 0);
    assert_false(blocks_has(address(5)));
    void *slot = blocks_take(10, 16);
    *blocks_slot_record(slot) = 3;
    blocks_forget();
    for (uintptr_t i = 1; i < COUNT; i++)
        assert_false(blocks_has(address(i)));
    assert_int_equal(*blocks_slot_record(slot), 0);
    assert_true(blocks_is_slot(slot));
    blocks_give(slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_aligned_and_apart),
        cmocka_unit_test(slots_are_reused),
        cmocka_unit_test(what_is_too_large_gets_no_slot),
        cmocka_unit_test(a_class_runs_out_in_the_end),
        cmocka_unit_test(the_table_finds_what_was_put),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
