/* From arenas to a profile: what is charged where, that sums hold, and what is said about the rest.
 */
#include "arena_make.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "report/report.h"
#include "wire/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Pids beyond what any kernel gives, so that nobody takes the recordings for those of a process
 * that runs. */
enum { MS = 1000000, PID = 5000000 };

static const char source[] = "import os\n"                          /* 1 */
                             "\n"                                   /* 2 */
                             "def outer():\n"                       /* 3 */
                             "    def inner():\n"                   /* 4 */
                             "        return 1\n"                   /* 5 */
                             "    return [inner() for _ in 'ab']\n" /* 6 */
                             "\n"                                   /* 7 */
                             "class C:\n"                           /* 8 */
                             "    @property\n"                      /* 9 */
                             "    def inner(self):\n"               /* 10 */
                             "        return (lambda: 2)()\n"       /* 11 */
                             "\n"                                   /* 12 */
                             "f = lambda: 3\n"                      /* 13 */
                             "outer()\n"                            /* 14 */
                             "class D:\n"
                             "    class E:\n" /* 16 */
                             "        x = 1\n";

static char base[] = "/tmp/scalene-test-XXXXXX";
static char *session, *script, *other;

static int set_up(void **state)
{
    if (!mkdtemp(base))
        return -1;
    session = mem_format("%s/session", base);
    char *program = mem_format("%s/program", base);
    script = mem_format("%s/main.py", program);
    other = mem_format("%s/other.py", program);
    int rc = mkdir(session, 0700) || mkdir(program, 0700) ||
             file_write_atomic(script, source, strlen(source), NULL) ||
             file_write_atomic(other, "x = 1\r\ny = 2", 12, NULL);
    free(program);
    return rc ? -1 : 0;
}

static void empty_directory(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static int tear_down(void **state)
{
    empty_directory(session);
    rmdir(session);
    unlink(script);
    unlink(other);
    *strrchr(script, '/') = '\0';
    rmdir(script);
    free(session);
    free(script);
    free(other);
    return rmdir(base);
}

static struct report_config default_config(void)
{
    return (struct report_config){.session_directory = session,
                                  .program = script,
                                  .program_path = "",
                                  .profile_only = "",
                                  .profile_exclude = "",
                                  .cpu_percent_threshold = 1,
                                  .stacks = true};
}

static void put(struct arena_make *make, int pid, int image)
{
    char *path = mem_format("%s/%d-%d.arena", session, pid, image);
    arena_make_write(make, path);
    free(path);
    arena_make_release(make);
}

/* Builds the profile of what was put into the session, and takes the arenas away. */
static void build(struct profile *profile, const struct report_config *config)
{
    struct err err = {""};
    profile_init(profile);
    assert_int_equal(harvest_build(profile, config, &err), 0);
    empty_directory(session);
}

static const struct profile_file *file_named(const struct profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->file_count; i++)
        if (!strcmp(profile_str(profile, profile->files[i].name), name))
            return &profile->files[i];
    return NULL;
}

static const struct profile_line *function_named(const struct profile *profile,
                                                 const struct profile_file *file, const char *name)
{
    for (uint32_t i = 0; i < file->function_count; i++)
        if (!strcmp(profile_str(profile, file->functions[i].text), name))
            return &file->functions[i];
    return NULL;
}

static bool has_note(const struct profile *profile, const char *part)
{
    for (uint32_t i = 0; i < profile->note_count; i++)
        if (strstr(profile_str(profile, profile->notes[i]), part))
            return true;
    return false;
}

static void close_to(double a, double b)
{
    if (fabs(a - b) > 1e-9)
        fail_msg("%.12f is not %.12f", a, b);
}

/* All lines, functions' lines and the remainder add up to the whole. */
static void assert_sums(const struct profile *profile)
{
    struct profile_time sum = profile->untraced;
    for (uint32_t i = 0; i < profile->file_count; i++) {
        const struct profile_file *file = &profile->files[i];
        struct profile_time lines = {0};
        for (uint32_t k = 0; k < file->line_count; k++) {
            assert_true(file->lines[k].lineno > (k ? file->lines[k - 1].lineno : 0));
            profile_time_add(&lines, &file->lines[k].time);
        }
        close_to(profile_time_sum(&lines), profile_time_sum(&file->time));
        assert_int_equal(lines.samples, file->time.samples);
        profile_time_add(&sum, &lines);
    }
    close_to(profile_time_sum(&sum), profile->total_sec);
    assert_int_equal(sum.samples, profile->time.samples);
    for (int i = 0; i < WAIT_CAUSES; i++)
        close_to(sum.wait_sec[i], profile->time.wait_sec[i]);
}

