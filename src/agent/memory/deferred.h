/*
 * Blocks that are gone for the program but could not be forgotten at once, because
 * the recorder's lock was not to be had: in a signal handler that interrupted its own
 * thread in there, and while a process forks for long.  They are forgotten when the
 * lock is next taken, before anything else is recorded: by then their addresses may
 * be somebody else's.
 *
 * A block of the heap is not freed until then.  A foreign one, not malloc()'s, is given
 * back by its owner right away and is only to be forgotten.
 */
#ifndef AGENT_MEMORY_DEFERRED_H
#define AGENT_MEMORY_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>

enum { DEFERRED_MAX = 512 };

/* From any context.  False: no room. */
bool deferred_put(void *block, bool is_foreign);

/* Take all out, under the recorder's lock; gives how many.  Cheap when there are none. */
struct deferred {
    void *block;
    bool is_foreign;
};
size_t deferred_take(struct deferred taken[static DEFERRED_MAX]);

#endif
