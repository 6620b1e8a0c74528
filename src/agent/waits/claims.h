/*
 * Who is charged for the time in which no thread of any process runs (enum
 * wire_rank).  Each process says on the control page which ranks its threads have,
 * and sees what the others say; so it knows what part of that time is its own
 * threads'.  Sampler thread only, but for claims_leave().
 */
#ifndef AGENT_WAITS_CLAIMS_H
#define AGENT_WAITS_CLAIMS_H

#include "wire/control.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many threads of this process have each rank. */
struct claims {
    uint16_t threads[WIRE_RANKS];
};

/* Says so, and gives the rank that is charged now and how many threads of the session have it;
 * WIRE_RANKS: nobody has any. */
enum wire_rank claims_settle(const struct claims *claims, uint64_t now_ns, unsigned *sharers);

/* The process is there, from now on, and claims nothing yet. */
void claims_join(uint64_t now_ns);

/* The process ends, or becomes another: it claims nothing any more. */
void claims_leave(void);
void claims_in_child(bool is_recorded); /* see forks.h */

/* Another number: another process has come, and may be the one somebody waits for. */
uint32_t claims_joined(void);

/* Is this a process of the session?  Of which -1: is any of them the caller's child? */
bool claims_is_ours(pid_t pid, uint64_t now_ns);

/* The processes of the session, one after the other; 0: no more.  *at is 0 at first. */
pid_t claims_next(unsigned *at, uint64_t now_ns);

#endif
