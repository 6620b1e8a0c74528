/*
 * The malloc family, interposed.  Every call counts its bytes down in the
 * thread's own variables and goes on to the allocator the program would have
 * without us: libc's, or another one that is preloaded or linked.  What is
 * chosen as a sample goes through the recorder (memory.h).
 *
 * Nothing about the allocator changes: sizes, alignment, lazily zeroed pages,
 * growth in place; only small sampled blocks come from slots of ours (blocks.h).
 *
 * C++'s new and delete need no hooks: they call malloc() and free().  Another
 * allocator may bring operators of its own that do not; what they hand out is not
 * seen.
 */
#ifndef AGENT_HOOKS_HEAP_H
#define AGENT_HOOKS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Find out whether the program's calls come here.  Constructor only. */
void heap_init(void);

/* From now on frees of blocks that may have records look for them. */
void heap_follow(void);

/* To the allocator itself, of a block that has no records. */
void heap_free_untracked(void *block);

/* Is this address in the code of another allocator the calls go to? */
bool heap_is_allocator(const void *caller);

#endif
