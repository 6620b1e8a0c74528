/*
 * Calls by which a program confines itself, and which we would be in the way of.
 *
 * Some want the process to have one thread: to enter another user namespace, for
 * instance.  Our sampler steps aside for that moment.
 *
 * A seccomp filter may kill the process for a system call that the program never
 * makes, and we do.  What a filter allows is not for us to find out: before one is
 * installed, recording ends.  The profile says so.
 */
#include "agent/hooks/confine.h"

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/stop.h"
#include "agent/waits/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long call_function(long number, long a, long b, long c, long d, long e, long f);

static int (*real_unshare)(int);
static int (*real_setns)(int, int);
static int (*real_prctl)(int, ...);
static call_function *real_syscall;

void confine_init(void)
{
    *(void **)&real_unshare = dlsym(RTLD_NEXT, "unshare");
    *(void **)&real_setns = dlsym(RTLD_NEXT, "setns");
    *(void **)&real_prctl = dlsym(RTLD_NEXT, "prctl");
    *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
}

static bool unshare_needs_one_thread(int flags)
{
    return flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM);
}

/* 0: whatever the descriptor is of. */
static bool setns_needs_one_thread(int type)
{
    return !type || type & CLONE_NEWUSER;
}

/* A vfork() child is a process of its own, in which the sampler is not. */
static bool step_aside(bool is_needed)
{
    return is_needed && atomic_load(&agent.active) && !forks_is_guest() && sampler_stop();
}

static void step_back(bool was_there)
{
    int saved = errno;
    if (was_there)
        sampler_start();
    errno = saved;
}

AGENT_EXPORT int unshare(int flags)
{
    if (!real_unshare)
        confine_init();
    bool was_there = step_aside(unshare_needs_one_thread(flags));
    int result = real_unshare(flags);
    step_back(was_there);
    return result;
}

AGENT_EXPORT int setns(int fd, int type)
{
    if (!real_setns)
        confine_init();
    bool was_there = step_aside(setns_needs_one_thread(type));
    int result = real_setns(fd, type);
    step_back(was_there);
    return result;
}

AGENT_EXPORT int prctl(int option, ...)
{
    unsigned long arguments[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        arguments[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!real_prctl)
        confine_init();
    if (option == PR_SET_SECCOMP)
        stop_for_good(WIRE_PROCESS_CONFINED);
    return real_prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/*
 * libc's is variadic and passes on what is in six registers; so does this one, under
 * a name that lets it be declared as what it is.
 */
long confine_syscall(long number, long a, long b, long c, long d, long e,
                     long f) __asm__("syscall");

AGENT_EXPORT long confine_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (__builtin_expect(!real_syscall, 0))
        confine_init();
    if (number == SYS_unshare)
        return unshare((int)a);
    if (number == SYS_setns)
        return setns((int)a, (int)b);
    if (number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER))
        stop_for_good(WIRE_PROCESS_CONFINED);
    return real_syscall(number, a, b, c, d, e, f);
}
