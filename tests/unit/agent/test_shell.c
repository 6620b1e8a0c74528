/* system(), side by side with libc's own: whatever one can see of it must be the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/hooks/signals.h"
#include "no_threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct agent agent;

typedef int system_function(const char *command);
enum { OURS, LIBCS, FUNCTIONS };
static system_function *functions[FUNCTIONS];

/* ---- statuses ---- */

static void test_statuses(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "true",
        "exit 3",
        "exit 255",
        "no-such-command 2>/dev/null",
        "/ 2>/dev/null",
        "kill -9 $$",
        "kill -SEGV $$",
        "kill -INT $$",
        "(exit 5) | exit 6",
        "",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char command[100];
        snprintf(command, sizeof command, "exec 2>/dev/null; ulimit -c 0; %s", commands[i]);
        assert_int_equal(functions[OURS](command), functions[LIBCS](command));
    }
    assert_int_equal(WEXITSTATUS(functions[OURS]("no-such-command 2>/dev/null")), 127);
    assert_int_equal(functions[OURS](NULL), functions[LIBCS](NULL));
}

/* ---- signals ---- */

static _Atomic int interrupts, children;
static int reaped;

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

/* As many programs have it: takes whatever child has ended. */
static void on_child(int number)
{
    (void)number;
    children++;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        reaped++;
}

