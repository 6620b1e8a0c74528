/*
 * Threads that stand still: of many threads most wait for long, and to ask each for its clock in
 * every pass would cost more than all the rest.  So a thread that has not run for some passes
 * is set apart, and asked again when one of those set apart has run.  That the process's CPU clock
 * tells, less the clocks of the others: what remains is theirs.
 *
 * Of a process with few threads none is set apart.  Sampler thread only.
 */
#ifndef AGENT_WAITS_STILL_H
#define AGENT_WAITS_STILL_H

#include "agent/core/threads.h"
#include "agent/waits/claims.h"

void still_clear(void);

bool still_is(unsigned index);

/* Its enum wire_rank. */
unsigned still_rank(unsigned index);

/* What all of them claim. */
const struct claims *still_claims(void);

/* The thread was looked at: has it stood still since the last look, and is known where? */
void still_note(const struct thread *thread, bool stood);

/* Have all of them stood still since this was last asked?  Also false when what they wait for may
 * mean something else now.  One that has only just begun to run, and goes on, is noticed a tick of
 * the kernel later. */
bool still_hold(void);

#endif
