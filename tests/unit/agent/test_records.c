/* What is recorded of memory, against a model that knows no arena and no chains of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/memory/blocks.h"
#include "agent/memory/clock.h"
#include "agent/memory/duty.h"
#include "agent/memory/mapped.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/memory/resident.h"
#include "arena_fixture.h"

#include <math.h>

struct agent agent;
__thread struct memory_thread memory_self;

/* ---- in place of the recorder, the program and the system ---- */

static bool has_ended;
static uint64_t now_ns, cpu_ns, rss_bytes;

bool memory_is_locked(void)
{
    return true;
}

uint64_t mapped_reserved_bytes(void)
{
    return 0;
}

void resident_end(bool has_lock)
{
    (void)has_lock;
}

bool place_has_ended(void)
{
    return has_ended;
}

struct thread *threads_self(void)
{
    return NULL;
}

_Atomic uint32_t duty_window = 1;

uint64_t duty_missed_bytes(uint64_t now_mono_ns)
{
    (void)now_mono_ns;
    return 0;
}

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_process_cpu_ns(void);
uint64_t __wrap_os_rss_bytes(uint64_t *file_bytes);

uint64_t __wrap_os_mono_ns(void)
{
    return now_ns;
}

uint64_t __wrap_os_process_cpu_ns(void)
{
    return cpu_ns;
}

uint64_t __wrap_os_rss_bytes(uint64_t *file_bytes)
{
    *file_bytes = rss_bytes / 4;
    return rss_bytes;
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % limit;
}

/* ---- the model ---- */

enum { BLOCKS = 300, SITES = 12, PARTS = 12, TURNS = 60000, WINDOW = 1 << 20 };

static struct wire_control control = {.allocation_window_bytes = WINDOW};

struct part {
    uint32_t site;
    uint64_t bytes, from;
    bool exact, grew, window;
    uint64_t born, count;
    uint32_t hits;
};

static struct model_block {
    const void *block;
    bool is_there;
    uint64_t size;
    unsigned count;
    struct part parts[PARTS]; /* the last one made is first */
} blocks[BLOCKS];

static struct model_site {
    enum wire_site_kind kind;
    uint64_t live, most, at_peak, allocated, count, samples, churned, churned_count;
    double square, churned_square, live_square, most_square;
} sites[SITES + 1];

static struct {
    uint64_t live, python, mapped, peak, peak_python, peak_at, allocated, copied, samples;
    uint32_t peak_site;
    unsigned records, most_records;
} all;

/* The thread allocates: its blocks get older. */
static void let_allocate(uint64_t bytes)
{
    memory_self.heap.given_bytes += bytes;
}

static double square_of(uint64_t bytes, uint32_t hits)
{
    return hits ? (double)bytes * (double)bytes / hits : 0;
}

static void model_change(uint32_t id, uint64_t bytes, uint32_t hits, bool grows)
{
    struct model_site *site = &sites[id];
    uint64_t change = grows ? bytes : (uint64_t)0 - bytes;
    site->live += change;
    site->live_square += square_of(bytes, hits) * (grows ? 1 : -1);
    all.live += change;
    all.python += site->kind == WIRE_SITE_PYTHON ? change : 0;
    all.mapped += site->kind == WIRE_SITE_MAPPED ? change : 0;
    if (site->live > site->most) {
        site->most = site->live;
        site->most_square = site->live_square;
    }
    if (all.live <= all.peak)
        return;
    all.peak = all.live;
    all.peak_python = all.python;
    all.peak_at = now_ns - agent.arena.header->start_mono_ns;
    all.peak_site = id;
    for (int i = 1; i <= SITES; i++)
        sites[i].at_peak = sites[i].live;
}

