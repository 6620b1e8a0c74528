/* Recordings taken in while processes come and go: what is taken, what is left, that nothing is
 * counted twice or lost, and that many processes take no more room than a thousand. */
#include "arena_make.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "profile/json_write.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SCRIPT "/program/main.py" /* there is no such file: lines have no text */

/* Pids beyond what any kernel gives: nobody runs by them. */
enum { MS = 1000000, MIB = 1 << 20, PID = 5000000 };

static char directory[] = "/tmp/scalene-test-XXXXXX";
static struct wire_control control;

static const struct report_config config = {
    .session_directory = directory,
    .program = SCRIPT,
    .program_path = "",
    .profile_only = "",
    .profile_exclude = "",
    .cpu_percent_threshold = 1,
    .stacks = true,
    .memory = true,
    .leaks = true,
};

static int set_up(void **state)
{
    return mkdtemp(directory) ? 0 : -1;
}

static unsigned files(bool remove)
{
    DIR *dir = opendir(directory);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (remove)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return count;
}

static int empty(void **state)
{
    files(true);
    atomic_store(&control.harvested, 0);
    return 0;
}

static int tear_down(void **state)
{
    files(true);
    return rmdir(directory);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool exists(pid_t pid, int image)
{
    char *path = mem_format("%s/%d-%d.arena", directory, (int)pid, image);
    bool found = !access(path, F_OK);
    free(path);
    return found;
}

/* A process that spent 10 ms on line 10 and `ms` on line 20. */
static void make_process(struct arena_make *make, pid_t pid, uint64_t start_ns, unsigned ms)
{
    arena_make_init(make, pid);
    make->header.start_mono_ns = start_ns;
    make->header.start_cpu_ns = 1 * MS;
    make->header.beat_cpu_ns = (uint64_t)(ms + 11) * MS;
    make->header.on_ns = 50 * MS;
    uint32_t code = arena_make_code(make, SCRIPT, "<module>", 1, 30);
    uint32_t first = arena_make_frame(make, 0, code, 10);
    uint32_t second = arena_make_frame(make, 0, code, 20);
    arena_make_cell(make, first, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(make, second, WIRE_CPU_NATIVE, ms, (uint64_t)ms * MS, 0);
    uint16_t thread = (uint16_t)arena_make_thread(make, 0x1000, pid, "python", true);
    arena_make_log(make, 0, first, thread, WIRE_CPU_PYTHON, 1, 10000);
    arena_make_log(make, 10 * MS, second, thread, WIRE_CPU_NATIVE, ms, ms * 1000);
    make->header.flags |= WIRE_PROCESS_MEMORY;
    make->header.beat_mono_ns = start_ns + 50 * MS;
    uint32_t site = arena_make_site(make, first, WIRE_SITE_PYTHON, 0, MIB, MIB);
    arena_make_foot(make, 5 * MS, site, WIRE_FOOT_ALLOCATED, 1024, 1024);
    make->header.memory.peak_bytes = MIB;
    arena_make_await(make, second, WIRE_AWAIT_WAITS, ms, (uint64_t)ms * 1000);
    uint32_t place = arena_make_place(make, code, 20, 1000, ms, 0);
    arena_make_name(make, place, "same", 0);
    arena_make_name(make, place, NULL, ms);
    arena_make_crowd(make, 20 * MS, ms);
    make->header.async.loops = 1;
}

static void put(struct arena_make *make, pid_t pid, int image)
{
    char *path = mem_format("%s/%d-%d.arena", directory, (int)pid, image);
    arena_make_write(make, path);
    free(path);
    arena_make_release(make);
}

static void put_process(pid_t pid, int image, uint64_t start_ns, unsigned ms)
{
    struct arena_make make;
    make_process(&make, pid, start_ns, ms);
    put(&make, pid, image);
}

static struct harvest harvest_of(struct report *report)
{
    return (struct harvest){.directory = directory, .control = &control, .report = report};
}

static uint64_t process_total(const struct profile *profile)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile->process_count; i++)
        count += profile->processes[i].count;
    return count;
}

