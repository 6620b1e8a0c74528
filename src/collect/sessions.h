/*
 * The sessions there are: those of launchers that run, to be controlled from
 * outside (on, off, snapshot), and those whose launcher was killed, which left
 * their directory behind (recover).
 *
 * What counts as a session is checked as if somebody wanted to deceive us,
 * since /tmp is everybody's: a directory named scalene-*, not a link, owned by
 * this user with mode 0700, holding a control file that is a regular file of
 * this user with our magic and version.  Inside such a directory nobody else
 * can put anything.  Sessions of another pid namespace are left out: what their
 * pids mean cannot be told from here.
 */
#ifndef COLLECT_SESSIONS_H
#define COLLECT_SESSIONS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sessions_process {
    pid_t pid;
    bool running;
    uint64_t start_mono_ns, start_real_ns;
    char *command; /* words separated by blanks */
};

struct sessions_entry {
    char *directory;
    pid_t launcher_pid;
    bool orphaned;                      /* the launcher is gone */
    bool running;                       /* one of the processes is not */
    uint64_t size_bytes;                /* on disk */
    uint64_t started_real;              /* seconds since 1970 */
    struct sessions_process *processes; /* those that left a recording, by start; the first one is
                                           the program unless it never began */
    size_t process_count, process_cap;
};

struct sessions {
    struct sessions_entry *items; /* by start */
    size_t count, cap;
};

/* All sessions below these directories (NULL-terminated, entries may be ""). */
void sessions_find(struct sessions *sessions, const char *const *parents);
void sessions_release(struct sessions *sessions); /* idempotent */

/* This directory alone.  On failure nothing is left to release. */
int sessions_look_at(struct sessions_entry *entry, const char *directory, struct err *err);
void sessions_entry_release(struct sessions_entry *entry); /* idempotent */

/*
 * The directory of the session that a process belongs to, as its launcher or as
 * a profiled process: told by what it has mapped, so it is found wherever it is.
 * NULL: none that could be seen.  The caller frees it.
 */
char *sessions_directory_of(pid_t pid);

/* The session with this launcher, or with this process still running in it; else NULL. */
const struct sessions_entry *sessions_with(const struct sessions *sessions, pid_t pid);

/* Turn sampling on or off in all processes of the session. */
int sessions_switch(const struct sessions_entry *entry, bool on, struct err *err);

/* Remove the directory and everything in it.  Processes that are just starting see that the session
 * is closed. */
int sessions_remove(const struct sessions_entry *entry, struct err *err);

#endif
