/*
 * libc's own system() starts the shell past the exec and spawn functions that
 * environment.c stands in front of, with `environ` as it is.  This one does the
 * same as that (interrupts ignored, SIGCHLD blocked while waiting) by way of them.
 *
 * Several threads may be in here at once.  Interrupts are ignored from the first
 * one's coming to the last one's going; who is in between finds them ignored.
 */
#include "agent/hooks/shell.h"

#include "agent/core/agent.h"
#include "agent/core/lock.h"
#include "agent/hooks/signals.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IGNORED = 2 };
static const int ignored[IGNORED] = {SIGINT, SIGQUIT};

static struct lock counting;
static unsigned waiting;                  /* how many threads are in here */
static struct sigaction outside[IGNORED]; /* what it was before the first of them */

/* One more thread, or one less, waits for a shell. */
static void count(int change)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t before;
    signals_block(&before);
    lock_take(&counting);
    for (int i = 0; i < IGNORED && change > 0 && !waiting; i++)
        sigaction(ignored[i], &ignore, &outside[i]);
    waiting += (unsigned)change;
    for (int i = 0; i < IGNORED && change < 0 && !waiting; i++)
        sigaction(ignored[i], &outside[i], NULL);
    lock_give(&counting);
    signals_restore(&before);
}

void shell_in_child(bool is_recorded)
{
    (void)is_recorded;
    waiting =
        0; /* whoever waited is not here; what is ignored stays so, as it would be without us */
    lock_give(&counting);
}

static int start(pid_t *pid, const char *command, const sigset_t *mask)
{
    static char shell[] = "sh", flag[] = "-c";
    char *const argv[] = {shell, flag, (char *)(uintptr_t)command, NULL};
    sigset_t defaults;
    posix_spawnattr_t attributes;
    sigemptyset(&defaults);
    for (int i = 0; i < IGNORED; i++)
        if (outside[i].sa_handler != SIG_IGN)
            sigaddset(&defaults, ignored[i]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int failed = posix_spawn(pid, "/bin/sh", NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

AGENT_EXPORT int system(const char *command)
{
    if (!command)
        return 1;
    sigset_t child, before;
    count(+1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    pid_t pid;
    int status = 127 << 8, failed = start(&pid, command, &before);
    if (!failed)
        while (waitpid(pid, &status, 0) < 0)
            if (errno != EINTR) {
                status = -1;
                break;
            }
    int saved = failed ? failed : errno;
    count(-1);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return status;
}
