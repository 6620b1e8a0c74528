/*
 * The recorder: life cycle, the lock, the choice of samples, and the records
 * over the arena.  memory_place.c says who allocates; see memory.h.
 */
#include "agent/memory.h"

#include "agent/agent.h"
#include "agent/blocks.h"
#include "agent/heap.h"
#include "agent/memory_place.h"
#include "agent/objects.h"
#include "agent/threads.h"
#include "agent/windows.h"
#include "os/os.h"

#include <errno.h>

enum {
    IDLE_BYTES = 1 << 20, /* until a thread that may not record asks again */
    WINDOW_LEAST = 4096,
    DENSE_SAMPLES = 4096, /* with the shortest interval; then twice as many with twice of it ... */
    DENSE_SHIFT = 6,
    COPIES_SHIFT = 2, /* copies are many: their intervals are longer by this */
    SPINS = 200,
    FORK_WAIT_NS = 200000000,
    DEFERRED_MAX = 64,
    LOOK_EVERY = 4, /* passes between two looks at the resident size */
};

__thread struct memory_thread memory_self __attribute__((tls_model("initial-exec")));

static _Atomic bool active;
static bool has_blocks;         /* blocks_init succeeded */
static _Atomic bool is_forking; /* a thread has the lock for that */
static _Atomic uint32_t locked;
static _Atomic uint32_t *fork_mark; /* 0: a child that no fork handler knows of */
static _Atomic uint64_t interval_bytes;
static uint64_t allocation_samples; /* copies do not count for the interval */
static uint32_t free_blocks;        /* chain of block records in no use */
static uint32_t foot_skip;
static _Atomic bool has_seen_end;
static uint64_t foot_last_live; /* at the last entry of the footprint's course */
static _Atomic(void *) deferred[DEFERRED_MAX];
static _Atomic bool has_deferred;

static struct wire_memory *totals(void)
{
    return &agent.arena.header->memory;
}

/* ---- the lock ---- */

/*
 * A child made by the bare system call has the parent's arena, and perhaps a lock
 * that a thread held which it does not have.  It records nothing.
 */
static void check_process(void)
{
    if (!fork_mark || atomic_load_explicit(fork_mark, memory_order_relaxed))
        return;
    atomic_store(&active, false);
    atomic_store(&locked, 0);
    atomic_store(fork_mark, 1);
}

/*
 * False: not now.  While a process forks, the thread that does it has the lock and
 * runs other libraries' fork handlers, which may wait for a lock that the calling
 * thread has; so it does not wait for ever.
 */
static bool lock(void)
{
    uint64_t began_ns = 0;
    memory_self.busy = true;
    check_process();
    for (unsigned spins = 1; atomic_exchange_explicit(&locked, 1, memory_order_acquire); spins++) {
        if (spins % SPINS)
            continue;
        os_yield();
        uint64_t now_ns = atomic_load(&is_forking) ? os_mono_ns() : 0;
        if (now_ns && !began_ns)
            began_ns = now_ns;
        if (now_ns && now_ns - began_ns > FORK_WAIT_NS)
            return memory_self.busy = false;
    }
    return true;
}

static void forget_deferred(void);

static void unlock(void)
{
    if (atomic_load_explicit(&has_deferred, memory_order_relaxed))
        forget_deferred();
    atomic_store_explicit(&locked, 0, memory_order_release);
    memory_self.busy = false;
}

/* ---- which are samples ---- */

uint64_t memory_random(void)
{
    uint64_t x = memory_self.random;
    if (!x)
        x = ((uint64_t)(uintptr_t)&memory_self ^ os_mono_ns()) * 0x9E3779B97F4A7C15u | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return memory_self.random = x;
}

static uint64_t interval_for(uint64_t samples)
{
    uint64_t window = agent.control->allocation_window_bytes;
    unsigned shift = DENSE_SHIFT;
    for (uint64_t end = DENSE_SAMPLES, step = DENSE_SAMPLES; shift && samples >= end; shift--)
        end += step *= 2;
    window >>= shift;
    return window < WINDOW_LEAST ? WINDOW_LEAST : window;
}

uint64_t memory_large_bytes(void)
{
    uint64_t quarter = atomic_load_explicit(&interval_bytes, memory_order_relaxed) / 4;
    return quarter > WIRE_LARGE_LEAST ? quarter : WIRE_LARGE_LEAST;
}