static void model_add(struct model_block *block, uint32_t site, struct memory_sample sample)
{
    struct part *last = &block->parts[0];
    bool extended = false;
    if (block->count && sample.exact && last->exact && last->from + last->bytes <= sample.from) {
        uint64_t end = last->from + last->bytes;
        sample.bytes += sample.from - end;
        sample.from = end;
        if (last->site == site) {
            last->bytes += sample.bytes;
            last->count += sample.count;
            last->grew = extended = true;
            last->window |= sample.from + sample.bytes >= WINDOW;
        }
    }
    if (!extended) {
        memmove(last + 1, last, block->count * sizeof *last);
        uint64_t size = sample.size_bytes ? sample.size_bytes : sample.from + sample.bytes;
        *last = (struct part){
            .site = site,
            .bytes = sample.bytes,
            .from = sample.from,
            .exact = sample.exact,
            .window = size >= WINDOW,
            .born = memory_self.heap.given_bytes,
            .count = sample.count,
            .hits = sample.hits,
        };
        block->count++;
        all.records++;
    }
    if (all.records > all.most_records)
        all.most_records = all.records;
    sites[site].allocated += sample.bytes;
    sites[site].count += sample.count;
    sites[site].samples++;
    sites[site].square += square_of(sample.bytes, sample.hits);
    all.allocated += sample.bytes;
    all.samples++;
    model_change(site, sample.bytes, sample.hits, true);
}

static void model_churn(const struct part *part, uint64_t gone)
{
    struct model_site *site = &sites[part->site];
    if (memory_self.heap.given_bytes - part->born >= WINDOW)
        return;
    site->churned += gone;
    site->churned_square += square_of(gone, part->hits);
    if (gone == part->bytes)
        site->churned_count += part->count;
}

static void model_cut(struct model_block *block, uint64_t size)
{
    unsigned kept = 0;
    bool has_window = false;
    for (unsigned i = 0; i < block->count; i++)
        has_window |= block->parts[i].window;
    for (unsigned i = 0; i < block->count; i++) {
        struct part part = block->parts[i];
        uint64_t end = part.from + part.bytes, gone = 0;
        if (part.from >= size)
            gone = part.bytes;
        else if (part.exact && end > size)
            gone = end - size;
        if (gone)
            model_change(part.site, gone, part.hits, false);
        if (gone && !has_window)
            model_churn(&part, gone);
        part.bytes -= gone;
        if (part.bytes)
            block->parts[kept++] = part;
        else
            all.records--;
    }
    block->count = kept;
    block->size = size;
}

/* ---- comparing ---- */

static const struct wire_memory *totals(void)
{
    return &agent.arena.header->memory;
}

static const struct wire_site *site_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_SITE, id);
}

static const struct wire_block *block_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_BLOCK, id);
}

static void compare_block(const struct model_block *block)
{
    uint32_t id = records_of(block->block);
    for (unsigned i = 0; i < block->count; i++) {
        assert_int_not_equal(id, 0);
        const struct wire_block *record = block_at(id);
        const struct part *part = &block->parts[i];
        assert_int_equal(record->site, part->site);
        assert_int_equal(record->bytes, part->bytes);
        assert_int_equal(record->from, part->from);
        assert_int_equal(record->flags, (part->exact ? WIRE_BLOCK_EXACT : 0u) |
                                            (part->grew ? WIRE_BLOCK_GREW : 0u) |
                                            (part->window ? WIRE_BLOCK_WINDOW : 0u));
        assert_int_equal(record->count, part->count);
        id = record->next;
    }
    assert_int_equal(id, 0);
}

/* One of its samples weighs 2^34. */
static void compare_squares(double found, double expected)
{
    assert_true(found >= 0 && fabs(found - expected) <= 1e6);
}

static void compare_sites(void)
{
    for (uint32_t id = 1; id <= SITES; id++) {
        const struct wire_site *site = site_at(id);
        assert_int_equal(site->live_bytes, sites[id].live);
        assert_int_equal(site->most_bytes, sites[id].most);
        assert_int_equal(site->allocated_bytes, sites[id].allocated);
        assert_int_equal(site->count, sites[id].count);
        assert_int_equal(site->samples, sites[id].samples);
        assert_int_equal(site->churned_bytes, sites[id].churned);
        assert_int_equal(site->churned_count, sites[id].churned_count);
        compare_squares(site->square, sites[id].square);
        compare_squares(site->churned_square, sites[id].churned_square);
        compare_squares(site->live_square, sites[id].live_square);
        compare_squares(site->most_square, sites[id].most_square);
        uint64_t at_peak =
            site->peak_epoch == totals()->peak_epoch ? site->at_peak_bytes : site->live_bytes;
        assert_int_equal(at_peak, sites[id].at_peak);
    }
}

