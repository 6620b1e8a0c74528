/*
 * A lock around sections of a few instructions that several threads of the program
 * may come to.  Waiting is spinning: nobody sleeps with it, and nobody holds it
 * across a call that may block.
 *
 * Hold it with all signals blocked (signals_block), so that no handler of the same
 * thread waits for its own thread.  In a forked child whose parent had it held by
 * another thread it must be free again: its module says so to forks.h.
 */
#ifndef AGENT_CORE_LOCK_H
#define AGENT_CORE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct lock {
    _Atomic uint32_t is_held;
};

void lock_take(struct lock *lock);
void lock_give(struct lock *lock); /* also, in a forked child, for whoever held it in the parent */

#endif
