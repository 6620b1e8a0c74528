/*
 * The wait sampler: a thread of ours that looks at all threads every ~10 ms and
 * finds out what those that were not on a processor waited for, and where.
 *
 * It blocks every signal but SIGSEGV and SIGBUS (guarded loads need them), calls
 * nothing of Python, allocates nothing, takes no lock, and keeps its descriptors
 * in a table of its own.
 */
#ifndef AGENT_WAITS_SAMPLER_H
#define AGENT_WAITS_SAMPLER_H

#include <stdbool.h>

bool sampler_start(void); /* also in a forked child */

#endif
