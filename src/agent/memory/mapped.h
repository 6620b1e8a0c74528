/*
 * Which address ranges the program has mapped, and what is counted of them: a
 * table of pieces in the order of their addresses, none overlapping another.
 *
 *   mmap()                    one piece, nothing of it resident
 *   resident.c looks          what is resident becomes pieces of its own, each with a record:
 *
 *        | resident, 40 MB, site 7 | not touched | resident in part, site 9 | not touched |
 *
 *   munmap(), mremap(), ...   pieces are split where a call begins and ends
 *
 * A piece that is resident in full has nothing to be looked at until something
 * happens to it.  One that is resident in part is not larger than MAPPED_STEP_BYTES,
 * so that a single look counts all of it.  Neighbours that are alike become one again.
 *
 * Used by resident.c alone, under the recorder's lock.
 */
#ifndef AGENT_MEMORY_MAPPED_H
#define AGENT_MEMORY_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAPPED_MAX = 8192,              /* pieces */
    MAPPED_STEP_BYTES = 4 << 20,    /* counted at once */
    MAPPED_GRAIN_LEAST = 64 * 1024, /* what is told apart within a mapping, or a */
    MAPPED_GRAINS = 2048,           /* 2048th of a large one */
};

struct mapped_piece {
    uintptr_t start, end;
    uintptr_t low, high; /* outside of this it never was accessible: low >= high, nowhere */
    const void *caller;  /* who mapped it */
    uint64_t resident_bytes;
    uint64_t born;    /* mapped_clock when it was mapped; 0: it was only reserved then */
    uint64_t changed; /* when the program last dealt with it */
    uint32_t node;    /* the stack that mapped it, 0: not known */
    uint32_t record;  /* of what is resident, 0: nothing is */
    uint32_t grain_bytes;
    bool is_pool;      /* reserved first and used bit by bit, as allocators do */
    bool is_stale;     /* some of it may be resident no longer */
    bool is_inherited; /* resident before we began to count: nobody's */
};

/* Goes on with every call by the program that is noted here. */
extern _Atomic uint64_t mapped_clock;

bool mapped_init(void);   /* once; false: no room */
void mapped_forget(void); /* all of it, records and all: they are of another arena */

size_t mapped_count(void);
uint64_t mapped_reserved_bytes(void); /* the size of all together; no lock needed */
struct mapped_piece *mapped_at(size_t index);
size_t
mapped_find(uintptr_t address); /* the first piece that ends behind it; may be mapped_count() */

/* A new mapping, where nothing is, accessible or not; of `like` count caller, node and is_pool.
 * False: no room. */
bool mapped_add(uintptr_t start, uintptr_t end, bool is_open, const struct mapped_piece *like);
/* Is nobody's any more; what was resident is released. */
void mapped_remove(uintptr_t start, uintptr_t end);
/* Becomes accessible. */
void mapped_open(uintptr_t start, uintptr_t end);
/* Its pages were given back to the system. */
void mapped_discard(uintptr_t start, uintptr_t end);
/* All pieces in the range, which are moved as they are.  Nothing is at the new place. */
void mapped_move(uintptr_t start, uintptr_t end, uintptr_t to);

/* Make the range, which lies in one piece, a piece of its own; gives its index.  False: no room. */
bool mapped_carve(uintptr_t start, uintptr_t end, size_t *index);
/* The piece has changed: join it with neighbours that are like it now. */
void mapped_join(size_t index);

/* For costly checks. */
bool mapped_is_sound(void);

#endif
