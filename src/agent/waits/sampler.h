/*
 * The wait sampler: a thread of ours that looks at all threads every ~10 ms and
 * finds out what those that were not on a processor waited for, and where.
 *
 * It blocks every signal but SIGSEGV and SIGBUS (guarded loads need them), calls
 * nothing of Python, allocates nothing, takes no lock of the program's, and has its
 * own descriptors and its own working and root directory.
 */
#ifndef AGENT_WAITS_SAMPLER_H
#define AGENT_WAITS_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

/* Does nothing if it runs; if it cannot be made, that is a loss (WIRE_LOST_SAMPLER). */
void sampler_start(void);

/* Ends the thread and waits until the kernel has forgotten it, some microseconds.  False: there was
 * none.  Neither from a handler nor from the sampler itself. */
bool sampler_stop(void);

/* The sampler's own sleep, which ends at once when it is asked to end. */
void sampler_pause(uint64_t ns);

/* The process ends, or stops recording: tell the session what it has used, and claim nothing. */
void sampler_farewell(void);

void sampler_in_child(bool is_recorded); /* see forks.h */

#endif