static void kinds_go_to_their_columns(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t module = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t library = arena_make_code(&make, "/usr/lib/python3.12/os.py", "walk", 1, 90);
    uint32_t at = arena_make_frame(&make, 0, module, 14);
    uint32_t in_library = arena_make_frame(&make, at, library, 50);
    arena_make_cell(&make, at, WIRE_CPU_PYTHON, 2, 20 * MS, 0);
    arena_make_cell(&make, in_library, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(&make, in_library, WIRE_CPU_NATIVE, 3, 30 * MS, 0);
    arena_make_cell(&make, at, WIRE_WAIT_SOCKET, 4, 40 * MS, 10 * MS);
    arena_make_cell(&make, at, WIRE_WAIT_STARVED, 5, 50 * MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_sums(&profile);
    assert_false(profile.empty);
    const struct profile_file *file = file_named(&profile, script);
    assert_non_null(file);
    assert_int_equal(file->line_count, 17);
    const struct profile_line *line = &file->lines[13];
    close_to(line->time.python_sec, 0.03);
    close_to(line->time.native_sec, 0.03);
    close_to(line->time.system_sec, 0.01);
    close_to(line->time.wait_sec[WAIT_SOCKET], 0.04);
    close_to(line->time.wait_sec[WAIT_STARVED], 0.05);
    assert_int_equal(line->time.samples, 2 + 1 + 3 + 1);
    close_to(profile.total_sec, 0.07);
    assert_string_equal(profile_str(&profile, line->text), "outer()\n");
    assert_int_equal(file->function_count, 0);
    assert_int_equal(profile.stack_count, 2);
    assert_int_equal(profile.stacks[1].frame_count, 2);
    assert_true(profile.stacks[1].frames[0].traced);
    assert_false(profile.stacks[1].frames[1].traced);
    profile_release(&profile);
}

/* The same with qualified names (3.11 on) and plain ones (before). */
static void functions_by_name_and_place(void **state)
{
    for (int old = 0; old < 2; old++) {
        uint32_t (*make_code)(struct arena_make *, const char *, const char *, int, int) =
            old ? arena_make_old_code : arena_make_code;
        struct arena_make make;
        arena_make_init(&make, PID + 10);
        uint32_t codes[] = {
            make_code(&make, script, "outer", 3, 6),
            make_code(&make, script, old ? "inner" : "outer.<locals>.inner", 4, 5),
            make_code(&make, script, old ? "<listcomp>" : "outer.<locals>.<listcomp>", 6, 6),
            make_code(&make, script, old ? "inner" : "C.inner", 9, 11),
            make_code(&make, script, old ? "<lambda>" : "C.inner.<locals>.<lambda>", 11, 11),
            make_code(&make, script, "<lambda>", 13, 13),
            make_code(&make, script, "<module>", 1, 14),
            make_code(&make, script, old ? "E" : "D.E", 16, 17),
        };
        static const int lines[] = {6, 5, 6, 11, 11, 13, 14, 17};
        for (int i = 0; i < 8; i++)
            arena_make_cell(&make, arena_make_frame(&make, 0, codes[i], lines[i]), WIRE_CPU_PYTHON,
                            1, (uint64_t)(10 << i) * MS, 0);
        put(&make, PID + 10, 0);
        struct report_config config = default_config();
        struct profile profile;
        build(&profile, &config);
        assert_sums(&profile);
        const struct profile_file *file = file_named(&profile, script);
        assert_int_equal(file->function_count, 4);
        assert_int_equal(function_named(&profile, file, "D.E")->lineno, 16);
        const struct profile_line *f = function_named(&profile, file, "outer");
        assert_int_equal(f->lineno, 3);
        close_to(f->time.python_sec, 0.01 + 0.04);
        f = function_named(&profile, file, "outer.<locals>.inner");
        assert_int_equal(f->lineno, 4);
        close_to(f->time.python_sec, 0.02);
        f = function_named(&profile, file, "C.inner");
        assert_int_equal(f->lineno, 9);
        close_to(f->time.python_sec, 0.08 + 0.16);
        profile_release(&profile);
    }
}

static void without_source_the_qualified_name_decides(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    char *gone = mem_format("%s/program/gone.py", base);
    uint32_t g = arena_make_code(&make, gone, "A.g", 3, 9);
    uint32_t lambda =
        arena_make_code(&make, gone, "A.g.<locals>.<lambda>.<locals>.<genexpr>", 5, 7);
    arena_make_cell(&make, arena_make_frame(&make, 0, g, 4), WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(&make, arena_make_frame(&make, 0, lambda, 7), WIRE_CPU_PYTHON, 1, 20 * MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_sums(&profile);
    const struct profile_file *file = file_named(&profile, gone);
    assert_non_null(file);
    assert_int_equal(file->line_count, 2);
    close_to(profile_line_at(file, 4)->time.python_sec, 0.01);
    close_to(profile_line_at(file, 7)->time.python_sec, 0.02);
    assert_string_equal(profile_str(&profile, profile_line_at(file, 7)->text), "");
    assert_int_equal(file->function_count, 1);
    assert_string_equal(profile_str(&profile, file->functions[0].text), "A.g");
    close_to(file->functions[0].time.python_sec, 0.03);
    assert_true(has_note(&profile, "gone.py"));
    free(gone);
    profile_release(&profile);
}

static void what_has_no_line_is_the_remainder(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t module = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t small = arena_make_code(&make, other, "<module>", 1, 2);
    uint32_t library = arena_make_code(&make, "/usr/lib/python3.12/os.py", "walk", 1, 90);
    uint32_t native = arena_make_node(&make, 0, WIRE_FRAME_NO_PYTHON, 0, 0);
    uint32_t cut = arena_make_node(&make, 0, WIRE_FRAME_TRUNCATED, 0, 0);
    arena_make_cell(&make, arena_make_frame(&make, cut, module, 14), WIRE_CPU_PYTHON, 40, 400 * MS,
                    0);
    arena_make_cell(&make, arena_make_frame(&make, 0, small, 2), WIRE_CPU_PYTHON, 1, 4 * MS, 0);
    arena_make_cell(&make, arena_make_frame(&make, 0, library, 2), WIRE_CPU_NATIVE, 50, 500 * MS,
                    0);
    arena_make_cell(&make, native, WIRE_CPU_NATIVE, 10, 96 * MS, 0);
    arena_make_cell(&make, 0, WIRE_CPU_PYTHON, 1, 1 * MS, 0);
    arena_make_cell(&make, 4000000, WIRE_CPU_PYTHON, 1, 1 * MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_sums(&profile);
    close_to(profile.native_threads_sec, 0.096);
    close_to(profile_time_sum(&profile.untraced), 0.602);
    assert_int_equal(profile.file_count, 1); /* other.py is below the threshold */
    assert_false(has_note(&profile, "--profile-all"));
    profile_release(&profile);
}

static void nothing_traced_says_why(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t library = arena_make_code(&make, "/usr/lib/python3.12/os.py", "walk", 1, 90);
    arena_make_cell(&make, arena_make_frame(&make, 0, library, 2), WIRE_CPU_PYTHON, 50, 500 * MS,
                    0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_false(profile.empty);
    assert_int_equal(profile.file_count, 0);
    assert_true(has_note(&profile, "no line of your own files was reached; the time went elsewhere "
                                   "(os 100 %): --profile-all shows it"));
    assert_int_equal(profile.elsewhere_count, 1);
    assert_string_equal(profile_str(&profile, profile.elsewhere[0].name), "os");
    close_to(profile.elsewhere[0].sec, 0.5);
    profile_release(&profile);

    arena_make_init(&make, PID + 10);
    put(&make, PID + 10, 0);
    build(&profile, &config);
    assert_true(profile.empty);
    profile_release(&profile);
}

static void other_lines_than_newline(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, other, "<module>", 1, 2);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 1), WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    make.header.start_real_ns = 1;
    make.header.stacks_state = WIRE_STACKS_SELFCHECK;
    make.header.flags = WIRE_PROCESS_JIT;
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    const struct profile_file *file = file_named(&profile, other);
    assert_string_equal(profile_str(&profile, file->lines[0].text), "x = 1\n");
    assert_string_equal(profile_str(&profile, file->lines[1].text), "y = 2");
    assert_true(has_note(&profile, "was changed after"));
    assert_true(has_note(&profile, "laid out differently"));
    assert_true(has_note(&profile, "JIT"));
    profile_release(&profile);
}

/* A process that was sampled and never heard of otherwise used what was sampled, at least. */
static void samples_after_the_last_beat(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    make.header.start_cpu_ns = 20 * MS;
    make.header.beat_cpu_ns = 21 * MS;
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 14), WIRE_CPU_PYTHON, 5, 50 * MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    close_to(profile.processes[0].cpu_sec, 0.07);
    close_to(profile.cpu_sec, 0.07);
    close_to(profile.unsampled_sec, 0);
    profile_release(&profile);
}

/* Two images of one pid (exec), and a forked child; clocks, threads, losses. */
static void the_run_itself(void **state)
{
    struct arena_make make;
    for (int i = 0; i < 3; i++) {
        int pid = i < 2 ? PID + 10 : PID + 11;
        arena_make_init(&make, pid);
        make.header.start_mono_ns += (uint64_t)i * 100 * MS;
        static const uint64_t starts[] = {20, 150, 0}, beats[] = {120, 300, 60};
        make.header.start_cpu_ns = starts[i] * MS;
        make.header.beat_cpu_ns = beats[i] * MS;
        make.header.on_ns = (uint64_t)(300 - 100 * i) * MS;
        make.header.flags = i == 2 ? WIRE_PROCESS_FORKED : 0;
        make.header.off_cpu_ns = i == 1 ? 50 * MS : 0;
        make.header.lost[WIRE_LOST_TRUNCATED] = 2;
        make.header.sections[WIRE_LOG].dropped = 1;
        uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
        uint32_t node = arena_make_frame(&make, 0, code, 14);
        arena_make_cell(&make, node, WIRE_CPU_PYTHON, 5, 50 * MS, 0);
        uint32_t thread = arena_make_thread(&make, 0x1000, pid, "python", true);
        arena_make_log(&make, 0, node, (uint16_t)thread, WIRE_CPU_PYTHON, 5, 50000);
        put(&make, pid, i == 1);
    }
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_sums(&profile);
    assert_int_equal(profile.process_count, 3);
    close_to(profile.elapsed_sec, 0.3);
    close_to(profile.processes[1].cpu_sec, 0.18);
    close_to(profile.processes[1].startup_sec, 0.03);
    close_to(profile.cpu_sec, 0.12 + 0.18 + 0.06);
    close_to(profile.startup_sec, 0.02 + 0.03);
    close_to(profile.unsampled_sec, 0.05 + 0.05 + 0.01);
    assert_int_equal(profile.thread_count, 3);
    assert_int_equal(profile.threads[0].ident, 0x1000);
    assert_int_equal(profile.threads[2].ident, PID + 11);
    assert_int_equal(profile.loss_count, 2);
    assert_string_equal(profile_str(&profile, profile.losses[0].key), "truncated");
    assert_int_equal(profile.losses[0].count, 6);
    assert_string_equal(profile_str(&profile, profile.losses[1].key), "dropped_log");
    assert_int_equal(profile.stack_count, 1);
    assert_int_equal(profile.stacks[0].hits, 15);
    const struct profile_line *line = &file_named(&profile, script)->lines[13];
    assert_int_equal(line->stamp_count, 15);
    close_to(line->stamps[0], 1.0);
    close_to(line->stamps[14], 1.24);
    profile_release(&profile);
}

static void stamps_are_a_fair_choice(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t node = arena_make_frame(&make, 0, code, 14);
    arena_make_cell(&make, node, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    /* 100000 stamps in runs of all sizes, 1 ms apart, from second 1 on */
    uint64_t at = 0;
    for (uint32_t count = 1; at < 100000; count = count * 2 % 8191 + 1) {
        arena_make_log(&make, at * MS, node, 0, WIRE_CPU_PYTHON, count, count * 1000);
        at += count;
    }
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    const struct profile_line *line = &file_named(&profile, script)->lines[13];
    assert_int_equal(line->stamp_count, PROFILE_STAMPS_MAX);
    double mean = 0;
    for (uint32_t i = 0; i < line->stamp_count; i++) {
        mean += line->stamps[i] / line->stamp_count;
        assert_true(i == 0 || line->stamps[i] >= line->stamps[i - 1]);
    }
    /* A uniform choice of 500: the mean's standard deviation is range / sqrt(12 * 500). */
    double range = (double)at / 1000, middle = 1 + range / 2;
    assert_true(fabs(mean - middle) < 5 * range / sqrt(12.0 * 500));
    profile_release(&profile);
}

static void too_many_runs_are_thinned(void **state)
{
    enum { PROCESSES = 2, RUNS = 125000 };
    struct arena_make make;
    for (int n = 0; n < PROCESSES; n++) {
        arena_make_init(&make, PID + 10 + n);
        uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
        uint32_t nodes[2] = {arena_make_frame(&make, 0, code, 13),
                             arena_make_frame(&make, 0, code, 14)};
        for (int i = 0; i < 2; i++)
            arena_make_cell(&make, nodes[i], WIRE_CPU_PYTHON, 1, 10 * MS, 0);
        for (uint32_t i = 0; i < RUNS; i++)
            arena_make_log(&make, (uint64_t)(n * RUNS + i) * MS, nodes[i % 2], 0, WIRE_CPU_PYTHON,
                           1, 1000);
        put(&make, PID + 10 + n, 0);
    }
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_int_equal(profile.run_count, PROFILE_RUNS_MAX);
    assert_true(profile.runs[PROFILE_RUNS_MAX - 1].at_sec > 249.9);
    profile_release(&profile);
    config.stacks = false;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 13), WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    put(&make, PID + 10, 0);
    build(&profile, &config);
    assert_int_equal(profile.run_count + profile.stack_count, 0);
    profile_release(&profile);
}

/* Of deep stacks only what took its part of the time is told; the rest is told of the caller. */
static void deep_stacks_are_folded(void **state)
{
    enum { DEPTH = 500, LEAVES = 5000 };
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, "/usr/lib/library.py", "f", 1, 6000), node = 0;
    uint32_t own = arena_make_code(&make, script, "<module>", 1, 10);
    double all_sec = 0;
    node = arena_make_frame(&make, node, own, 3);
    for (int i = 2; i < DEPTH; i++)
        node = arena_make_frame(&make, node, code, 1);
    for (int i = 1; i <= LEAVES; i++) {
        uint64_t ns = i == LEAVES ? 5000 * (uint64_t)MS : 1000;
        arena_make_cell(&make, arena_make_frame(&make, node, code, i), WIRE_CPU_PYTHON, 1, ns, 0);
        all_sec += (double)ns / 1e9;
    }
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    double sum_sec = 0;
    size_t frames = 0;
    for (uint32_t i = 0; i < profile.stack_count; i++) {
        sum_sec += profile_time_sum(&profile.stacks[i].time);
        frames += profile.stacks[i].frame_count;
    }
    close_to(sum_sec, all_sec);
    assert_int_equal(profile.stack_count, 2);
    assert_int_equal(frames, DEPTH + DEPTH - 1);
    assert_true(profile.stack_least_percent > 0 && profile.stack_least_percent < 0.01);
    assert_int_equal(profile.loss_count, 0);
    profile_release(&profile);
}

/* A frame that has a line is told however little it took. */
static void traced_frames_are_not_folded(void **state)
{
    enum { DEPTH = 100, LEAVES = PROFILE_FRAMES_MAX / 100 - 10 };
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, "/usr/lib/library.py", "f", 1, 6000), node = 0;
    uint32_t own = arena_make_code(&make, script, "<module>", 1, LEAVES);
    for (int i = 1; i < DEPTH - 1; i++)
        node = arena_make_frame(&make, node, code, 1);
    for (int i = 1; i <= LEAVES; i++)
        for (int k = 1; k < 10; k++)
            arena_make_cell(&make,
                            arena_make_frame(&make, arena_make_frame(&make, node, own, i), code, k),
                            WIRE_CPU_PYTHON, 1, MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_int_equal(profile.stack_count, LEAVES);
    for (uint32_t i = 0; i < profile.stack_count; i++) {
        const struct profile_stack *stack = &profile.stacks[i];
        assert_true(stack->frames[stack->frame_count - 1].traced);
        close_to(profile_time_sum(&stack->time), 0.009);
    }
    profile_release(&profile);
}

static void the_program_is_found_below_runpy(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t run = arena_make_code(&make, "<frozen runpy>", "_run_code", 65, 90);
    uint32_t library = arena_make_code(&make, "/usr/lib/python3.12/site.py", "<module>", 1, 90);
    uint32_t module = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t imported = arena_make_code(&make, other, "<module>", 1, 2);
    uint32_t outer = arena_make_frame(&make, 0, run, 88);
    uint32_t inner = arena_make_frame(&make, outer, module, 14);
    arena_make_cell(&make, arena_make_frame(&make, inner, imported, 1), WIRE_CPU_PYTHON, 1, MS, 0);
    arena_make_cell(&make, arena_make_frame(&make, inner, library, 1), WIRE_CPU_PYTHON, 1, MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    config.program = "";
    config.is_module = true;
    struct profile profile;
    build(&profile, &config);
    assert_string_equal(profile_str(&profile, profile.program), script);
    assert_string_equal(profile_str(&profile, profile.entrypoint_dir), "");
    assert_int_equal(profile.file_count, 2);
    profile_release(&profile);
}

static void code_and_stdin_as_programs(void **state)
{
    struct arena_make make;
    struct report_config config = default_config();
    struct profile profile;
    config.program = "";
    config.program_text = "a = 1\nb = 2\n";
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, "<string>", "<module>", 1, 2);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 2), WIRE_CPU_PYTHON, 1, MS, 0);
    put(&make, PID + 10, 0);
    build(&profile, &config);
    const struct profile_file *file = file_named(&profile, "<string>");
    assert_string_equal(profile_str(&profile, file->lines[1].text), "b = 2\n");
    profile_release(&profile);

    config.program_text = NULL;
    config.program_is_stdin = true;
    arena_make_init(&make, PID + 10);
    code = arena_make_code(&make, "<stdin>", "<module>", 1, 2);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 2), WIRE_CPU_PYTHON, 1, MS, 0);
    put(&make, PID + 10, 0);
    build(&profile, &config);
    assert_int_equal(file_named(&profile, "<stdin>")->line_count, 1);
    assert_int_equal(file_named(&profile, "<stdin>")->lines[0].lineno, 2);
    assert_int_equal(profile.note_count, 0);
    profile_release(&profile);
}

