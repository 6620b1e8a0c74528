#include "agent/waits/cause.h"

#include "agent/core/agent.h"
#include "os/guard.h"

#include <poll.h>
#include <sys/syscall.h>

enum { POLL_LOOK_MAX = 8 };

/* What a system call tells about the wait. */
enum rule {
    RULE_NONE,
    RULE_FILE,
    RULE_SOCKET,
    RULE_FD0, /* by the descriptor in the first argument */
    RULE_SLEEP,
    RULE_CHILD,
    RULE_LOOP,
    RULE_SELECT, /* sleep if it names no descriptor, else event loop */
    RULE_POLL,   /* by the descriptors polled */
    RULE_FUTEX,
    RULE_LOCK,
};

static const struct {
    long call;
    enum rule rule;
} rules[] = {
    {SYS_futex, RULE_FUTEX},
    {SYS_clock_nanosleep, RULE_SLEEP},
    {SYS_nanosleep, RULE_SLEEP},
    {SYS_read, RULE_FD0},
    {SYS_readv, RULE_FD0},
    {SYS_pread64, RULE_FD0},
    {SYS_preadv, RULE_FD0},
    {SYS_write, RULE_FD0},
    {SYS_writev, RULE_FD0},
    {SYS_pwrite64, RULE_FD0},
    {SYS_pwritev, RULE_FD0},
    {SYS_sendfile, RULE_FD0},
    {SYS_splice, RULE_FD0},
    {SYS_ioctl, RULE_FD0},
    {SYS_recvfrom, RULE_SOCKET},
    {SYS_recvmsg, RULE_SOCKET},
    {SYS_recvmmsg, RULE_SOCKET},
    {SYS_sendto, RULE_SOCKET},
    {SYS_sendmsg, RULE_SOCKET},
    {SYS_sendmmsg, RULE_SOCKET},
    {SYS_accept, RULE_SOCKET},
    {SYS_accept4, RULE_SOCKET},
    {SYS_connect, RULE_SOCKET},
    {SYS_wait4, RULE_CHILD},
    {SYS_waitid, RULE_CHILD},
    {SYS_epoll_pwait, RULE_LOOP},
    {SYS_pselect6, RULE_SELECT},
    {SYS_ppoll, RULE_POLL},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, RULE_LOOP},
    {SYS_select, RULE_SELECT},
    {SYS_poll, RULE_POLL},
    {SYS_open, RULE_FILE},
    {SYS_stat, RULE_FILE},
    {SYS_lstat, RULE_FILE},
    {SYS_getdents, RULE_FILE},
    {SYS_unlink, RULE_FILE},
    {SYS_rename, RULE_FILE},
    {SYS_mkdir, RULE_FILE},
    {SYS_rmdir, RULE_FILE},
#endif
    {SYS_openat, RULE_FILE},
    {SYS_close, RULE_FILE},
    {SYS_fstat, RULE_FILE},
    {SYS_newfstatat, RULE_FILE},
    {SYS_getdents64, RULE_FILE},
    {SYS_unlinkat, RULE_FILE},
    {SYS_renameat, RULE_FILE},
    {SYS_fsync, RULE_FILE},
    {SYS_fdatasync, RULE_FILE},
    {SYS_sync, RULE_FILE},
    {SYS_syncfs, RULE_FILE},
    {SYS_sync_file_range, RULE_FILE},
    {SYS_msync, RULE_FILE},
    {SYS_ftruncate, RULE_FILE},
    {SYS_truncate, RULE_FILE},
    {SYS_fallocate, RULE_FILE},
    {SYS_copy_file_range, RULE_FILE},
    {SYS_flock, RULE_LOCK},
    {SYS_fcntl, RULE_LOCK},
    {SYS_semop, RULE_LOCK},
    {SYS_semtimedop, RULE_LOCK},
};

static enum wire_kind of_descriptor(int fd)
{
    switch (os_file_type(fd)) {
    case OS_FILE_REGULAR:
        return WIRE_WAIT_FILE;
    case OS_FILE_SOCKET:
        return WIRE_WAIT_SOCKET;
    case OS_FILE_PIPE:
        return WIRE_WAIT_PIPE;
    default:
        return WIRE_WAIT_OTHER;
    }
}

/* A poll of few descriptors of one type is I/O with a time limit; anything else an event loop. */
static enum wire_kind of_poll(uintptr_t entries, uintptr_t count)
{
    if (!count)
        return WIRE_WAIT_SLEEP;
    if (count > POLL_LOOK_MAX)
        return WIRE_WAIT_LOOP;
    enum wire_kind kind = WIRE_NONE;
    for (uintptr_t i = 0; i < count; i++) {
        unsigned bad = 0;
        int fd = (int)guard_u32(entries + i * sizeof(struct pollfd), &bad);
        if (bad)
            return WIRE_WAIT_LOOP;
        enum wire_kind one = of_descriptor(fd);
        if (one == WIRE_WAIT_OTHER || (kind != WIRE_NONE && kind != one))
            return WIRE_WAIT_LOOP;
        kind = one;
    }
    return kind;
}

/* The interpreter's lock lives inside _PyRuntime; every other futex is somebody's lock. */
static enum wire_kind of_futex(uintptr_t address, uintptr_t tstate)
{
    if (address >= agent.runtime && address - agent.runtime < agent.runtime_bytes)
        return WIRE_WAIT_GIL;
    unsigned bad = 0;
    if (agent.has_layout && tstate && agent.layout.ts_gil_requested >= 0 &&
        guard_u32(tstate + (uintptr_t)agent.layout.ts_gil_requested, &bad) == 1 && !bad)
        return WIRE_WAIT_GIL;
    return WIRE_WAIT_LOCK;
}

static enum rule rule_of(long call)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].call == call)
            return rules[i].rule;
    return RULE_NONE;
}

enum wire_kind cause_classify(const struct os_wait *wait, uintptr_t tstate)
{
    switch (rule_of(wait->call)) {
    case RULE_FILE:
        return WIRE_WAIT_FILE;
    case RULE_SOCKET:
        return WIRE_WAIT_SOCKET;
    case RULE_FD0:
        return of_descriptor((int)wait->args[0]);
    case RULE_SLEEP:
        return WIRE_WAIT_SLEEP;
    case RULE_CHILD:
        return WIRE_WAIT_CHILD;
    case RULE_LOOP:
        return WIRE_WAIT_LOOP;
    case RULE_SELECT:
        return wait->args[0] ? WIRE_WAIT_LOOP : WIRE_WAIT_SLEEP;
    case RULE_POLL:
        return of_poll(wait->args[0], wait->args[1]);
    case RULE_FUTEX:
        return of_futex(wait->args[0], tstate);
    case RULE_LOCK:
        return WIRE_WAIT_LOCK;
    case RULE_NONE:
        break;
    }
    return WIRE_WAIT_OTHER;
}

bool cause_is_external(enum wire_kind kind)
{
    switch (kind) {
    case WIRE_WAIT_FILE:
    case WIRE_WAIT_SOCKET:
    case WIRE_WAIT_PIPE:
    case WIRE_WAIT_SLEEP:
    case WIRE_WAIT_CHILD:
    case WIRE_WAIT_LOOP:
        return true;
    default:
        return false;
    }
}