static void compare_totals(void)
{
    assert_int_equal(totals()->live_bytes, all.live);
    assert_int_equal(totals()->live_python_bytes, all.python);
    assert_int_equal(totals()->live_mapped_bytes, all.mapped);
    assert_int_equal(totals()->allocated_bytes, all.allocated);
    assert_int_equal(totals()->copied_bytes, all.copied);
    assert_int_equal(totals()->samples, all.samples);
    assert_int_equal(totals()->peak_bytes, all.peak);
    assert_int_equal(totals()->peak_python_bytes, all.peak_python);
    assert_int_equal(totals()->peak_at_ns, all.peak_at);
    assert_int_equal(totals()->peak_site, all.peak_site);
    /* A record that was given back is taken again before a new one is. */
    assert_int_equal(agent.arena.header->sections[WIRE_BLOCK].used, all.most_records + 1);
}

/* ---- around each test ---- */

static int open_all(void **state)
{
    (void)state;
    static bool has_blocks;
    if (!fixture_open(&agent.arena) || (!has_blocks && !blocks_init()))
        return -1;
    if (has_blocks)
        blocks_forget();
    has_blocks = true;
    has_ended = false;
    now_ns = agent.arena.header->start_mono_ns = 1000000000;
    cpu_ns = agent.arena.header->start_cpu_ns = 2000000000;
    rss_bytes = 100 << 20;
    memset(blocks, 0, sizeof blocks);
    memset(sites, 0, sizeof sites);
    memset(&all, 0, sizeof all);
    agent.control = &control;
    records_begin();
    clock_begin();
    fixture_grow_fully(&agent.arena);
    for (int i = 1; i <= SITES; i++) {
        uint32_t id = arena_append(&agent.arena, WIRE_SITE, 1);
        struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, id);
        sites[i].kind = site->kind = (enum wire_site_kind)(WIRE_SITE_PYTHON + i % 3);
    }
    for (int i = 0; i < BLOCKS; i++)
        blocks[i].block = i % 2 ? blocks_take(i % 1000 + 1, 16) : (char *)NULL + 0x7000000 + i * 64;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 1; i < BLOCKS; i += 2)
        blocks_give((void *)blocks[i].block);
    return fixture_close(&agent.arena);
}

static void add(struct model_block *block, uint32_t site, struct memory_sample sample)
{
    model_add(block, site, sample);
    assert_true(records_add(block->block, site, &sample));
}

static void shrink(struct model_block *block, uint64_t size)
{
    model_cut(block, size);
    assert_true(records_put(block->block, records_take(block->block), size));
}

static void drop(struct model_block *block)
{
    model_cut(block, 0);
    records_release(records_take(block->block));
}

/* ---- thousands of operations ---- */

static struct memory_sample random_growth(struct model_block *block)
{
    uint64_t grown = 1 + random_below(random_below(2) ? 500000 : 1000);
    bool exact = random_below(3) != 0;
    block->size += grown;
    return (struct memory_sample){
        .size_bytes = block->size,
        .hits = exact ? 0 : 1 + random_below(3),
        .bytes = exact ? grown : 131072,
        .from = block->size - (exact ? grown : random_below((uint32_t)grown)) - !exact,
        .count = 1 + random_below(5),
        .exact = exact,
    };
}

static void move(struct model_block *from, struct model_block *to)
{
    if (to->count)
        drop(to);
    const void *block = to->block;
    uint64_t size = from->size - random_below(2) * random_below((uint32_t)(from->size / 8 + 1));
    uint32_t records = records_take(from->block);
    *to = *from;
    to->block = block;
    from->count = 0;
    from->size = 0;
    model_cut(to, size);
    assert_true(records_put(to->block, records, size));
    assert_int_equal(records_of(from->block), 0);
}

