/*
 * What the hooks ask of the rest of the agent, in a test without threads to be sampled.  Include
 * it once.  A process other than own_pid is a vfork() child.
 */
#ifndef TESTS_NO_THREADS_H
#define TESTS_NO_THREADS_H

#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/cpu/tick.h"

#include <unistd.h>

static pid_t own_pid;

void forks_check(void)
{
}

bool forks_is_guest(void)
{
    return getpid() != own_pid;
}

void tick_sample(struct thread *thread, const void *ucontext)
{
    (void)thread;
    (void)ucontext;
}

struct thread *threads_self(void)
{
    return NULL;
}

uint64_t threads_next_interval_ns(struct thread *thread)
{
    (void)thread;
    return 1;
}

#endif
