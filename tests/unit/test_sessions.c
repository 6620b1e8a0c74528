/*
 * Sessions as they lie there: which directories count, who is alive in them,
 * what can be done to them, and the facts of a run that they keep.
 */
#include "base/file.h"
#include "base/mem.h"
#include "collect/facts.h"
#include "collect/process.h"
#include "collect/sessions.h"
#include "wire/arena.h"
#include "wire/control.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char parent[64]; /* of all sessions of a test; removed after it */

static int make_parent(void **state)
{
    strcpy(parent, "/tmp/test-sessions-XXXXXX");
    return mkdtemp(parent) ? 0 : -1;
}

static int remove_parent(void **state)
{
    char *command = mem_format("rm -rf '%s'", parent);
    int status = system(command); /* NOLINT: a fixed command on our own directory */
    free(command);
    return status;
}

static char *in_parent(const char *name)
{
    return mem_format("%s/%s", parent, name);
}

static void write_file(const char *directory, const char *name, const void *bytes, size_t length)
{
    char *path = mem_format("%s/%s", directory, name);
    assert_int_equal(file_write_atomic(path, bytes, length, NULL), 0);
    free(path);
}

/* A control page of a launcher that is this process. */
static struct wire_control own_control(void)
{
    return (struct wire_control){
        .magic = WIRE_CONTROL_MAGIC,
        .version = WIRE_CONTROL_VERSION,
        .launcher_pid = getpid(),
        .launcher_start_ticks = process_start_ticks(getpid()),
        .boot = process_boot(),
        .pid_namespace = process_pid_namespace(),
    };
}

static char *make_session(const char *name, const struct wire_control *control)
{
    char *directory = in_parent(name);
    assert_int_equal(mkdir(directory, 0700), 0);
    write_file(directory, WIRE_CONTROL_NAME, control, sizeof *control);
    return directory;
}

static uint64_t mono_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add_arena(const char *directory, pid_t pid, uint64_t start_mono_ns, const char *command,
                      size_t command_bytes)
{
    struct wire_header header = {
        .magic = WIRE_ARENA_MAGIC,
        .version = WIRE_ARENA_VERSION,
        .pid = pid,
        .start_mono_ns = start_mono_ns,
        .start_real_ns = UINT64_C(1700000000000000000),
        .command_bytes = (uint32_t)command_bytes,
    };
    memcpy(header.command, command, command_bytes);
    char *name = mem_format("%d-0.arena", (int)pid);
    write_file(directory, name, &header, sizeof header);
    free(name);
}

/* A pid that was a process and is none any more. */
static pid_t dead_pid(void)
{
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static void find(struct sessions *sessions)
{
    const char *const parents[] = {"", parent, "/nowhere", parent, NULL};
    sessions_find(sessions, parents);
}

/* The one session there is, or none. */
static bool find_one(struct sessions_entry *entry)
{
    struct sessions sessions;
    find(&sessions);
    assert_true(sessions.count <= 1);
    bool found = sessions.count && !sessions_look_at(entry, sessions.items[0].directory, NULL);
    sessions_release(&sessions);
    return found;
}

static void launcher_alive_or_gone(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct wire_control control = own_control();
        if (i == 1)
            control.launcher_pid = dead_pid();
        if (i == 2)
            control.launcher_start_ticks++; /* the pid came again */
        if (i == 3)
            control.boot++;
        char name[] = "scalene-0", *directory;
        name[8] = (char)('a' + i);
        directory = make_session(name, &control);
        struct sessions_entry entry;
        assert_int_equal(sessions_look_at(&entry, directory, NULL), 0);
        assert_int_equal(entry.orphaned, i > 0);
        assert_false(entry.running);
        assert_int_equal(entry.launcher_pid, control.launcher_pid);
        assert_true(entry.size_bytes >= sizeof control);
        sessions_entry_release(&entry);
        sessions_entry_release(&entry);
        free(directory);
    }
    struct sessions sessions;
    find(&sessions);
    assert_int_equal(sessions.count, 4); /* though the parent was named twice */
    sessions_release(&sessions);
}

static void assert_not_a_session(const char *directory)
{
    struct sessions_entry entry;
    struct err err = {""};
    assert_int_equal(sessions_look_at(&entry, directory, &err), -1);
    assert_non_null(strstr(err.text, directory));
    assert_false(find_one(&entry));
}

