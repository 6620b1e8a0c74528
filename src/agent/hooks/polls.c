/*
 * The polls of event loops.  asyncio, uvloop and trio all come through here; what the hook notes is
 * two moments a poll, and only in threads that run a loop (async/loops.h).
 */
#include "agent/hooks/polls.h"

#include "agent/async/loops.h"
#include "agent/core/agent.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/epoll.h>

static int (*real_wait)(int, struct epoll_event *, int, int);
static int (*real_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
static int (*real_create)(int);

/* Not when they are first called: in a forked child the loader's lock may be taken for ever. */
void polls_init(void)
{
    *(void **)&real_wait = dlsym(RTLD_NEXT, "epoll_wait");
    *(void **)&real_pwait = dlsym(RTLD_NEXT, "epoll_pwait");
    *(void **)&real_create = dlsym(RTLD_NEXT, "epoll_create1");
}

AGENT_EXPORT int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    if (!real_wait) /* another library's constructor came before ours */
        polls_init();
    struct loop *loop = loops_enter(fd);
    int count = real_wait(fd, events, room, timeout_ms);
    loops_leave(loop);
    return count;
}

AGENT_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout_ms,
                             const sigset_t *mask)
{
    if (!real_pwait)
        polls_init();
    struct loop *loop = loops_enter(fd);
    int count = real_pwait(fd, events, room, timeout_ms, mask);
    loops_leave(loop);
    return count;
}

AGENT_EXPORT int epoll_create1(int flags)
{
    if (!real_create)
        polls_init();
    loops_made_epoll();
    return real_create(flags);
}