static void relative_names_are_found(void **state)
{
    char *here = getcwd(NULL, 0);
    char *program = mem_format("%s/program", base);
    assert_int_equal(chdir(program), 0);
    static const char *const names[] = {"main.py", "./main.py", "../program/main.py"};
    for (int i = 0; i < 3; i++) {
        struct arena_make make;
        arena_make_init(&make, PID + 10);
        uint32_t code = arena_make_code(&make, names[i], "<module>", 1, 14);
        arena_make_cell(&make, arena_make_frame(&make, 0, code, 14), WIRE_CPU_PYTHON, 1, MS, 0);
        put(&make, PID + 10, 0);
        struct report_config config = default_config();
        struct profile profile;
        build(&profile, &config);
        assert_non_null(file_named(&profile, script));
        profile_release(&profile);
    }
    assert_int_equal(chdir(here), 0);
    free(program);
    free(here);
}

/* Random damage, through the whole of it. */
static void damaged_recordings(void **state)
{
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t module = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t f = arena_make_old_code(&make, script, "outer", 3, 6);
    uint32_t at = arena_make_frame(&make, 0, module, 14);
    for (int i = 0; i < 20; i++)
        at = arena_make_frame(&make, at, f, 4);
    arena_make_cell(&make, at, WIRE_CPU_PYTHON, 3, 30 * MS, 0);
    arena_make_cell(&make, 77777, WIRE_CPU_NATIVE, 3, 30 * MS, 0);
    uint32_t thread = arena_make_thread(&make, 0x1000, 10, "python", true);
    arena_make_log(&make, 0, at, (uint16_t)thread, WIRE_CPU_PYTHON, 3, 30000);
    arena_make_log(&make, 0, 77777, 77, WIRE_WAIT_LOCK, 3, 30000);
    struct buf image = {0};
    arena_make_image(&make, &image);
    struct report_config config = default_config();
    struct profile profile;
    put(&make, PID + 10, 0);
    build(&profile, &config);
    assert_sums(&profile);
    close_to(profile.untraced.native_sec, 0.03);
    profile_release(&profile);

    char *path = mem_format("%s/%d-0.arena", session, PID + 10);
    uint64_t seed = 7;
    int with_time = 0;
    for (int round = 0; round < 1500; round++) {
        struct buf copy = {0}, json = {0};
        buf_add(&copy, image.data, image.len);
        for (int hits = 0; hits < 3; hits++) {
            size_t range = copy.len - WIRE_HEADER_BYTES, place = hash_mix(++seed, 1) % range;
            copy.data[WIRE_HEADER_BYTES + place] = (char)hash_mix(++seed, 2);
        }
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(fd, copy.data, copy.len), (ssize_t)copy.len);
        close(fd);
        struct err err;
        profile_init(&profile);
        assert_int_equal(harvest_build(&profile, &config, &err), 0);
        json_write_profile(&profile, &json);
        assert_true(json.len > 0);
        with_time += !profile.empty;
        profile_release(&profile);
        buf_release(&json);
        buf_release(&copy);
    }
    assert_true(with_time > 1000);
    free(path);
    buf_release(&image);
}

