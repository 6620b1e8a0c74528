/* The agent's own assertions: that they are heard, and that lower levels leave them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/check.h"
#include "os/os.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static unsigned evaluated;

static int yes(void)
{
    evaluated++;
    return 1;
}

static void fail_here(void)
{
    CHECK_COSTLY(1 + 1 == 3);
}

static void *fail_in_the_sampler(void *argument)
{
    if (os_private_descriptors())
        fail_here();
    return argument;
}

static void fail_in_a_thread(void)
{
    pthread_t thread;
    if (!pthread_create(&thread, NULL, fail_in_the_sampler, NULL))
        pthread_join(thread, NULL);
}

/* Run it in a child: how it ended, and what it said. */
static int status_of(void (*way)(void), char *said, size_t room)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGILL, SIG_DFL); /* cmocka has a handler of its own */
        dup2(ends[1], 2);
        way();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, room - 1);
    said[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_failure_is_heard(void **state)
{
    (void)state;
    void (*const ways[])(void) = {fail_here, fail_in_a_thread};
    for (int i = 0; i < 2; i++) {
        char said[200];
        int status = status_of(ways[i], said, sizeof said);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
        assert_non_null(strstr(said, "test_check.c:"));
        assert_non_null(strstr(said, ": check failed: 1 + 1 == 3\n"));
    }
}

static void levels(void **state)
{
    (void)state;
    evaluated = 0;
    CHECK_CHEAP(yes());
    CHECK_DEBUG(yes());
    CHECK_COSTLY(yes());
    assert_int_equal(evaluated, 3);
#undef AGENT_CHECKS
#define AGENT_CHECKS 2
    CHECK_CHEAP(yes());
    CHECK_DEBUG(yes());
    CHECK_COSTLY(!yes());
    assert_int_equal(evaluated, 5);
#undef AGENT_CHECKS
#define AGENT_CHECKS 0
    CHECK_CHEAP(!yes());
    CHECK_DEBUG(!yes());
    CHECK_COSTLY(!yes());
    assert_int_equal(evaluated, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_heard),
        cmocka_unit_test(levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
