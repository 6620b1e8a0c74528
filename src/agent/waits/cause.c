#include "agent/waits/cause.h"

#include "agent/core/agent.h"
#include "agent/waits/claims.h"
#include "agent/waits/ends.h"
#include "os/guard.h"
#include "os/module.h"
#include "os/unwind.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MAX = 64 };      /* descriptors of one wait that are looked at */
enum { LIBC_DEPTH_MAX = 8 }; /* frames of libc below whoever called it */

/* Calls that do not tell the cause alone; the others of enum wire_kind stand for themselves. */
enum {
    BY_DESCRIPTOR = WIRE_KINDS, /* by what the first argument is open on */
    BY_SELECT,                  /* sleep if it names no descriptor, else event loop */
    BY_POLL,                    /* by the descriptors polled */
    BY_EPOLL,                   /* event loop; by the descriptors watched */
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
    {SYS_accept, WIRE_WAIT_REQUEST},
    {SYS_accept4, WIRE_WAIT_REQUEST},
    {SYS_connect, WIRE_WAIT_SOCKET},
    {SYS_wait4, WIRE_WAIT_CHILD},
    {SYS_waitid, WIRE_WAIT_CHILD},
    {SYS_epoll_pwait, BY_EPOLL},
    {SYS_pselect6, BY_SELECT},
    {SYS_ppoll, BY_POLL},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, BY_EPOLL},
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
    uint64_t inode;
    switch (os_file_type(fd, &inode)) {
    case OS_FILE_REGULAR:
        return WIRE_WAIT_FILE;
    case OS_FILE_SOCKET:
        return WIRE_WAIT_SOCKET;
    case OS_FILE_PIPE:
    case OS_FILE_CHARACTER: /* a terminal waits for its peer as a pipe does */
        return WIRE_WAIT_PIPE;
    default:
        return WIRE_WAIT_OTHER;
    }
}

/* The descriptors a thread waits on. */
struct watched {
    int fds[LOOK_MAX];
    unsigned count;
    bool is_complete; /* else there are more, or they cannot be read */
};

static void watch(struct watched *watched, int fd)
{
    if (watched->count < LOOK_MAX)
        watched->fds[watched->count++] = fd;
    else
        watched->is_complete = false;
}

static void watch_polled(struct watched *watched, uintptr_t entries, uintptr_t count)
{
    for (uintptr_t i = 0; i < count && watched->is_complete; i++) {
        unsigned bad = 0;
        int fd = (int)guard_u32(entries + i * sizeof(struct pollfd), &bad);
        if (bad)
            watched->is_complete = false;
        else if (fd >= 0)
            watch(watched, fd);
    }
}

/* select(): a set is an array of longs, a bit for each descriptor. */
static void watch_selected(struct watched *watched, uintptr_t set, uintptr_t end)
{
    enum { BITS = 8 * sizeof(long) };
    for (uintptr_t first = 0; set && first < end && watched->is_complete; first += BITS) {
        unsigned bad = 0;
        uint64_t word = guard_ptr(set + first / 8, &bad);
        if (bad)
            watched->is_complete = false;
        for (unsigned bit = 0; !bad && bit < BITS && first + bit < end; bit++)
            if (word >> bit & 1)
                watch(watched, (int)(first + bit));
    }
}

static void find_watched(struct watched *watched, const struct os_wait *wait, int rule)
{
    watched->count = 0;
    watched->is_complete = true;
    switch (rule) {
    case BY_POLL:
        watch_polled(watched, wait->args[0], wait->args[1]);
        return;
    case BY_SELECT:
        watch_selected(watched, wait->args[1], wait->args[0]);
        watch_selected(watched, wait->args[2], wait->args[0]);
        return;
    case BY_EPOLL: {
        unsigned count = os_epoll_watches((int)wait->args[0], watched->fds, LOOK_MAX);
        watched->count = count < LOOK_MAX ? count : LOOK_MAX;
        watched->is_complete = count <= LOOK_MAX;
        return;
    }
    default:
        watch(watched, (int)wait->args[0]);
    }
}

