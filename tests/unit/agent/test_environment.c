/*
 * Our two entries in the environment: taken out at the start, put back for what is exec'd.  A
 * program (environment_show.c) tells what it was started with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/hooks/environment.h"
#include "agent/hooks/signals.h"
#include "no_threads.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct agent agent;

#define SESSION "SCALENE_SESSION=/nowhere/session"
#define OURS    "LD_PRELOAD=" AGENT_FIXTURE

static struct wire_control control;

/* ---- taking them out ---- */

enum { ENTRIES = 16 };

/* Lists end with NULL. */
static void assert_same_list(char *const *is, const char *const *wanted)
{
    for (; *is && *wanted; is++, wanted++)
        assert_string_equal(*is, *wanted);
    assert_null(*is);
    assert_null(*wanted);
}

/* Entries are changed in place: each gets memory of its own. */
static char **environment_of(const char *const *entries)
{
    static char text[ENTRIES][512], *list[ENTRIES + 1];
    int count = 0;
    for (; entries[count]; count++) {
        snprintf(text[count], sizeof text[count], "%s", entries[count]);
        list[count] = text[count];
    }
    list[count] = NULL;
    return list;
}

static const char *scrubbed(const char *const *entries)
{
    environ = environment_of(entries);
    return environment_scrub();
}

static char **real_environment;

static int keep_environment(void **state)
{
    (void)state;
    real_environment = environ;
    control = (struct wire_control){0};
    agent.control = &control;
    return 0;
}