/* ---- a hostile recording beside an honest one ---- */

/* Both have one cell with 30 ms on line 14, in the third frame of their stacks. */
static void make_victim(struct arena_make *make, int pid)
{
    arena_make_init(make, pid);
    make->header.flags = WIRE_PROCESS_MEMORY;
    make->header.beat_mono_ns = make->header.start_mono_ns + 1000 * (uint64_t)MS;
    make->header.on_ns = 1000 * (uint64_t)MS;
    make->header.caller_slack = 8;
    uint32_t code = arena_make_code(make, script, "<module>", 1, 14);
    uint32_t node = arena_make_frame(make, 0, code, 1);
    node = arena_make_frame(make, node, code, 13);
    node = arena_make_frame(make, node, code, 14);
    ((struct wire_node *)(void *)make->sections[WIRE_NODE].data)[node].flags = WIRE_NODE_DIRECT;
    arena_make_cell(make, node, WIRE_CPU_CALL, 3, 30 * MS, 0);
    uint32_t thread = arena_make_thread(make, 0x1000, 10, "python", true);
    arena_make_log(make, 0, node, (uint16_t)thread, WIRE_CPU_PYTHON, 3, 30000);
    arena_make_module(make, "/usr/lib/libz.so");
    uint32_t site = arena_make_site(make, node, WIRE_SITE_NATIVE, 1, 1 << 20, 1 << 20);
    arena_make_block(make, site, 1 << 20, 10);
    arena_make_foot(make, 10 * MS, site, WIRE_FOOT_ALLOCATED, 1024, 1024);
    arena_make_await(make, node, WIRE_AWAIT_WAITS, 3, 40000);
    uint32_t place = arena_make_place(make, code, 14, 20000, 2, 0);
    arena_make_name(make, place, "worker", 0);
    arena_make_crowd(make, 10 * MS, 2);
}