bool memory_is_ready(void)
{
    check_process();
    return atomic_load_explicit(&active, memory_order_relaxed) && !memory_self.busy &&
           atomic_load_explicit(&agent.control->on, memory_order_relaxed);
}

void memory_postpone(struct memory_gap *gap)
{
    gap->left_bytes = IDLE_BYTES;
    gap->weight_bytes = 0;
}

static void draw(struct memory_gap *gap)
{
    uint64_t mean = atomic_load_explicit(&interval_bytes, memory_order_relaxed);
    if (gap == &memory_self.copies)
        mean <<= COPIES_SHIFT;
    /* The first gap of a thread begins anywhere in an interval: short threads count right. */
    uint64_t least = gap->weight_bytes ? mean / 2 : 0;
    gap->left_bytes += (int64_t)(least + memory_random() % mean);
    gap->weight_bytes = mean;
}

bool memory_choose(struct memory_gap *gap, uint64_t grown_bytes, uint64_t size_bytes,
                   struct memory_sample *sample)
{
    sample->from = size_bytes - grown_bytes;
    sample->exact = size_bytes >= memory_large_bytes();
    if (sample->exact) {
        sample->bytes = grown_bytes;
        sample->count = 1;
        return grown_bytes > 0;
    }
    if (size_bytes >= WIRE_LARGE_LEAST)
        gap->left_bytes -= (int64_t)grown_bytes;
    if (gap->left_bytes >= 0)
        return false;
    if (!gap->weight_bytes) { /* the first look of a thread, or after a pause */
        gap->left_bytes = -(int64_t)grown_bytes;
        draw(gap);
    }
    uint64_t weight = 0, overshoot = 0;
    while (gap->left_bytes < 0) {
        overshoot = (uint64_t)-gap->left_bytes;
        weight += gap->weight_bytes;
        draw(gap);
    }
    if (!weight)
        return false;
    sample->bytes = weight;
    sample->from = overshoot < size_bytes ? size_bytes - overshoot : 0;
    sample->count = grown_bytes ? (weight + grown_bytes / 2) / grown_bytes : 1;
    if (!sample->count)
        sample->count = 1;
    return true;
}

void memory_lost(void)
{
    arena_lost(&agent.arena, WIRE_LOST_ALLOCATION);
}

/* ---- records, under the lock ---- */

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

static uint64_t since_start_ns(void)
{
    return os_mono_ns() - agent.arena.header->start_mono_ns;
}

/* As old as the sampler's last pass: a few milliseconds, and no call into the kernel. */
static uint32_t since_start_cpu_ms(void)
{
    const struct wire_header *header = agent.arena.header;
    uint64_t ns = get(&header->beat_cpu_ns);
    return ns > header->start_cpu_ns ? (uint32_t)((ns - header->start_cpu_ns) / 1000000) : 0;
}

static void note_foot(uint32_t site, enum wire_foot_kind kind, uint64_t at_ns)
{
    if (foot_skip++ % (uint32_t)get(&totals()->foot_stride))
        return;
    uint32_t id = arena_append(&agent.arena, WIRE_FOOT, 1);
    if (!id)
        return;
    struct wire_foot *foot = arena_record(&agent.arena, WIRE_FOOT, id);
    foot->at_ns = at_ns;
    foot->at_cpu_ms = since_start_cpu_ms();
    foot_last_live = get(&totals()->live_bytes);
    foot->live_kib = (uint32_t)(foot_last_live >> 10);
    foot->site_live_kib = site ? (uint32_t)(get(&site_at(site)->live_bytes) >> 10) : 0;
    foot->site = site;
    atomic_store_explicit(&foot->published, kind, memory_order_release);
}

