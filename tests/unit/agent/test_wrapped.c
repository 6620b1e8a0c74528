/*
 * The functions around a free-threaded CPython's allocator, in front of one that
 * behaves as that does: sizes are rounded, growth is in place or a copy, and it
 * knows what was asked of it.  The recorder is the real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/memory/wrapped.h"
#include "recorder_fixture.h"

#include <math.h>
#include <pthread.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* ---- CPython's allocator ---- */

struct head { /* in front of each block */
    size_t room_bytes;
    size_t unused; /* for the alignment */
};

static int context;
static bool is_empty; /* of memory */
static __thread struct {
    unsigned calls;
    size_t count, size;
    void *block;
} asked;
static _Atomic int blocks_out;

static struct head *head_of(void *block)
{
    return (struct head *)block - 1;
}

static void note(void *ctx, size_t count, size_t size, void *block)
{
    assert_ptr_equal(ctx, &context);
    asked.calls++;
    asked.count = count;
    asked.size = size;
    asked.block = block;
}

/* Four sizes to each doubling. */
static size_t room_for(size_t size)
{
    size_t room = 16;
    while (room < size)
        room += room < 64 ? 16 : (size_t)1 << (61 - __builtin_clzl(room));
    return room;
}

static void *take(size_t size)
{
    struct head *head = is_empty ? NULL : calloc(1, sizeof *head + room_for(size));
    if (!head)
        return NULL;
    head->room_bytes = room_for(size);
    blocks_out++;
    return head + 1;
}

static void give(void *block)
{
    blocks_out--;
    free(head_of(block));
}

static void *inner_malloc(void *ctx, size_t size)
{
    note(ctx, 1, size, NULL);
    return take(size);
}

static void *inner_calloc(void *ctx, size_t count, size_t size)
{
    size_t all;
    note(ctx, count, size, NULL);
    return __builtin_mul_overflow(count, size, &all) ? NULL : take(all);
}

static void *inner_realloc(void *ctx, void *block, size_t size)
{
    note(ctx, 1, size, block);
    size_t room = block ? head_of(block)->room_bytes : 0;
    if (block && size <= room && size >= room / 2)
        return block;
    void *moved = take(size);
    if (!moved || !block)
        return moved;
    size_t copied = size < room ? size : room;
    memcpy(moved, block, copied);
    if (memory_self.promotion.is_growth && memory_self.copies.left_bytes < 0) { /* copies.c */
        assert_ptr_equal(memory_self.promotion.source, block);
        memory_self.promotion.copied_bytes = copied;
    }
    give(block);
    return moved;
}

static void inner_free(void *ctx, void *block)
{
    note(ctx, 1, 0, block);
    if (block)
        give(block);
}

static struct allocator python[ALLOCATOR_DOMAINS];

static int open_all(void **state)
{
    const struct allocator inner = {&context, inner_malloc, inner_calloc, inner_realloc,
                                    inner_free};
    if (recorder_open(state))
        return -1;
    for (int i = 0; i < ALLOCATOR_DOMAINS; i++)
        python[i] = wrapped_around(i, &inner);
    return 0;
}

static const struct wire_memory *recorded(void)
{
    return &agent.arena.header->memory;
}

/* A sum of samples, none of which stands for more than 1/64 of the window at this time. */
static void assert_near(uint64_t found, double true_bytes, double sigmas)
{
    double interval = MIB / 64.0;
    assert_true(fabs((double)found - true_bytes) < sigmas * sqrt(true_bytes * interval) + interval);
}

/* ---- tests ---- */

