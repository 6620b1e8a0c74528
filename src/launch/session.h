/*
 * One profiled run: make the session directory, start the program with the
 * agent in it, wait for it and a moment for other processes that it left, read
 * what they recorded (harvest.h), take the directory away.
 *
 *   session_open -> session_spawn -> session_wait -> session_linger -> session_close
 *
 * Signals: between spawn and the end of session_wait, SIGTERM, SIGHUP, SIGUSR1
 * and SIGUSR2 sent to the launcher are passed on to the program; SIGINT and
 * SIGQUIT from a terminal reach it anyway (same process group), so they are
 * ignored here, and passed on only when they were sent by kill (si_code).
 * From session_open to session_close all of these are blocked, so that one that
 * comes while the report is made acts only after the directory is gone: it is
 * removed on every way out except SIGKILL of the launcher.  The program is
 * started with the mask and dispositions the launcher itself was given.
 *
 * Job control: when the program stops, the launcher stops with the same signal;
 * when the launcher is continued, so is the program.
 *
 * One session at a time a process, used from its main thread: signal masks and
 * the disposition of SIGCHLD are the process's.  The environment is read here,
 * although this is the library zone: handing it on is what a launcher does.
 */
#ifndef LAUNCH_SESSION_H
#define LAUNCH_SESSION_H

#include "base/err.h"
#include "wire/control.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct session_config {
    const char *agent_path; /* libscalene.so */
    char *const *command;   /* argv of the program: interpreter first, NULL-terminated */
    uint64_t cpu_interval_ns;
    uint64_t wait_interval_ns;
    uint64_t allocation_window_bytes; /* 0: memory is not followed */
    uint32_t flags;                   /* enum wire_control_flags */
    bool start_on;
};

enum { SESSION_SIGNALS = 3 };

struct session {
    char *directory;
    struct wire_control *control;
    pid_t child;
    int status;       /* as waitpid gives it, after session_wait */
    bool has_signals; /* those below are to be restored */
    sigset_t outer_mask;
    struct sigaction outer_actions[SESSION_SIGNALS];
};

/*
 * A directory below $TMPDIR, /dev/shm or /tmp: the first one writable, on a file
 * system with room, whose path has neither blank nor colon.  Memory comes before
 * disk, if there is plenty: making a recording on ext4 takes a starting process
 * several milliseconds, in memory a tenth of one.
 */
int session_open(struct session *session, const struct session_config *config, struct err *err);
int session_spawn(struct session *session, const struct session_config *config, struct err *err);
/* Calls `tick(context)` about every `tick_ns` while waiting; 0 = never. */
int session_wait(struct session *session, uint64_t tick_ns, void (*tick)(void *), void *context,
                 struct err *err);
/*
 * The program has ended; processes it started may have not: daemons, or helpers
 * that are about to notice.  Waits until `is_over(context)`, which is asked every
 * 10 ms, but SESSION_LINGER_NS at most, and not after a signal that would end
 * the launcher: Ctrl-C then means "do not wait", others act after session_close.
 */
#define SESSION_LINGER_NS UINT64_C(2000000000)
void session_linger(bool (*is_over)(void *), void *context);
/* Processes that still run are told to record no more. */
void session_close(struct session *session); /* idempotent */

/*
 * For the very end, when everything is written: if the program died of a signal,
 * so does the caller, of the same one and without a core of its own, so that
 * who started it sees what the program alone would have shown.  Otherwise, and
 * where a signal cannot kill (the first process of a container), returns the
 * exit status to end with; a shell's number for a signal.
 */
int session_end_like(int status);

#endif
