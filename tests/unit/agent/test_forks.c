/*
 * Children that are forked while another thread is in the middle of something of the
 * agent's: fork_sections.c, one run for each section and each way to fork.
 *
 *   test_agent_forks COUNT     instead: so many children while all sections are in use
 */
#include "base/mem.h"
#include "launch/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* The status of `fork_sections first second` under the agent that it has linked in. */
static int run(const char *first, const char *second)
{
    const char *command[] = {PROGRAM, first, second, NULL};
    struct session_config config = {.agent_path = AGENT_FIXTURE,
                                    .command = (char *const *)command,
                                    .cpu_interval_ns = 10000000,
                                    .wait_interval_ns = 10000000,
                                    .allocation_window_bytes = 4096, /* every other block */
                                    .start_on = true};
    struct session session;
    struct err err = {""};
    if (session_open(&session, &config, &err) || session_spawn(&session, &config, &err) ||
        session_wait(&session, 0, NULL, NULL, &err))
        fail_msg("%s", err.text);
    session_close(&session);
    return session.status;
}

static void test_fork(void **state)
{
    assert_int_equal(run(*state, "fork"), 0);
}

/* The bare system call: no handler runs. */
static void test_clone(void **state)
{
    assert_int_equal(run(*state, "clone"), 0);
}

static const char *const sections[] = {"handlers", "shell",   "sampler", "log",   "compaction",
                                       "nodes",    "threads", "growth",  "slots", "sites",
                                       "records",  "windows", "loops"};
enum { SECTIONS = sizeof sections / sizeof *sections };

int main(int argc, char **argv)
{
    struct CMUnitTest tests[2 * SECTIONS];
    if (argc > 1)
        return run("stress", argv[1]) != 0;
    for (int i = 0; i < SECTIONS; i++) {
        void *name = (void *)(uintptr_t)sections[i];
        tests[2 * i] = (struct CMUnitTest){mem_format("fork_inside_%s", sections[i]), test_fork,
                                           NULL, NULL, name};
        tests[2 * i + 1] = (struct CMUnitTest){mem_format("clone_inside_%s", sections[i]),
                                               test_clone, NULL, NULL, name};
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 2 * SECTIONS; i++)
        free((char *)(uintptr_t)tests[i].name);
    return failed;
}