static int put_back_environment(void **state)
{
    (void)state;
    environ = real_environment;
    return 0;
}

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_taken_out(void **state)
{
    (void)state;
    static const struct {
        const char *before[ENTRIES], *after[ENTRIES];
    } cases[] = {
        {{SESSION, OURS}, {NULL}},
        {{OURS, SESSION}, {NULL}},
        {{"A=1", SESSION, "B=2", OURS, "C=3"}, {"A=1", "B=2", "C=3"}},
        {{"A=1", OURS, "B=2", SESSION, "C=3"}, {"A=1", "B=2", "C=3"}},
        {{OURS ":/theirs.so", "A=1", SESSION}, {"LD_PRELOAD=/theirs.so", "A=1"}},
        {{SESSION, "A=1", OURS " /theirs.so"}, {"A=1", "LD_PRELOAD=/theirs.so"}},
        {{SESSION, OURS ":/one.so:/two.so /three.so"}, {"LD_PRELOAD=/one.so:/two.so /three.so"}},
        {{"LD_PRELOAD_X=1", SESSION, OURS, "XLD_PRELOAD=2"}, {"LD_PRELOAD_X=1", "XLD_PRELOAD=2"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(scrubbed(cases[i].before), "/nowhere/session");
        assert_same_list(environ, cases[i].after);
    }
}

/* The loader takes the last of several. */
static void test_several(void **state)
{
    (void)state;
    assert_string_equal(scrubbed(LIST("LD_PRELOAD=/first.so", SESSION, OURS)), "/nowhere/session");
    assert_same_list(environ, LIST("LD_PRELOAD=/first.so"));
}

static void test_nothing_of_ours(void **state)
{
    (void)state;
    assert_null(scrubbed(LIST("A=1", OURS)));
    assert_same_list(environ, LIST("A=1", OURS));
    assert_null(scrubbed(LIST(SESSION, "A=1")));
    assert_same_list(environ, LIST(SESSION, "A=1"));
    assert_null(scrubbed(LIST("A=1")));
    assert_same_list(environ, LIST("A=1"));
    environ = NULL;
    assert_null(environment_scrub());
}

/* ---- putting them back ---- */

enum way {
    EXECVE,
    EXECV,
    EXECVP,
    EXECVPE,
    EXECL,
    EXECLP,
    EXECLE,
    FEXECVE,
    SPAWN,
    SPAWNP,
    WAYS,
};

static bool takes_environment(enum way way)
{
    return way == EXECVE || way == EXECVPE || way == EXECLE || way == FEXECVE || way == SPAWN ||
           way == SPAWNP;
}

static void become(enum way way, char *const *env)
{
    char zero[] = "zero", one[] = "one", two[] = "two words", empty[] = "";
    char *const argv[] = {zero, one, two, empty, NULL};
    pid_t pid;
    int fd, status;
    switch (way) {
    case EXECVE:
        execve(SHOW, argv, env);
        break;
    case EXECV:
        execv(SHOW, argv);
        break;
    case EXECVP:
        execvp(SHOW_NAME, argv);
        break;
    case EXECVPE:
        execvpe(SHOW_NAME, argv, env);
        break;
    case EXECL:
        execl(SHOW, zero, one, two, empty, NULL);
        break;
    case EXECLP:
        execlp(SHOW_NAME, zero, one, two, empty, NULL);
        break;
    case EXECLE:
        execle(SHOW, zero, one, two, empty, NULL, env);
        break;
    case FEXECVE:
        fd = open(SHOW, O_RDONLY);
        fexecve(fd, argv, env);
        break;
    case SPAWN:
    case SPAWNP:
        if (way == SPAWN ? posix_spawn(&pid, SHOW, NULL, NULL, argv, env)
                         : posix_spawnp(&pid, SHOW_NAME, NULL, NULL, argv, env))
            break;
        waitpid(pid, &status, 0);
        _exit(0);
    default:
        break;
    }
    _exit(1);
}

/* What the program that was exec'd said: its words, its environment, its signals. */
static struct {
    char *text, *argv[ENTRIES], **env;
    size_t env_count;
    unsigned long long blocked, ignored;
} shown;

static void read_shown(int fd)
{
    size_t length = 0, room = 1 << 22;
    free(shown.text);
    free(shown.env);
    shown.text = calloc(1, room);
    for (ssize_t got; (got = read(fd, shown.text + length, room - length - 1)) > 0;)
        length += (size_t)got;
    char *at = shown.text;
    int argc = 0;
    for (; *at; at += strlen(at) + 1)
        shown.argv[argc++] = at + 1;
    shown.argv[argc] = NULL;
    shown.env = calloc(1 << 17, sizeof *shown.env);
    shown.env_count = 0;
    for (at++; *at; at += strlen(at) + 1)
        shown.env[shown.env_count++] = at + 1;
    assert_int_equal(sscanf(at + 1, "%llx %llx", &shown.blocked, &shown.ignored), 2);
}

static void run(enum way way, char *const *env)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        own_pid = getpid();
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        become(way, env);
    }
    close(ends[1]);
    read_shown(ends[0]);
    close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void assert_shown(enum way way, const char *const *given, const char *const *wanted)
{
    static char path[] = "PATH=" SHOW_DIRECTORY, *only[] = {path, NULL};
    char **list = environment_of(given);
    environ = takes_environment(way) ? only : list;
    run(way, list);
    assert_same_list(shown.argv, LIST("zero", "one", "two words", ""));
    assert_same_list(shown.env, wanted);
}

#define PATH_ENTRY "PATH=" SHOW_DIRECTORY

static void test_put_back(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    for (enum way way = 0; way < WAYS; way++) {
        assert_shown(way, LIST(PATH_ENTRY, "A=1", "B="),
                     LIST(PATH_ENTRY, "A=1", "B=", OURS, SESSION));
        assert_shown(way, LIST("LD_PRELOAD=" OTHER_LIBRARY, PATH_ENTRY, "A=1"),
                     LIST(PATH_ENTRY, "A=1", OURS ":" OTHER_LIBRARY, SESSION));
        assert_shown(way, LIST(PATH_ENTRY, "LD_PRELOAD="), LIST(PATH_ENTRY, OURS, SESSION));
        assert_shown(way, LIST(PATH_ENTRY, "SCALENE_SESSION=/another"),
                     LIST(PATH_ENTRY, OURS, SESSION));
    }
}

/* Of several the loader takes the last. */
static void test_put_before_the_last(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    assert_shown(EXECVE, LIST("LD_PRELOAD=/first.so", "LD_PRELOAD=" OTHER_LIBRARY),
                 LIST(OURS ":" OTHER_LIBRARY, SESSION));
}

static void test_no_environment(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    run(EXECVE, NULL);
    assert_same_list(shown.env, LIST(OURS, SESSION));
}

static void assert_unchanged(void)
{
    for (enum way way = 0; way < WAYS; way++)
        assert_shown(way, LIST("LD_PRELOAD=" OTHER_LIBRARY, PATH_ENTRY, "A=1"),
                     LIST("LD_PRELOAD=" OTHER_LIBRARY, PATH_ENTRY, "A=1"));
}

static void test_closed_session(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    control.closed = 1;
    assert_unchanged();
}

static void test_no_control_page(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    agent.control = NULL;
    assert_unchanged();
}

/* The program has entered another root: the loader would complain. */
static void test_agent_out_of_reach(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, "LD_PRELOAD=/nowhere/libscalene.so")));
    assert_unchanged();
}

static void test_forgotten(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    environment_forget();
    assert_unchanged();
}