struct image {
    char *bytes;
    struct wire_header *header;
};

static void *record_of(const struct image *image, enum wire_section_id section, uint32_t id)
{
    const struct wire_section *s = &image->header->sections[section];
    return image->bytes + s->offset + (size_t)id * s->record_bytes;
}

#define RECORD(type, section, id) ((struct type *)record_of(image, section, id))
#define DAMAGE(name, statement)                                                                    \
    static void name(const struct image *image)                                                    \
    {                                                                                              \
        statement;                                                                                 \
    }

DAMAGE(endless_slack, image->header->caller_slack = UINT32_MAX)
DAMAGE(long_command, image->header->command_bytes = UINT32_MAX)
DAMAGE(no_pid, image->header->pid = -1)
DAMAGE(no_log_stride, image->header->log_stride = 0)
DAMAGE(no_foot_stride, image->header->memory.foot_stride = 0)
DAMAGE(huge_foot_stride, image->header->memory.foot_stride = UINT64_MAX)
DAMAGE(late_start, image->header->start_mono_ns = UINT64_MAX)
DAMAGE(early_beat, image->header->beat_mono_ns = 1)
DAMAGE(long_life, image->header->beat_mono_ns = UINT64_MAX)
DAMAGE(early_cpu_beat, image->header->start_cpu_ns = 1 + image->header->beat_cpu_ns)
DAMAGE(much_cpu, image->header->beat_cpu_ns = UINT64_MAX)
DAMAGE(much_elapsed, image->header->on_ns = UINT64_MAX)
DAMAGE(much_live, image->header->memory.look.live_bytes = UINT64_MAX)
DAMAGE(much_lost, image->header->lost[0] = UINT64_MAX)
DAMAGE(much_dropped, image->header->sections[WIRE_NODE].dropped = UINT64_MAX)
DAMAGE(huge_used, image->header->sections[WIRE_NODE].used = UINT32_MAX)
DAMAGE(huge_capacity, image->header->sections[WIRE_SITE].capacity = UINT32_MAX)
DAMAGE(far_section, image->header->sections[WIRE_SITE].offset = UINT64_MAX - 8)
DAMAGE(odd_records, image->header->sections[WIRE_CELL].record_bytes = 0)
DAMAGE(overlapping,
       image->header->sections[WIRE_CELL].offset = image->header->sections[WIRE_NODE].offset + 16)
