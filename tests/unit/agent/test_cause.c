/* Causes of waiting, from the system call a thread is blocked in. */
#include "agent/core/agent.h"
#include "agent/waits/cause.h"
#include "agent/waits/claims.h"
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wire_control control;
struct agent agent = {.control = &control};

static enum wire_kind kind_of(long call, uintptr_t a0, uintptr_t a1)
{
    struct os_wait wait = {.call = call, .args = {a0, a1}};
    return cause_find(&wait, 0, 1).kind;
}

static void test_plain_calls(void **state)
{
    (void)state;
    assert_int_equal(kind_of(SYS_clock_nanosleep, 0, 0), WIRE_WAIT_SLEEP);
    assert_int_equal(kind_of(SYS_pselect6, 0, 0), WIRE_WAIT_SLEEP); /* time.sleep before 3.11 */
    assert_int_equal(kind_of(SYS_pselect6, 5, 0), WIRE_WAIT_LOOP);
    assert_int_equal(kind_of(SYS_epoll_pwait, 4, 0), WIRE_WAIT_LOOP);
    assert_int_equal(kind_of(SYS_recvfrom, 4, 0), WIRE_WAIT_SOCKET);
    assert_int_equal(kind_of(SYS_wait4, 4, 0), WIRE_WAIT_CHILD);
    assert_int_equal(kind_of(SYS_fsync, 4, 0), WIRE_WAIT_FILE);
    assert_int_equal(kind_of(SYS_flock, 4, 0), WIRE_WAIT_LOCK);
    assert_int_equal(kind_of(-1, 0, 0), WIRE_WAIT_OTHER);
    assert_int_equal(kind_of(99999, 0, 0), WIRE_WAIT_OTHER);
}

static void test_by_descriptor(void **state)
{
    faults_install(state);
    int pipes[2], sockets[2], file = open("/tmp", O_RDONLY | O_DIRECTORY);
    assert_int_equal(pipe(pipes) | socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(kind_of(SYS_read, (uintptr_t)pipes[0], 0), WIRE_WAIT_PIPE);
    assert_int_equal(kind_of(SYS_read, (uintptr_t)sockets[0], 0), WIRE_WAIT_SOCKET);
    assert_int_equal(kind_of(SYS_read, (uintptr_t)file, 0), WIRE_WAIT_FILE);
    assert_int_equal(kind_of(SYS_read, 9999, 0), WIRE_WAIT_OTHER);
    struct pollfd polls[3] = {{.fd = pipes[0]}, {.fd = pipes[1]}, {.fd = sockets[0]}};
    assert_int_equal(kind_of(SYS_ppoll, (uintptr_t)polls, 0), WIRE_WAIT_SLEEP);
    assert_int_equal(kind_of(SYS_ppoll, (uintptr_t)polls, 2), WIRE_WAIT_PIPE);
    assert_int_equal(kind_of(SYS_ppoll, (uintptr_t)polls, 3), WIRE_WAIT_LOOP);
    assert_int_equal(kind_of(SYS_ppoll, (uintptr_t)&polls[2], 1), WIRE_WAIT_SOCKET);
    assert_int_equal(kind_of(SYS_ppoll, 0x10, 1), WIRE_WAIT_LOOP); /* unreadable */
    close(file);
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(sockets[i]);
    }
}

static void test_gil(void **state)
{
    (void)state;
    char runtime[4096];
    agent.runtime = (uintptr_t)runtime;
    agent.runtime_bytes = sizeof runtime;
    assert_int_equal(kind_of(SYS_futex, (uintptr_t)runtime + 432, 0), WIRE_WAIT_GIL);
    assert_int_equal(kind_of(SYS_futex, (uintptr_t)runtime + sizeof runtime, 0), WIRE_WAIT_LOCK);
    assert_int_equal(kind_of(SYS_futex, (uintptr_t)runtime - 4, 0), WIRE_WAIT_LOCK);
    agent.runtime_bytes = 0;
    assert_int_equal(kind_of(SYS_futex, (uintptr_t)runtime + 432, 0), WIRE_WAIT_LOCK);
    /* 3.15 tells by itself that a thread wants the lock. */
    uint32_t tstate[4] = {0, 0, 1, 0};
    agent.has_layout = true;
    agent.layout.ts_gil_requested = 8;
    agent.layout.ts_state = PY_ABSENT;
    struct os_wait wait = {.call = SYS_futex, .args = {1}};
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_GIL);
    tstate[2] = 0;
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_LOCK);
}