/* Live bytes of a site and of all; the peak keeps what each site had when it was reached. */
static void change_live(uint32_t id, uint64_t change, bool grows, uint64_t at_ns)
{
    struct wire_memory *all = totals();
    struct wire_site *site = site_at(id);
    uint32_t epoch = atomic_load_explicit(&all->peak_epoch, memory_order_relaxed);
    if (atomic_load_explicit(&site->peak_epoch, memory_order_relaxed) != epoch) {
        set(&site->at_peak_bytes, get(&site->live_bytes));
        atomic_store_explicit(&site->peak_epoch, epoch, memory_order_relaxed);
    }
    uint64_t signed_change = grows ? change : (uint64_t)0 - change;
    uint32_t kind = atomic_load_explicit(&site->kind, memory_order_relaxed);
    add(&site->live_bytes, signed_change);
    add(&all->live_bytes, signed_change);
    if (kind == WIRE_SITE_PYTHON)
        add(&all->live_python_bytes, signed_change);
    else if (kind == WIRE_SITE_MAPPED)
        add(&all->live_mapped_bytes, signed_change);
    if (!grows)
        return;
    if (get(&site->live_bytes) > get(&site->most_bytes))
        set(&site->most_bytes, get(&site->live_bytes));
    if (get(&all->live_bytes) > get(&all->peak_bytes)) {
        set(&all->peak_bytes, get(&all->live_bytes));
        set(&all->peak_python_bytes, get(&all->live_python_bytes));
        set(&all->peak_at_ns, at_ns);
        atomic_store_explicit(&all->peak_site, id, memory_order_relaxed);
        atomic_store_explicit(&all->peak_epoch, epoch + 1, memory_order_relaxed);
    }
}

static void count_sample(uint32_t id, const struct memory_sample *sample)
{
    struct wire_memory *all = totals();
    struct wire_site *site = site_at(id);
    add(&site->allocated_bytes, sample->bytes);
    add(&site->count, sample->count);
    add(&site->samples, 1);
    add(&all->samples, 1);
    if (sample->kind == WIRE_SITE_COPY) {
        add(&all->copied_bytes, sample->bytes);
        return;
    }
    add(&all->allocated_bytes, sample->bytes);
    uint64_t now = interval_for(++allocation_samples);
    atomic_store_explicit(&interval_bytes, now, memory_order_relaxed);
    set(&all->interval_bytes, now);
}

static uint32_t take_block(void)
{
    uint32_t id = free_blocks;
    if (!id)
        return arena_append(&agent.arena, WIRE_BLOCK, 1);
    free_blocks = block_at(id)->next;
    return id;
}

static void give_block(uint32_t id)
{
    struct wire_block *block = block_at(id);
    atomic_store_explicit(&block->site, 0, memory_order_relaxed);
    block->next = free_blocks;
    free_blocks = id;
}

static uint32_t records_of(const void *block)
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

static void look_at_resident(void)
{
    struct wire_memory *all = totals();
    uint64_t file_bytes;
    set(&all->look.at_cpu_ms, since_start_cpu_ms());
    set(&all->look.rss_bytes, os_rss_bytes(&file_bytes));
    set(&all->look.file_bytes, file_bytes);
    set(&all->look.live_bytes, get(&all->live_bytes));
    set(&all->look.live_python_bytes, get(&all->live_python_bytes));
    set(&all->look.live_mapped_bytes, get(&all->live_mapped_bytes));
}

/* The last look is the one before the interpreter frees what the program left. */
static void look_at_end(void)
{
    if (!atomic_exchange(&has_seen_end, true))
        look_at_resident();
}

/* Of a block that is freed.  What falls to the interpreter's own end stays on the books: it was
 * live when the program ended. */
static void release_records(uint32_t id)
{
    bool has_ended = memory_place_has_ended();
    uint64_t at_ns = since_start_ns();
    if (has_ended)
        look_at_end();
    while (id) {
        struct wire_block *block = block_at(id);
        uint32_t next = block->next, site = atomic_load(&block->site);
        if (!has_ended) {
            change_live(site, block->bytes, false, at_ns);
            note_foot(site, WIRE_FOOT_FREED, at_ns);
            give_block(id);
        }
        id = next;
    }
}

/*
 * Growth of a large block.  It begins where the last record ends, not where the
 * allocator's rounding of the old size ended; and when the same stack enlarges
 * it again and again, one record grows.
 */
static bool extend_last(uint32_t head, uint32_t site, struct memory_sample *sample)
{
    struct wire_block *block = block_at(head);
    if (!head || !sample->exact || !(block->flags & WIRE_BLOCK_EXACT) ||
        block->from + block->bytes > sample->from)
        return false;
    uint64_t end = block->from + block->bytes;
    sample->bytes += sample->from - end;
    sample->from = end;
    if (atomic_load(&block->site) != site)
        return false;
    block->bytes += sample->bytes;
    block->flags |= WIRE_BLOCK_GREW;
    return true;
}