static void any_order_of_operations(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct model_block *block = &blocks[random_below(BLOCKS)];
        now_ns += 1 + random_below(100000);
        cpu_ns += random_below(100000);
        let_allocate(random_below(5000));
        switch (block->count == PARTS ? 4 : random_below(8)) {
        case 0:
            drop(block);
            break;
        case 1:
            shrink(block, random_below((uint32_t)block->size + 1));
            break;
        case 2: {
            struct model_block *other = &blocks[random_below(BLOCKS)];
            if (other != block)
                move(block, other);
            break;
        }
        case 4:
            shrink(block, block->size - block->size / 16);
            if (block->count == PARTS)
                drop(block);
            break;
        default: {
            struct memory_sample sample = random_growth(block);
            add(block, 1 + random_below(SITES), sample);
        }
        }
        compare_block(block);
        compare_totals();
        if (turn % 64 == 0)
            compare_sites();
        if (turn % 1024 == 0)
            records_note_total(); /* checks all the books, too */
    }
    for (int i = 0; i < BLOCKS; i++) {
        compare_block(&blocks[i]);
        drop(&blocks[i]);
    }
    assert_int_equal(all.live, 0);
    assert_true(all.most_records > BLOCKS);
    assert_true(sites[1].churned > sites[1].allocated / 10);
    assert_true(sites[1].churned < sites[1].allocated * 9 / 10);
    compare_totals();
    compare_sites();
    records_note_total();
}

/* ---- single cases ---- */

static struct memory_sample sample_of(uint64_t from, uint64_t bytes, bool exact)
{
    return (struct memory_sample){
        .bytes = bytes, .from = from, .count = 1, .hits = !exact, .exact = exact};
}

/* The allocator rounds up: what a block grew by begins where its records end. */
static void growth_begins_where_the_last_record_ends(void **state)
{
    (void)state;
    add(&blocks[0], 1, sample_of(0, 100000, true));
    struct memory_sample more = sample_of(100016, 50000, true);
    assert_true(records_add(blocks[0].block, 1, &more));
    assert_int_equal(more.from, 100000);
    assert_int_equal(more.bytes, 50016);
    const struct wire_block *record = block_at(records_of(blocks[0].block));
    assert_int_equal(record->bytes, 150016);
    assert_true(record->flags & WIRE_BLOCK_GREW);
    assert_int_equal(record->next, 0);
    struct memory_sample by_another = sample_of(150032, 10, true);
    assert_true(records_add(blocks[0].block, 2, &by_another));
    record = block_at(records_of(blocks[0].block));
    assert_int_equal(record->site, 2);
    assert_int_equal(record->from, 150016);
    assert_int_equal(record->bytes, 26);
    assert_int_equal(totals()->live_bytes, 150042);
    records_release(records_take(blocks[0].block));
    assert_int_equal(totals()->live_bytes, 0);
}

static void a_copy_is_counted_alone(void **state)
{
    (void)state;
    struct memory_sample copy = {.kind = WIRE_SITE_COPY, .bytes = 5000, .count = 3};
    records_add_copy(4, &copy);
    assert_int_equal(totals()->copied_bytes, 5000);
    assert_int_equal(totals()->allocated_bytes, 0);
    assert_int_equal(totals()->live_bytes, 0);
    assert_int_equal(totals()->samples, 1);
    assert_int_equal(site_at(4)->allocated_bytes, 5000);
    assert_int_equal(site_at(4)->count, 3);
    assert_int_equal(agent.arena.header->sections[WIRE_BLOCK].used, 1);
}

/* Gone before its thread has allocated another window: by a byte too soon, and just in time. */
static void what_is_gone_at_once_is_churn(void **state)
{
    (void)state;
    add(&blocks[0], 1, sample_of(0, 4096, false));
    add(&blocks[2], 2, sample_of(0, 100000, true));
    let_allocate(1);
    add(&blocks[1], 3, sample_of(0, 4096, false));
    let_allocate(WINDOW - 1);
    drop(&blocks[1]);
    drop(&blocks[0]);
    drop(&blocks[2]);
    assert_int_equal(site_at(1)->churned_bytes, 0);
    assert_int_equal(site_at(2)->churned_bytes, 0);
    assert_int_equal(site_at(3)->churned_bytes, 4096);
    assert_int_equal(site_at(3)->churned_count, 1);
    assert_true(site_at(3)->churned_square == 4096.0 * 4096);
    assert_int_equal(records_in_use(), 0);
    compare_sites();
}

