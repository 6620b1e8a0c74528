/*
 * The exec family is interposed.  Its wrappers run in vfork children too, whose
 * memory is the parent's: they use the stack alone, no allocation, no lock, and
 * change nothing that outlives the call.
 */
#include "agent/hooks/environment.h"

#include "agent/core/agent.h"
#include "agent/hooks/signals.h"

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="
#define SESSION WIRE_SESSION_ENV "="

enum { ENTRIES_MAX = 32768, ARGUMENTS_MAX = 65536 };

static char session_entry[PATH_MAX + sizeof SESSION];
static char agent_path[PATH_MAX]; /* as it stood in LD_PRELOAD */

typedef int execve_function(const char *, char *const *, char *const *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const *, char *const *);
static execve_function *real_execve, *real_execvpe;
static int (*real_fexecve)(int, char *const *, char *const *);
static spawn_function *real_spawn, *real_spawnp;

static void resolve(void)
{
    *(void **)&real_execve = dlsym(RTLD_NEXT, "execve");
    *(void **)&real_execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&real_fexecve = dlsym(RTLD_NEXT, "fexecve");
    *(void **)&real_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    *(void **)&real_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
}

static bool starts_with(const char *text, const char *head)
{
    return !strncmp(text, head, strlen(head));
}

static void remove_entry(char **entry)
{
    do
        entry[0] = entry[1];
    while (*entry++);
}

/* "LD_PRELOAD=ours:theirs" -> "LD_PRELOAD=theirs"; gone if there is nothing else. */
static void scrub_preload(char **entry)
{
    char *value = *entry + strlen(PRELOAD);
    size_t length = strcspn(value, ": ");
    if (length >= sizeof agent_path)
        return;
    memcpy(agent_path, value, length);
    if (value[length])
        memmove(value, value + length + 1, strlen(value + length + 1) + 1);
    else
        remove_entry(entry);
}

const char *environment_scrub(void)
{
    resolve();
    char **session = NULL, **preload = NULL;
    for (char **entry = environ; entry && *entry; entry++) {
        if (starts_with(*entry, SESSION))
            session = entry;
        else if (starts_with(*entry, PRELOAD))
            preload = entry;
    }
    if (!session || !preload || strlen(*session) >= sizeof session_entry)
        return NULL;
    memcpy(session_entry, *session, strlen(*session) + 1);
    /* Later entries first, so that the other pointer stays right. */
    if (session > preload) {
        remove_entry(session);
        scrub_preload(preload);
    } else {
        scrub_preload(preload);
        remove_entry(session);
    }
    return session_entry + strlen(SESSION);
}

/* Not where the new program would not find us, since the loader says so on its standard error: the
 * program has entered another root or mount namespace, or has become another user. */
static bool follows(void)
{
    if (!session_entry[0] || !agent_path[0] || !agent.control ||
        atomic_load(&agent.control->closed))
        return false;
    int saved = errno, fd = open(agent_path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return fd >= 0;
}

void environment_forget(void)
{
    session_entry[0] = '\0';
}

static size_t count_of(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* The last one, as for the loader. */
static const char *preload_of(char *const *env)
{
    const char *last = NULL;
    for (; env && *env; env++)
        if (starts_with(*env, PRELOAD))
            last = *env + strlen(PRELOAD);
    return last;
}

/* Room for the new list and the text of its LD_PRELOAD entry; 0: pass the old one on. */
static size_t room_for(char *const *env)
{
    size_t entries = count_of(env);
    if (!follows() || entries > ENTRIES_MAX)
        return 0;
    const char *old = preload_of(env);
    return (entries + 3) * sizeof(char *) + strlen(PRELOAD) + strlen(agent_path) +
           (old ? strlen(old) : 0) + 2;
}

static char *const *with_ours(char *const *env, void *room)
{
    char **list = room, **at = list;
    const char *old = preload_of(env);
    for (; env && *env; env++)
        if (!starts_with(*env, PRELOAD) && !starts_with(*env, SESSION))
            *at++ = *env;
    char *text = (char *)(list + (at - list) + 3);
    at[0] = text;
    at[1] = session_entry;
    at[2] = NULL;
    text = stpcpy(stpcpy(text, PRELOAD), agent_path);
    if (old && *old)
        stpcpy(stpcpy(text, ":"), old);
    return list;
}

/* The caller's frame holds the new list until the call returns or the image is replaced. */
#define ENVIRONMENT_FOR(env, out)                                                                  \
    size_t room_bytes = room_for(env);                                                             \
    char *const *out = room_bytes ? with_ours((env), alloca(room_bytes)) : (env)

AGENT_EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
    if (!real_execve)
        resolve();
    ENVIRONMENT_FOR(env, changed);
    struct signals_exec exec;
    signals_before_exec(&exec);
    real_execve(path, argv, changed);
    signals_after_exec(&exec);
    return -1;
}

AGENT_EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

AGENT_EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
    if (!real_execvpe)
        resolve();
    ENVIRONMENT_FOR(env, changed);
    struct signals_exec exec;
    signals_before_exec(&exec);
    real_execvpe(file, argv, changed);
    signals_after_exec(&exec);
    return -1;
}

