#include "agent/memory/blocks.h"

#include "agent/core/check.h"
#include "agent/memory/memory.h"
#include "os/os.h"

#include <stdatomic.h>

enum {
    CLASSES = 5, /* 64 << 0 to 64 << 4 */
    CLASS_LEAST_SHIFT = 6,
    SLOTS = 65536,      /* of each class, at most, */
    SHELF_SLOTS = 1024, /* and on a shelf */
    SHELF_BYTES = ((1 << CLASSES) - 1) * SHELF_SLOTS << CLASS_LEAST_SHIFT,
    BUCKETS = 32768,
    BUCKET_BLOCKS = 8, /* addresses in a cache line */
};

struct slot_info {
    uint32_t record;
    uint32_t size_bytes; /* of a free slot: the next free one's index + 1 */
};

struct bucket {
    _Atomic uintptr_t blocks[BUCKET_BLOCKS];
};

struct blocks_range blocks_range;

static struct slot_info *infos;                 /* CLASSES * SLOTS */
static struct bucket *buckets;                  /* BUCKETS */
static uint32_t *records;                       /* parallel to the addresses in the buckets */
static _Atomic uint64_t in_use[BUCKETS / 64];   /* a bit for each bucket that is not empty */
static uint32_t free_head[CLASSES];             /* index + 1 */
static uint32_t fresh[CLASSES];                 /* slots from here on were never used */
static uint64_t is_taken[CLASSES * SLOTS / 64]; /* for checks alone: a bit for each slot */
static const size_t infos_bytes = sizeof *infos * CLASSES * SLOTS;
static const size_t buckets_bytes = sizeof *buckets * BUCKETS;
static const size_t records_bytes = sizeof *records * BUCKETS * BUCKET_BLOCKS;

static size_t class_bytes(unsigned class)
{
    return (size_t)1 << (CLASS_LEAST_SHIFT + class);
}

/* On a shelf classes follow each other, each twice the size of the one before. */
static size_t class_offset(unsigned class)
{
    return (class_bytes(class) - class_bytes(0)) * SHELF_SLOTS;
}

static unsigned class_for(size_t size_bytes)
{
    if (size_bytes <= class_bytes(0))
        return 0;
    return (unsigned)(64 - __builtin_clzl(size_bytes - 1)) - CLASS_LEAST_SHIFT;
}

static unsigned class_of(size_t offset)
{
    size_t unit =
        offset % SHELF_BYTES / (SHELF_SLOTS << CLASS_LEAST_SHIFT) + 1; /* 1, 2-3, 4-7, ... */
    return (unsigned)(63 - __builtin_clzl(unit));
}

bool blocks_init(void)
{
    infos = os_reserve(infos_bytes);
    buckets = os_reserve(buckets_bytes);
    records = os_reserve(records_bytes);
    uintptr_t start = (uintptr_t)os_reserve_apart(SHELF_BYTES);
    if (!infos || !buckets || !records || !start)
        return false;
    blocks_range.start = start;
    atomic_store(&blocks_range.bytes, SHELF_BYTES);
    return true;
}

/* ---- slots ---- */

/* For checks: whose slots these are is written down a second time. */
static bool slot_is_taken(size_t at)
{
    return is_taken[at / 64] >> at % 64 & 1;
}

static void note_taken(size_t at, bool taken)
{
    if (AGENT_CHECKS < 2)
        return;
    is_taken[at / 64] &= ~((uint64_t)1 << at % 64);
    is_taken[at / 64] |= (uint64_t)taken << at % 64;
}

/* All free slots, and none but those, are on the chain. */
static bool chain_is_whole(unsigned class)
{
    uint32_t given = 0, chained = 0;
    for (uint32_t i = 0; i < fresh[class]; i++)
        given += !slot_is_taken(class * SLOTS + i);
    for (uint32_t i = free_head[class]; i; i = infos[class * SLOTS + i - 1].size_bytes)
        if (i > fresh[class] || slot_is_taken(class * SLOTS + i - 1) || ++chained > given)
            return false;
    return chained == given;
}

bool blocks_are_sound(void)
{
    for (unsigned class = 0; class < CLASSES; class ++)
        if (fresh[class] > SLOTS || !chain_is_whole(class))
            return false;
    return true;
}

static struct slot_info *info_of(const void *slot)
{
    CHECK_CHEAP(blocks_is_slot(slot));
    size_t offset = (uintptr_t)slot - blocks_range.start;
    unsigned class = class_of(offset);
    CHECK_CHEAP(offset % class_bytes(class) == 0);
    size_t at = (offset % SHELF_BYTES - class_offset(class)) / class_bytes(class);
    return &infos[class * SLOTS + offset / SHELF_BYTES * SHELF_SLOTS + at];
}

static bool make_room(uint32_t index)
{
    size_t bytes = atomic_load_explicit(&blocks_range.bytes, memory_order_relaxed);
    if (index / SHELF_SLOTS < bytes / SHELF_BYTES)
        return true;
    if (!os_reserve_at((void *)(blocks_range.start + bytes), SHELF_BYTES))
        return false;
    atomic_store_explicit(&blocks_range.bytes, bytes + SHELF_BYTES, memory_order_relaxed);
    return true;
}