/* Parked on the own stack, by the address that is waited for. */
static void test_stopped_world(void **state)
{
    faults_install(state);
    uint32_t tstate[4] = {0}, lock = 0;
    struct {
        void *park_arg;
        const void *address;
        uint32_t semaphore[4];
    } parked = {.address = &tstate[3]};
    struct os_wait wait = {.call = SYS_futex, .args = {(uintptr_t)parked.semaphore}};
    agent.has_layout = true;
    agent.layout.ts_gil_requested = PY_ABSENT;
    agent.layout.ts_state = 12;
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_STOPPED);
    assert_int_equal(cause_find(&wait, 0, 1).kind, WIRE_WAIT_LOCK);
    parked.address = &lock;
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_LOCK);
    wait.args[0] = 16; /* unreadable */
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_LOCK);
    agent.layout.ts_state = PY_ABSENT; /* with a GIL the world is never stopped */
    parked.address = &tstate[3];
    wait.args[0] = (uintptr_t)parked.semaphore;
    assert_int_equal(cause_find(&wait, (uintptr_t)tstate, 1).kind, WIRE_WAIT_LOCK);
}

static void test_external(void **state)
{
    (void)state;
    assert_true(cause_is_external(WIRE_WAIT_SLEEP) && cause_is_external(WIRE_WAIT_CHILD));
    assert_false(cause_is_external(WIRE_WAIT_LOCK) || cause_is_external(WIRE_WAIT_GIL) ||
                 cause_is_external(WIRE_WAIT_STARVED) || cause_is_external(WIRE_WAIT_STOPPED));
}

static struct cause cause_at(long call, uintptr_t a0, uintptr_t a1, uintptr_t a2, uint64_t now_ns)
{
    unsigned sharers;
    claims_settle(&(struct claims){{0}}, now_ns, &sharers); /* this process is of the session */
    struct os_wait wait = {.call = call, .args = {a0, a1, a2}};
    return cause_find(&wait, 0, now_ns);
}

static void mark(int fd, enum wire_mark kind)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    control.marks[control.marks_made++] = (uint64_t)st.st_ino << 2 | kind;
}

/* Who is at the other end? */
static void test_ends(void **state)
{
    faults_install(state);
    enum { SEC_NS = 1000000000 };
    uint64_t now_ns = os_mono_ns();
    int own[2], foreign[2], pair[2], listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(pipe(own) | pipe(foreign) | socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(foreign[1]); /* somebody else has it, or nobody */
    struct cause cause = cause_at(SYS_read, (uintptr_t)own[0], 0, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_PIPE && !cause.is_outside);
    cause = cause_at(SYS_write, (uintptr_t)own[1], 0, 0, now_ns += SEC_NS);
    assert_true(cause.kind == WIRE_WAIT_PIPE && !cause.is_outside);
    cause = cause_at(SYS_read, (uintptr_t)foreign[0], 0, 0, now_ns += SEC_NS);
    assert_true(cause.kind == WIRE_WAIT_PIPE && cause.is_outside);

    cause = cause_at(SYS_recvfrom, (uintptr_t)pair[0], 0, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_SOCKET && cause.is_outside);
    mark(pair[0], WIRE_MARK_PAIR);
    cause = cause_at(SYS_recvfrom, (uintptr_t)pair[0], 0, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_SOCKET && !cause.is_outside);

    /* An event loop with nothing but its own wake-up; then one that serves. */
    int loop = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, pair[0], &event), 0);
    cause = cause_at(SYS_epoll_pwait, (uintptr_t)loop, 0, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_LOOP && !cause.is_outside);
    mark(listening, WIRE_MARK_LISTENS);
    assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, listening, &event), 0);
    cause = cause_at(SYS_epoll_pwait, (uintptr_t)loop, 0, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_REQUEST && cause.is_outside);
    struct pollfd poll = {.fd = listening};
    assert_int_equal(cause_at(SYS_ppoll, (uintptr_t)&poll, 1, 0, now_ns).kind, WIRE_WAIT_REQUEST);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(listening, &set);
    cause = cause_at(SYS_pselect6, 64, (uintptr_t)&set, 0, now_ns);
    assert_int_equal(cause.kind, WIRE_WAIT_REQUEST);
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    cause = cause_at(SYS_pselect6, 64, (uintptr_t)&set, 0, now_ns);
    assert_true(cause.kind == WIRE_WAIT_LOOP && !cause.is_outside);
    assert_int_equal(cause_at(SYS_accept4, 0, 0, 0, now_ns).kind, WIRE_WAIT_REQUEST);

    int all[] = {own[0], own[1], foreign[0], pair[0], pair[1], listening, loop};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