static void requests_pass_unchanged(void **state)
{
    (void)state;
    for (int i = 0; i < ALLOCATOR_DOMAINS; i++)
        for (size_t size = 0; size < 3 * MIB; size += 1 + size / 3) {
            const struct allocator *a = &python[i];
            asked.calls = 0;
            void *block = a->malloc(a->ctx, size);
            assert_true(block && asked.size == size);
            block = a->realloc(a->ctx, block, size * 2);
            assert_int_equal(asked.size, size * 2);
            block = a->realloc(a->ctx, block, size / 3);
            assert_int_equal(asked.size, size / 3);
            a->free(a->ctx, block);
            assert_ptr_equal(asked.block, block);
            block = a->calloc(a->ctx, 3, size);
            assert_true(block && asked.count == 3 && asked.size == size);
            a->free(a->ctx, block);
            block = a->realloc(a->ctx, NULL, size);
            assert_true(block && !asked.block && asked.size == size);
            a->free(a->ctx, block);
            assert_int_equal(asked.calls, 8);
        }
    python[0].free(&context, NULL);
    assert_null(python[0].calloc(&context, SIZE_MAX / 2, 3));
    assert_int_equal(asked.count, SIZE_MAX / 2);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(blocks_out, 0);
}

static void large_blocks_are_exact(void **state)
{
    (void)state;
    const struct allocator *a = &python[1];
    void *block = a->malloc(a->ctx, MIB);
    assert_int_equal(recorded()->live_bytes, MIB);
    void *other = a->calloc(a->ctx, MIB, 3);
    assert_int_equal(recorded()->live_bytes, 4 * MIB);
    block = a->realloc(a->ctx, block, 5 * MIB / 2); /* it moves, and counts by what it grew */
    assert_int_equal(recorded()->live_bytes, 3 * MIB + 5 * MIB / 2);
    assert_int_equal(recorded()->allocated_bytes, 3 * MIB + 5 * MIB / 2);
    block = a->realloc(a->ctx, block, 100 * KIB);
    assert_int_equal(recorded()->live_bytes, 3 * MIB + 100 * KIB);
    a->free(a->ctx, other);
    assert_int_equal(recorded()->live_bytes, 100 * KIB);
    a->free(a->ctx, block);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(recorded()->live_python_bytes, 0);
    assert_int_equal(recorded()->peak_python_bytes, recorded()->peak_bytes);
}

static void no_memory(void **state)
{
    (void)state;
    const struct allocator *a = &python[0];
    void *block = a->malloc(a->ctx, MIB);
    is_empty = true;
    assert_null(a->malloc(a->ctx, MIB));
    assert_null(a->calloc(a->ctx, 1, MIB));
    assert_null(a->realloc(a->ctx, block, 4 * MIB));
    assert_null(a->realloc(a->ctx, NULL, MIB));
    is_empty = false;
    assert_int_equal(recorded()->live_bytes, MIB); /* the block is still there */
    a->free(a->ctx, block);
    assert_int_equal(recorded()->live_bytes, 0);
}

static void small_ones_are_estimated(void **state)
{
    (void)state;
    enum { COUNT = 100000, SIZE = 200 };
    static void *kept[COUNT];
    for (int i = 0; i < COUNT; i++)
        kept[i] = python[i % 2].malloc(&context, SIZE);
    assert_near(recorded()->live_bytes, (double)COUNT * SIZE, 4 * 0.3);
    assert_int_equal(recorded()->live_bytes, recorded()->allocated_bytes);
    for (int i = 0; i < COUNT; i += 2)
        python[0].free(&context, kept[i]);
    assert_near(recorded()->live_bytes, (double)COUNT * SIZE / 2, 4);
    for (int i = 1; i < COUNT; i += 2)
        python[1].free(&context, kept[i]);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(blocks_out, 0);
}

/* By what they grow, as the allocator rounds it: copies tell. */
static void growth_is_estimated(void **state)
{
    (void)state;
    enum { COUNT = 20000, STEPS = 20, STEP = 40 };
    static void *kept[COUNT];
    for (int i = 0; i < COUNT; i++)
        for (size_t step = 1; step <= STEPS; step++)
            kept[i] = python[0].realloc(&context, kept[i], step * STEP);
    assert_near(recorded()->live_bytes, (double)COUNT * (double)room_for(STEPS * STEP), 4);
    for (int i = 0; i < COUNT; i++)
        kept[i] = python[0].realloc(&context, kept[i], STEP);
    assert_near(recorded()->live_bytes, (double)COUNT * STEP, 4);
    for (int i = 0; i < COUNT; i++)
        python[0].free(&context, kept[i]);
    assert_int_equal(recorded()->live_bytes, 0);
}