DAMAGE(header_as_section, image->header->sections[WIRE_BLOB].offset = 0)
DAMAGE(own_parent, RECORD(wire_node, WIRE_NODE, 2)->parent = 2)
DAMAGE(cycle, RECORD(wire_node, WIRE_NODE, 1)->parent = 3)
DAMAGE(no_parent, RECORD(wire_node, WIRE_NODE, 3)->parent = UINT32_MAX)
DAMAGE(long_file, RECORD(wire_code, WIRE_CODE, 1)->file.bytes = UINT32_MAX)
DAMAGE(far_name, RECORD(wire_code, WIRE_CODE, 1)->name.offset = UINT32_MAX)
DAMAGE(odd_width, RECORD(wire_code, WIRE_CODE, 1)->name_width = 3)
DAMAGE(odd_frame, RECORD(wire_node, WIRE_NODE, 2)->frame = 999)
DAMAGE(odd_cell, RECORD(wire_cell, WIRE_CELL, 1)->kind = 999)
DAMAGE(much_time, RECORD(wire_cell, WIRE_CELL, 1)->ns = UINT64_MAX)
DAMAGE(many_samples, RECORD(wire_cell, WIRE_CELL, 1)->count = UINT64_MAX)
DAMAGE(no_number, RECORD(wire_cell, WIRE_CELL, 1)->square_us2 = NAN)
DAMAGE(no_bound, RECORD(wire_cell, WIRE_CELL, 1)->square_us2 = INFINITY)
DAMAGE(negative, RECORD(wire_cell, WIRE_CELL, 1)->square_us2 = -1)
DAMAGE(late_run, RECORD(wire_log, WIRE_LOG, 1)->at_ns = UINT64_MAX)
DAMAGE(run_of_another_year, RECORD(wire_log, WIRE_LOG, 1)->at_ns = UINT64_C(1) << 55)
DAMAGE(foot_of_another_year, RECORD(wire_foot, WIRE_FOOT, 1)->at_ns = UINT64_C(1) << 55)
DAMAGE(odd_thread, RECORD(wire_thread, WIRE_THREAD, 1)->tid = INT32_MIN)
DAMAGE(busy_thread, RECORD(wire_thread, WIRE_THREAD, 1)->cpu_ns = UINT64_MAX)
DAMAGE(long_path, RECORD(wire_module, WIRE_MODULE, 1)->path.bytes = UINT32_MAX)
DAMAGE(much_allocated, RECORD(wire_site, WIRE_SITE, 1)->allocated_bytes = UINT64_MAX)
DAMAGE(huge_block, RECORD(wire_block, WIRE_BLOCK, 1)->bytes = UINT64_MAX)
DAMAGE(nobody_s_block, RECORD(wire_block, WIRE_BLOCK, 1)->site = 999999)
DAMAGE(late_foot, RECORD(wire_foot, WIRE_FOOT, 1)->at_ns = UINT64_MAX)
DAMAGE(odd_foot, RECORD(wire_foot, WIRE_FOOT, 1)->published = 999)
DAMAGE(many_tasks, image->header->async.tasks_peak = UINT32_MAX)
DAMAGE(many_looks, image->header->async.looks = UINT64_MAX)
DAMAGE(much_rejected, image->header->async.rejected = UINT64_MAX)
DAMAGE(much_idle, image->header->async.idle_us = UINT64_MAX)
DAMAGE(much_busy, image->header->async.busy_us = UINT64_MAX)
DAMAGE(much_blocked, image->header->async.blocked_us = UINT64_MAX)
DAMAGE(long_blocked, image->header->async.longest_us = UINT64_C(3601000000) + 1)
DAMAGE(much_looking, image->header->async.look_ns = UINT64_MAX)
DAMAGE(odd_await, RECORD(wire_await, WIRE_AWAIT, 1)->kind = 999)
DAMAGE(much_awaited, RECORD(wire_await, WIRE_AWAIT, 1)->us = UINT64_MAX)
DAMAGE(much_awaited_busy, RECORD(wire_await, WIRE_AWAIT, 1)->busy_us = UINT64_MAX)
DAMAGE(many_awaits, RECORD(wire_await, WIRE_AWAIT, 1)->count = UINT64_MAX)
DAMAGE(odd_await_square, RECORD(wire_await, WIRE_AWAIT, 1)->square_us2 = -1)
DAMAGE(nobody_s_place, RECORD(wire_place, WIRE_PLACE, 1)->code = 999999)
DAMAGE(long_present, RECORD(wire_place, WIRE_PLACE, 1)->present_us = UINT64_MAX)
DAMAGE(long_stretch, RECORD(wire_place, WIRE_PLACE, 1)->longest_us = UINT64_MAX)
DAMAGE(huge_peak, RECORD(wire_place, WIRE_PLACE, 1)->peak = UINT32_MAX)
DAMAGE(name_of_no_place, RECORD(wire_name, WIRE_NAME, 1)->place = 999999)
DAMAGE(long_name, RECORD(wire_name, WIRE_NAME, 1)->text.bytes = WIRE_TASK_NAME_BYTES_MAX + 1)
DAMAGE(odd_name_width, RECORD(wire_name, WIRE_NAME, 1)->width = 3)
DAMAGE(huge_crowd, RECORD(wire_crowd, WIRE_CROWD, 1)->tasks = UINT32_MAX)
DAMAGE(late_crowd, RECORD(wire_crowd, WIRE_CROWD, 1)->at_ns = UINT64_MAX)

static const char left_out[] = "entries that make no sense were left out";

static const struct {
    void (*damage)(const struct image *image);
    const char *note; /* a part of what is said of it */
} damages[] = {
    {endless_slack, "its caller_slack is 4294967295"},
    {long_command, "its command_bytes is 4294967295"},
    {no_pid, "its pid is -1"},
    {no_log_stride, "its log_stride is 0"},
    {no_foot_stride, "its memory.foot_stride is 0"},
    {huge_foot_stride, "its memory.foot_stride is 18446744073709551615"},
    {late_start, "its start_mono_ns is 18446744073709551615"},
    {early_beat, "its clocks run backwards"},
    {long_life, "its beat_mono_ns is 18446744073709551615"},
    {early_cpu_beat, "its clocks run backwards"},
    {much_cpu, "more time than the process had"},
    {much_elapsed, "more time than the process had"},
    {much_live, "its memory.look.live_bytes is"},
    {much_lost, "its losses make no sense"},
    {much_dropped, "section 2 makes no sense"},
    {huge_used, "section 2 makes no sense"},
    {huge_capacity, "section 11 makes no sense"},
    {far_section, "section 11 makes no sense"},
    {odd_records, "section 3 makes no sense"},
    {overlapping, "sections 2 and 3 overlap"},
    {header_as_section, "section 0 makes no sense"},
    {own_parent, "a frame is older than its caller"},
    {cycle, "a frame is older than its caller"},
    {no_parent, "a frame is older than its caller"},
    {long_file, left_out},
    {far_name, left_out},
    {odd_width, left_out},
    {odd_frame, left_out},
    {odd_cell, left_out},
    {much_time, left_out},
    {many_samples, left_out},
    {no_number, left_out},
    {no_bound, left_out},
    {negative, left_out},
    {late_run, left_out},
    {run_of_another_year, left_out},
    {foot_of_another_year, left_out},
    {odd_thread, left_out},
    {busy_thread, left_out},
    {long_path, left_out},
    {much_allocated, left_out},
    {huge_block, left_out},
    {nobody_s_block, left_out},
    {late_foot, left_out},
    {odd_foot, left_out},
    {many_tasks, "its tasks_peak is 4294967295"},
    {many_looks, "its async.looks is 18446744073709551615"},
    {much_rejected, "its async.rejected is 18446744073709551615"},
    {much_idle, "more time than the process had"},
    {much_busy, "more time than the process had"},
    {much_blocked, "more time than the process had"},
    {long_blocked, "more time than the process had"},
    {much_looking, "more time than the process had"},
    {odd_await, left_out},
    {much_awaited, left_out},
    {much_awaited_busy, left_out},
    {many_awaits, left_out},
    {odd_await_square, left_out},
    {nobody_s_place, left_out},
    {long_present, left_out},
    {long_stretch, left_out},
    {huge_peak, left_out},
    {name_of_no_place, left_out},
    {long_name, left_out},
    {odd_name_width, left_out},
    {huge_crowd, left_out},
    {late_crowd, left_out},
};

