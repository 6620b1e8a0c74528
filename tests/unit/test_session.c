/* Sessions: directory, environment, exit status, signals both ways, stopping and continuing. */
#include "base/file.h"
#include "base/mem.h"
#include "launch/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char base[] = "/tmp/scalene-test-XXXXXX";
static char *output;      /* where programs write what they saw */
static int input_ends[2]; /* programs that wait read from the first */

static struct session_config shell(const char *const *command)
{
    return (struct session_config){.agent_path = AGENT_FIXTURE,
                                   .command = (char *const *)command,
                                   .cpu_interval_ns = 5000000,
                                   .wait_interval_ns = 10000000,
                                   .flags = WIRE_FLAG_VIRTUAL_TIME,
                                   .start_on = true};
}

static size_t entries_in(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static int run_command(const char *const *command)
{
    struct session_config config = shell(command);
    struct session session;
    struct err err = {""};
    if (session_open(&session, &config, &err) || session_spawn(&session, &config, &err) ||
        session_wait(&session, 0, NULL, NULL, &err))
        fail_msg("%s", err.text);
    session_close(&session);
    return session.status;
}

static int run(const char *script)
{
    const char *command[] = {"/bin/sh", "-c", script, NULL};
    return run_command(command);
}

static char *seen(void)
{
    struct buf text = {0};
    assert_int_equal(file_read(output, &text, NULL), 0);
    return buf_detach(&text);
}

static int set_up(void **state)
{
    if (!mkdtemp(base) || setenv("TMPDIR", base, 1) || pipe(input_ends))
        return -1;
    output = mem_format("%s/output", base);
    setenv("OUTPUT", output, 1);
    return dup2(input_ends[0], STDIN_FILENO) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    unlink(output);
    free(output);
    return rmdir(base);
}

static void directory_and_control(void **state)
{
    const char *command[] = {"/bin/true", NULL};
    struct session_config config = shell(command);
    struct session session;
    struct err err = {""};
    assert_int_equal(session_open(&session, &config, &err), 0);
    assert_int_equal(strncmp(session.directory, base, strlen(base)), 0);
    struct stat st;
    assert_int_equal(stat(session.directory, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    char *control = mem_format("%s/" WIRE_CONTROL_NAME, session.directory);
    assert_int_equal(stat(control, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    struct buf page = {0};
    assert_int_equal(file_read(control, &page, NULL), 0);
    assert_int_equal(page.len, WIRE_CONTROL_BYTES);
    const struct wire_control *read = (const struct wire_control *)page.data;
    assert_true(read->magic == WIRE_CONTROL_MAGIC);
    assert_int_equal(read->cpu_interval_ns, 5000000);
    assert_int_equal(read->flags, WIRE_FLAG_VIRTUAL_TIME);
    assert_int_equal(read->launcher_pid, getpid());
    assert_int_equal(read->on, 1);
    char *agent = mem_format("%s/" WIRE_AGENT_NAME, session.directory),
         *real = realpath(agent, NULL);
    char *fixture = realpath(AGENT_FIXTURE, NULL);
    assert_string_equal(real, fixture);
    char *gone = mem_strdup(session.directory);
    char *arena = mem_format("%s/200-0" WIRE_ARENA_SUFFIX, session.directory);
    close(creat(arena, 0600));
    session_close(&session);
    session_close(&session);
    assert_int_equal(access(gone, F_OK), -1);
    free(arena);
    free(gone);
    free(fixture);
    free(real);
    free(agent);
    free(control);
    buf_release(&page);
}

static void closing_tells_who_stays(void **state)
{
    const char *command[] = {"/bin/true", NULL};
    struct session_config config = shell(command);
    struct session session;
    assert_int_equal(session_open(&session, &config, NULL), 0);
    char *control = mem_format("%s/" WIRE_CONTROL_NAME, session.directory);
    int fd = open(control, O_RDONLY);
    struct wire_control page;
    session_close(&session);
    assert_int_equal(pread(fd, &page, sizeof page, 0), sizeof page);
    assert_int_equal(page.closed, 1);
    close(fd);
    free(control);
}

static void exit_status_passes_through(void **state)
{
    int status = run("exit 3");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    status = run("kill -KILL $$");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(entries_in(base), 0);
}

static void environment_has_two_entries_more(void **state)
{
    setenv("LD_PRELOAD", AGENT_FIXTURE, 1);
    run("echo \"$LD_PRELOAD\n$SCALENE_SESSION\" > $OUTPUT");
    unsetenv("LD_PRELOAD");
    char *text = seen(), *session = strchr(text, '\n') + 1;
    char *rest = strchr(session, '\n');
    *rest = '\0';
    char *expected = mem_format("%s/" WIRE_AGENT_NAME ":" AGENT_FIXTURE "\n%s", session, session);
    assert_string_equal(text, expected);
    free(expected);
    free(text);
    run("echo \"$LD_PRELOAD\" > $OUTPUT");
    text = seen();
    assert_null(strchr(text, ':'));
    free(text);
}

static void what_cannot_run_is_said(void **state)
{
    const char *command[] = {"no-such-python", NULL};
    struct session_config config = shell(command);
    struct session session;
    struct err err = {""};
    assert_int_equal(session_open(&session, &config, &err), 0);
    assert_int_equal(session_spawn(&session, &config, &err), -1);
    assert_string_equal(err.text, "cannot run 'no-such-python': No such file or directory");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    session_close(&session);
    config.agent_path = "/nonexistent/libscalene.so";
    assert_int_equal(session_open(&session, &config, &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent/libscalene.so"));
    assert_int_equal(entries_in(base), 1); /* what programs wrote */
}

/* The program sends the launcher a signal, and ends by getting it back. */
static void signals_are_passed_on(void **state)
{
    static const char *const names[] = {"TERM", "HUP", "USR1", "USR2", "INT", "QUIT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *script = mem_format("trap 'exit 7' %s; kill -%s $PPID; while :; do read line; done",
                                  names[i], names[i]);
        int status = run(script);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
        free(script);
    }
}

static void mask_and_dispositions_are_inherited(void **state)
{
    sigset_t mask, outer;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, &outer);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    /* Not by a shell, which has its own ideas about SIGCHLD. */
    char *target = mem_format("of=%s", output);
    const char *command[] = {"/bin/dd", "if=/proc/self/status", target, "status=none", NULL};
    int status = run_command(command);
    free(target);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct sigaction action;
    assert_int_equal(sigaction(SIGCHLD, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_IGN);
    signal(SIGHUP, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigset_t after;
    sigprocmask(SIG_SETMASK, &outer, &after);
    assert_int_equal(sigismember(&after, SIGUSR2), 1);
    assert_int_equal(sigismember(&after, SIGTERM), 0);
    char *text = seen(), *at = strstr(text, "SigBlk:");
    unsigned long long blocked, ignored;
    assert_non_null(at);
    assert_int_equal(sscanf(at, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    assert_int_equal(blocked, 1ull << (SIGUSR2 - 1));
    unsigned long long expected = 1ull << (SIGHUP - 1) | 1ull << (SIGCHLD - 1);
    assert_int_equal(ignored & expected, expected);
    assert_int_equal(ignored & (1ull << (SIGTERM - 1)), 0);
    free(text);
}

static void end_at_third(void *context)
{
    if (++*(int *)context == 3)
        assert_int_equal(write(input_ends[1], "end\n", 4), 4);
}

static void ticks_while_waiting(void **state)
{
    const char *command[] = {"/bin/sh", "-c", "read line; exit 4", NULL};
    struct session_config config = shell(command);
    struct session session;
    struct err err = {""};
    int ticks = 0;
    assert_int_equal(session_open(&session, &config, &err), 0);
    assert_int_equal(session_spawn(&session, &config, &err), 0);
    assert_int_equal(session_wait(&session, 1000000, end_at_third, &ticks, &err), 0);
    assert_true(ticks >= 3);
    assert_int_equal(WEXITSTATUS(session.status), 4);
    session_close(&session);
}

static bool is_third(void *context)
{
    return ++*(int *)context == 3;
}

static bool never(void *context)
{
    kill(getpid(), *(int *)context);
    return false;
}

/* Answers end it, and signals; SIGTERM stays for later. */
static void lingers_until_told(void **state)
{
    const char *command[] = {"/bin/true", NULL};
    struct session_config config = shell(command);
    struct session session;
    struct err err = {""};
    assert_int_equal(session_open(&session, &config, &err), 0);
    assert_int_equal(session_spawn(&session, &config, &err), 0);
    assert_int_equal(session_wait(&session, 0, NULL, NULL, &err), 0);
    int asked = 0, signals[] = {SIGINT, SIGTERM};
    session_linger(is_third, &asked);
    assert_int_equal(asked, 3);
    sigset_t pending;
    session_linger(never, &signals[0]);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGINT));
    session_linger(never, &signals[1]);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGTERM));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigwaitinfo(&set, NULL), SIGTERM);
    session_close(&session);
}

/* In a process of its own, since the launcher is to stop. */
static void stops_and_goes_on_with_the_program(void **state)
{
    pid_t launcher = fork();
    if (launcher == 0) {
        int status = run("kill -STOP $$; exit 5");
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    int status;
    assert_int_equal(waitpid(launcher, &status, WUNTRACED), launcher);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(WSTOPSIG(status), SIGSTOP);
    kill(launcher, SIGCONT);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
}

/* One that comes during the report acts after the directory is gone. */
static void a_late_signal_waits_for_the_cleaning(void **state)
{
    pid_t launcher = fork();
    if (launcher == 0) {
        const char *command[] = {"/bin/true", NULL};
        struct session_config config = shell(command);
        struct session session;
        if (session_open(&session, &config, NULL) || session_spawn(&session, &config, NULL) ||
            session_wait(&session, 0, NULL, NULL, NULL))
            _exit(98);
        raise(SIGTERM);
        session_close(&session);
        _exit(99);
    }
    int status;
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(entries_in(base), 1); /* what programs wrote */
}

static void a_blank_in_tmpdir_is_avoided(void **state)
{
    char *blank = mem_format("%s/a b", base);
    assert_int_equal(mkdir(blank, 0700), 0);
    setenv("TMPDIR", blank, 1);
    int status = run("exit 0");
    const char *command[] = {"/bin/true", NULL};
    struct session_config config = shell(command);
    struct session session;
    assert_int_equal(session_open(&session, &config, NULL), 0);
    assert_null(strchr(session.directory, ' '));
    session_close(&session);
    setenv("TMPDIR", base, 1);
    rmdir(blank);
    free(blank);
    assert_int_equal(status, 0);
}

int main(void)
{
    /* Started in the background they are ignored, and stay so in every program below. */
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directory_and_control),
        cmocka_unit_test(closing_tells_who_stays),
        cmocka_unit_test(exit_status_passes_through),
        cmocka_unit_test(environment_has_two_entries_more),
        cmocka_unit_test(what_cannot_run_is_said),
        cmocka_unit_test(signals_are_passed_on),
        cmocka_unit_test(mask_and_dispositions_are_inherited),
        cmocka_unit_test(ticks_while_waiting),
        cmocka_unit_test(lingers_until_told),
        cmocka_unit_test(stops_and_goes_on_with_the_program),
        cmocka_unit_test(a_late_signal_waits_for_the_cleaning),
        cmocka_unit_test(a_blank_in_tmpdir_is_avoided),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
