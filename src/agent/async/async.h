/*
 * Async code: what the tasks of event loops wait for, and who blocks a loop.  The sampler calls
 * this once a pass; a program without an event loop pays for one comparison.
 */
#ifndef AGENT_ASYNC_ASYNC_H
#define AGENT_ASYNC_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

/* After the pass over the threads: their nodes are used.  Returns the CPU time that it took. */
uint64_t async_pass(uint64_t now_ns, bool is_on);

/* Does an event loop run?  Then stretches of some milliseconds matter. */
bool async_is_wanted(void);

void async_in_child(bool is_recorded); /* see forks.h */

#endif
