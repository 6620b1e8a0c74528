/*
 * The part of the agent's fault handler that guarded loads need.  Called inside
 * each test: cmocka puts its own handlers in place before every test.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "os/guard.h"

#include <signal.h>
#include <string.h>

static void faults_handler(int signal_number, siginfo_t *info, void *ucontext)
{
    (void)info;
    if (!guard_recover(ucontext))
        signal(signal_number, SIG_DFL);
}

static inline void faults_install(void **state)
{
    (void)state;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = faults_handler;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

#endif
