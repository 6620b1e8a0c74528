/*
 * The greenlets that live.  Nobody else lists them, so two functions of the type greenlet.greenlet
 * are ours in front of its own, from the first hub on that polls: the one that makes an object and
 * the one that ends it.  Both together cost some 10 ns more then.  They are put in place once and
 * stay, with the GIL; subtypes that have a copy of the pointers are changed with it, because
 * CPython compares them.
 *
 * The table is a set of addresses.  Who holds the GIL changes it, the sampler reads it at any
 * time: what it finds may have ended a moment ago, and is read with guards (py/greenlet.h).
 * In a forked child it is as it was: greenlets live on there, and those of threads that do not
 * belong to no loop.
 */
#ifndef AGENT_ASYNC_GREENLETS_H
#define AGENT_ASYNC_GREENLETS_H

#include <stdbool.h>
#include <stdint.h>

/* With the GIL. */
bool greenlets_begin(uintptr_t type);      /* false: there is no room, or it is another type */
void greenlets_watch_type(uintptr_t type); /* it, or a subtype of it */
void greenlets_add(uintptr_t greenlet);    /* one that nobody told us of */

/* In the sampler: the table has so many slots, of which so many are used. */
void greenlets_measure(uint64_t *slots, uint64_t *used);
uintptr_t greenlets_at(uint64_t slot); /* 0: it is not used */

#endif
