/*
 * Mappings, against a model that knows pages only: real memory is mapped, touched,
 * given back and moved at random, and what is counted must be what is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/memory/duty.h"
#include "agent/memory/mapped.h"
#include "agent/memory/memory.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/memory/resident.h"
#include "agent/memory/runners.h"
#include "arena_fixture.h"

#include <sys/mman.h>

struct agent agent;
__thread struct memory_thread memory_self;

/* ---- in place of the recorder and the program ---- */

enum { NODES = 8, NOBODY = 7 };

static struct wire_control control = {.on = 1};
static uint32_t current_node, sites[NODES];
static unsigned lost;
static bool is_lock_free = true;

/* Time goes on by itself, so that no look comes too soon; but looking takes none. */
static uint64_t clock_ns, step_ns, look_ns;

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_thread_cpu_ns(void);

uint64_t __wrap_os_mono_ns(void)
{
    return clock_ns += step_ns;
}

uint64_t __wrap_os_thread_cpu_ns(void)
{
    static uint64_t cpu_ns;
    return cpu_ns += look_ns;
}

_Atomic uint32_t duty_window;

uint64_t duty_missed_bytes(uint64_t now_mono_ns)
{
    (void)now_mono_ns;
    return 0;
}

struct thread *threads_self(void)
{
    return NULL;
}

bool memory_lock(void)
{
    return is_lock_free;
}

void memory_unlock(void)
{
    memory_self.busy = false;
}

bool memory_is_locked(void)
{
    return true;
}

void memory_lost(void)
{
    lost++;
}

bool place_has_ended(void)
{
    return false;
}

uint32_t place_node(uint32_t *frames)
{
    *frames = 1;
    return current_node;
}

uint32_t place_site(uint32_t node, enum wire_site_kind kind, const void *caller)
{
    (void)caller;
    if (!sites[node]) {
        sites[node] = arena_append(&agent.arena, WIRE_SITE, 1);
        struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, sites[node]);
        site->node = node;
        atomic_store(&site->kind, kind);
    }
    return sites[node];
}

uint32_t tables_node(struct tables *t, uint32_t parent, enum wire_frame frame, uint32_t ref,
                     int32_t at, uint16_t flags)
{
    (void)t, (void)parent, (void)frame, (void)ref, (void)at, (void)flags;
    return NOBODY;
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % limit;
}

/* ---- a stretch of addresses, and what is in it ---- */

enum { PAGE = 4096, PAGES = 8192, PASSES = 40, TURNS = 4000 };

static char *room;
static bool is_followed[PAGES], is_writable[PAGES];

static char *page_at(size_t page)
{
    return room + page * PAGE;
}

static void fill(bool *flags, size_t from, size_t count, bool value)
{
    for (size_t i = from; i < from + count; i++)
        flags[i] = value;
}

static void put_pages(size_t from, size_t count, int protection)
{
    assert_ptr_equal(mmap(page_at(from), count * PAGE, protection,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0),
                     page_at(from));
}

static void map(size_t from, size_t count, bool is_open, bool is_pool)
{
    resident_unmap(page_at(from), count * PAGE);
    put_pages(from, count, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    resident_map(page_at(from), count * PAGE, is_open, is_pool, NULL);
    fill(is_followed, from, count, true);
    fill(is_writable, from, count, is_open);
}

/* The addresses are kept, by pages that nobody is told of: so no other mapping comes here. */
static void unmap(size_t from, size_t count)
{
    resident_unmap(page_at(from), count * PAGE);
    put_pages(from, count, PROT_NONE);
    fill(is_followed, from, count, false);
    fill(is_writable, from, count, false);
}

static void open_pages(size_t from, size_t count)
{
    assert_int_equal(mprotect(page_at(from), count * PAGE, PROT_READ | PROT_WRITE), 0);
    resident_open(page_at(from), count * PAGE);
    fill(is_writable, from, count, true);
}

static void discard(size_t from, size_t count)
{
    assert_int_equal(madvise(page_at(from), count * PAGE, MADV_DONTNEED), 0);
    resident_discard(page_at(from), count * PAGE);
}

static void touch(size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++)
        if (is_writable[i])
            *(volatile char *)page_at(i) = 1;
}

static bool is_uniform(size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++)
        if (!is_followed[i] || is_writable[i] != is_writable[from])
            return false;
    return true;
}

static void move(size_t from, size_t count, size_t to)
{
    if ((from < to + count && to < from + count) || !is_uniform(from, count))
        return;
    bool writable = is_writable[from];
    resident_unmap(page_at(to), count * PAGE);
    uintptr_t departed = resident_depart(page_at(from), count * PAGE);
    assert_true(departed);
    void *moved = mremap(page_at(from), count * PAGE, count * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                         page_at(to));
    bool ok = moved != MAP_FAILED; /* not, if it is several mappings for the system */
    if (ok)
        put_pages(from, count, PROT_NONE);
    else
        put_pages(to, count, PROT_NONE);
    resident_arrive(departed, count * PAGE, page_at(ok ? to : from), count * PAGE, NULL);
    fill(is_followed, ok ? from : to, count, false);
    fill(is_writable, ok ? from : to, count, false);
    if (!ok)
        return;
    fill(is_followed, to, count, true);
    fill(is_writable, to, count, writable);
}