static void close_to(double a, double b)
{
    if (fabs(a - b) > 1e-6)
        fail_msg("%.9f is not %.9f", a, b);
}

static const struct profile_line *line_of(const struct profile *profile, uint32_t lineno)
{
    assert_int_equal(profile->file_count, 1);
    return profile_line_at(&profile->files[0], lineno);
}

static char *json_of(const struct profile *profile)
{
    struct buf json = {0};
    json_write_profile(profile, &json);
    return buf_detach(&json);
}

static void few_are_left_where_they_are(void **state)
{
    struct profile profile;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    struct harvest harvest = harvest_of(report);
    for (int i = 0; i < HARVEST_FILES_MAX; i++)
        put_process(PID + i, 0, 1000000000, 5);
    harvest_tick(&harvest);
    assert_int_equal(files(false), HARVEST_FILES_MAX);
    assert_int_equal(control.harvested, 0);
    report_free(report);
    profile_release(&profile);
}

/* This process runs, so its last recording stays; what it was before is complete. */
static void ended_processes_are_taken(void **state)
{
    struct profile profile;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    struct harvest harvest = harvest_of(report);
    uint64_t now = now_ns();
    for (int i = 0; i < 100; i++)
        put_process(PID + i, 0, now, 5);
    put_process(getpid(), 0, now, 7); /* 18 ms on its CPU clock ... */
    struct arena_make make;
    make_process(&make, getpid(), now + 1, 20);
    make.header.start_cpu_ns = 20 * MS; /* ... with which its next image begins */
    put(&make, getpid(), 1);
    /* A pid that was given again: the process with it now, ours, began after that recording. */
    put_process(1, 0, 1, 3);

    harvest_tick(&harvest);
    assert_false(exists(getpid(), 0));
    assert_true(exists(getpid(), 1));
    assert_int_equal(files(false), 1);
    assert_int_equal(control.harvested, 102);
    assert_true(harvest_running(directory));

    /* Few are there now: they stay. */
    put_process(PID, 0, now, 5);
    harvest_tick(&harvest);
    assert_int_equal(files(false), 2);

    assert_int_equal(harvest_all(report, directory, NULL), 0);
    report_program_ended(report, getpid(), 3 << 8);
    report_finish(report);
    assert_int_equal(process_total(&profile), 104);
    close_to(line_of(&profile, 10)->time.python_sec, 104 * 0.010);
    close_to(line_of(&profile, 20)->time.native_sec, (101 * 5 + 7 + 20 + 3) * 0.001);
    unsigned running = 0;
    for (uint32_t i = 0; i < profile.process_count; i++) {
        const struct profile_process *process = &profile.processes[i];
        running += process->running;
        assert_int_equal(process->exit_status, process->running ? 3 : -1);
        if (process->running)
            close_to(process->startup_sec, 0.002);
    }
    assert_int_equal(running, 1);
    profile_release(&profile);
}

static void big_files_are_taken_too(void **state)
{
    struct profile profile;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    struct harvest harvest = harvest_of(report);
    put_process(PID, 0, 1000000000, 5);
    put_process(PID + 1, 0, 1000000000, 5);
    char *path = mem_format("%s/%d-0.arena", directory, PID);
    FILE *file = fopen(path, "ab");
    static char block[1 << 20];
    for (int i = 0; i < (HARVEST_BYTES_MAX >> 20) + 1; i++)
        assert_int_equal(fwrite(block, sizeof block, 1, file), 1);
    fclose(file);
    free(path);
    harvest_tick(&harvest);
    assert_int_equal(files(false), 0);
    report_finish(report);
    assert_int_equal(profile.process_count, 2);
    profile_release(&profile);
}

/* Who reads the directory from outside is told what is not there. */
static void outsiders_are_told(void **state)
{
    char *path = mem_format("%s/%s", directory, WIRE_CONTROL_NAME);
    struct wire_control page = {.magic = WIRE_CONTROL_MAGIC, .harvested = 17};
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(&page, sizeof page, 1, file), 1);
    fclose(file);
    free(path);
    put_process(PID, 0, 1000000000, 5);
    struct profile profile;
    profile_init(&profile);
    assert_int_equal(harvest_build(&profile, &config, NULL), 0);
    assert_int_equal(profile.note_count, 2); /* and that there is no source */
    assert_non_null(strstr(profile_str(&profile, profile.notes[0]), "17 processes"));
    profile_release(&profile);
}