/* Of a window or more: with all that was sampled of it, and also the part that is cut off. */
static void large_blocks_are_never_churn(void **state)
{
    (void)state;
    add(&blocks[0], 1, sample_of(0, WINDOW, true));
    drop(&blocks[0]);
    add(&blocks[0], 1, sample_of(0, WINDOW - 1, true));
    drop(&blocks[0]);
    assert_int_equal(site_at(1)->churned_bytes, WINDOW - 1);
    add(&blocks[1], 2, sample_of(0, 100, false));
    add(&blocks[1], 3, sample_of(100, WINDOW, true));
    shrink(&blocks[1], 4096);
    drop(&blocks[1]);
    assert_int_equal(site_at(2)->churned_bytes + site_at(3)->churned_bytes, 0);
    struct memory_sample part =
        sample_of(0, 4096, false); /* of a block that is all it stands for */
    part.size_bytes = WINDOW;
    add(&blocks[2], 4, part);
    drop(&blocks[2]);
    assert_int_equal(site_at(4)->churned_bytes, 0);
    compare_sites();
}

/* What is seen in windows that differ stands for what may have been different, too. */
static void windows_that_differ(void **state)
{
    (void)state;
    struct memory_sample sample = sample_of(0, 40000, false);
    sample.factor = 4;
    for (int i = 0; i < 40; i++) { /* as much in each, ... */
        duty_window++;
        for (int k = 0; k < 10; k++) {
            add(&blocks[k], 1, sample);
            if (i % 4 == 0) /* ... and in one of four */
                add(&blocks[k], 2, sample);
            drop(&blocks[k]);
        }
    }
    duty_window++;
    add(&blocks[0], 1, sample);
    add(&blocks[1], 2, sample);
    double noise = 10 * 40000.0 * 40000, window = 400000.0 * 400000;
    assert_true(site_at(1)->window_square < window);
    assert_true(fabs(site_at(2)->window_square - 0.75 * 10 * (window - noise)) < 1e6);
    struct memory_sample always = sample_of(0, 40000, false);
    add(&blocks[2], 3, always);
    duty_window++;
    add(&blocks[3], 3, always);
    assert_true(site_at(3)->window_square == 0);
}

/* What the interpreter frees at its end was live when the program ended. */
static void the_end_of_the_program(void **state)
{
    (void)state;
    add(&blocks[0], 1, sample_of(0, 100000, true));
    add(&blocks[1], 2, sample_of(0, 4096, false));
    rss_bytes = 300 << 20;
    has_ended = true;
    records_release(records_take(blocks[1].block));
    rss_bytes = 200 << 20;
    records_release(records_take(blocks[0].block));
    compare_totals();
    compare_sites();
    assert_int_equal(totals()->look.rss_bytes, 300 << 20); /* before the first of them */
    assert_int_equal(totals()->look.file_bytes, 75 << 20);
    assert_int_equal(totals()->look.live_bytes, 104096);
    records_look(); /* too late */
    records_look_at_end();
    assert_int_equal(totals()->look.rss_bytes, 300 << 20);
    assert_int_equal(totals()->start_rss_bytes, 100 << 20);
    assert_int_equal(totals()->start_file_bytes, 25 << 20);
}

static void without_room(void **state)
{
    (void)state;
    struct wire_section *s = &agent.arena.header->sections[WIRE_BLOCK];
    s->committed = 3; /* the disk is full */
    add(&blocks[0], 1, sample_of(0, 100000, true));
    add(&blocks[1], 1, sample_of(0, 4096, false));
    struct memory_sample third = sample_of(0, 8192, false);
    assert_false(records_add(blocks[2].block, 1, &third));
    assert_false(records_add(blocks[3].block, 1, &third));
    assert_int_equal(records_of(blocks[2].block) + records_of(blocks[3].block), 0);
    assert_int_equal(s->dropped, 2);
    compare_totals();
    compare_sites();
    drop(&blocks[0]);
    add(&blocks[3], 2, third); /* in the record of the one that went */
    compare_block(&blocks[3]);
    compare_totals();
    records_note_total();
}