/* A poll of few descriptors of one type is I/O with a time limit; anything else an event loop. */
static enum wire_kind of_poll(const struct watched *watched)
{
    enum wire_kind kind = watched->is_complete ? WIRE_NONE : WIRE_WAIT_LOOP;
    if (watched->is_complete && !watched->count)
        return WIRE_WAIT_SLEEP;
    for (unsigned i = 0; i < watched->count && kind != WIRE_WAIT_LOOP; i++) {
        enum wire_kind one = of_descriptor(watched->fds[i]);
        kind = one == WIRE_WAIT_OTHER || (kind != WIRE_NONE && kind != one) ? WIRE_WAIT_LOOP : one;
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

static enum wire_kind kind_of(int rule, const struct os_wait *wait, uintptr_t tstate,
                              const struct watched *watched)
{
    switch (rule) {
    case BY_DESCRIPTOR:
        return of_descriptor(watched->fds[0]);
    case BY_SELECT:
        return wait->args[0] ? WIRE_WAIT_LOOP : WIRE_WAIT_SLEEP;
    case BY_POLL:
        return of_poll(watched);
    case BY_EPOLL:
        return WIRE_WAIT_LOOP;
    case BY_FUTEX:
        return of_futex(wait->args[0], tstate);
    default:
        return (enum wire_kind)rule;
    }
}

static bool writes(long call)
{
    return call == SYS_write || call == SYS_writev;
}

/* Is one of them outside?  And if it is a socket that listens, it is requests that are waited for.
 */
static void judge_ends(struct cause *cause, const struct os_wait *wait,
                       const struct watched *watched, uint64_t now_ns)
{
    cause->is_outside = !watched->is_complete || !watched->count;
    for (unsigned i = 0; i < watched->count; i++) {
        enum end end = ends_look(watched->fds[i], writes(wait->call), now_ns);
        cause->is_outside |= end != END_INSIDE;
        if (end == END_CLIENTS)
            cause->kind = WIRE_WAIT_REQUEST;
    }
}

/* Which child?  Of a wait for any, one that is profiled counts. */
static bool child_is_ours(const struct os_wait *wait, uint64_t now_ns)
{
    pid_t pid = (pid_t)wait->args[0];
    if (wait->call == SYS_waitid)
        pid = wait->args[0] == P_PID ? (pid_t)wait->args[1] : -1;
    return claims_is_ours(pid > 0 ? pid : -1, now_ns);
}

struct cause cause_find(const struct os_wait *wait, uintptr_t tstate, uint64_t now_ns)
{
    int rule = rule_of(wait->call);
    struct watched watched = {.count = 0};
    bool has_descriptors = rule == BY_DESCRIPTOR || rule == BY_POLL || rule == BY_SELECT ||
                           rule == BY_EPOLL || rule == WIRE_WAIT_SOCKET;
    if (has_descriptors)
        find_watched(&watched, wait, rule);
    struct cause cause = {.kind = kind_of(rule, wait, tstate, &watched)};
    cause.is_outside = cause_is_external(cause.kind);
    if (has_descriptors && (cause.kind == WIRE_WAIT_PIPE || cause.kind == WIRE_WAIT_SOCKET ||
                            cause.kind == WIRE_WAIT_LOOP))
        judge_ends(&cause, wait, &watched, now_ns);
    else if (cause.kind == WIRE_WAIT_CHILD)
        cause.is_outside = !child_is_ours(wait, now_ns);
    return cause;
}

bool cause_is_turn(const struct os_wait *wait, uintptr_t tstate)
{
    return wait->call == SYS_futex && of_futex(wait->args[0], tstate) != WIRE_WAIT_LOCK;
}

bool cause_is_python_lock(const struct os_wait *wait)
{
    struct module libc = {0};
    struct unwind_cursor cursor;
    if (!wait->pc || !module_find((uintptr_t)getpid, &libc))
        return false;
    unwind_begin_at(&cursor, wait->pc, wait->sp);
    for (int depth = 0; depth < LIBC_DEPTH_MAX; depth++) {
        if (cursor.pc - libc.start >= libc.end - libc.start)
            return py_range_has(&agent.regions.interpreter, cursor.pc);
        if (!unwind_step(&cursor))
            return false;
    }
    return false;
}

#define EXTERNAL(NAME, key, label, external, help) [WIRE_WAIT_##NAME] = (external),

bool cause_is_external(enum wire_kind kind)
{
    static const bool is_external[WIRE_KINDS] = {WIRE_WAITS(EXTERNAL)};
    return is_external[kind];
}
