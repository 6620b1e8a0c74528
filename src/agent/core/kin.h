/*
 * Short threads.  One that ends before its next sample has used CPU time that no
 * sample stands for.  Threads that were started at the same place, kin, run the
 * same code: what one of them leaves goes where one of its kin was seen, chosen
 * at random, so that many short threads are sampled as one long one would be.
 */
#ifndef AGENT_CORE_KIN_H
#define AGENT_CORE_KIN_H

#include "agent/core/threads.h"
#include "wire/arena.h"

void kin_begin(struct thread *thread); /* the thread begins: who are its kin? */

/* A sample of the thread: this is what its kin do. */
void kin_see(const struct thread *thread, uint32_t node, enum wire_kind kind);

/* The thread ends, and leaves so much CPU time. */
void kin_leave(const struct thread *thread, uint64_t cpu_ns);

/* The process ends: what could not be placed yet, since too little was seen. */
void kin_settle(void);
void kin_in_child(bool is_recorded); /* see forks.h */

#endif