static uint64_t now_ns = 1000000000; /* of passes */

static void look(void)
{
    for (int i = 0; i < PASSES; i++)
        resident_pass(now_ns += 10000000000);
}

static uint64_t live_bytes(void)
{
    return atomic_load(&agent.arena.header->memory.live_bytes);
}

static uint64_t live_of(uint32_t node)
{
    const struct wire_site *site =
        sites[node] ? arena_record(&agent.arena, WIRE_SITE, sites[node]) : NULL;
    return site ? atomic_load(&site->live_bytes) : 0;
}

/* By the system's own word. */
static uint64_t true_bytes(void)
{
    static unsigned char pages[PAGES];
    uint64_t bytes = 0;
    assert_int_equal(mincore(room, (size_t)PAGES * PAGE, pages), 0);
    for (size_t i = 0; i < PAGES; i++)
        bytes += is_followed[i] && pages[i] & 1 ? PAGE : 0;
    return bytes;
}

static uint64_t reserved_bytes(void)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < PAGES; i++)
        bytes += is_followed[i] ? PAGE : 0;
    return bytes;
}

static int open_all(void **state)
{
    (void)state;
    room = mmap(NULL, (size_t)PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    if (room == MAP_FAILED || !fixture_open(&agent.arena))
        return -1;
    fixture_grow_fully(&agent.arena);
    records_begin();
    agent.control = &control;
    memset(sites, 0, sizeof sites);
    fill(is_followed, 0, PAGES, false);
    fill(is_writable, 0, PAGES, false);
    lost = 0;
    current_node = 1;
    step_ns = 1000;
    look_ns = 0;
    mapped_forget();
    return mapped_count() || !resident_init() ? -1 : 0;
}

static int close_all(void **state)
{
    (void)state;
    munmap(room, (size_t)PAGES * PAGE);
    return fixture_close(&agent.arena);
}

/* ---- tests ---- */

static void any_sequence_is_counted(void **state)
{
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        size_t from = random_below(PAGES - 1),
               count = 1 + random_below(random_below(8) ? 200 : 4000);
        if (count > PAGES - from)
            count = PAGES - from;
        current_node = 1 + random_below(NOBODY - 1);
        runners_ran(current_node, true, 1000000);
        switch (random_below(12)) {
        case 0:
        case 1:
            map(from, count, random_below(3), random_below(2));
            break;
        case 2:
            unmap(from, count);
            break;
        case 3:
            if (is_uniform(from, count))
                discard(from, count);
            break;
        case 4:
            if (is_uniform(from, count))
                open_pages(from, count);
            break;
        case 5:
            move(from, count, random_below((uint32_t)(PAGES - count)));
            break;
        case 6:
            look();
            assert_int_equal(live_bytes(), true_bytes());
            assert_int_equal(mapped_reserved_bytes(), reserved_bytes());
            break;
        default:
            touch(from, count);
        }
        assert_true(mapped_is_sound());
    }
    look();
    assert_true(true_bytes() > 0);
    assert_int_equal(live_bytes(), true_bytes());
    uint64_t sum = 0;
    for (uint32_t node = 1; node < NODES; node++)
        sum += live_of(node);
    assert_int_equal(sum, live_bytes());
    unmap(0, PAGES);
    assert_int_equal(live_bytes(), 0);
    assert_int_equal(mapped_count(), 0);
    assert_int_equal(lost, 0);
}

static void a_mapping_is_its_mappers(void **state)
{
    (void)state;
    current_node = 1;
    map(0, 1024, true, false);
    look();
    assert_int_equal(live_bytes(), 0);
    runners_ran(2, true, 1000000);
    touch(0, 512);
    look();
    assert_int_equal(live_of(1), 512 * PAGE);
    unmap(256, 512);
    assert_int_equal(live_of(1), 256 * PAGE);
}

