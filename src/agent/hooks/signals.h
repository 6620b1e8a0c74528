/*
 * The signals we share with the program: the timers' signal, SIGSEGV and SIGBUS
 * (guarded loads), and SIGILL and SIGBUS as the on/off switch of the original's
 * `scalene.profile`.
 *
 * Our handlers stay installed; sigaction() and signal() are interposed for
 * these numbers, keep what the program asks for, and answer as if it were
 * installed.  A signal that is not ours goes to the program's own handler, or
 * has its default effect.  pthread_sigmask() and sigprocmask() keep the timers'
 * signal deliverable and still report what the program set; sigwait() and its
 * kin do not return a signal of the timers.
 *
 * A vfork() child has a mask and handlers of its own, but all its memory is its
 * parent's.  Handlers it asks for go to the kernel alone, nothing is kept.
 */
#ifndef AGENT_HOOKS_SIGNALS_H
#define AGENT_HOOKS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Resolve libc's own functions; before anything else of ours. */
void signals_init(void);
bool signals_install(void);

void signals_in_child(bool is_recorded); /* see forks.h */

/*
 * Around an exec: what the program has blocked and ignored is passed on to the new
 * image by the kernel, so for that moment the kernel must know it / it failed.
 */
enum { SIGNALS_SHARED = 4 };
struct signals_exec {
    sigset_t mask;
    bool is_masked;
    bool is_ignored[SIGNALS_SHARED]; /* what was told to the kernel: a vfork() child may have told
                                        it otherwise itself */
};
void signals_before_exec(struct signals_exec *exec);
void signals_after_exec(const struct signals_exec *exec);

/* Block all signals but the two that guarded loads need / put the mask back. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/* The calling thread is our own sampler: no handler of the program may run in it. */
void signals_in_sampler(void);

/* Whether the calling thread believes to have the timers' signal blocked; a new thread inherits it
 * from the one that creates it. */
bool signals_sample_is_blocked(void);
void signals_inherit(bool blocked);

#endif
