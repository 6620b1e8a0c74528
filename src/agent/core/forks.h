/*
 * What happens when the process forks.  A child is a copy of one thread; what the
 * others were doing stays half done in its memory, for ever.  So each module that
 * keeps state which another thread may have been changing has a function that makes
 * it new in the child; forks.c has them in one table, in the order in which they
 * run.
 *
 * Children come to be in four ways:
 *   - fork(): our handlers run; the child gets an arena of its own (`is_recorded`),
 *     or, when there is no room for one, is left alone;
 *   - the bare system call (fork, clone), where no handler runs: the child is left
 *     alone.  It is noticed by the first call of ours that looks (forks_check);
 *   - vfork(): the child runs on the memory of its parent until it execs, and must
 *     change nothing in there (forks_is_guest);
 *   - posix_spawn(): no code of ours runs in the child.
 */
#ifndef AGENT_CORE_FORKS_H
#define AGENT_CORE_FORKS_H

#include <stdbool.h>

/* Once, at the program's start. */
bool forks_init(void);

/* Is this a child that no fork handler knows of?  Then it is left alone from now on.  Costs a load;
 * from any context. */
void forks_check(void);

/* Is the calling thread a vfork() child, whose memory is its parent's?  A system call. */
bool forks_is_guest(void);

/* Recording has ended for good: no system call is made here any more. */
void forks_stop(void);

#endif
