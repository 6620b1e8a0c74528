/*
 * Lists of tasks (CPython 3.14 and later).  Each thread has one with the tasks that it made,
 * whoever runs them; the interpreter has another with those of threads that have ended.
 *
 * They are walked a part in each pass, while their threads add and remove links.  A walk goes on at
 * the link it stopped before; if that has gone, at one of the last it saw; if they have all gone,
 * as far from the beginning.  Tasks that are alike were often made together: so every so many links
 * one is visited, and the others in further walks.  Sampler thread only, but for lists_first().
 */
#ifndef AGENT_ASYNC_LISTS_H
#define AGENT_ASYNC_LISTS_H

#include <stdbool.h>
#include <stdint.h>

enum { LISTS_MAX = 128, LIST_ANCHORS = 8, LIST_ANCHOR_EVERY = 8 };

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

/* A list that has, or had, a link. */
struct task_list {
    uintptr_t head;
    struct list_walk visiting, counting;
    uint64_t length, counted_ns;    /* when that was counted; 0: not yet */
    unsigned stride, walks, offset; /* one link in `stride` is visited in a walk: which one */
    unsigned failures;              /* to find a next link, one after the other */
    bool is_split;                  /* the list may have changed since the walk began */
    bool is_there;                  /* (lists.c) */
};

/* Find the lists there are; true: others than before.  Then those that were known stay as they are,
 * but not where they are. */
bool lists_find(void);
void lists_forget(void); /* all of them */
unsigned lists_used(void);
struct task_list *lists_at(unsigned index);

/* Visit all its links once, in an order that depends on a number. */
void lists_begin(struct task_list *list, uint32_t number);
/* Before it goes on in another pass. */
void lists_go_on(struct task_list *list);
/* The next one, 0: there is none, or the list changes just now (*is_torn).  *at_end: that was all,
 * or the list could not be read again and again: its thread may be gone. */
uintptr_t lists_visit(struct task_list *list, bool *at_end, bool *is_torn);

/* Go on counting; true: it was counted to its end.  Links that are more than were counted before
 * have another deadline. */
bool lists_count(struct task_list *list, uint64_t deadline_ns, uint64_t new_deadline_ns);

/* Some task, of the calling thread's if it has any, 0: there is none.  Without GIL those of others
 * might end meanwhile. */
uintptr_t lists_first(void);

#endif