/* What the honest process has is there, and nothing of the hostile one outshines it. */
static void assert_healthy(const struct profile *profile)
{
    const struct profile_process *healthy = NULL;
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].pid == PID + 10)
            healthy = &profile->processes[i];
    assert_non_null(healthy);
    close_to(healthy->sampled_cpu_sec, 0.03);
    close_to(healthy->elapsed_sec, 1);
    const struct profile_file *file = file_named(profile, script);
    assert_non_null(file);
    double sec = profile_time_sum(&file->lines[13].time);
    assert_true(sec >= 0.03 - 1e-9 && sec <= 0.06 + 1e-9);
    double mb = file->lines[13].memory.allocated_mb;
    assert_true(mb >= 1 - 1e-9 && mb <= 2 + 1e-9);
    close_to(profile->elapsed_sec, 1);
    assert_true(profile->total_sec <= 0.06 + 1e-9);
}

static void a_hostile_recording_costs_only_itself(void **state)
{
    struct report_config config = default_config();
    config.memory = config.leaks = true;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct arena_make make;
        struct buf bytes = {0};
        make_victim(&make, PID + 10);
        put(&make, PID + 10, 0);
        make_victim(&make, PID + 11);
        arena_make_image(&make, &bytes);
        arena_make_release(&make);
        struct image image = {bytes.data, (struct wire_header *)(void *)bytes.data};
        damages[i].damage(&image);
        char *path = mem_format("%s/%d-0.arena", session, PID + 11);
        assert_int_equal(file_write_atomic(path, bytes.data, bytes.len, NULL), 0);
        free(path);
        buf_release(&bytes);
        struct profile profile;
        build(&profile, &config);
        assert_healthy(&profile);
        if (!has_note(&profile, damages[i].note))
            fail_msg("damage %zu: '%s' is not said", i, damages[i].note);
        assert_int_equal(profile.process_count, damages[i].note == left_out ? 2 : 1);
        profile_release(&profile);
    }
}

/* As large as no disk is: what its header says must not be allocated, nor read. */
static void a_sparse_file_of_a_terabyte_is_refused(void **state)
{
    struct arena_make make;
    make_victim(&make, PID + 10);
    put(&make, PID + 10, 0);
    make_victim(&make, PID + 11);
    struct buf bytes = {0};
    arena_make_image(&make, &bytes);
    arena_make_release(&make);
    struct wire_header *header = (struct wire_header *)(void *)bytes.data;
    uint64_t offset = WIRE_HEADER_BYTES;
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        struct wire_section *section = &header->sections[i];
        section->offset = offset;
        section->capacity = section->committed = section->used = UINT32_MAX;
        offset += (uint64_t)UINT32_MAX * section->record_bytes;
    }
    char *path = mem_format("%s/%d-0.arena", session, PID + 11);
    assert_int_equal(file_write_atomic(path, bytes.data, bytes.len, NULL), 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    free(path);
    buf_release(&bytes);
    struct report_config config = default_config();
    config.memory = true;
    struct profile profile;
    build(&profile, &config);
    assert_healthy(&profile);
    assert_true(has_note(&profile, "section 0 makes no sense"));
    profile_release(&profile);
}

/* A hundred codes that all use one line table, of which there are then more bytes than the file
 * has; and a chain of callers that no stack of the agent's can have. */
static void what_is_too_much_together_is_refused(void **state)
{
    struct report_config config = default_config();
    config.memory = true;
    struct profile profile;
    struct arena_make make;
    make_victim(&make, PID + 10);
    put(&make, PID + 10, 0);
    make_victim(&make, PID + 11);
    static const char table[64];
    struct wire_span large = arena_make_blob(&make, table, sizeof table);
    for (int i = 0; i < 100; i++) {
        uint32_t code = arena_make_code(&make, "f", "g", 1, 1);
        ((struct wire_code *)(void *)make.sections[WIRE_CODE].data)[code].line_table = large;
    }
    put(&make, PID + 11, 0);
    build(&profile, &config);
    assert_healthy(&profile);
    assert_true(has_note(&profile, "its texts overlap"));
    profile_release(&profile);

    make_victim(&make, PID + 10);
    put(&make, PID + 10, 0);
    make_victim(&make, PID + 11);
    for (uint32_t i = 0, node = 0; i <= WIRE_DEPTH_MAX; i++)
        node = arena_make_frame(&make, node, 1, 1);
    put(&make, PID + 11, 0);
    build(&profile, &config);
    assert_healthy(&profile);
    assert_true(has_note(&profile, "a stack is too deep"));
    profile_release(&profile);
}

/* Line numbers are whatever a file says; made up to the largest, these would be 600 TB. */
static void far_lines_take_no_room(void **state)
{
    enum { FILES = 900, FAR = INT32_MAX - 1 };
    struct arena_make make;
    make_victim(&make, PID + 10);
    for (int i = 0; i < FILES; i++) {
        char *name = mem_format("%s/program/gone%d.py", base, i);
        uint32_t code = arena_make_code(&make, name, "<module>", FAR, FAR);
        arena_make_cell(&make, arena_make_frame(&make, 0, code, FAR), WIRE_CPU_PYTHON, 1, 10 * MS,
                        0);
        free(name);
    }
    uint32_t code = arena_make_code(&make, script, "late", 500, 500);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 500), WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    config.cpu_percent_threshold = 0;
    struct profile profile;
    build(&profile, &config);
    assert_sums(&profile);
    assert_int_equal(profile.file_count, FILES + 1);
    for (uint32_t i = 0; i < profile.file_count; i++) {
        bool is_script = !strcmp(profile_str(&profile, profile.files[i].name), script);
        assert_int_equal(profile.files[i].line_count, is_script ? 18 : 1);
        close_to(profile_line_at(&profile.files[i], is_script ? 500 : FAR)->time.python_sec, 0.01);
    }
    profile_release(&profile);
}

/* ---- very long runs ---- */

/* Thirty days of 4096 threads that wait, and of 64 processors: nothing wraps, nothing is cut short,
 * and what is written is read again. */