/* A profile in between is complete and changes nothing. */
static void a_copy_is_independent(void **state)
{
    char *finals[2];
    for (int with_copy = 0; with_copy < 2; with_copy++) {
        struct profile profile, middle;
        profile_init(&profile);
        struct report *report = report_begin(&profile, &config);
        for (int i = 0; i < 20; i++)
            put_process(PID + i, 0, 2000000000u - (unsigned)i * 1000000u, (unsigned)i + 1);
        assert_int_equal(harvest_all(report, directory, NULL), 0);
        files(true);
        put_process(PID + 20, 0, 1000000000, 40);
        if (with_copy) {
            profile_init(&middle);
            struct report *copy = report_copy(report, &middle);
            assert_int_equal(harvest_all(copy, directory, NULL), 0);
            report_finish(copy);
        }
        assert_int_equal(harvest_all(report, directory, NULL), 0);
        report_finish(report);
        finals[with_copy] = json_of(&profile);
        if (with_copy) {
            char *json = json_of(&middle);
            assert_string_equal(json, finals[1]);
            free(json);
            profile_release(&middle);
        }
        profile_release(&profile);
        files(true);
    }
    assert_string_equal(finals[0], finals[1]);
    free(finals[0]);
    free(finals[1]);
}

static void add(struct report *report, struct arena_make *make, enum report_fate fate)
{
    struct recording arena;
    char *path = mem_format("%s/%d-0.arena", directory, make->header.pid);
    arena_make_write(make, path);
    assert_int_equal(recording_open(&arena, path, NULL), 0);
    report_add(report, &arena, fate);
    recording_release(&arena);
    unlink(path);
    free(path);
    arena_make_release(make);
}

/* The program is added last, as it ends last; daemons stay, too. */
static void rows_beyond_the_cap_are_summed(void **state)
{
    enum { CHILDREN = 5 * PROFILE_ROWS_MAX / 2 };
    struct profile profile;
    struct arena_make make;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    double cpu_sec = 0;
    for (int i = 0; i < CHILDREN; i++) {
        make_process(&make, PID + 1 + i, 2000000000u + (unsigned)i, 1 + (unsigned)i % 50);
        make.header.flags = WIRE_PROCESS_FORKED;
        cpu_sec += 0.012 + 0.001 * (i % 50);
        add(report, &make, i == 7 ? REPORT_RUNNING : REPORT_ENDED);
    }
    make_process(&make, PID, 1000000000, 0);
    make.header.flags = WIRE_PROCESS_FIRST;
    add(report, &make, REPORT_ENDED);
    report_finish(report);

    assert_int_equal(profile.process_count, PROFILE_ROWS_MAX + 1);
    assert_int_equal(process_total(&profile), CHILDREN + 1);
    assert_int_equal(profile.processes[0].pid, PID);
    double sum_sec = 0;
    bool has_daemon = false;
    for (uint32_t i = 0; i < profile.process_count; i++) {
        sum_sec += profile.processes[i].cpu_sec;
        has_daemon |= profile.processes[i].pid == PID + 8 && profile.processes[i].running;
    }
    assert_true(has_daemon);
    close_to(sum_sec, cpu_sec + 0.011);
    close_to(profile.cpu_sec, sum_sec);
    const struct profile_process *more = &profile.processes[PROFILE_ROWS_MAX];
    assert_int_equal(more->count, CHILDREN + 1 - PROFILE_ROWS_MAX);
    assert_string_equal(profile_str(&profile, more->command), "1501 more processes");

    assert_int_equal(profile.thread_count, PROFILE_ROWS_MAX + 1);
    uint64_t threads = 0;
    for (uint32_t i = 0; i < profile.thread_count; i++)
        threads += profile.threads[i].count;
    assert_int_equal(threads, CHILDREN + 1);
    profile_release(&profile);
}

