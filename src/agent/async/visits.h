/*
 * Visiting tasks: a pass looks at as many as its time allows, and goes on there the next time.  In
 * a round every task is visited once; with few tasks a pass is a round.  Those in a set's table are
 * visited in a scattered order, another one each round, so that each pass sees a fair choice of
 * them.  Each one that is seen stands for all/seen others, for the time since the last pass that
 * saw one.  What that costs does not depend on how many tasks there are, nor on how many there
 * were.  Sampler thread only.
 */
#ifndef AGENT_ASYNC_VISITS_H
#define AGENT_ASYNC_VISITS_H

#include <stdint.h>

/* Tasks of all loops; since_ns: since the last pass. */
void visits_pass(uint64_t now_ns, uint64_t since_ns);

/* What was seen before does not belong to what comes: switched off, or a new process. */
void visits_reset(void);

#endif