void memory_record(const void *block, struct memory_sample *sample)
{
    memory_self.busy = true;
    int saved = errno;
    uint32_t node = memory_place_node();
    if (!lock()) {
        memory_lost();
        return;
    }
    uint32_t site = memory_place_site(node, sample->kind, sample->caller);
    uint32_t head = records_of(block);
    uint64_t at_ns = since_start_ns();
    bool ok = site != 0;
    if (ok && !extend_last(head, site, sample)) {
        uint32_t id = take_block();
        ok = id && (set_records(block, id) || (give_block(id), false));
        if (ok) {
            struct wire_block *record = block_at(id);
            record->next = head;
            record->bytes = sample->bytes;
            record->from = sample->from;
            record->at_cpu_ms = since_start_cpu_ms();
            record->flags = sample->exact ? WIRE_BLOCK_EXACT : 0;
            atomic_store_explicit(&record->site, site, memory_order_release);
        }
    }
    if (ok) {
        count_sample(site, sample);
        change_live(site, sample->bytes, true, at_ns);
        note_foot(site, WIRE_FOOT_ALLOCATED, at_ns);
    } else {
        memory_lost();
    }
    unlock();
    errno = saved;
}

void memory_record_copy(const struct memory_sample *sample)
{
    memory_self.busy = true;
    int saved = errno;
    uint32_t node = memory_place_node();
    if (!lock()) {
        memory_lost();
        return;
    }
    uint32_t site = memory_place_site(node, sample->kind, sample->caller);
    if (site)
        count_sample(site, sample);
    else
        memory_lost();
    unlock();
    errno = saved;
}

void *memory_take_slot(size_t size_bytes, size_t align_bytes)
{
    void *slot = NULL;
    if (lock()) {
        slot = blocks_take(size_bytes, align_bytes);
        unlock();
    }
    if (!slot)
        memory_lost();
    return slot;
}

static void forget_locked(void *block)
{
    uint32_t records = records_of(block);
    if (!blocks_is_slot(block))
        blocks_remove(block);
    if (atomic_load_explicit(&active, memory_order_relaxed))
        release_records(records);
    if (blocks_is_slot(block))
        blocks_give(block);
}

/* Blocks freed by signal handlers that came in while their thread held the lock. */
static void forget_deferred(void)
{
    atomic_store(&has_deferred, false);
    for (int i = 0; i < DEFERRED_MAX; i++) {
        void *block = atomic_exchange(&deferred[i], NULL);
        if (!block)
            continue;
        forget_locked(block);
        if (!blocks_is_slot(block))
            heap_free_untracked(block);
    }
}

static void defer(void *block)
{
    for (int i = 0; i < DEFERRED_MAX; i++) {
        void *expected = NULL;
        if (atomic_compare_exchange_strong(&deferred[i], &expected, block)) {
            atomic_store(&has_deferred, true);
            return;
        }
    }
    /* No room: the block is never freed, which costs its memory and nothing else. */
}

bool memory_forget(void *block)
{
    if (memory_self.busy || !lock()) {
        defer(block);
        return false;
    }
    forget_locked(block);
    unlock();
    return true;
}

void memory_give_slot(void *slot)
{
    memory_forget(slot);
}

bool memory_detach(const void *block, uint32_t *records)
{
    if (memory_self.busy || !lock())
        return false;
    *records = records_of(block);
    set_records(block, 0);
    unlock();
    return true;
}

/* Cut the records of a block that shrank; gives the new head.  The last one made stays first. */
static uint32_t cut_records(uint32_t head, uint64_t size_bytes)
{
    uint64_t at_ns = since_start_ns();
    uint32_t *link = &head;
    for (uint32_t id = head, next; id; id = next) {
        struct wire_block *block = block_at(id);
        uint32_t site = atomic_load(&block->site);
        next = block->next;
        uint64_t gone = 0;
        if (block->from >= size_bytes)
            gone = block->bytes;
        else if ((block->flags & WIRE_BLOCK_EXACT) && block->from + block->bytes > size_bytes)
            gone = block->from + block->bytes - size_bytes;
        if (gone) {
            change_live(site, gone, false, at_ns);
            note_foot(site, WIRE_FOOT_FREED, at_ns);
            block->bytes -= gone;
        }
        if (block->bytes) {
            link = &block->next;
        } else {
            *link = next;
            give_block(id);
        }
    }
    return head;
}