/* More stacks than the merged tree holds: stacks get short, lines stay right. */
static void a_full_tree_keeps_lines(void **state)
{
    enum { ARENAS = 5, CALLERS = 300, LEAVES = 200 };
    struct profile profile;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    for (int n = 0; n < ARENAS; n++) {
        struct arena_make make;
        arena_make_init(&make, PID + n);
        char *name = mem_format("caller%d", n);
        uint32_t caller = arena_make_code(&make, "/usr/lib/python3.12/caller.py", name, 1, CALLERS);
        uint32_t code = arena_make_code(&make, SCRIPT, "<module>", 1, LEAVES);
        free(name);
        for (int i = 1; i <= CALLERS; i++) {
            uint32_t outer = arena_make_frame(&make, 0, caller, i);
            for (int k = 1; k <= LEAVES; k++)
                arena_make_cell(&make, arena_make_frame(&make, outer, code, k), WIRE_CPU_PYTHON, 1,
                                (uint64_t)k * 1000, 0);
        }
        add(report, &make, REPORT_ENDED);
    }
    report_finish(report);
    for (uint32_t k = 1; k <= LEAVES; k++)
        close_to(line_of(&profile, k)->time.python_sec, 1e-6 * k * ARENAS * CALLERS);
    close_to(profile.untraced.python_sec, 0);
    bool is_said = false;
    for (uint32_t i = 0; i < profile.loss_count; i++)
        is_said |= !strcmp(profile_str(&profile, profile.losses[i].key), "stacks_cut");
    assert_true(is_said);
    profile_release(&profile);
}

/* ---- memory ---- */

/* `count` blocks of a MiB, one a millisecond, on line 10; all live when the process ends, after 100
 * ms. */