static void a_pool_is_theirs_who_run(void **state)
{
    (void)state;
    current_node = 1;
    map(0, 512, true, true);
    map(512, PAGES - 512, false, true);
    open_pages(512, PAGES - 512);
    touch(0, 16);
    runners_ran(6, true, 100000000);
    look(); /* for the first time: whoever mapped it */
    assert_int_equal(live_of(1), 16 * PAGE);
    runners_ran(2, true, 3000000);
    runners_ran(3, false, 9000000); /* Python code beside native code */
    touch(1024, 512);
    look();
    assert_int_equal(live_of(2), 512 * PAGE);
    runners_ran(4, true, 3000000);
    runners_ran(5, true, 1000000);
    for (size_t i = 0; i < 64; i++)
        touch(2048 + 32 * i, 16);
    look();
    assert_int_equal(live_of(4), 48 * 16 * PAGE);
    assert_int_equal(live_of(5), 16 * 16 * PAGE);
    discard(1024, 256);
    look();
    assert_int_equal(live_of(2), 256 * PAGE);
    assert_int_equal(live_of(3), 0);
}

/* A look that took long for once does not keep the next one away: two in a row do. */
static void one_slow_look_is_no_reason(void **state)
{
    enum { MS = 1000000 };
    (void)state;
    map(0, PAGES, true, true);
    look();
    look_ns = MS;
    touch(0, 16);
    runners_ran(2, true, MS);
    resident_pass(now_ns += 20 * MS);
    assert_int_equal(live_of(2), 16 * PAGE);
    touch(16, 16);
    runners_ran(3, true, MS);
    resident_pass(now_ns += 20 * MS);
    assert_int_equal(live_of(3), 16 * PAGE);
    touch(32, 16);
    runners_ran(4, true, MS);
    resident_pass(now_ns += 20 * MS);
    assert_int_equal(live_of(4), 0);
}

static void what_goes_before_a_look_is_seen(void **state)
{
    (void)state;
    current_node = 3;
    for (int i = 0; i < 10; i++) {
        map(0, 512, true, true);
        touch(0, 500);
        unmap(0, 512);
    }
    const struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, sites[3]);
    assert_int_equal(site->allocated_bytes, 10 * 500 * PAGE);
    assert_int_equal(site->most_bytes, 500 * PAGE);
    assert_int_equal(live_bytes(), 0);
    look_ns = 1000000; /* that takes long: one in fifty times as long, and five of them ahead */
    step_ns = 0;
    for (int i = 0; i < 1000; i++) {
        clock_ns += 1000000;
        map(0, 512, true, true);
        touch(0, 500);
        unmap(0, 512);
    }
    assert_int_equal(site->allocated_bytes, (10 + 20 + 5) * 500 * PAGE);
    assert_int_equal(live_bytes(), 0);
}

static void ranges_are_set_aside(void **state)
{
    (void)state;
    map(0, 512, true, true);
    map(512, 512, true, true);
    touch(0, 1024);
    look();
    is_lock_free = false;
    unmap(0, 512);
    is_lock_free = true;
    assert_int_equal(live_bytes(), 1024 * PAGE);
    map(1024, 16, true, true); /* the next one who has the lock */
    assert_int_equal(live_bytes(), 512 * PAGE);
}

static void what_was_not_told_is_found_out(void **state)
{
    (void)state;
    map(0, 512, true, true);
    touch(0, 256);
    look();
    assert_int_equal(munmap(page_at(0), 512 * PAGE), 0);
    for (size_t i = 0; i < 4; i++) {
        map(1024 + i, 1, true, true); /* so that there is a reason to look */
        look();
    }
    assert_int_equal(live_bytes(), 0);
    put_pages(0, 512, PROT_NONE);
}

static void a_child_counts_from_nothing(void **state)
{
    (void)state;
    map(0, 1024, true, true);
    touch(0, 256);
    look();
    touch(256, 100); /* not looked at by the parent */
    close_all(NULL); /* as for a child: the arena is another one */
    room = mmap(room, (size_t)PAGES * PAGE, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    put_pages(0, 1024, PROT_READ | PROT_WRITE);
    touch(0, 356);
    assert_true(fixture_open(&agent.arena));
    fixture_grow_fully(&agent.arena);
    records_begin();
    memset(sites, 0, sizeof sites);
    resident_in_child(true);
    look();
    assert_int_equal(live_bytes(), 0);
    runners_ran(2, true, 1000);
    touch(512, 100);
    look();
    assert_int_equal(live_of(2), 100 * PAGE);
    discard(0, 1024);
    touch(0, 64);
    look();
    assert_int_equal(live_bytes(), 64 * PAGE);
}

static void what_is_touched_while_off_is_nobodys(void **state)
{
    (void)state;
    map(0, 1024, true, true);
    control.on = 0;
    touch(0, 128);
    look();
    control.on = 1;
    touch(512, 128);
    look();
    assert_int_equal(live_bytes(), 128 * PAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_sequence_is_counted),
        TEST(a_mapping_is_its_mappers),
        TEST(a_pool_is_theirs_who_run),
        TEST(one_slow_look_is_no_reason),
        TEST(what_goes_before_a_look_is_seen),
        TEST(ranges_are_set_aside),
        TEST(what_was_not_told_is_found_out),
        TEST(a_child_counts_from_nothing),
        TEST(what_is_touched_while_off_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