static void test_huge(void **state)
{
    (void)state;
    enum { MOST = 32768 };
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    char **list = calloc(MOST + 2, sizeof *list), (*text)[16] = calloc(MOST + 1, sizeof *text);
    for (int i = 0; i <= MOST; i++) {
        snprintf(text[i], sizeof text[i], "K%d=v", i);
        list[i] = text[i];
    }
    run(EXECVE, list);
    assert_int_equal(shown.env_count, MOST + 1); /* passed on as it is */
    assert_string_equal(shown.env[MOST], "K32768=v");
    list[MOST] = NULL;
    run(EXECVE, list);
    assert_int_equal(shown.env_count, MOST + 2);
    assert_string_equal(shown.env[MOST - 1], "K32767=v");
    assert_string_equal(shown.env[MOST], OURS);
    assert_string_equal(shown.env[MOST + 1], SESSION);
    free(list);
    free(text);
}

/* ---- when it fails, and what else is inherited ---- */

static uint64_t bit(int number)
{
    return (uint64_t)1 << (number - 1);
}

static uint64_t kernel_mask(void)
{
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask;
}

static void test_errors(void **state)
{
    (void)state;
    char name[] = "name", *argv[] = {name, NULL};
    sigset_t sample;
    sigemptyset(&sample);
    sigaddset(&sample, os_sample_signal());
    sigprocmask(SIG_BLOCK, &sample, NULL);
    for (int reachable = 0; reachable < 2; reachable++) { /* looking for the agent sets errno too */
        assert_non_null(
            scrubbed(reachable ? LIST(SESSION, OURS) : LIST(SESSION, "LD_PRELOAD=/no/agent.so")));
        errno = 0;
        assert_int_equal(execve("/nowhere/program", argv, environ), -1);
        assert_int_equal(errno, ENOENT);
        assert_int_equal(kernel_mask(), 0); /* blocked for the new program alone */
        assert_int_equal(execv("/", argv), -1);
        assert_int_equal(errno, EACCES);
        assert_int_equal(execvp("no-such-program", argv), -1);
        assert_int_equal(errno, ENOENT);
        assert_int_equal(kernel_mask(), 0);
        assert_int_equal(fexecve(-1, argv, environ), -1);
        assert_int_equal(errno, EINVAL);
        assert_int_equal(kernel_mask(), 0);
        assert_int_equal(execl("/", name, NULL), -1);
        assert_int_equal(errno, EACCES);
        pid_t pid;
        assert_int_equal(posix_spawn(&pid, "/nowhere/program", NULL, NULL, argv, environ), ENOENT);
        errno = ENOTTY;
        assert_int_equal(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
        assert_int_equal(errno, ENOTTY);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    sigprocmask(SIG_UNBLOCK, &sample, NULL);
}

static void test_signals_are_inherited(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    static char path[] = PATH_ENTRY, *list[] = {path, NULL};
    environ = list;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, os_sample_signal());
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was;
    sigaction(SIGILL, &ignore, &was);
    uint64_t wanted = bit(os_sample_signal()) | bit(SIGUSR1);
    for (enum way way = 0; way < WAYS; way++) {
        run(way, list);
        assert_int_equal(shown.blocked, wanted);
        if (way < SPAWN) /* the kernel cannot be told in a process that goes on */
            assert_int_equal(shown.ignored & bit(SIGILL), bit(SIGILL));
    }
    sigaction(SIGILL, &was, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A mask that is asked for is the one. */
static void test_mask_of_spawned(void **state)
{
    (void)state;
    assert_non_null(scrubbed(LIST(SESSION, OURS)));
    posix_spawnattr_t attributes;
    sigset_t sample, asked;
    sigemptyset(&sample);
    sigaddset(&sample, os_sample_signal());
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &sample, NULL);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &asked);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char name[] = "name", *argv[] = {name, NULL};
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, SHOW, &actions, &attributes, argv, environ), 0);
    close(ends[1]);
    read_shown(ends[0]);
    close(ends[0]);
    waitpid(pid, &status, 0);
    assert_int_equal(shown.blocked, bit(SIGUSR2));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    sigprocmask(SIG_UNBLOCK, &sample, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, keep_environment, put_back_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_taken_out),
        CASE(test_several),
        CASE(test_nothing_of_ours),
        CASE(test_put_back),
        CASE(test_put_before_the_last),
        CASE(test_no_environment),
        CASE(test_closed_session),
        CASE(test_no_control_page),
        CASE(test_agent_out_of_reach),
        CASE(test_forgotten),
        CASE(test_huge),
        CASE(test_errors),
        CASE(test_signals_are_inherited),
        CASE(test_mask_of_spawned),
    };
    own_pid = getpid();
    signals_init();
    if (!signals_install())
        return 1;
    agent.active = true;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(shown.text);
    free(shown.env);
    return failed;
}
