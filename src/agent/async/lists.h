/*
 * Walking the list of tasks that a thread has (CPython 3.14 and later), a part in each
 * pass, while the thread adds and removes links.  A walk goes on at the link it stopped before; if
 * that has gone, at one of the last it saw; if they have all gone, as far from the beginning.
 * Sampler thread only.
 */
#ifndef AGENT_ASYNC_LISTS_H
#define AGENT_ASYNC_LISTS_H

#include <stdbool.h>
#include <stdint.h>

enum { LIST_ANCHORS = 8, LIST_ANCHOR_EVERY = 8 };

struct list_walk {
    uintptr_t next; /* 0: at the beginning */
    uint64_t seen;  /* links before it */
    uint64_t skip;  /* so many are passed without being told of */
    struct {
        uintptr_t link;
        uint64_t index;
    } anchors[LIST_ANCHORS];
};

/* Before a walk goes on in another pass. */
void lists_resume(struct list_walk *walk);

/* The next link of the list at `head`, 0: it changes just now.  *at_end: that was the last, or
 * there is none; the walk is at the beginning again.  Also after `most` links: one that is used
 * again may be of another list, which never comes to our head. */
uintptr_t lists_next(struct list_walk *walk, uintptr_t head, uint64_t most, bool *at_end);

/* Go on counting; true: it was counted to its end. */
bool lists_count(struct list_walk *walk, uintptr_t head, uint64_t deadline_ns, uint64_t *length);

#endif