/* In a signal handler that came while the thread was in the recorder. */
static void blocks_freed_while_busy(void **state)
{
    (void)state;
    const struct allocator *a = &python[1];
    void *freed = a->malloc(a->ctx, MIB), *grown = a->malloc(a->ctx, MIB);
    memory_self.busy = true;
    a->free(a->ctx, freed);
    grown = a->realloc(a->ctx, grown, 8 * MIB);
    void *unseen = a->malloc(a->ctx, MIB);
    memory_self.busy = false;
    assert_int_equal(blocks_out, 2);
    void *seen = a->malloc(a->ctx, MIB);
    assert_int_equal(recorded()->live_bytes, MIB);
    a->free(a->ctx, grown);
    a->free(a->ctx, unseen);
    assert_int_equal(recorded()->live_bytes, MIB);
    a->free(a->ctx, seen);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(blocks_out, 0);
    assert_int_equal(fixture_libc_frees, 0);
}

static void not_while_it_is_off(void **state)
{
    (void)state;
    const struct allocator *a = &python[1];
    void *before = a->malloc(a->ctx, MIB);
    control.on = 0;
    void *meanwhile = a->malloc(a->ctx, MIB);
    for (int i = 0; i < 1000; i++)
        a->free(a->ctx, a->malloc(a->ctx, 1000));
    assert_int_equal(recorded()->live_bytes, MIB);
    a->free(a->ctx, before);
    assert_int_equal(recorded()->live_bytes, 0);
    control.on = 1;
    a->free(a->ctx, meanwhile);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(recorded()->allocated_bytes, MIB);
}

enum { WORKERS = 4, SHARED = 512, TURNS = 50000 };

static _Atomic(void *) exchange[SHARED];
static _Atomic bool is_over;

/* Blocks die in other threads than they were made in. */
static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument * 0x9E3779B97F4A7C15u;
    const struct allocator *a = &python[(uintptr_t)argument % 2];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t size = random >> 33 & (turn % 100 ? 0x3FF : 0x3FFFF);
        void *block = a->malloc(a->ctx, size);
        memset(block, 1, size);
        block = atomic_exchange(&exchange[random >> 50 & (SHARED - 1)], block);
        if (block && turn % 4 == 0)
            block = atomic_exchange(&exchange[random >> 41 & (SHARED - 1)],
                                    a->realloc(a->ctx, block, size * 2));
        a->free(a->ctx, block);
    }
    return NULL;
}

static void *pass_by(void *argument)
{
    memory_disown();
    while (!atomic_load(&is_over)) {
        memory_pass();
        os_yield();
    }
    return argument;
}

static void many_threads_at_once(void **state)
{
    (void)state;
    pthread_t workers[WORKERS], sampler;
    assert_int_equal(pthread_create(&sampler, NULL, pass_by, NULL), 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(sampler, NULL);
    memory_self.busy = false;
    assert_true(recorded()->samples > 1000);
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_ALLOCATION], 0);
    for (int i = 0; i < SHARED; i++)
        python[0].free(&context, exchange[i]);
    assert_int_equal(recorded()->live_bytes, 0);
    assert_int_equal(blocks_out, 0);
    assert_int_equal(fixture_libc_frees, 0);
}

#define WITH_RECORDER(test) cmocka_unit_test_setup_teardown(test, open_all, recorder_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RECORDER(requests_pass_unchanged),
        WITH_RECORDER(large_blocks_are_exact),
        WITH_RECORDER(no_memory),
        WITH_RECORDER(small_ones_are_estimated),
        WITH_RECORDER(growth_is_estimated),
        WITH_RECORDER(blocks_freed_while_busy),
        WITH_RECORDER(not_while_it_is_off),
        WITH_RECORDER(many_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