static void test_children(void **state)
{
    (void)state;
    control.claims[1] = (struct wire_claims){.pid = 1000001, .ppid = 1, .beat_mono_ns = 1};
    assert_false(cause_at(SYS_wait4, 1000001, 0, 0, 1).is_outside);
    assert_true(cause_at(SYS_wait4, 1000002, 0, 0, 1).is_outside);
    assert_true(cause_at(SYS_wait4, (uintptr_t)-1, 0, 0, 1).is_outside);
    assert_false(cause_at(SYS_waitid, P_PID, 1000001, 0, 1).is_outside);
    control.claims[1].ppid = getpid();
    assert_false(cause_at(SYS_wait4, (uintptr_t)-1, 0, 0, 1).is_outside);
    assert_false(cause_at(SYS_waitid, P_ALL, 0, 0, 1).is_outside);
}

static int block_pipe[2];

static void *block(void *argument)
{
    char c;
    atomic_store((_Atomic pid_t *)argument, os_gettid());
    return read(block_pipe[0], &c, 1) == 1 ? argument : NULL;
}

/* A thread that blocks is seen to, from outside, through the descriptor table of another one. */
static void test_a_blocked_thread(void **state)
{
    (void)state;
    _Atomic pid_t tid = 0;
    pthread_t thread;
    assert_int_equal(pipe(block_pipe), 0);
    assert_int_equal(pthread_create(&thread, NULL, block, (void *)&tid), 0);
    int fd = -1, delay_fd = -1;
    struct os_wait wait = {.running = true};
    while (!tid || wait.running || wait.call != SYS_read)
        if (tid)
            assert_true(os_thread_wait(tid, &fd, true, &wait));
    assert_int_equal(cause_find(&wait, 0, 1).kind, WIRE_WAIT_PIPE);
    uint64_t before, after, starved;
    assert_true(os_thread_cpu_of(tid, &before) && os_thread_cpu_of(tid, &after));
    assert_int_equal(before, after);
    assert_true(os_thread_starved_ns(tid, &delay_fd, false, &starved));
    assert_int_equal(delay_fd, -1);
    uint64_t switches;
    assert_true(os_thread_switches(tid, &switches));
    assert_in_range(switches, 1, 1000); /* it waits */
    assert_false(os_thread_switches(INT32_MAX, &switches));
    assert_int_equal(write(block_pipe[1], "x", 1), 1);
    pthread_join(thread, NULL);
    os_close(&fd);
    close(block_pipe[0]);
    close(block_pipe[1]);
}

static void *look_privately(void *argument)
{
    int *pipes = argument;
    if (!os_private_descriptors())
        return NULL;
    uint64_t inode;
    int lowest = open("/dev/null", O_RDONLY);
    /* Own numbering, yet the program's descriptors can be asked about. */
    return lowest == 0 && os_file_type(pipes[0], &inode) == OS_FILE_PIPE && inode ? argument : NULL;
}

static void test_private_descriptors(void **state)
{
    (void)state;
    int pipes[2];
    pthread_t thread;
    void *result;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pthread_create(&thread, NULL, look_privately, pipes), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, pipes);
    char c;
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &c, 1), 0); /* no second holder of the write end */
    close(pipes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_calls),
        cmocka_unit_test(test_by_descriptor),
        cmocka_unit_test(test_gil),
        cmocka_unit_test(test_stopped_world),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_a_blocked_thread),
        cmocka_unit_test(test_private_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
