/*
 * The recorder with many threads at once: each allocates, grows, shrinks and
 * frees blocks, its own and others', and knows what must be live in the end.  A
 * sampler passes by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "recorder_fixture.h"

#include <pthread.h>

/* ---- a program ---- */

enum { WORKERS = 4, HELD = 200, SHARED = 64, TURNS = 20000 };

struct block {
    char *at; /* NULL: none.  Its first byte is written, so that two owners are seen */
    uint64_t size;
    unsigned module;
};

static struct block exchange[SHARED];
static pthread_mutex_t exchange_locks[SHARED];
static _Atomic uint64_t live_bytes[FIXTURE_MODULES], allocated_bytes;
static _Atomic unsigned recorded, mistakes;
static _Atomic bool is_over;

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % limit;
}

/* A slot, or an address that malloc() might have given: then nobody writes there. */
static char *new_address(uint64_t size)
{
    static _Atomic uintptr_t next = 0x100000000;
    if (size <= BLOCKS_SLOT_MAX)
        return memory_take_slot(size, 16);
    return (char *)NULL + atomic_fetch_add(&next, 4096);
}

static void record(struct block *block, uint64_t from, uint64_t bytes)
{
    struct memory_sample sample = {
        .kind = WIRE_SITE_NATIVE,
        .caller = (char *)NULL + FIXTURE_MODULE_FIRST + block->module * FIXTURE_MODULE_BYTES,
        .bytes = bytes,
        .from = from,
        .count = 1,
        .exact = true,
    };
    memory_record(block->at, &sample);
    atomic_fetch_add(&live_bytes[block->module], bytes);
    atomic_fetch_add(&allocated_bytes, bytes);
    atomic_fetch_add(&recorded, 1);
}

static void allocate(struct block *block, uint64_t *random)
{
    block->size = 1 + random_below(random, random_below(random, 2) ? 1000 : 200000);
    block->module = random_below(random, FIXTURE_MODULES);
    block->at = new_address(block->size);
    if (!block->at)
        return;
    if (blocks_is_slot(block->at))
        block->at[0] = (char)block->module;
    record(block, 0, block->size);
}

/* What free() asks before it takes the lock. */
static void check_known(const struct block *block)
{
    bool known =
        blocks_is_slot(block->at) ? block->at[0] == (char)block->module : blocks_has(block->at);
    if (!known)
        atomic_fetch_add(&mistakes, 1);
}

static void release(struct block *block)
{
    check_known(block);
    atomic_fetch_sub(&live_bytes[block->module], block->size);
    if (!memory_forget(block->at))
        atomic_fetch_add(&mistakes, 1);
    block->at = NULL;
}

static void resize(struct block *block, uint64_t *random)
{
    uint64_t size = 1 + random_below(random, 200000);
    uint32_t records;
    check_known(block);
    if (!memory_detach(block->at, &records) || !records) {
        atomic_fetch_add(&mistakes, 1);
        return;
    }
    char *moved = blocks_is_slot(block->at) || random_below(random, 2) ? new_address(size) : NULL;
    if (moved) {
        if (blocks_is_slot(block->at))
            memory_give_slot(block->at);
        block->at = moved;
        if (blocks_is_slot(moved))
            moved[0] = (char)block->module;
    }
    memory_attach(block->at, records, size);
    if (size < block->size)
        atomic_fetch_sub(&live_bytes[block->module], block->size - size);
    else if (size > block->size)
        record(block, block->size, size - block->size);
    block->size = size;
}

static void swap(struct block *block, uint64_t *random)
{
    unsigned at = random_below(random, SHARED);
    pthread_mutex_lock(&exchange_locks[at]);
    struct block other = exchange[at];
    exchange[at] = *block;
    pthread_mutex_unlock(&exchange_locks[at]);
    *block = other;
}

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument * 0x9E3779B97F4A7C15u;
    static __thread struct block held[HELD];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct block *block = &held[random_below(&random, HELD)];
        if (!block->at)
            allocate(block, &random);
        else if (random_below(&random, 3) == 0)
            release(block);
        else if (random_below(&random, 2))
            resize(block, &random);
        else
            swap(block, &random);
        if (turn % 1024 == 0)
            memory_forget_modules();
    }
    for (unsigned i = 0; i < HELD; i += 2) /* the others outlive it */
        if (held[i].at)
            release(&held[i]);
    return NULL;
}

/* All books are checked in each pass. */
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
    const struct wire_header *header = agent.arena.header;
    for (int i = 0; i < SHARED; i++)
        pthread_mutex_init(&exchange_locks[i], NULL);
    assert_int_equal(pthread_create(&sampler, NULL, pass_by, NULL), 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(sampler, NULL);
    memory_self.busy = false;
    assert_int_equal(mistakes, 0);
    assert_int_equal(header->lost[WIRE_LOST_ALLOCATION], 0);
    assert_int_equal(header->memory.allocated_bytes, allocated_bytes);
    assert_int_equal(header->memory.samples, recorded);
    uint64_t live = 0, found[FIXTURE_MODULES + 1] = {0};
    for (uint32_t id = 1; id < header->sections[WIRE_SITE].used; id++) {
        const struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, id);
        const struct wire_module *module = arena_record(&agent.arena, WIRE_MODULE, site->module);
        found[(module->start - FIXTURE_MODULE_FIRST) / FIXTURE_MODULE_BYTES] += site->live_bytes;
    }
    for (unsigned i = 0; i < FIXTURE_MODULES; i++) {
        assert_int_equal(found[i], live_bytes[i]);
        live += live_bytes[i];
    }
    assert_int_equal(header->memory.live_bytes, live);
    assert_true(live > 0 && header->memory.peak_bytes >= live);
    for (int i = 0; i < SHARED; i++)
        if (exchange[i].at)
            release(&exchange[i]);
    assert_int_equal(mistakes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_threads_at_once, recorder_open, recorder_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
