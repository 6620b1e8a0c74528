#include "agent/waits/cause.h"

#include "agent/core/agent.h"
#include "os/guard.h"

#include <poll.h>
#include <sys/syscall.h>

enum { POLL_LOOK_MAX = 8 };

/* Calls that do not tell the cause alone; the others of enum wire_kind stand for themselves. */
enum {
    BY_DESCRIPTOR = WIRE_KINDS, /* by what the first argument is open on */
    BY_SELECT,                  /* sleep if it names no descriptor, else event loop */
    BY_POLL,                    /* by the descriptors polled */
    BY_FUTEX,                   /* by whose lock it is */
};

/* What a system call tells about the wait. */
static const struct {
    long call;
    int cause; /* enum wire_kind, or BY_... */
} rules[] = {
    {SYS_futex, BY_FUTEX},
    {SYS_clock_nanosleep, WIRE_WAIT_SLEEP},
    {SYS_nanosleep, WIRE_WAIT_SLEEP},
    {SYS_read, BY_DESCRIPTOR},
    {SYS_readv, BY_DESCRIPTOR},
    {SYS_pread64, BY_DESCRIPTOR},
    {SYS_preadv, BY_DESCRIPTOR},
    {SYS_write, BY_DESCRIPTOR},
    {SYS_writev, BY_DESCRIPTOR},
    {SYS_pwrite64, BY_DESCRIPTOR},
    {SYS_pwritev, BY_DESCRIPTOR},
    {SYS_sendfile, BY_DESCRIPTOR},
    {SYS_splice, BY_DESCRIPTOR},
    {SYS_ioctl, BY_DESCRIPTOR},
    {SYS_recvfrom, WIRE_WAIT_SOCKET},
    {SYS_recvmsg, WIRE_WAIT_SOCKET},
    {SYS_recvmmsg, WIRE_WAIT_SOCKET},
    {SYS_sendto, WIRE_WAIT_SOCKET},
    {SYS_sendmsg, WIRE_WAIT_SOCKET},
    {SYS_sendmmsg, WIRE_WAIT_SOCKET},
    {SYS_accept, WIRE_WAIT_SOCKET},
    {SYS_accept4, WIRE_WAIT_SOCKET},
    {SYS_connect, WIRE_WAIT_SOCKET},
    {SYS_wait4, WIRE_WAIT_CHILD},
    {SYS_waitid, WIRE_WAIT_CHILD},
    {SYS_epoll_pwait, WIRE_WAIT_LOOP},
    {SYS_pselect6, BY_SELECT},
    {SYS_ppoll, BY_POLL},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, WIRE_WAIT_LOOP},
    {SYS_select, BY_SELECT},
    {SYS_poll, BY_POLL},
    {SYS_open, WIRE_WAIT_FILE},
    {SYS_stat, WIRE_WAIT_FILE},
    {SYS_lstat, WIRE_WAIT_FILE},
    {SYS_getdents, WIRE_WAIT_FILE},
    {SYS_unlink, WIRE_WAIT_FILE},
    {SYS_rename, WIRE_WAIT_FILE},
    {SYS_mkdir, WIRE_WAIT_FILE},
    {SYS_rmdir, WIRE_WAIT_FILE},
#endif
    {SYS_openat, WIRE_WAIT_FILE},
    {SYS_close, WIRE_WAIT_FILE},
    {SYS_fstat, WIRE_WAIT_FILE},
    {SYS_newfstatat, WIRE_WAIT_FILE},
    {SYS_getdents64, WIRE_WAIT_FILE},
    {SYS_unlinkat, WIRE_WAIT_FILE},
    {SYS_renameat, WIRE_WAIT_FILE},
    {SYS_fsync, WIRE_WAIT_FILE},
    {SYS_fdatasync, WIRE_WAIT_FILE},
    {SYS_sync, WIRE_WAIT_FILE},
    {SYS_syncfs, WIRE_WAIT_FILE},
    {SYS_sync_file_range, WIRE_WAIT_FILE},
    {SYS_msync, WIRE_WAIT_FILE},
    {SYS_ftruncate, WIRE_WAIT_FILE},
    {SYS_truncate, WIRE_WAIT_FILE},
    {SYS_fallocate, WIRE_WAIT_FILE},
    {SYS_copy_file_range, WIRE_WAIT_FILE},
    {SYS_flock, WIRE_WAIT_LOCK},
    {SYS_fcntl, WIRE_WAIT_LOCK},
    {SYS_semop, WIRE_WAIT_LOCK},
    {SYS_semtimedop, WIRE_WAIT_LOCK},
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

/*
 * CPython parks a thread on a semaphore on that thread's own stack, behind the address of what it
 * waits for (struct wait_entry of its parking lot).  One that wants to run while the world is
 * stopped waits for its own state to change.
 */
static bool waits_to_attach(uintptr_t semaphore, uintptr_t tstate)
{
    unsigned bad = 0;
    return agent.has_layout && tstate && agent.layout.ts_state >= 0 &&
           guard_ptr(semaphore - sizeof(uintptr_t), &bad) ==
               tstate + (uintptr_t)agent.layout.ts_state &&
           !bad;
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
    return waits_to_attach(address, tstate) ? WIRE_WAIT_STOPPED : WIRE_WAIT_LOCK;
}

static int rule_of(long call)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].call == call)
            return rules[i].cause;
    return WIRE_WAIT_OTHER;
}

enum wire_kind cause_classify(const struct os_wait *wait, uintptr_t tstate)
{
    int cause = rule_of(wait->call);
    switch (cause) {
    case BY_DESCRIPTOR:
        return of_descriptor((int)wait->args[0]);
    case BY_SELECT:
        return wait->args[0] ? WIRE_WAIT_LOOP : WIRE_WAIT_SLEEP;
    case BY_POLL:
        return of_poll(wait->args[0], wait->args[1]);
    case BY_FUTEX:
        return of_futex(wait->args[0], tstate);
    default:
        return (enum wire_kind)cause;
    }
}

#define EXTERNAL(NAME, key, label, external, help) [WIRE_WAIT_##NAME] = (external),

bool cause_is_external(enum wire_kind kind)
{
    static const bool is_external[WIRE_KINDS] = {WIRE_WAITS(EXTERNAL)};
    return is_external[kind];
}
