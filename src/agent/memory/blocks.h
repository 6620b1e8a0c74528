/*
 * Sampled blocks: where small ones live, and which records belong to which
 * address.  Used by the recorder (memory.c) alone, under its lock, except where
 * a function says otherwise.
 *
 * Small ones (up to BLOCKS_SLOT_MAX bytes) are placed in slots of one reserved
 * range of addresses, so that free() can tell them from all other blocks by a
 * subtraction and a comparison, and finds their records without a search:
 *
 *   blocks_range.start  64 64 64 ... | 128 128 ... | ... | 1024 1024 ... || 64 64 ...
 *
 * The range begins with one shelf of slots of all sizes and grows by others, as long as nobody
 * else maps anything behind it.  A slot is as aligned as it is large.  Every other sampled block
 * stays where the allocator put it and is found in a table of buckets, one cache line of addresses
 * each; a block that finds its bucket full is not recorded.
 *
 * What is kept for an address is one number, the recorder's.
 */
#ifndef AGENT_MEMORY_BLOCKS_H
#define AGENT_MEMORY_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_SLOT_MAX = 1024 };

struct blocks_range {
    uintptr_t start;
    _Atomic size_t bytes; /* 0: there is none */
};
extern struct blocks_range blocks_range;

/* Any thread, no lock. */
static inline bool blocks_is_slot(const void *block)
{
    return (uintptr_t)block - blocks_range.start <
           atomic_load_explicit(&blocks_range.bytes, memory_order_relaxed);
}

bool blocks_init(void); /* once */

/* A slot for `size_bytes` at this alignment (a power of two); NULL: no room, or too large. */
void *blocks_take(size_t size_bytes, size_t align_bytes);
void blocks_give(void *slot);

size_t blocks_slot_bytes(const void *slot);   /* its capacity; no lock needed */
uint32_t *blocks_slot_size(const void *slot); /* what was asked for; the owner of the block only */
uint32_t *blocks_slot_record(const void *slot); /* the recorder's number */

/* The table of all others.  `blocks_has` needs no lock for a block the caller owns. */
bool blocks_has(const void *block);
bool blocks_put(const void *block, uint32_t record);
uint32_t blocks_get(const void *block); /* 0: not there */
uint32_t blocks_remove(const void *block);

/* Forget all records, keep the slots: in a forked child the blocks live on, unrecorded. */
void blocks_forget(void);

/* For costly checks: is every slot either taken or free, and none twice? */
bool blocks_are_sound(void);

#endif
