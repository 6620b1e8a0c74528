/* Slots for small sampled blocks, and the table of where the others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/memory/blocks.h"
#include "agent/memory/memory.h"
#include "os/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The lock is the recorder's; here nobody else is about, but where a test says so. */
bool memory_is_locked(void)
{
    return true;
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % limit;
}

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

/* Somebody else has mapped something there. */
static bool is_refused;
bool __real_os_reserve_at(void *addresses, size_t size_bytes);
bool __wrap_os_reserve_at(void *addresses, size_t size_bytes);
bool __wrap_os_reserve_at(void *addresses, size_t size_bytes)
{
    return !is_refused && __real_os_reserve_at(addresses, size_bytes);
}

static void shelves_are_added(void **state)
{
    enum { COUNT = 3000, SHELF = 1024 };
    static void *slots[COUNT];
    size_t before = blocks_range.bytes;
    unsigned taken = 0;
    is_refused = true;
    while (taken < COUNT && (slots[taken] = blocks_take(512, 16)))
        taken++;
    assert_int_equal(taken, SHELF);
    assert_int_equal(blocks_range.bytes, before);
    is_refused = false;
    for (; taken < COUNT; taken++)
        assert_non_null(slots[taken] = blocks_take(512, 16));
    assert_int_equal(blocks_range.bytes, 3 * before);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(blocks_slot_bytes(slots[i]), 512);
        memset(slots[i], (int)i, 512);
        *blocks_slot_record(slots[i]) = i;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(*(unsigned char *)slots[i], i & 0xFF);
        assert_int_equal(*blocks_slot_record(slots[i]), i);
        blocks_give(slots[i]);
    }
    assert_true(blocks_are_sound());
}

/* Where the range would be, somebody else may be already: it is apart nevertheless. */
static void a_range_has_room_above(void **state)
{
    enum { BYTES = 1 << 21, RANGES = 5 };
    void *ranges[RANGES];
    for (int i = 0; i < RANGES; i++) {
        ranges[i] = os_reserve_apart(BYTES);
        assert_non_null(ranges[i]);
        assert_true(os_reserve_at((char *)ranges[i] + BYTES, (size_t)100 * BYTES));
    }
    for (int i = 0; i < RANGES; i++)
        os_release(ranges[i], (size_t)101 * BYTES);
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

/* ---- against a model ---- */

enum { HELD = 3000, TURNS = 200000, UNIT = 64 };

/* Any order of taking and giving: no byte of the range has two owners, and what is kept for a slot
 * is its own. */
static void slots_at_random(void **state)
{
    static struct {
        unsigned char *slot;
        size_t size;
        uint32_t record;
    } held[HELD];
    unsigned char *owned = calloc(blocks_range.bytes / UNIT, 1);
    assert_non_null(owned);
    for (uint32_t turn = 1; turn < TURNS; turn++) {
        uint32_t which = random_below(HELD);
        unsigned char *slot = held[which].slot;
        size_t units = slot ? blocks_slot_bytes(slot) / UNIT : 0;
        if (slot) {
            assert_int_equal(*blocks_slot_size(slot), held[which].size);
            assert_int_equal(*blocks_slot_record(slot), held[which].record);
            memset(owned + ((uintptr_t)slot - blocks_range.start) / UNIT, 0, units);
            blocks_give(slot);
            held[which].slot = NULL;
            continue;
        }
        size_t size = random_below(BLOCKS_SLOT_MAX) + 1, align = (size_t)1 << random_below(11);
        slot = blocks_take(size, align);
        assert_non_null(slot);
        assert_true((uintptr_t)slot % align == 0 && blocks_slot_bytes(slot) >= size);
        size_t at = ((uintptr_t)slot - blocks_range.start) / UNIT;
        units = blocks_slot_bytes(slot) / UNIT;
        for (size_t i = 0; i < units; i++)
            assert_false(owned[at + i]++);
        *blocks_slot_record(slot) = turn;
        held[which].slot = slot;
        held[which].size = size;
        held[which].record = turn;
        if (turn % 1024 == 0)
            assert_true(blocks_are_sound());
    }
    for (int i = 0; i < HELD; i++)
        if (held[i].slot)
            blocks_give(held[i].slot);
    assert_true(blocks_are_sound());
    free(owned);
}

/* The table against an array: addresses as close as malloc() gives them. */
static void the_table_at_random(void **state)
{
    static uint32_t kept[HELD];
    for (uint32_t turn = 1; turn < TURNS; turn++) {
        uint32_t which = random_below(HELD);
        const void *block = (const void *)(uintptr_t)(0x10000 + which * 16);
        assert_int_equal(blocks_get(block), kept[which]);
        assert_int_equal(blocks_has(block), kept[which] != 0);
        if (random_below(2)) {
            if (blocks_put(block, turn))
                kept[which] = turn;
            else /* its bucket is full, and it was not in there */
                assert_int_equal(kept[which], 0);
        } else {
            assert_int_equal(blocks_remove(block), kept[which]);
            kept[which] = 0;
        }
    }
    blocks_forget();
}

/* ---- free() looks without the lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { LOOKERS = 3, OWN = 500, LOOKS = 300 };

static const void *own_block(uintptr_t thread, uintptr_t n)
{
    return (const void *)(0x100000 + (n * LOOKERS + thread) * 16);
}

static bool put_locked(const void *block, uint32_t record)
{
    pthread_mutex_lock(&lock);
    bool ok = blocks_put(block, record);
    pthread_mutex_unlock(&lock);
    return ok;
}

static uint32_t remove_locked(const void *block)
{
    pthread_mutex_lock(&lock);
    uint32_t record = blocks_remove(block);
    pthread_mutex_unlock(&lock);
    return record;
}

/* Of a block of its own each thread always gets the right answer, whatever others do to buckets
 * that they share. */
static void *look_for_own(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    for (uint32_t turn = 1; turn <= LOOKS; turn++)
        for (uintptr_t n = 0; n < OWN; n++) {
            const void *block = own_block(me, n);
            if (blocks_has(block) || !put_locked(block, turn) || !blocks_has(block) ||
                remove_locked(block) != turn || blocks_has(block))
                return argument ? argument : &lock;
        }
    return NULL;
}

static void looking_needs_no_lock(void **state)
{
    pthread_t threads[LOOKERS];
    for (uintptr_t i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_for_own, (void *)i), 0);
    for (int i = 0; i < LOOKERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shelves_are_added),
        cmocka_unit_test(slots_are_aligned_and_apart),
        cmocka_unit_test(slots_are_reused),
        cmocka_unit_test(what_is_too_large_gets_no_slot),
        cmocka_unit_test(a_range_has_room_above),
        cmocka_unit_test(a_class_runs_out_in_the_end),
        cmocka_unit_test(the_table_finds_what_was_put),
        cmocka_unit_test(slots_at_random),
        cmocka_unit_test(the_table_at_random),
        cmocka_unit_test(looking_needs_no_lock),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