static void a_month_of_many_threads(void **state)
{
    const uint64_t month_ns = UINT64_C(30) * 86400 * 1000000000, threads = 4096, processors = 64;
    const uint64_t samples = UINT64_C(100000000000);
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    struct wire_header *header = &make.header;
    header->flags = WIRE_PROCESS_MEMORY;
    header->beat_mono_ns = header->start_mono_ns + month_ns;
    header->beat_cpu_ns = processors * month_ns;
    header->on_ns = month_ns;
    header->lost[WIRE_LOST_TORN_WAIT] = samples;
    header->sections[WIRE_LOG].dropped = samples;
    header->memory.look.at_cpu_ms = processors * (month_ns / MS);
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    uint32_t busy = arena_make_frame(&make, 0, code, 13),
             idle = arena_make_frame(&make, 0, code, 14);
    arena_make_cell(&make, busy, WIRE_CPU_PYTHON, samples, processors * month_ns, 0);
    arena_make_cell(&make, idle, WIRE_WAIT_LOCK, samples, threads * month_ns, month_ns);
    uint32_t thread = arena_make_thread(&make, 0x1000, 10, "python", true);
    for (int i = 0; i < 3; i++) /* they are neighbours, and one run of 3.5 hours */
        arena_make_log(&make, (uint64_t)i * 4300000 * MS, busy, (uint16_t)thread, WIRE_CPU_PYTHON,
                       UINT32_MAX, UINT32_MAX);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    config.memory = true;
    struct profile profile, again;
    struct buf json = {0};
    build(&profile, &config);
    assert_int_equal(profile.note_count, 0);
    json_write_profile(&profile, &json);
    profile_release(&profile);
    struct err err = {""};
    assert_int_equal(json_read_profile(&again, json.data, json.len, &err), 0);
    buf_release(&json);
    const struct profile_file *file = file_named(&again, script);
    const struct profile_time *cpu = &file->lines[12].time, *wait = &file->lines[13].time;
    assert_true(fabs(cpu->python_sec / (64 * 30 * 86400.0) - 1) < 1e-12);
    assert_true(fabs(wait->wait_sec[WAIT_LOCK] / (4096 * 30 * 86400.0) - 1) < 1e-12);
    assert_true(fabs(wait->system_sec / (30 * 86400.0) - 1) < 1e-12);
    assert_int_equal(cpu->samples, samples);
    /* 1e11 samples of the same weight: 1.96 standard deviations of the share 64 : 65 */
    double share = 64.0 / 65, half_width = 196 * sqrt(share * (1 - share) / 1e11);
    assert_true(file->lines[12].half_width_percent > 0.9 * half_width &&
                file->lines[12].half_width_percent < 1.2 * half_width);
    assert_int_equal(again.run_count, 1);
    assert_int_equal(again.runs[0].count, (uint64_t)round(3.0 * UINT32_MAX / 1e6 / 0.01));
    for (uint32_t i = 0; i < again.loss_count; i++)
        assert_int_equal(again.losses[i].count, samples);
    assert_int_equal(again.loss_count, 2);
    profile_release(&again);
}

/* One wait of a weekend, as when the process was stopped: its square is beyond 64 bits. */
static void a_wait_of_days_has_its_weight(void **state)
{
    const uint64_t days_ns = UINT64_C(3) * 86400 * 1000000000;
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    make.header.beat_mono_ns = make.header.start_mono_ns + 2 * days_ns;
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 13), WIRE_WAIT_SLEEP, 1, days_ns,
                    days_ns);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 14), WIRE_CPU_PYTHON, 25920000, days_ns,
                    0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    /* The one wait decides: n = (2 w)^2 / w^2 = 4 samples in effect. */
    close_to(profile_half_width(&profile, &file_named(&profile, script)->lines[12].time),
             196 * sqrt(0.25 / (4 / (1 + 1 / 25920000.0))));
    profile_release(&profile);
}

static void a_bad_file_is_noted_and_skipped(void **state)
{
    char *path = mem_format("%s/99-0.arena", session), *strange = mem_format("%s/x.arena", session);
    assert_int_equal(file_write_atomic(path, "garbage!garbage!", 16, NULL), 0);
    assert_int_equal(file_write_atomic(strange, "garbage!garbage!", 16, NULL), 0);
    struct arena_make make;
    arena_make_init(&make, PID + 10);
    uint32_t code = arena_make_code(&make, script, "<module>", 1, 14);
    arena_make_cell(&make, arena_make_frame(&make, 0, code, 14), WIRE_CPU_PYTHON, 1, MS, 0);
    put(&make, PID + 10, 0);
    struct report_config config = default_config();
    struct profile profile;
    build(&profile, &config);
    assert_int_equal(profile.process_count, 1);
    assert_int_equal(profile.note_count, 1);
    assert_true(has_note(&profile, "process 99"));
    profile_release(&profile);
    config.session_directory = "/nonexistent";
    struct err err = {""};
    profile_init(&profile);
    assert_int_equal(harvest_build(&profile, &config, &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent"));
    profile_release(&profile);
    free(path);
    free(strange);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_go_to_their_columns),
        cmocka_unit_test(functions_by_name_and_place),
        cmocka_unit_test(without_source_the_qualified_name_decides),
        cmocka_unit_test(what_has_no_line_is_the_remainder),
        cmocka_unit_test(nothing_traced_says_why),
        cmocka_unit_test(other_lines_than_newline),
        cmocka_unit_test(the_run_itself),
        cmocka_unit_test(samples_after_the_last_beat),
        cmocka_unit_test(stamps_are_a_fair_choice),
        cmocka_unit_test(too_many_runs_are_thinned),
        cmocka_unit_test(deep_stacks_are_folded),
        cmocka_unit_test(traced_frames_are_not_folded),
        cmocka_unit_test(the_program_is_found_below_runpy),
        cmocka_unit_test(code_and_stdin_as_programs),
        cmocka_unit_test(relative_names_are_found),
        cmocka_unit_test(damaged_recordings),
        cmocka_unit_test(a_hostile_recording_costs_only_itself),
        cmocka_unit_test(a_sparse_file_of_a_terabyte_is_refused),
        cmocka_unit_test(what_is_too_much_together_is_refused),
        cmocka_unit_test(far_lines_take_no_room),
        cmocka_unit_test(a_month_of_many_threads),
        cmocka_unit_test(a_wait_of_days_has_its_weight),
        cmocka_unit_test(a_bad_file_is_noted_and_skipped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