static void handle(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

static sighandler_t handler_of(int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return now.sa_handler;
}

/* What a command prints. */
static char *printed_by(system_function *function, const char *command)
{
    int ends[2], saved = dup(STDOUT_FILENO);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    int status = function(command);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(status, 0);
    enum { ROOM = 65536 };
    char *text = calloc(1, ROOM);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, ROOM - length - 1)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    for (size_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = '\n';
    return text;
}

static void test_interrupts_are_ignored(void **state)
{
    (void)state;
    for (int i = 0; i < FUNCTIONS; i++) {
        handle(SIGINT, on_interrupt);
        handle(SIGQUIT, on_interrupt);
        interrupts = 0;
        assert_int_equal(functions[i]("kill -INT $PPID; kill -QUIT $PPID; exit 4"), 4 << 8);
        assert_int_equal(interrupts, 0);
        assert_ptr_equal(handler_of(SIGINT), on_interrupt);
        assert_ptr_equal(handler_of(SIGQUIT), on_interrupt);
    }
    handle(SIGINT, SIG_DFL);
    handle(SIGQUIT, SIG_DFL);
}

/* The program's handler must not take the shell's status away, and does not come before the end. */
static void test_child_signals_wait(void **state)
{
    (void)state;
    for (int i = 0; i < FUNCTIONS; i++) {
        handle(SIGCHLD, on_child);
        children = reaped = 0;
        assert_int_equal(functions[i]("exit 7"), 7 << 8);
        assert_int_equal(children, 1);
        assert_int_equal(reaped, 0);
        sigset_t now;
        sigprocmask(SIG_BLOCK, NULL, &now);
        assert_int_equal(sigismember(&now, SIGCHLD), 0);
    }
    /* The thread that waits has it blocked; while it starts the shell, all signals. */
    static const char mask_of_parent[] = "mask=ffff; while [ \"${mask#ffff}\" != $mask ]; do "
                                         "mask=$(sed -n 's/SigBlk:.//p' /proc/$PPID/status); "
                                         "done; echo $mask";
    for (int i = 0; i < FUNCTIONS; i++) {
        char *text = printed_by(functions[i], mask_of_parent);
        assert_int_equal(strtoull(text, NULL, 16), (uint64_t)1 << (SIGCHLD - 1));
        free(text);
    }
    handle(SIGCHLD, SIG_IGN); /* nobody's status is kept */
    for (int i = 0; i < FUNCTIONS; i++) {
        assert_int_equal(functions[i]("exit 7"), -1);
        assert_int_equal(errno, ECHILD);
    }
    handle(SIGCHLD, SIG_DFL);
}

/* ---- what the shell gets ---- */

/* Its environment, and which signals it has blocked and ignores. */
static void test_what_the_shell_gets(void **state)
{
    (void)state;
    static const sighandler_t outside[] = {SIG_DFL, SIG_IGN, on_interrupt};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++) {
        handle(SIGINT, outside[i]);
        handle(SIGQUIT, outside[(i + 1) % 3]);
        char *ours = printed_by(functions[OURS], "exec " SHOW " word");
        char *theirs = printed_by(functions[LIBCS], "exec " SHOW " word");
        assert_string_equal(ours, theirs);
        free(ours);
        free(theirs);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    handle(SIGINT, SIG_DFL);
    handle(SIGQUIT, SIG_DFL);
}

/* ---- several at once ---- */

/* Pipes to and from two shells; a shell can name descriptors of one digit only. */
enum { IN_1 = 4, GO_1, IN_2, GO_2, ENDS };
static int other_ends[ENDS];

static void open_pipes(void)
{
    for (int fd = IN_1; fd < ENDS; fd++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        bool is_written = fd == IN_1 || fd == IN_2;
        other_ends[fd] = fcntl(ends[is_written ? 0 : 1], F_DUPFD_CLOEXEC, 20);
        assert_int_equal(dup2(ends[is_written ? 1 : 0], fd), fd);
        for (int i = 0; i < 2; i++)
            if (ends[i] != fd)
                close(ends[i]);
    }
}

static void close_pipes(void)
{
    for (int fd = IN_1; fd < ENDS; fd++) {
        close(fd);
        close(other_ends[fd]);
    }
}

static system_function *used;

static void *run_command(void *command)
{
    return (void *)(intptr_t)used(command);
}

/* Whether interrupts are ignored: before, with one shell, with two, with the second alone, after.
 */
static void watch(bool ignored[5])
{
    char byte, first[] = "echo >&4; read x <&5", second[] = "echo >&6; read x <&7";
    pthread_t threads[2];
    open_pipes();
    ignored[0] = handler_of(SIGINT) == SIG_IGN;
    assert_int_equal(pthread_create(&threads[0], NULL, run_command, first), 0);
    assert_int_equal(read(other_ends[IN_1], &byte, 1), 1);
    ignored[1] = handler_of(SIGINT) == SIG_IGN;
    assert_int_equal(pthread_create(&threads[1], NULL, run_command, second), 0);
    assert_int_equal(read(other_ends[IN_2], &byte, 1), 1);
    ignored[2] = handler_of(SIGQUIT) == SIG_IGN;
    assert_int_equal(write(other_ends[GO_1], "\n", 1), 1);
    pthread_join(threads[0], NULL);
    ignored[3] = handler_of(SIGINT) == SIG_IGN;
    assert_int_equal(write(other_ends[GO_2], "\n", 1), 1);
    pthread_join(threads[1], NULL);
    ignored[4] = handler_of(SIGINT) == SIG_IGN;
    close_pipes();
}

static void test_overlapping(void **state)
{
    (void)state;
    handle(SIGINT, on_interrupt);
    for (int i = 0; i < FUNCTIONS; i++) {
        bool ignored[5];
        used = functions[i];
        watch(ignored);
        const bool wanted[5] = {false, true, true, true, false};
        assert_memory_equal(ignored, wanted, sizeof ignored);
        assert_ptr_equal(handler_of(SIGINT), on_interrupt);
        assert_ptr_equal(handler_of(SIGQUIT), SIG_DFL);
    }
    handle(SIGINT, SIG_DFL);
}

static void *run_many(void *argument)
{
    uintptr_t wrong = 0;
    for (int i = 0; i < 20; i++)
        wrong += functions[OURS]("exit 9") != 9 << 8;
    (void)argument;
    return (void *)wrong;
}

static void test_many(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    handle(SIGINT, on_interrupt);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_ptr_equal(handler_of(SIGINT), on_interrupt);
    assert_ptr_equal(handler_of(SIGQUIT), SIG_DFL);
    handle(SIGINT, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),           cmocka_unit_test(test_interrupts_are_ignored),
        cmocka_unit_test(test_child_signals_wait), cmocka_unit_test(test_what_the_shell_gets),
        cmocka_unit_test(test_overlapping),        cmocka_unit_test(test_many),
    };
    own_pid = getpid();
    functions[OURS] = system;
    *(void **)&functions[LIBCS] = dlsym(RTLD_NEXT, "system");
    signals_init();
    if (functions[OURS] == functions[LIBCS] || !signals_install())
        return 1;
    agent.active = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
