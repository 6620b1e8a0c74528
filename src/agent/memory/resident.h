/*
 * Memory that libraries map for themselves, counted by what of it is resident:
 * a library's own allocator reserves gigabytes and uses what it needs, and
 * OpenBLAS maps buffers that most programs never touch.
 *
 * The hooks (mappings.c) say what is mapped; which pages are there is asked of the
 * system now and then, by the sampler thread, and of what is about to go, where that is
 * no more than some megabytes.  A look costs about a microsecond for each megabyte that is there,
 * and a fifth of that for one that is not; giving the same back to the system costs a hundred times
 * as much.  So that the sampler's looks never cost more than a fraction of a percent, the next one
 * comes after some hundred times as long as the last one took; while no page was touched there is
 * none.  Most are brief: next to what is resident already.  The rest is gone through more slowly.
 *
 * Whose memory it is.  Of a mapping that is usable at once: the stack's that mapped it,
 * as with malloc().  Of one that an allocator works with (reserved first, or mapped
 * without a claim to memory): the stack's that was seen running native code since the
 * last look, several sharing by how long they ran; or, the first time that a mapping is
 * looked at that was usable at once, the stack's that mapped it.
 *
 * Contexts: as memory.h says.  The functions for the hooks cost less than a microsecond beside the
 * stack that a new mapping is remembered with, and looks at what goes, which take at most a
 * fiftieth of the time.  Where the lock is not to be had a range that goes is set aside and
 * forgotten later, as deferred.h has it for blocks.
 */
#ifndef AGENT_MEMORY_RESIDENT_H
#define AGENT_MEMORY_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool resident_init(void); /* once; false: no room */

/* A new mapping.  `is_open`: it may be written to; `is_pool`: as above. */
void resident_map(const void *start, size_t bytes, bool is_open, bool is_pool, const void *caller);
/* Before a range is given back, or something else mapped there. */
void resident_unmap(const void *start, size_t bytes);
/* After it became accessible. */
void resident_open(const void *start, size_t bytes);
/* Before and after its pages are given back. */
void resident_before_discard(const void *start, size_t bytes);
void resident_discard(const void *start, size_t bytes);
/* Around an mremap(): take a range away, 0: nothing is followed there; and put it to where it is
 * now.  What it is larger by belongs to the calling stack. */
uintptr_t resident_depart(const void *start, size_t bytes);
void resident_arrive(uintptr_t departed, size_t bytes, const void *to, size_t new_bytes,
                     const void *caller);

/* Each pass of the sampler: look, if it is time. */
void resident_pass(uint64_t now_mono_ns);
/* The last look, at the program's end, with the lock or without. */
void resident_end(bool has_lock);
/* In a forked child, under the lock: what is there now is the parent's.  `is_whole`: nobody was
 * changing the table when the process forked. */
void resident_in_child(bool is_whole);

/* For looks.c: the recorder's lock, by who wants to use the table.  False: not now; the caller is
 * not `busy` then. */
bool resident_lock(void);

#endif