AGENT_EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

AGENT_EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
    if (!real_fexecve)
        resolve();
    ENVIRONMENT_FOR(env, changed);
    struct signals_exec exec;
    signals_before_exec(&exec);
    real_fexecve(fd, argv, changed);
    signals_after_exec(&exec);
    return -1;
}

/*
 * A spawned program gets the caller's mask, unless another is asked for: the mask the
 * caller believes to have.  (What it ignores is passed on too, but by the kernel, and
 * in a process that goes on running the kernel cannot be told.)
 */
static const posix_spawnattr_t *with_mask(const posix_spawnattr_t *given, posix_spawnattr_t *own)
{
    short flags = 0;
    sigset_t mask;
    if (given)
        posix_spawnattr_getflags(given, &flags);
    if ((flags & POSIX_SPAWN_SETSIGMASK) || !signals_sample_is_blocked() ||
        pthread_sigmask(SIG_BLOCK, NULL, &mask))
        return given;
    if (given)
        *own = *given;
    else
        posix_spawnattr_init(own);
    posix_spawnattr_setsigmask(own, &mask);
    posix_spawnattr_setflags(own, (short)(flags | POSIX_SPAWN_SETSIGMASK));
    return own;
}

AGENT_EXPORT int posix_spawn(pid_t *pid, const char *path,
                             const posix_spawn_file_actions_t *actions,
                             const posix_spawnattr_t *attributes, char *const argv[],
                             char *const env[])
{
    if (!real_spawn)
        resolve();
    ENVIRONMENT_FOR(env, changed);
    posix_spawnattr_t own;
    return real_spawn(pid, path, actions, with_mask(attributes, &own), argv, changed);
}

AGENT_EXPORT int posix_spawnp(pid_t *pid, const char *file,
                              const posix_spawn_file_actions_t *actions,
                              const posix_spawnattr_t *attributes, char *const argv[],
                              char *const env[])
{
    if (!real_spawnp)
        resolve();
    ENVIRONMENT_FOR(env, changed);
    posix_spawnattr_t own;
    return real_spawnp(pid, file, actions, with_mask(attributes, &own), argv, changed);
}

/* execl and its kin gather their arguments from the stack: do the same, then call the above. */
#define GATHER(first, list)                                                                        \
    va_list list##_args;                                                                           \
    va_start(list##_args, first);                                                                  \
    size_t list##_count = 1;                                                                       \
    while (va_arg(list##_args, char *) && list##_count < ARGUMENTS_MAX)                            \
        list##_count++;                                                                            \
    va_end(list##_args);                                                                           \
    char **list = alloca((list##_count + 1) * sizeof *list);                                       \
    va_start(list##_args, first);                                                                  \
    list[0] = (char *)(uintptr_t)first;                                                            \
    for (size_t i = 1; i <= list##_count; i++)                                                     \
    list[i] = va_arg(list##_args, char *)

AGENT_EXPORT int execl(const char *path, const char *first, ...)
{
    GATHER(first, argv);
    va_end(argv_args);
    return execve(path, argv, environ);
}

AGENT_EXPORT int execlp(const char *file, const char *first, ...)
{
    GATHER(first, argv);
    va_end(argv_args);
    return execvpe(file, argv, environ);
}

AGENT_EXPORT int execle(const char *path, const char *first, ...)
{
    GATHER(first, argv);
    char *const *env = va_arg(argv_args, char *const *);
    va_end(argv_args);
    return execve(path, argv, env);
}