/* As mapped blocks are, and far apart, so that some buckets get many of them. */
static const void *scattered(uint64_t n)
{
    n = (n + 1) * 0xBF58476D1CE4E5B9u;
    n = (n ^ n >> 31) * 0x94D049BB133111EBu;
    return (char *)NULL + (n >> 17 & ~(uint64_t)15);
}

/* A bucket of the table is full: the block is not recorded, and no record is lost by that. */
static void without_a_place_for_the_address(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    unsigned kept = 0, refused = 0;
    uint64_t live = 0;
    for (uint64_t i = 0; i < MANY && refused < 100; i++) {
        struct memory_sample sample = sample_of(0, 4096, false);
        if (records_add(scattered(i), 1, &sample))
            kept++, live += 4096;
        else
            refused++;
    }
    assert_true(refused == 100 && kept > 1000);
    assert_int_equal(totals()->live_bytes, live);
    assert_int_equal(totals()->samples, kept);
    assert_int_equal(agent.arena.header->sections[WIRE_BLOCK].used, kept + 2);
    records_note_total();
    /* The same for one that moves there: what it had is released. */
    struct memory_sample large = sample_of(0, 100000, true);
    assert_true(records_add(blocks[1].block, 2, &large));
    for (uint64_t i = 0; i < MANY; i++) {
        const void *there = scattered(i);
        if (blocks_has(there))
            continue;
        uint32_t records = records_take(blocks[1].block);
        if (!records_put(there, records, 100000)) {
            refused++;
            break;
        }
        assert_true(records_put(blocks[1].block, records_take(there), 100000));
    }
    assert_int_equal(refused, 101);
    assert_int_equal(totals()->live_bytes, live);
    assert_int_equal(site_at(2)->live_bytes, 0);
    records_note_total();
}

/* ---- the footprint's course ---- */

static const struct wire_foot *foot_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_FOOT, id);
}

static uint32_t foot_used(void)
{
    return agent.arena.header->sections[WIRE_FOOT].used;
}

static void the_course_is_written_down(void **state)
{
    (void)state;
    now_ns += 5000000;
    cpu_ns += 3000000;
    add(&blocks[0], 3, sample_of(0, 300 << 10, true));
    now_ns += 2000000;
    cpu_ns += 2000000;
    add(&blocks[1], 4, sample_of(0, 100 << 10, false));
    drop(&blocks[0]);
    assert_int_equal(foot_used(), 4);
    const struct wire_foot *first = foot_at(1), *second = foot_at(2), *third = foot_at(3);
    assert_int_equal(first->at_ns, 5000000);
    assert_int_equal(first->at_cpu_ms, 3);
    assert_int_equal(first->published, WIRE_FOOT_ALLOCATED);
    assert_int_equal(first->site, 3);
    assert_int_equal(first->live_kib, 300);
    assert_int_equal(first->site_live_kib, 300);
    assert_int_equal(second->at_ns, 7000000);
    assert_int_equal(second->at_cpu_ms, 5);
    assert_int_equal(second->live_kib, 400);
    assert_int_equal(second->site_live_kib, 100);
    assert_int_equal(third->published, WIRE_FOOT_FREED);
    assert_int_equal(third->site, 3);
    assert_int_equal(third->live_kib, 100);
    assert_int_equal(third->site_live_kib, 0);
    records_note_total(); /* nothing changed since */
    assert_int_equal(foot_used(), 4);
}

/* The clock of the process is read once a millisecond at most. */
static void cpu_times_may_be_a_millisecond_old(void **state)
{
    (void)state;
    now_ns += 5000000;
    add(&blocks[0], 1, sample_of(0, 100000, true));
    now_ns += 900000;
    cpu_ns += 7000000;
    add(&blocks[2], 1, sample_of(0, 100000, true));
    now_ns += 200000;
    add(&blocks[4], 1, sample_of(0, 100000, true));
    assert_int_equal(foot_at(1)->at_cpu_ms, 0);
    assert_int_equal(foot_at(2)->at_cpu_ms, 0);
    assert_int_equal(foot_at(3)->at_cpu_ms, 7);
    assert_int_equal(block_at(records_of(blocks[4].block))->at_cpu_ms, 7);
}