static void what_is_not_ours(void **state)
{
    struct wire_control good = own_control(), control;
    struct sessions_entry entry;

    char *directory = make_session("scalene-mode", &good);
    assert_true(find_one(&entry));
    sessions_entry_release(&entry);
    assert_int_equal(chmod(directory, 0755), 0);
    assert_not_a_session(directory);
    assert_int_equal(chmod(directory, 0700), 0);

    /* A link to a session is not one, nor is a session whose control file is a link. */
    char *elsewhere = in_parent("other"), *link = in_parent("scalene-link");
    assert_int_equal(rename(directory, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, link), 0);
    assert_not_a_session(link);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    char *target = mem_format("%s/control", elsewhere), *name = mem_format("%s/control", directory);
    assert_int_equal(symlink(target, name), 0);
    assert_not_a_session(directory);
    assert_int_equal(unlink(name), 0);
    assert_not_a_session(directory);

    for (int i = 0; i < 3; i++) {
        control = good;
        if (i == 0)
            control.magic++;
        if (i == 1)
            control.version++;
        if (i == 2)
            control.pid_namespace++;
        write_file(directory, WIRE_CONTROL_NAME, &control, sizeof control);
        assert_not_a_session(directory);
    }
    write_file(directory, WIRE_CONTROL_NAME, &good, sizeof good / 2);
    assert_not_a_session(directory);
    write_file(directory, WIRE_CONTROL_NAME, &good, sizeof good);
    if (!geteuid()) {
        assert_int_equal(chown(directory, 1, 1), 0);
        assert_not_a_session(directory);
    }
    free(directory);
    free(elsewhere);
    free(link);
    free(target);
    free(name);
}

static void processes(void **state)
{
    struct wire_control control = own_control();
    control.launcher_pid = dead_pid();
    char *directory = make_session("scalene-p", &control);
    struct sessions_entry entry;
    static const char command[] = "python3\0a b.py\0-x";
    add_arena(directory, dead_pid(), 1000, command, sizeof command);
    write_file(directory, "77-0.arena", "cut", 3);
    assert_true(find_one(&entry));
    assert_true(entry.orphaned);
    assert_false(entry.running);
    assert_int_equal(entry.process_count, 1);
    assert_string_equal(entry.processes[0].command, "python3 a b.py -x");
    assert_int_equal(entry.started_real, 1700000000);
    sessions_entry_release(&entry);

    /* Somebody has our pid and began before we were there: that was another process. */
    add_arena(directory, getpid(), 1, "x", 2);
    assert_true(find_one(&entry));
    assert_int_equal(entry.process_count, 2);
    assert_false(entry.running);
    sessions_entry_release(&entry);

    add_arena(directory, getpid(), mono_ns(), "x", 2);
    assert_true(find_one(&entry));
    assert_true(entry.running);
    assert_true(entry.processes[1].running);
    sessions_entry_release(&entry);

    struct sessions sessions;
    find(&sessions);
    const struct sessions_entry *found = sessions_with(&sessions, getpid());
    assert_non_null(found);
    assert_string_equal(found->directory, directory);
    assert_null(sessions_with(&sessions, control.launcher_pid));
    assert_null(sessions_with(&sessions, found->processes[0].pid)); /* ended */
    sessions_release(&sessions);

    /* After a reboot nobody of them runs, whatever the numbers say. */
    control.boot++;
    write_file(directory, WIRE_CONTROL_NAME, &control, sizeof control);
    assert_true(find_one(&entry));
    assert_false(entry.running);
    sessions_entry_release(&entry);
    free(directory);
}

static void switching_and_removing(void **state)
{
    struct wire_control control = own_control();
    char *directory = make_session("scalene-s", &control), *path;
    struct sessions_entry entry;
    struct err err = {""};
    path = mem_format("%s/control", directory);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_null(sessions_directory_of(getpid()));
    struct wire_control *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    close(fd);
    char *mapped = sessions_directory_of(getpid());
    assert_string_equal(mapped, directory);
    free(mapped);

    assert_true(find_one(&entry));
    assert_int_equal(sessions_switch(&entry, true, &err), 0);
    assert_int_equal(atomic_load(&page->on), 1);
    assert_int_equal(atomic_load(&page->generation), 1);
    assert_int_equal(sessions_switch(&entry, false, &err), 0);
    assert_int_equal(atomic_load(&page->on), 0);
    assert_int_equal(atomic_load(&page->generation), 2);

    write_file(directory, "5-0.arena", "x", 1);
    assert_int_equal(sessions_remove(&entry, &err), 0);
    assert_int_equal(atomic_load(&page->closed), 1);
    assert_int_equal(access(directory, F_OK), -1);
    assert_null(sessions_directory_of(getpid()));
    assert_int_equal(sessions_switch(&entry, true, &err), -1);
    assert_int_equal(sessions_remove(&entry, &err), -1);
    sessions_entry_release(&entry);
    munmap(page, sizeof *page);
    free(path);
    free(directory);
}