static void make_hoarder(struct arena_make *make, pid_t pid, uint64_t start_ns, unsigned count)
{
    arena_make_init(make, pid);
    make->header.flags = WIRE_PROCESS_MEMORY;
    make->header.start_mono_ns = start_ns;
    make->header.beat_mono_ns = start_ns + 100 * MS;
    uint32_t code = arena_make_code(make, SCRIPT, "<module>", 1, 30);
    uint32_t node = arena_make_frame(make, 0, code, 10);
    arena_make_cell(make, node, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    uint32_t site = arena_make_site(make, node, WIRE_SITE_PYTHON, 0, count * (uint64_t)MIB,
                                    count * (uint64_t)MIB);
    for (unsigned i = 1; i <= count; i++) {
        arena_make_foot(make, i * (uint64_t)MS, site, WIRE_FOOT_ALLOCATED, i * 1024, i * 1024);
        arena_make_block(make, site, MIB, i);
    }
    make->header.memory.look.at_cpu_ms = 100;
    make->header.memory.peak_bytes = count * (uint64_t)MIB;
    make->header.memory.peak_python_bytes = count * (uint64_t)MIB;
    make->header.memory.peak_site = site;
}

/* `count` processes, each starting `gap_ms` after the one before; the program around them. */
static void report_hoarders(struct profile *profile, unsigned count, unsigned gap_ms,
                            unsigned blocks)
{
    struct arena_make make;
    uint64_t start_ns = 1000000000;
    profile_init(profile);
    struct report *report = report_begin(profile, &config);
    for (unsigned i = 0; i < count; i++) {
        make_hoarder(&make, PID + 1 + (int)i, start_ns + (uint64_t)i * gap_ms * MS, blocks);
        add(report, &make, REPORT_ENDED);
    }
    make_process(&make, PID, start_ns - 1, 1);
    make.header.beat_mono_ns = start_ns + (uint64_t)count * gap_ms * MS + 100 * MS;
    add(report, &make, REPORT_ENDED);
    report_finish(report);
}

/* One after the other they need the room of one; at the same time, of all. */
static void peaks_are_of_processes_together(void **state)
{
    struct profile profile;
    report_hoarders(&profile, 8, 200, 60);
    const struct profile_memory *line = &line_of(&profile, 10)->memory;
    close_to(profile.all_memory.peak_mb, 61); /* with the program's own */
    close_to(line->peak_mb, 61);
    close_to(line->at_peak_mb, 60); /* of the process that made nearly all of it */
    close_to(line->allocated_mb, 481);
    close_to(line->live_mb, 481);
    assert_int_equal(profile.peak_line, 10);
    assert_true(line->leak.likelihood == 0); /* what ended processes left is none */
    profile_release(&profile);

    report_hoarders(&profile, 8, 0, 60);
    line = &line_of(&profile, 10)->memory;
    close_to(profile.all_memory.peak_mb, 481);
    close_to(line->peak_mb, 481);
    close_to(line->at_peak_mb, 481);
    close_to(profile.all_memory.at_peak_mb, 481);
    profile_release(&profile);
}

/* A hoarder that takes ten seconds, and runs another line in between. */
static void make_leak(struct arena_make *make, pid_t pid, uint64_t start_ns)
{
    enum { COUNT = 100, SLOWER = 100 };
    make_hoarder(make, pid, start_ns, COUNT);
    make->header.beat_mono_ns = start_ns + (uint64_t)COUNT * SLOWER * MS;
    struct wire_foot *feet = (struct wire_foot *)(void *)make->sections[WIRE_FOOT].data;
    uint32_t code = arena_make_code(make, SCRIPT, "<module>", 1, 30);
    uint32_t other = arena_make_frame(make, 0, code, 20);
    arena_make_cell(make, other, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    for (int i = 1; i <= COUNT; i++) {
        feet[i].at_ns *= SLOWER;
        arena_make_log(make, feet[i].at_ns + MS, other, 0, WIRE_CPU_PYTHON, 1, 100);
    }
}

static void leaks_are_of_one_process(void **state)
{
    struct profile profile;
    struct arena_make make;
    profile_init(&profile);
    struct report *report = report_begin(&profile, &config);
    for (int i = 0; i < 2; i++) {
        make_leak(&make, PID + i, 1000000000 + (uint64_t)i * 20000 * MS);
        add(report, &make, REPORT_ENDED);
    }
    report_finish(report);
    const struct profile_leak *leak = &line_of(&profile, 10)->memory.leak;
    assert_true(leak->likelihood > 0.95);
    assert_true(fabs(leak->velocity_mb_s - 10) < 0.2);
    profile_release(&profile);
}

/* So many changes that they are folded several times: sums and peaks stay. */
static void many_changes_are_folded(void **state)
{
    enum { PROCESSES = 4000, BLOCKS = 90 };
    struct profile profile;
    report_hoarders(&profile, PROCESSES, 200, BLOCKS);
    const struct profile_memory *line = &line_of(&profile, 10)->memory;
    close_to(line->allocated_mb, PROCESSES * (double)BLOCKS + 1);
    close_to(profile.all_memory.peak_mb, BLOCKS + 1);
    close_to(line->peak_mb, BLOCKS + 1);
    assert_true(line->average_mb > 10 && line->average_mb < 40); /* 30, with time unfolded */
    assert_int_equal(profile.all_memory.point_count, PROFILE_POINTS_MAX);
    for (uint32_t i = 0; i < PROFILE_POINTS_MAX; i++)
        assert_true(profile.all_memory.points[i].mb <= BLOCKS + 1);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(few_are_left_where_they_are, empty),
        cmocka_unit_test_teardown(ended_processes_are_taken, empty),
        cmocka_unit_test_teardown(big_files_are_taken_too, empty),
        cmocka_unit_test_teardown(outsiders_are_told, empty),
        cmocka_unit_test_teardown(a_copy_is_independent, empty),
        cmocka_unit_test_teardown(rows_beyond_the_cap_are_summed, empty),
        cmocka_unit_test_teardown(a_full_tree_keeps_lines, empty),
        cmocka_unit_test_teardown(peaks_are_of_processes_together, empty),
        cmocka_unit_test_teardown(leaks_are_of_one_process, empty),
        cmocka_unit_test_teardown(many_changes_are_folded, empty),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
