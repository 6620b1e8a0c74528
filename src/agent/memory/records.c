#include "agent/memory/records.h"

#include "agent/core/agent.h"
#include "agent/core/check.h"
#include "agent/memory/blocks.h"
#include "agent/memory/clock.h"
#include "agent/memory/duty.h"
#include "agent/memory/mapped.h"
#include "agent/memory/place.h"
#include "agent/memory/resident.h"
#include "os/os.h"

enum { CPU_READ_NS = 1000000 };

static uint32_t free_blocks; /* chain of block records in no use */
static uint32_t in_use;      /* those that are not in it */
static uint32_t foot_skip;
static uint64_t cpu_read_at_ns; /* when the process's CPU clock was read, */
static uint64_t cpu_ms;         /* and what it said */
static uint64_t foot_last_live; /* at the last entry of the footprint's course */
static _Atomic bool has_seen_end;

static struct wire_memory *totals(void)
{
    return &agent.arena.header->memory;
}

/* ---- the whole, and its course ---- */

static struct wire_site *site_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_SITE, id);
}

static struct wire_block *block_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_BLOCK, id);
}

static uint64_t get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void set(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static void add(_Atomic uint64_t *value, uint64_t change)
{
    set(value, get(value) + change); /* the lock makes this one writer */
}

static double get_square(const _Atomic double *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* Rounding must not leave less than nothing of a sum from which all was taken away. */
static void add_square(_Atomic double *value, double change)
{
    double sum = get_square(value) + change;
    atomic_store_explicit(value, sum > 0 ? sum : 0, memory_order_relaxed);
}

/* Of `bytes` in so many equal weights. */
static double square_of(uint64_t bytes, uint32_t hits)
{
    return hits ? (double)bytes * (double)bytes / hits : 0;
}

static uint64_t since_start_ns(void)
{
    return os_mono_ns() - agent.arena.header->start_mono_ns;
}

static uint64_t cpu_ms_now(void)
{
    return (os_process_cpu_ns() - agent.arena.header->start_cpu_ns) / 1000000;
}

/* At most a millisecond old: that clock is a call into the kernel. */
static uint64_t recent_cpu_ms(uint64_t at_ns)
{
    if (at_ns - cpu_read_at_ns > CPU_READ_NS) {
        cpu_ms = cpu_ms_now();
        cpu_read_at_ns = at_ns;
    }
    return cpu_ms;
}

static uint32_t in_kib(uint64_t bytes)
{
    return bytes >> 10 < UINT32_MAX ? (uint32_t)(bytes >> 10) : UINT32_MAX;
}

static void write_foot(uint32_t site, enum wire_foot_kind kind, uint64_t at_ns)
{
    uint32_t id = arena_append(&agent.arena, WIRE_FOOT, 1);
    if (!id)
        return;
    struct wire_foot *foot = arena_record(&agent.arena, WIRE_FOOT, id);
    foot->at_ns = at_ns;
    foot->at_cpu_ms = recent_cpu_ms(at_ns);
    foot_last_live = get(&totals()->live_bytes);
    foot->live_kib = in_kib(foot_last_live);
    foot->site_live_kib = site ? in_kib(get(&site_at(site)->live_bytes)) : 0;
    foot->site = site;
    atomic_store_explicit(&foot->published, kind, memory_order_release);
}

/* Events are written down by the stride: each that is stands for as many.  Of a large block that
 * grows none may be missing, and the others become looks. */
static void note_foot(uint32_t site, enum wire_foot_kind kind, bool grew, uint64_t at_ns)
{
    bool is_due = foot_skip++ % (uint32_t)get(&totals()->foot_stride) == 0;
    if (is_due || grew)
        write_foot(site, is_due ? kind : WIRE_FOOT_LOOK, at_ns);
}

/* Live bytes of a site and of all, which came in so many hits; the peak keeps what each site had
 * when it was reached. */
static void change_live(uint32_t id, uint64_t change, uint32_t hits, bool grows, uint64_t at_ns)
{
    struct wire_memory *all = totals();
    struct wire_site *site = site_at(id);
    uint32_t epoch = atomic_load_explicit(&all->peak_epoch, memory_order_relaxed);
    if (atomic_load_explicit(&site->peak_epoch, memory_order_relaxed) != epoch) {
        set(&site->at_peak_bytes, get(&site->live_bytes));
        atomic_store_explicit(&site->peak_epoch, epoch, memory_order_relaxed);
    }
    CHECK_CHEAP(memory_is_locked());
    CHECK_CHEAP(grows || (change <= get(&site->live_bytes) && change <= get(&all->live_bytes)));
    uint64_t signed_change = grows ? change : (uint64_t)0 - change;
    uint32_t kind = atomic_load_explicit(&site->kind, memory_order_relaxed);
    add(&site->live_bytes, signed_change);
    add_square(&site->live_square, grows ? square_of(change, hits) : -square_of(change, hits));
    add(&all->live_bytes, signed_change);
    if (kind == WIRE_SITE_PYTHON)
        add(&all->live_python_bytes, signed_change);
    else if (kind == WIRE_SITE_MAPPED)
        add(&all->live_mapped_bytes, signed_change);
    CHECK_DEBUG(get(&site->live_bytes) <= get(&all->live_bytes) &&
                get(&all->live_python_bytes) + get(&all->live_mapped_bytes) <=
                    get(&all->live_bytes));
    if (!grows)
        return;
    if (get(&site->live_bytes) > get(&site->most_bytes)) {
        set(&site->most_bytes, get(&site->live_bytes));
        atomic_store_explicit(&site->most_square, get_square(&site->live_square),
                              memory_order_relaxed);
    }
    if (get(&all->live_bytes) > get(&all->peak_bytes)) {
        set(&all->peak_bytes, get(&all->live_bytes));
        set(&all->peak_python_bytes, get(&all->live_python_bytes));
        set(&all->peak_at_ns, at_ns);
        atomic_store_explicit(&all->peak_site, id, memory_order_relaxed);
        atomic_store_explicit(&all->peak_epoch, epoch + 1, memory_order_relaxed);
    }
}

/* Every other entry goes when there is little room left, until the next pass. */
static void compact(void)
{
    struct wire_section *s = &agent.arena.header->sections[WIRE_FOOT];
    uint32_t used = atomic_load(&s->used), kept = 1;
    if (used < s->capacity - s->capacity / 4)
        return;
    for (uint32_t i = 1; i < used; i += 2)
        *(struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, kept++) =
            *(struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, i);
    for (uint32_t i = kept; i < used; i++)
        atomic_store(&((struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, i))->published, 0);
    atomic_store(&s->used, kept);
    add(&totals()->foot_stride, get(&totals()->foot_stride));
}

/* ---- resident memory ---- */

static void look(void)
{
    struct wire_memory *all = totals();
    uint64_t file_bytes;
    set(&all->look.at_cpu_ms, cpu_ms_now());
    set(&all->look.rss_bytes, os_rss_bytes(&file_bytes));
    set(&all->look.file_bytes, file_bytes);
    set(&all->look.live_bytes, get(&all->live_bytes));
    set(&all->look.live_python_bytes, get(&all->live_python_bytes));
    set(&all->look.live_mapped_bytes, get(&all->live_mapped_bytes));
    set(&all->reserved_bytes, mapped_reserved_bytes());
}

void records_look(void)
{
    if (!atomic_load(&has_seen_end))
        look();
}

void records_look_at_end(void)
{
    if (!atomic_exchange(&has_seen_end, true))
        look();
}

bool records_have_ended(void)
{
    return atomic_load_explicit(&has_seen_end, memory_order_relaxed);
}

/* ---- blocks ---- */

/*
 * What is seen in a window stands for what went by while it was closed, which may have
 * been more or less.  How much that makes is seen by how windows that follow each other
 * differ, less what their samples differ by chance; a site that has none in a window
 * has nothing there.
 */
static void end_window(struct wire_site *site, uint32_t now, uint32_t factor)
{
    double change = site->window_bytes - site->window_before;
    double square = change * change / 2 - site->window_noise;
    bool is_next = now == site->window + 1;
    if (!is_next)
        square += site->window_bytes * site->window_bytes / 2;
    double sum = get_square(&site->window_square) + square * (1 - 1.0 / factor);
    atomic_store_explicit(&site->window_square, sum, memory_order_relaxed);
    site->window_before = is_next ? site->window_bytes : 0;
    site->window_bytes = site->window_noise = 0;
    site->window = now;
}

static void count_in_window(struct wire_site *site, const struct memory_sample *sample)
{
    uint32_t now = atomic_load_explicit(&duty_window, memory_order_relaxed);
    if (site->window != now)
        end_window(site, now, sample->factor);
    site->window_bytes += (double)sample->bytes;
    site->window_noise += square_of(sample->bytes, sample->hits);
}

static void count_sample(uint32_t id, const struct memory_sample *sample)
{
    struct wire_memory *all = totals();
    struct wire_site *site = site_at(id);
    add(&site->allocated_bytes, sample->bytes);
    add(&site->count, sample->count);
    add(&site->samples, 1);
    add_square(&site->square, square_of(sample->bytes, sample->hits));
    if (sample->factor)
        count_in_window(site, sample);
    add(&all->samples, 1);
    add(sample->kind == WIRE_SITE_COPY ? &all->copied_bytes : &all->allocated_bytes, sample->bytes);
}

static uint32_t take_block(void)
{
    uint32_t id = free_blocks;
    if (id)
        free_blocks = block_at(id)->next;
    else
        id = arena_append(&agent.arena, WIRE_BLOCK, 1);
    in_use += id != 0;
    return id;
}

static void give_block(uint32_t id)
{
    struct wire_block *block = block_at(id);
    CHECK_DEBUG(id != free_blocks);
    atomic_store_explicit(&block->site, 0, memory_order_relaxed);
    block->next = free_blocks;
    free_blocks = id;
    in_use--;
}

uint32_t records_in_use(void)
{
    return in_use;
}

uint32_t records_of(const void *block)
{
    return blocks_is_slot(block) ? *blocks_slot_record(block) : blocks_get(block);
}

static bool set_records(const void *block, uint32_t records)
{
    if (blocks_is_slot(block))
        return *blocks_slot_record(block) = records, true;
    if (records)
        return blocks_put(block, records);
    blocks_remove(block);
    return true;
}

/* Is a block of these records so large that it moves the footprint however short it lives? */
static bool has_window(uint32_t head)
{
    for (uint32_t id = head; id; id = block_at(id)->next)
        if (block_at(id)->flags & WIRE_BLOCK_WINDOW)
            return true;
    return false;
}

/* Was it gone again so soon that it was only passing through? */
static bool is_churn(const struct wire_block *block, uint64_t at_ns)
{
    return !clock_has_passed(block->born, agent.control->allocation_window_bytes,
                             get(&totals()->interval_bytes),
                             at_ns + agent.arena.header->start_mono_ns);
}

/* `gone` bytes of the record are freed; if that is all of it, the record goes too. */
static void take_away(struct wire_block *block, uint64_t gone, bool may_be_churn, uint64_t at_ns)
{
    uint32_t id = atomic_load(&block->site);
    struct wire_site *site = site_at(id);
    CHECK_CHEAP(gone == block->bytes || !block->hits); /* samples go as they came */
    change_live(id, gone, block->hits, false, at_ns);
    note_foot(id, WIRE_FOOT_FREED, false, at_ns);
    if (may_be_churn && is_churn(block, at_ns)) {
        add(&site->churned_bytes, gone);
        add(&site->churned_count, gone == block->bytes ? block->count : 0);
        add_square(&site->churned_square, square_of(gone, block->hits));
    }
    block->bytes -= gone;
}

static void release(uint32_t id, bool may_be_churn)
{
    bool has_ended = place_has_ended();
    uint64_t at_ns = since_start_ns();
    if (has_ended && !records_have_ended()) {
        resident_end(true);
        records_look_at_end();
    }
    may_be_churn = may_be_churn && !has_window(id);
    while (id && !has_ended) {
        struct wire_block *block = block_at(id);
        uint32_t next = block->next;
        CHECK_CHEAP(atomic_load(&block->site) && next != id); /* else it was released before */
        take_away(block, block->bytes, may_be_churn, at_ns);
        give_block(id);
        id = next;
    }
}

void records_release(uint32_t head)
{
    release(head, true);
}

static unsigned window_flag(const struct memory_sample *sample)
{
    uint64_t size = sample->size_bytes ? sample->size_bytes : sample->from + sample->bytes;
    return size >= agent.control->allocation_window_bytes ? WIRE_BLOCK_WINDOW : 0;
}

/*
 * Growth of a large block.  It begins where the last record ends, not where the
 * allocator's rounding of the old size ended; and when the same stack enlarges
 * it again and again, one record grows.
 */
static bool extend_last(uint32_t head, uint32_t site, struct memory_sample *sample)
{
    if (!head || !sample->exact)
        return false;
    struct wire_block *block = block_at(head);
    if (!(block->flags & WIRE_BLOCK_EXACT) || block->from + block->bytes > sample->from)
        return false;
    uint64_t end = block->from + block->bytes;
    sample->bytes += sample->from - end;
    sample->from = end;
    if (atomic_load(&block->site) != site)
        return false;
    block->bytes += sample->bytes;
    block->count += (uint32_t)sample->count;
    block->flags |= WIRE_BLOCK_GREW | window_flag(sample);
    return true;
}

static bool add_block(const void *block, uint32_t head, uint32_t site,
                      const struct memory_sample *sample, uint64_t at_ns)
{
    uint32_t id = take_block();
    if (!id)
        return false;
    if (!set_records(block, id)) {
        give_block(id);
        return false;
    }
    struct wire_block *record = block_at(id);
    record->next = head;
    record->bytes = sample->bytes;
    record->from = sample->from;
    record->at_cpu_ms = recent_cpu_ms(at_ns);
    record->flags = (sample->exact ? WIRE_BLOCK_EXACT : 0) | window_flag(sample);
    record->born = clock_born(at_ns + agent.arena.header->start_mono_ns);
    record->count = sample->count < UINT32_MAX ? (uint32_t)sample->count : UINT32_MAX;
    record->hits = sample->hits;
    atomic_store_explicit(&record->site, site, memory_order_release);
    return true;
}

bool records_add(const void *block, uint32_t site, struct memory_sample *sample)
{
    CHECK_CHEAP(site && sample->bytes);
    uint32_t head = records_of(block);
    uint64_t at_ns = since_start_ns();
    bool grew = extend_last(head, site, sample);
    if (!grew && !add_block(block, head, site, sample, at_ns))
        return false;
    count_sample(site, sample);
    change_live(site, sample->bytes, sample->hits, true, at_ns);
    note_foot(site, WIRE_FOOT_ALLOCATED, grew, at_ns);
    return true;
}

void records_add_copy(uint32_t site, const struct memory_sample *sample)
{
    count_sample(site, sample);
}

uint32_t records_take(const void *block)
{
    uint32_t head = records_of(block);
    set_records(block, 0);
    return head;
}

/* Cut the records of a block that shrank; gives the new head.  The last one made stays first. */
static uint32_t cut(uint32_t head, uint64_t size_bytes)
{
    uint64_t at_ns = since_start_ns();
    bool may_be_churn = !has_window(head);
    uint32_t *link = &head;
    for (uint32_t id = head, next; id; id = next) {
        struct wire_block *block = block_at(id);
        next = block->next;
        CHECK_CHEAP(atomic_load(&block->site) && next != id);
        uint64_t gone = 0;
        if (block->from >= size_bytes)
            gone = block->bytes;
        else if ((block->flags & WIRE_BLOCK_EXACT) && block->from + block->bytes > size_bytes)
            gone = block->from + block->bytes - size_bytes;
        if (gone)
            take_away(block, gone, may_be_churn, at_ns);
        if (block->bytes) {
            link = &block->next;
        } else {
            *link = next;
            give_block(id);
        }
    }
    return head;
}

bool records_put(const void *block, uint32_t head, uint64_t size_bytes)
{
    uint32_t kept = cut(head, size_bytes);
    if (!kept || set_records(block, kept))
        return true;
    release(kept, false); /* it lives on, unrecorded */
    return false;
}

/* ---- mapped memory ---- */

uint32_t records_grow_mapped(uint32_t id, uint32_t site, uint64_t bytes)
{
    CHECK_CHEAP(memory_is_locked() && site && bytes);
    uint64_t at_ns = since_start_ns();
    bool grew = id != 0;
    if (grew) {
        block_at(id)->bytes += bytes;
        block_at(id)->flags |= WIRE_BLOCK_GREW;
    } else {
        id = take_block();
        if (!id)
            return 0;
        struct wire_block *record = block_at(id);
        record->next = 0;
        record->bytes = bytes;
        record->from = 0;
        record->at_cpu_ms = recent_cpu_ms(at_ns);
        record->flags = WIRE_BLOCK_EXACT | WIRE_BLOCK_WINDOW;
        record->born = clock_born(at_ns + agent.arena.header->start_mono_ns);
        record->count = 1;
        record->hits = 0;
        atomic_store_explicit(&record->site, site, memory_order_release);
    }
    count_sample(site, &(struct memory_sample){
                           .kind = WIRE_SITE_MAPPED, .bytes = bytes, .count = 1, .exact = true});
    change_live(site, bytes, 0, true, at_ns);
    note_foot(site, WIRE_FOOT_ALLOCATED, grew, at_ns);
    return id;
}

uint32_t records_shrink_mapped(uint32_t id, uint64_t bytes)
{
    struct wire_block *block = block_at(id);
    uint32_t site = atomic_load(&block->site);
    CHECK_CHEAP(memory_is_locked() && site && bytes <= block->bytes);
    bool is_all = bytes == block->bytes;
    if (atomic_load(&has_seen_end))
        return is_all ? 0 : id;
    uint64_t at_ns = since_start_ns();
    change_live(site, bytes, 0, false, at_ns);
    note_foot(site, WIRE_FOOT_FREED, false, at_ns);
    block->bytes -= bytes;
    if (is_all)
        give_block(id);
    return is_all ? 0 : id;
}

uint32_t records_split_mapped(uint32_t id, uint64_t bytes)
{
    uint32_t part = take_block();
    if (!part)
        return 0;
    struct wire_block *from = block_at(id), *to = block_at(part);
    CHECK_CHEAP(memory_is_locked() && bytes < from->bytes);
    to->next = 0;
    to->bytes = bytes;
    to->from = 0;
    to->at_cpu_ms = from->at_cpu_ms;
    to->flags = from->flags;
    to->born = from->born;
    to->count = to->hits = 0;
    from->bytes -= bytes;
    atomic_store_explicit(&to->site, atomic_load(&from->site), memory_order_release);
    return part;
}

uint32_t records_site(uint32_t id)
{
    return atomic_load_explicit(&block_at(id)->site, memory_order_relaxed);
}

void records_join_mapped(uint32_t id, uint32_t other)
{
    CHECK_CHEAP(memory_is_locked() && id != other && records_site(id) == records_site(other));
    struct wire_block *into = block_at(id);
    into->bytes += block_at(other)->bytes;
    into->flags |= WIRE_BLOCK_GREW;
    give_block(other);
}

/* ---- called now and then ---- */

/* For checks: a record is either in use or free, and what is in use is what is live. */
static bool books_balance(void)
{
    const struct wire_memory *all = totals();
    uint32_t used = atomic_load(&agent.arena.header->sections[WIRE_BLOCK].used);
    uint32_t found = 0, free_count = 0;
    uint64_t live_bytes = 0;
    for (uint32_t id = 1; id < used; id++) {
        const struct wire_block *block = block_at(id);
        bool is_in_use = atomic_load_explicit(&block->site, memory_order_relaxed) != 0;
        found += is_in_use;
        live_bytes += is_in_use ? block->bytes : 0;
    }
    for (uint32_t id = free_blocks; id && free_count < used; id = block_at(id)->next, free_count++)
        if (atomic_load_explicit(&block_at(id)->site, memory_order_relaxed))
            return false;
    return found == in_use && found + free_count == used - 1 && live_bytes == get(&all->live_bytes);
}

void records_note_total(void)
{
    CHECK_COSTLY(books_balance() && blocks_are_sound());
    if (get(&totals()->live_bytes) != foot_last_live) {
        write_foot(0, WIRE_FOOT_LOOK, since_start_ns());
    }
    compact();
}

void records_begin(void)
{
    free_blocks = in_use = 0;
    foot_skip = 0;
    foot_last_live = 0;
    cpu_read_at_ns = 0;
    cpu_ms = 0;
    atomic_store(&totals()->peak_epoch, 1);
    atomic_store(&has_seen_end, false);
    look();
    set(&totals()->start_rss_bytes, get(&totals()->look.rss_bytes));
    set(&totals()->start_file_bytes, get(&totals()->look.file_bytes));
}
