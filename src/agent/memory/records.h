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

/* One more point of the footprint's course, if the total changed; thins the course out when it is
 * nearly full. */
void records_note_total(void);

/* Note the resident size and what is live.  `_at_end`: for the last time, before the interpreter
 * frees what the program left. */
void records_look(void);
void records_look_at_end(void);

#endif
