/*
 * listen() and socketpair(), to know later who is at the other end of a socket that
 * somebody waits on (waits/ends.h).  They are seldom called, and do their work
 * before anything of ours.
 */
#include "agent/hooks/sockets.h"

#include "agent/core/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int (*real_listen)(int, int);
static int (*real_socketpair)(int, int, int, int[2]);

/* Not when they are first called: in a forked child the loader's lock may be taken for ever. */
void sockets_init(void)
{
    *(void **)&real_listen = dlsym(RTLD_NEXT, "listen");
    *(void **)&real_socketpair = dlsym(RTLD_NEXT, "socketpair");
}

/* In every process that has the control page, recorded or not: a descriptor is inherited. */
static void mark(int fd, enum wire_mark kind)
{
    int saved = errno;
    struct stat st;
    if (agent.control && !fstat(fd, &st)) {
        uint32_t at = atomic_fetch_add(&agent.control->marks_made, 1) % WIRE_MARKS_MAX;
        atomic_store(&agent.control->marks[at], (uint64_t)st.st_ino << 2 | kind);
    }
    errno = saved;
}

AGENT_EXPORT int listen(int fd, int backlog)
{
    if (!real_listen) /* another library's constructor came before ours */
        sockets_init();
    int failed = real_listen(fd, backlog);
    if (!failed)
        mark(fd, WIRE_MARK_LISTENS);
    return failed;
}

AGENT_EXPORT int socketpair(int domain, int type, int protocol, int ends[2])
{
    if (!real_socketpair)
        sockets_init();
    int failed = real_socketpair(domain, type, protocol, ends);
    for (int i = 0; !failed && i < 2; i++)
        mark(ends[i], WIRE_MARK_PAIR);
    return failed;
}