void *blocks_take(size_t size_bytes, size_t align_bytes)
{
    size_t room = size_bytes > align_bytes ? size_bytes : align_bytes;
    CHECK_CHEAP(memory_is_locked());
    if (room > BLOCKS_SLOT_MAX || !blocks_range.bytes)
        return NULL;
    unsigned class = class_for(room);
    uint32_t index = free_head[class];
    struct slot_info *info;
    if (index) {
        info = &infos[class * SLOTS + --index];
        free_head[class] = info->size_bytes;
        CHECK_CHEAP(index < fresh[class] && free_head[class] <= fresh[class]);
    } else {
        index = fresh[class];
        if (index == SLOTS || !make_room(index))
            return NULL;
        fresh[class]++;
        info = &infos[class * SLOTS + index];
    }
    CHECK_DEBUG(!slot_is_taken(class * SLOTS + index));
    note_taken(class * SLOTS + index, true);
    info->size_bytes = (uint32_t)size_bytes;
    info->record = 0;
    return (void *)(blocks_range.start + index / SHELF_SLOTS * SHELF_BYTES + class_offset(class) +
                    index % SHELF_SLOTS * class_bytes(class));
}

void blocks_give(void *slot)
{
    struct slot_info *info = info_of(slot);
    size_t at = (size_t)(info - infos);
    CHECK_CHEAP(memory_is_locked());
    CHECK_DEBUG(slot_is_taken(at));
    note_taken(at, false);
    info->size_bytes = free_head[at / SLOTS];
    info->record = 0;
    free_head[at / SLOTS] = (uint32_t)(at % SLOTS) + 1;
}

size_t blocks_slot_bytes(const void *slot)
{
    return class_bytes(class_of((uintptr_t)slot - blocks_range.start));
}

uint32_t *blocks_slot_size(const void *slot)
{
    return &info_of(slot)->size_bytes;
}

uint32_t *blocks_slot_record(const void *slot)
{
    return &info_of(slot)->record;
}

/* ---- the table ---- */

static size_t bucket_of(const void *block)
{
    return ((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 49; /* the top 15 bits: BUCKETS */
}

static bool is_in_use(size_t bucket)
{
    return atomic_load_explicit(&in_use[bucket / 64], memory_order_relaxed) >> bucket % 64 & 1;
}

/* Most buckets are empty.  Those are not read: the bits are a few cache lines, the buckets
 * megabytes, and a page that is read before it is written costs two faults. */
static int place_of(size_t bucket, uintptr_t block)
{
    if (!is_in_use(bucket))
        return block ? -1 : 0;
    for (int i = 0; i < BUCKET_BLOCKS; i++)
        if (atomic_load_explicit(&buckets[bucket].blocks[i], memory_order_relaxed) == block)
            return i;
    return -1;
}

static void mark(size_t bucket)
{
    uint64_t bit = (uint64_t)1 << bucket % 64;
    uint64_t bits = atomic_load_explicit(&in_use[bucket / 64], memory_order_relaxed) & ~bit;
    for (int i = 0; i < BUCKET_BLOCKS; i++)
        if (atomic_load_explicit(&buckets[bucket].blocks[i], memory_order_relaxed))
            bits |= bit;
    atomic_store_explicit(&in_use[bucket / 64], bits, memory_order_relaxed);
}

bool blocks_has(const void *block)
{
    return place_of(bucket_of(block), (uintptr_t)block) >= 0;
}

bool blocks_put(const void *block, uint32_t record)
{
    CHECK_CHEAP(memory_is_locked() && record && block && !blocks_is_slot(block));
    size_t bucket = bucket_of(block);
    int at = place_of(bucket, (uintptr_t)block);
    if (at < 0)
        at = place_of(bucket, 0);
    if (at < 0)
        return false;
    records[bucket * BUCKET_BLOCKS + (size_t)at] = record;
    atomic_store_explicit(&buckets[bucket].blocks[at], (uintptr_t)block, memory_order_relaxed);
    mark(bucket);
    CHECK_DEBUG(blocks_has(block));
    return true;
}

uint32_t blocks_get(const void *block)
{
    CHECK_CHEAP(memory_is_locked() && !blocks_is_slot(block));
    size_t bucket = bucket_of(block);
    int at = place_of(bucket, (uintptr_t)block);
    return at < 0 ? 0 : records[bucket * BUCKET_BLOCKS + (size_t)at];
}

uint32_t blocks_remove(const void *block)
{
    CHECK_CHEAP(memory_is_locked() && !blocks_is_slot(block));
    size_t bucket = bucket_of(block);
    int at = place_of(bucket, (uintptr_t)block);
    if (at < 0)
        return 0;
    atomic_store_explicit(&buckets[bucket].blocks[at], 0, memory_order_relaxed);
    mark(bucket);
    CHECK_DEBUG(!blocks_has(block));
    return records[bucket * BUCKET_BLOCKS + (size_t)at];
}

void blocks_forget(void)
{
    os_discard(buckets, buckets_bytes);
    os_discard(records, records_bytes);
    for (size_t i = 0; i < BUCKETS / 64; i++)
        atomic_store_explicit(&in_use[i], 0, memory_order_relaxed);
    for (unsigned class = 0; class < CLASSES; class ++)
        for (uint32_t i = 0; i < fresh[class]; i++)
            infos[class * SLOTS + i].record = 0;
}