void memory_attach(const void *block, uint32_t records, uint64_t size_bytes)
{
    if (!records)
        return;
    if (!lock()) { /* they stay on the books, of no block */
        memory_lost();
        return;
    }
    if (atomic_load_explicit(&active, memory_order_relaxed)) {
        uint32_t kept = cut_records(records, size_bytes);
        if (kept && !set_records(block, kept)) {
            release_records(kept);
            memory_lost();
        }
    }
    unlock();
}

void memory_forget_modules(void)
{
    if (!atomic_load(&active) || memory_self.busy || !lock())
        return;
    memory_place_forget_modules();
    unlock();
}

/* ---- life cycle ---- */

static void begin_counting(void)
{
    free_blocks = 0;
    allocation_samples = 0;
    foot_skip = 0;
    foot_last_live = 0;
    atomic_store(&totals()->peak_epoch, 1);
    uint64_t first = interval_for(0);
    atomic_store(&interval_bytes, first);
    set(&totals()->interval_bytes, first);
    atomic_store(&has_seen_end, false);
    look_at_resident();
    set(&totals()->start_rss_bytes, get(&totals()->look.rss_bytes));
    set(&totals()->start_file_bytes, get(&totals()->look.file_bytes));
    memory_self.heap = memory_self.objects = (struct memory_gap){0};
    memory_self.growth = memory_self.copies = (struct memory_gap){0};
}

void memory_prepare(void)
{
    if (agent.control->allocation_window_bytes)
        objects_prepare();
}

void memory_start(void)
{
    if (!agent.control->allocation_window_bytes)
        return;
    memory_self.busy = true;
    fork_mark = os_fork_mark();
    if (fork_mark)
        atomic_store(fork_mark, 1);
    has_blocks = blocks_init() && memory_place_init();
    if (has_blocks) {
        begin_counting();
        heap_follow();
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_MEMORY);
        atomic_store(&active, true);
    }
    memory_self.busy = false;
    if (has_blocks && !objects_install())
        atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_NO_OBJECTS);
}

void memory_stop(void)
{
    atomic_store(&active, false);
}

void memory_before_fork(void)
{
    if (!atomic_load(&active) || memory_self.busy || !lock())
        return;
    atomic_store(&is_forking, true);
    memory_self.forking = true; /* stays busy: other handlers may allocate */
}

void memory_after_fork(bool is_child)
{
    if (!atomic_load(&active) || (!memory_self.forking && !is_child))
        return;
    memory_self.forking = false;
    atomic_store(&is_forking, false);
    if (is_child) {
        /* Whoever held the lock is not in this process: it is ours now. */
        memory_self.busy = true;
        atomic_store(&locked, 1);
        if (fork_mark)
            atomic_store(fork_mark, 1);
        if (atomic_load(&agent.active)) {
            blocks_forget();
            memory_place_reset();
            windows_after_fork();
            begin_counting();
            atomic_fetch_or(&agent.arena.header->flags, WIRE_PROCESS_MEMORY);
        } else {
            memory_stop();
        }
    }
    unlock();
}

void memory_end(void)
{
    if (atomic_load(&active))
        look_at_end();
}

void memory_disown(void)
{
    memory_self.busy = true;
}

/* Every other entry goes when there is no more room. */
static void compact_feet(void)
{
    struct wire_section *s = &agent.arena.header->sections[WIRE_FOOT];
    uint32_t used = atomic_load(&s->used), kept = 1;
    if (used < s->capacity - s->capacity / 8)
        return;
    for (uint32_t i = 1; i < used; i += 2)
        *(struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, kept++) =
            *(struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, i);
    for (uint32_t i = kept; i < used; i++)
        atomic_store(&((struct wire_foot *)arena_record(&agent.arena, WIRE_FOOT, i))->published, 0);
    atomic_store(&s->used, kept);
    add(&totals()->foot_stride, get(&totals()->foot_stride));
}

void memory_pass(uint64_t now_mono_ns)
{
    static unsigned passes;
    if (!atomic_load(&active))
        return;
    if (lock()) {
        if (get(&totals()->live_bytes) != foot_last_live) {
            foot_skip = 0;
            note_foot(0, WIRE_FOOT_LOOK, now_mono_ns - agent.arena.header->start_mono_ns);
        }
        compact_feet();
        unlock();
    }
    memory_self.busy = true; /* as memory_disown() left it */
    if (passes++ % LOOK_EVERY == 0) {
        if (!atomic_load(&has_seen_end))
            look_at_resident();
        memory_place_expire();
    }
}
