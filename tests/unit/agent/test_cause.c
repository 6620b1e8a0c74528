/* Causes of waiting, from the system call a thread is blocked in. */
#include "agent/core/agent.h"
#include "agent/waits/cause.h"
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct agent agent;

static enum wire_kind kind_of(long call, uintptr_t a0, uintptr_t a1)
{
    struct os_wait wait = {.call = call, .args = {a0, a1}};
    return cause_classify(&wait, 0);
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
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_GIL);
    tstate[2] = 0;
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_LOCK);
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
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_STOPPED);
    assert_int_equal(cause_classify(&wait, 0), WIRE_WAIT_LOCK);
    parked.address = &lock;
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_LOCK);
    wait.args[0] = 16; /* unreadable */
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_LOCK);
    agent.layout.ts_state = PY_ABSENT; /* with a GIL the world is never stopped */
    parked.address = &tstate[3];
    wait.args[0] = (uintptr_t)parked.semaphore;
    assert_int_equal(cause_classify(&wait, (uintptr_t)tstate), WIRE_WAIT_LOCK);
}

static void test_external(void **state)
{
    (void)state;
    assert_true(cause_is_external(WIRE_WAIT_SLEEP) && cause_is_external(WIRE_WAIT_CHILD));
    assert_false(cause_is_external(WIRE_WAIT_LOCK) || cause_is_external(WIRE_WAIT_GIL) ||
                 cause_is_external(WIRE_WAIT_STARVED) || cause_is_external(WIRE_WAIT_STOPPED));
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
    assert_int_equal(cause_classify(&wait, 0), WIRE_WAIT_PIPE);
    uint64_t before, after, starved;
    assert_true(os_thread_cpu_of(tid, &before) && os_thread_cpu_of(tid, &after));
    assert_int_equal(before, after);
    assert_true(os_thread_starved_ns(tid, &delay_fd, false, &starved));
    assert_int_equal(delay_fd, -1);
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
    int lowest = open("/dev/null", O_RDONLY);
    /* Own numbering, yet the program's descriptors can be asked about. */
    return lowest == 0 && os_file_type(pipes[0]) == OS_FILE_PIPE ? argument : NULL;
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
        cmocka_unit_test(test_a_blocked_thread),
        cmocka_unit_test(test_private_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
