/*
 * What is recorded of memory in the arena: sites, sampled blocks that live, and the
 * footprint's course.  Used by the recorder (memory.c) alone, under its lock.
 *
 * A block may have several records, one for each sampled part by which it grew;
 * they are a chain whose head blocks.c keeps by the block's address.
 */
#ifndef AGENT_MEMORY_RECORDS_H
#define AGENT_MEMORY_RECORDS_H

#include "agent/memory/memory.h"

/* A new arena: nothing is recorded yet. */
void records_begin(void);

/* The block, or the part by which it grew, that `site` allocated.  Growth of a block with exact
 * records begins where they end; `sample` is changed to that.  False: no room. */
bool records_add(const void *block, uint32_t site, struct memory_sample *sample);
/* Of a copy nothing stays but the count. */
void records_add_copy(uint32_t site, const struct memory_sample *sample);

/* The head of a block's chain, 0: none.  `_take` also takes the chain away from the block; `_put`
 * gives it to a block that is `size_bytes` large now (false: no room, and it was released). */
uint32_t records_of(const void *block);
uint32_t records_take(const void *block);
bool records_put(const void *block, uint32_t head, uint64_t size_bytes);
/* The block is freed.  What the interpreter frees after the program's end stays counted: it was
 * live when the program ended. */
void records_release(uint32_t head);

/* How many records are of blocks that live. */
uint32_t records_in_use(void);
/*
 * Memory of a mapping (mapped.h), which keeps the record's number itself.  Growth by a site makes a
 * new record, or adds to one of the same site.  `_shrink` gives 0 when nothing is left of it;
 * `_split` gives another record with so many of its bytes, 0: no room; `_join` adds one of the same
 * site to another.
 */
uint32_t records_grow_mapped(uint32_t id, uint32_t site, uint64_t bytes);
uint32_t records_shrink_mapped(uint32_t id, uint64_t bytes);
uint32_t records_split_mapped(uint32_t id, uint64_t bytes);
void records_join_mapped(uint32_t id, uint32_t other);
uint32_t records_site(uint32_t id);
/* Did the program end, so that what goes away is still counted? */
bool records_have_ended(void);

/* One more point of the footprint's course, if the total changed; thins the course out when it is
 * nearly full. */
void records_note_total(void);

/* Note the resident size and what is live.  `_at_end`: for the last time, before the interpreter
 * frees what the program left. */
void records_look(void);
void records_look_at_end(void);

#endif