/* When it gets short of room every other entry goes, and from then on every other is written. */
static void the_course_is_thinned(void **state)
{
    (void)state;
    struct wire_section *s = &agent.arena.header->sections[WIRE_FOOT];
    uint32_t limit = s->capacity - s->capacity / 4;
    while (foot_used() < limit) {
        now_ns++;
        blocks[0].count ? drop(&blocks[0]) : add(&blocks[0], 1, sample_of(0, 100000, true));
        if (foot_used() == limit - 1) {
            records_note_total();
            assert_int_equal(totals()->foot_stride, 1); /* not yet */
        }
    }
    uint32_t used = foot_used();
    records_note_total();
    assert_int_equal(totals()->foot_stride, 2);
    assert_int_equal(foot_used(), 1 + used / 2);
    for (uint32_t id = 1; id < foot_used(); id++) {
        assert_int_equal(foot_at(id)->at_ns, 2 * id - 1);
        assert_int_equal(foot_at(id)->published, WIRE_FOOT_ALLOCATED);
    }
    for (uint32_t id = foot_used(); id < used; id++) {
        const struct wire_foot *feet = arena_record(&agent.arena, WIRE_FOOT, 1);
        assert_int_equal(feet[id - 1].published, WIRE_FOOT_NONE); /* a reader sees none twice */
    }
    used = foot_used();
    for (int i = 0; i < 100; i++) {
        now_ns++;
        add(&blocks[2], 1, sample_of(0, 4096, false));
        drop(&blocks[2]);
    }
    assert_int_equal(foot_used(), used + 100);
    /* The total as it is in the end is there, however many are left out. */
    add(&blocks[2], 1, sample_of(0, 4096, false));
    if (foot_at(foot_used() - 1)->live_kib != totals()->live_bytes >> 10)
        records_note_total();
    assert_int_equal(foot_at(foot_used() - 1)->live_kib, totals()->live_bytes >> 10);
    add(&blocks[4], 1, sample_of(0, 8192, false));
    records_note_total();
    assert_int_equal(foot_at(foot_used() - 1)->live_kib, totals()->live_bytes >> 10);
    compare_totals();
}

/* A forked child begins with an arena of its own. */
static void a_new_arena_begins_empty(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i++)
        add(&blocks[i], 1, sample_of(0, 4096, false));
    for (int i = 0; i < BLOCKS / 2; i++)
        drop(&blocks[i]);
    struct arena old = agent.arena;
    memset(&agent.arena, 0, sizeof agent.arena);
    assert_true(arena_create(&agent.arena, fixture_directory, true, 1));
    agent.arena.header->start_mono_ns = now_ns;
    agent.arena.header->start_cpu_ns = cpu_ns;
    unlink(old.path);
    arena_unmap(&old);
    blocks_forget();
    records_begin();
    records_note_total();
    assert_int_equal(totals()->live_bytes, 0);
    assert_int_equal(foot_used(), 1);
    assert_int_equal(records_of(blocks[BLOCKS - 1].block), 0); /* lives on, unrecorded */
    uint32_t site = arena_append(&agent.arena, WIRE_SITE, 1);
    struct memory_sample sample = sample_of(0, 4096, false);
    assert_true(records_add(blocks[0].block, site, &sample));
    assert_int_equal(records_of(blocks[0].block), 1); /* and not one of the old arena's */
    assert_int_equal(totals()->peak_bytes, 4096);
    records_note_total();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_order_of_operations),
        TEST(growth_begins_where_the_last_record_ends),
        TEST(a_copy_is_counted_alone),
        TEST(what_is_gone_at_once_is_churn),
        TEST(large_blocks_are_never_churn),
        TEST(windows_that_differ),
        TEST(the_end_of_the_program),
        TEST(without_room),
        TEST(without_a_place_for_the_address),
        TEST(the_course_is_written_down),
        TEST(cpu_times_may_be_a_millisecond_old),
        TEST(the_course_is_thinned),
        TEST(a_new_arena_begins_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