static void identities(void **state)
{
    uint64_t own = process_start_ticks(getpid());
    assert_true(own > 1);
    assert_int_equal(process_start_ticks(getpid()), own);
    assert_int_equal(process_start_ticks(dead_pid()), 0);
    assert_int_equal(process_start_ticks(0), 0);
    assert_int_equal(process_start_ticks(-5), 0);
    assert_true(process_start_ticks(1) <= own);
    pid_t zombie = fork();
    if (!zombie)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(process_start_ticks(zombie), 0);
    waitpid(zombie, NULL, 0);
    assert_true(process_existed_at(getpid(), mono_ns()));
    assert_false(process_existed_at(getpid(), 0));
    assert_true(process_boot() != 0);
    assert_int_equal(process_boot(), process_boot());
    assert_true(process_pid_namespace() != 0);
}

static void facts_come_back(void **state)
{
    char *args[] = {(char *)"a.py", (char *)"", (char *)"b=\xff\n", NULL};
    struct report_config config = {
        .session_directory = parent,
        .program = "/p/\xe9 a.py",
        .is_module = true,
        .program_path = "/p",
        .profile_only = "x,y",
        .profile_exclude = "",
        .profile_all = true,
        .cpu_percent_threshold = 0.1,
        .args = args,
        .program_text = "print('=')\n",
        .program_is_stdin = true,
    };
    struct facts facts;
    struct err err = {""};
    assert_int_equal(facts_save(&config, &err), 0);
    assert_int_equal(facts_load(&facts, parent, &err), 0);
    assert_ptr_equal(facts.config.session_directory, parent);
    assert_string_equal(facts.config.program, config.program);
    assert_true(facts.config.is_module && facts.config.profile_all &&
                facts.config.program_is_stdin);
    assert_false(facts.config.stacks || facts.config.profile_system_libraries);
    assert_string_equal(facts.config.profile_only, "x,y");
    assert_string_equal(facts.config.profile_exclude, "");
    assert_true(facts.config.cpu_percent_threshold == 0.1);
    assert_string_equal(facts.config.program_text, config.program_text);
    for (int i = 0; i < 3; i++)
        assert_string_equal(facts.config.args[i], args[i]);
    assert_null(facts.config.args[3]);
    facts_release(&facts);
    facts_release(&facts);

    /* Cut off at any byte it is still good for something. */
    struct buf text = {0};
    char *path = in_parent(FACTS_NAME);
    assert_int_equal(file_read(path, &text, &err), 0);
    for (size_t length = 0; length < text.len; length++) {
        write_file(parent, FACTS_NAME, text.data, length);
        assert_int_equal(facts_load(&facts, parent, &err), 0);
        assert_non_null(facts.config.program);
        facts_release(&facts);
    }
    buf_release(&text);
    free(path);
}

static void facts_missing(void **state)
{
    struct facts facts;
    struct err err = {""};
    assert_int_equal(facts_load(&facts, parent, &err), -1);
    assert_non_null(strstr(err.text, FACTS_NAME));
    assert_string_equal(facts.config.program, "");
    assert_null(facts.config.args);
    assert_null(facts.config.program_text);
    assert_true(facts.config.stacks);
    facts_release(&facts);
}

#define WITH_PARENT(test) cmocka_unit_test_setup_teardown(test, make_parent, remove_parent)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PARENT(launcher_alive_or_gone),
        WITH_PARENT(what_is_not_ours),
        WITH_PARENT(processes),
        WITH_PARENT(switching_and_removing),
        cmocka_unit_test(identities),
        WITH_PARENT(facts_come_back),
        WITH_PARENT(facts_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
