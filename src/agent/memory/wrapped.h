/*
 * Objects of a CPython without GIL.  They never come to malloc(), however large:
 * such a build has an allocator of its own (mimalloc), and its garbage collector
 * finds objects by walking that allocator's pages.  So nothing may be asked for
 * otherwise than CPython asks, and no block may lie elsewhere.
 *
 * All functions of the domain, `free` too, are wrapped.  Sampled blocks stay where
 * they are, without a header, and are known by their address: free() looks
 * for it in the recorder's table (blocks.h), which for most addresses takes one bit.
 *
 * Growth.  How large a block was that grows, only the allocator knows.  When it
 * moves one it copies it, and the copy tells (copies.c); growth in place, which
 * is within the allocator's rounding, does not count.
 *
 * Windows (duty.h) there are none: what sees to `free` cannot be taken out.
 */
#ifndef AGENT_MEMORY_WRAPPED_H
#define AGENT_MEMORY_WRAPPED_H

#include "agent/memory/allocator.h"

/* Functions to be put in front of these, which they call.  With the GIL, or alone. */
struct allocator wrapped_around(int domain, const struct allocator *original);

#endif
