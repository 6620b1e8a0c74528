/*
 * Merging of profiles: what is summed, what is placed by time, what happens to
 * sources that changed and to runs that know less than others.
 */
#include "base/buf.h"
#include "profile/align.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "profile/merge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_close(a, b) assert_true(fabs((double)(a) - (double)(b)) < 1e-9)

/* ---- profiles to merge ---- */

struct line_spec {
    const char *text;
    double python_sec, native_sec, system_sec;
    uint64_t samples;
};

/* A run of one file; the file's lines are all that took time. */
static void make_run(struct profile *run, const char *file_name, const struct line_spec *lines,
                     uint32_t count, double start_sec, double elapsed_sec)
{
    profile_init(run);
    struct profile_file *file = run->files = pool_alloc(&run->pool, sizeof *file);
    run->file_count = 1;
    file->name = intern_cstr(&run->strings, file_name);
    file->lines = pool_alloc(&run->pool, count * sizeof *file->lines);
    file->line_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct profile_line *line = &file->lines[i];
        line->lineno = i + 1;
        line->text = intern_cstr(&run->strings, lines[i].text);
        line->time = (struct profile_time){.python_sec = lines[i].python_sec,
                                           .native_sec = lines[i].native_sec,
                                           .system_sec = lines[i].system_sec,
                                           .samples = lines[i].samples};
        line->start_region = line->end_region = i + 1;
        profile_time_add(&file->time, &line->time);
    }
    run->time = file->time;
    run->total_sec = profile_time_sum(&run->time);
    run->start_absolute_sec = start_sec;
    run->start_perf_sec = 100;
    run->elapsed_sec = elapsed_sec;
    run->interval_sec = run->wait_interval_sec = 0.01;
    run->program = intern_cstr(&run->strings, file_name);
}

static struct profile_line *add_function(struct profile *run, const char *name, uint32_t lineno,
                                         double python_sec)
{
    struct profile_file *file = &run->files[0];
    struct profile_line *more =
        pool_alloc(&run->pool, (file->function_count + 1) * sizeof *file->functions);
    if (file->function_count)
        memcpy(more, file->functions, file->function_count * sizeof *more);
    file->functions = more;
    more = &file->functions[file->function_count++];
    *more = (struct profile_line){.lineno = lineno, .text = intern_cstr(&run->strings, name)};
    more->time.python_sec = python_sec;
    return more;
}

static void add_stack(struct profile *run, const char *const *names, uint32_t depth, uint64_t hits)
{
    struct profile_stack *more =
        pool_alloc(&run->pool, (run->stack_count + 1) * sizeof *run->stacks);
    if (run->stack_count)
        memcpy(more, run->stacks, run->stack_count * sizeof *more);
    run->stacks = more;
    more = &run->stacks[run->stack_count++];
    more->frames = pool_alloc(&run->pool, depth * sizeof *more->frames);
    more->frame_count = depth;
    more->hits = hits;
    more->time.python_sec = (double)hits * run->interval_sec;
    for (uint32_t i = 0; i < depth; i++)
        more->frames[i] = (struct profile_frame){.name = intern_cstr(&run->strings, names[i]),
                                                 .file = run->files[0].name,
                                                 .line = i + 1,
                                                 .traced = true};
}

static void add_thread(struct profile *run, uint64_t ident, int32_t tid)
{
    struct profile_thread *more =
        pool_alloc(&run->pool, (run->thread_count + 1) * sizeof *run->threads);
    if (run->thread_count)
        memcpy(more, run->threads, run->thread_count * sizeof *more);
    run->threads = more;
    run->threads[run->thread_count++] = (struct profile_thread){.ident = ident, .tid = tid};
}

static void add_moment(struct profile *run, double at_sec, uint32_t stack, uint64_t ident)
{
    struct profile_run *more = pool_alloc(&run->pool, (run->run_count + 1) * sizeof *run->runs);
    if (run->run_count)
        memcpy(more, run->runs, run->run_count * sizeof *more);
    run->runs = more;
    run->runs[run->run_count++] =
        (struct profile_run){.at_sec = at_sec, .stack = stack, .count = 1, .thread_ident = ident};
}

static void release_all(struct profile *merged, struct profile *runs, size_t count)
{
    profile_release(merged);
    for (size_t i = 0; i < count; i++)
        profile_release(&runs[i]);
}

static bool has_note(const struct profile *profile, const char *part)
{
    for (uint32_t i = 0; i < profile->note_count; i++)
        if (strstr(profile_str(profile, profile->notes[i]), part))
            return true;
    return false;
}

static const struct line_spec plain[] = {
    {"a = 1\n", 1, 0.5, 0.25, 100}, {"b = 2\n", 0, 0, 0, 0}, {"c = 3\n", 2, 0, 0, 200}};

/* ---- sums ---- */

static void sums(void **state)
{
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 4);
    make_run(&runs[1], "/p/a.py", plain, 3, 2000, 5);
    runs[0].cpu_sec = 3.5;
    runs[1].cpu_sec = 3.25;
    runs[0].untraced.native_sec = 0.5;
    runs[0].files[0].lines[0].time.wait_sec[WAIT_SLEEP] = 0.25;
    runs[1].files[0].lines[0].time.wait_sec[WAIT_SLEEP] = 0.5;
    runs[0].files[0].lines[0].core_utilization = 0.25;
    runs[1].files[0].lines[0].core_utilization = 0.75;
    merge_profiles(&merged, runs, 2);
    assert_false(merged.empty);
    assert_close(merged.total_sec, 7.5);
    assert_close(merged.time.python_sec, 6);
    assert_int_equal(merged.time.samples, 600);
    assert_close(merged.cpu_sec, 6.75);
    assert_close(merged.untraced.native_sec, 0.5);
    assert_close(merged.elapsed_sec, 9);
    assert_close(merged.start_absolute_sec, 1000);
    assert_int_equal(merged.file_count, 1);
    const struct profile_file *file = &merged.files[0];
    assert_string_equal(profile_str(&merged, file->name), "/p/a.py");
    assert_int_equal(file->line_count, 3);
    assert_close(file->lines[0].time.native_sec, 1);
    assert_close(file->lines[0].time.system_sec, 0.5);
    assert_close(file->lines[0].time.wait_sec[WAIT_SLEEP], 0.75);
    assert_int_equal(file->lines[0].time.samples, 200);
    assert_close(file->lines[0].core_utilization, 0.5);
    assert_string_equal(profile_str(&merged, file->lines[2].text), "c = 3\n");
    assert_close(profile_time_sum(&file->time), 7.5);
    assert_int_equal(merged.note_count, 0);
    release_all(&merged, runs, 2);
}

/* Runs at the same time are covered once; those that do not say when they began, each. */
static void elapsed_is_what_is_covered(void **state)
{
    static const struct {
        double start[3], elapsed[3], covered;
    } cases[] = {
        {{1000, 2000, 3000}, {1, 2, 4}, 7}, {{1000, 1001, 1002}, {10, 2, 3}, 10},
        {{1002, 1000, 1005}, {4, 4, 2}, 7}, {{0, 0, 1000}, {1, 2, 4}, 7},
        {{1000, 1000, 1000}, {5, 5, 5}, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile runs[3], merged;
        for (int k = 0; k < 3; k++)
            make_run(&runs[k], "/p/a.py", plain, 3, cases[i].start[k], cases[i].elapsed[k]);
        merge_profiles(&merged, runs, 3);
        assert_close(merged.elapsed_sec, cases[i].covered);
        release_all(&merged, runs, 3);
    }
}

/* Half-widths of a file come back when its weights are added up: those of two runs with the same
 * shares are narrower by the square root of two. */
static void half_widths(void **state)
{
    struct profile runs[2], merged;
    for (int i = 0; i < 2; i++) {
        struct profile made;
        struct buf text = {0};
        make_run(&made, "/p/a.py", plain, 3, 1000 + i, 1);
        made.time.square_sec2 = 0.06;
        for (uint32_t k = 0; k < 3; k++) {
            struct profile_line *line = &made.files[0].lines[k];
            line->half_width_percent = profile_half_width(&made, &line->time);
        }
        json_write_profile(&made, &text);
        assert_int_equal(json_read_profile(&runs[i], text.data, text.len, NULL), 0);
        assert_true(runs[i].files[0].lines[0].half_width_percent > 5);
        buf_release(&text);
        profile_release(&made);
    }
    merge_profiles(&merged, runs, 2);
    assert_close(merged.time.square_sec2, 0.12);
    assert_close(merged.files[0].lines[0].half_width_percent * sqrt(2),
                 runs[0].files[0].lines[0].half_width_percent);
    release_all(&merged, runs, 2);
}

static void half_widths_unknown(void **state)
{
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", plain, 3, 2000, 1);
    runs[0].time.square_sec2 = 0.06;
    runs[1].time.samples = 0; /* as the original's: no samples, no half-widths */
    merge_profiles(&merged, runs, 2);
    assert_close(merged.files[0].lines[0].half_width_percent, 0);
    release_all(&merged, runs, 2);
}

static void empty_runs(void **state)
{
    struct profile runs[3], merged;
    for (int i = 0; i < 3; i++) {
        profile_init(&runs[i]);
        runs[i].empty = true;
    }
    merge_profiles(&merged, runs, 3);
    assert_true(merged.empty);
    profile_release(&merged);
    profile_release(&runs[1]);
    make_run(&runs[1], "/p/a.py", plain, 3, 1000, 1);
    merge_profiles(&merged, runs, 3);
    assert_false(merged.empty);
    assert_close(merged.total_sec, 3.75);
    release_all(&merged, runs, 3);
}

/* ---- sources ---- */

static void files_of_one_run_only(void **state)
{
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/z.py", plain, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", plain, 2, 2000, 1);
    merge_profiles(&merged, runs, 2);
    assert_int_equal(merged.file_count, 2);
    assert_string_equal(profile_str(&merged, merged.files[0].name), "/p/a.py");
    assert_string_equal(profile_str(&merged, merged.files[1].name), "/p/z.py");
    assert_close(merged.files[1].lines[2].time.python_sec, 2);
    assert_true(has_note(&merged, "different programs"));
    release_all(&merged, runs, 2);
}

/* A line was put in front, another changed: time follows the text, and what is gone is untraced. */
static void changed_source(void **state)
{
    static const struct line_spec edited[] = {{"import x\n", 0, 0, 0, 0},
                                              {"a = 1\n", 1, 0, 0, 10},
                                              {"b = 22\n", 4, 0, 0, 40},
                                              {"c = 3\n", 2, 0, 0, 20}};
    static const struct line_spec old[] = {
        {"a = 1\n", 1, 0, 0, 10}, {"b = 2\n", 0.5, 0, 0.25, 5}, {"c = 3\n", 2, 0, 0, 20}};
    for (int order = 0; order < 2; order++) {
        struct profile runs[2], merged;
        make_run(&runs[order], "/p/a.py", old, 3, 1000, 1);
        make_run(&runs[!order], "/p/a.py", edited, 4, 2000, 1);
        merge_profiles(&merged, runs, 2);
        const struct profile_file *file = &merged.files[0];
        assert_int_equal(file->line_count, 4);
        assert_string_equal(profile_str(&merged, file->lines[2].text), "b = 22\n");
        assert_close(file->lines[1].time.python_sec, 2);
        assert_close(file->lines[2].time.python_sec, 4);
        assert_close(file->lines[3].time.python_sec, 4);
        assert_close(merged.untraced.python_sec, 0.5);
        assert_close(merged.untraced.system_sec, 0.25);
        assert_close(profile_time_sum(&file->time) + profile_time_sum(&merged.untraced),
                     merged.total_sec);
        assert_true(has_note(&merged, "/p/a.py changed between the runs"));
        release_all(&merged, runs, 2);
    }
}

/* A run that could not read the source knows line numbers only. */
static void source_without_text(void **state)
{
    static const struct line_spec numbers[] = {
        {"", 1, 0, 0, 1}, {"", 0, 0, 0, 0}, {"", 1, 0, 0, 1}, {"", 8, 0, 0, 1}};
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", numbers, 4, 2000, 1);
    merge_profiles(&merged, runs, 2);
    const struct profile_file *file = &merged.files[0];
    assert_int_equal(file->line_count, 4);
    assert_string_equal(profile_str(&merged, file->lines[0].text), "a = 1\n");
    assert_close(file->lines[0].time.python_sec, 2);
    assert_close(file->lines[3].time.python_sec, 8);
    assert_int_equal(file->lines[3].lineno, 4);
    assert_int_equal(merged.note_count, 0);
    release_all(&merged, runs, 2);
}

/* Profiles that hold only some lines: those of both are there, each once and in order. */
static void sources_with_holes(void **state)
{
    static const struct line_spec lines[] = {
        {"a\n", 1, 0, 0, 1}, {"b\n", 2, 0, 0, 1}, {"c\n", 4, 0, 0, 1}};
    static const struct line_spec others[] = {
        {"", 1, 0, 0, 1}, {"b\n", 2, 0, 0, 1}, {"d\n", 4, 0, 0, 1}};
    static const uint32_t numbers[] = {2, 5, 900000000}, other_numbers[] = {2, 5, 7};
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", lines, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", others, 3, 2000, 1);
    for (int i = 0; i < 3; i++) {
        runs[0].files[0].lines[i].lineno = numbers[i];
        runs[1].files[0].lines[i].lineno = other_numbers[i];
    }
    add_function(&runs[0], "f", 5, 1);
    add_function(&runs[0], "g", 6, 1);
    runs[0].memory = true;
    runs[0].peak_file = runs[0].files[0].name;
    runs[0].peak_line = 5;
    merge_profiles(&merged, runs, 2);
    static const struct {
        uint32_t lineno;
        const char *text;
        double sec;
    } expected[] = {{2, "a\n", 2}, {5, "b\n", 4}, {7, "d\n", 4}, {900000000, "c\n", 4}};
    const struct profile_file *file = &merged.files[0];
    assert_int_equal(file->line_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(file->lines[i].lineno, expected[i].lineno);
        assert_string_equal(profile_str(&merged, file->lines[i].text), expected[i].text);
        assert_close(file->lines[i].time.python_sec, expected[i].sec);
    }
    assert_int_equal(file->functions[0].lineno, 5);
    assert_int_equal(file->functions[1].lineno, 6);
    assert_int_equal(merged.peak_line, 5);
    assert_int_equal(merged.note_count, 0);
    release_all(&merged, runs, 2);
}

static void functions(void **state)
{
    static const struct line_spec old[] = {
        {"def f(x):\n", 0, 0, 0, 0}, {"  x\n", 1, 0, 0, 1}, {"def g():\n", 0, 0, 0, 0}};
    static const struct line_spec edited[] = {{"#\n", 0, 0, 0, 0},
                                              {"def f(y):\n", 0, 0, 0, 0},
                                              {"  x\n", 1, 0, 0, 1},
                                              {"def g():\n", 0, 0, 0, 0}};
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", old, 3, 1000, 1);
    add_function(&runs[0], "f", 1, 1);
    add_function(&runs[0], "g", 3, 0.5);
    make_run(&runs[1], "/p/a.py", edited, 4, 2000, 1);
    add_function(&runs[1], "f", 2, 2);
    add_function(&runs[1], "g", 4, 0.25);
    merge_profiles(&merged, runs, 2);
    const struct profile_file *file = &merged.files[0];
    assert_int_equal(file->function_count, 2);
    assert_string_equal(profile_str(&merged, file->functions[0].text), "f");
    assert_int_equal(file->functions[0].lineno, 2);
    assert_close(file->functions[0].time.python_sec, 3);
    assert_int_equal(file->functions[1].lineno, 4);
    assert_close(file->functions[1].time.python_sec, 0.75);
    release_all(&merged, runs, 2);
}

/* Two methods of one name are two functions. */
static void functions_of_one_name(void **state)
{
    struct profile runs[2], merged;
    for (int i = 0; i < 2; i++) {
        make_run(&runs[i], "/p/a.py", plain, 3, 1000 + i, 1);
        add_function(&runs[i], "f", 1, 1);
        add_function(&runs[i], "f", 3, 2);
    }
    merge_profiles(&merged, runs, 2);
    const struct profile_file *file = &merged.files[0];
    assert_int_equal(file->function_count, 2);
    assert_close(file->functions[0].time.python_sec, 2);
    assert_close(file->functions[1].time.python_sec, 4);
    release_all(&merged, runs, 2);
}

static void alignment(void **state)
{
    static const struct {
        const char *old_lines, *new_lines;
        uint32_t expected[8];
    } cases[] = {
        {"abc", "abc", {1, 2, 3}},
        {"abc", "xabc", {2, 3, 4}},
        {"abcd", "abxd", {1, 2, 0, 4}},
        {"abc", "", {0, 0, 0}},
        {"aabb", "ab", {1, 0, 0, 2}},
        {"xay", "zaw", {0, 2, 0}},
        {"abcdef", "xbydzf", {0, 2, 0, 4, 0, 6}},
        {"ab", "ba", {0, 1}},
        {"", "abc", {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str_id old_lines[8], new_lines[8];
        uint32_t old_count = (uint32_t)strlen(cases[i].old_lines);
        uint32_t new_count = (uint32_t)strlen(cases[i].new_lines);
        for (uint32_t k = 0; k < old_count; k++)
            old_lines[k] = (str_id)cases[i].old_lines[k];
        for (uint32_t k = 0; k < new_count; k++)
            new_lines[k] = (str_id)cases[i].new_lines[k];
        uint32_t *found = align_lines(old_lines, old_count, new_lines, new_count);
        for (uint32_t k = 0; k < old_count; k++)
            assert_int_equal(found[k], cases[i].expected[k]);
        free(found);
    }
}

/* ---- time and threads ---- */

/* Another boot's clock: moments go by when the runs began. */
static void stamps(void **state)
{
    static double first[] = {100.5, 101}, second[] = {7.25, 8};
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", plain, 3, 1000.5, 1);
    runs[1].start_perf_sec = 7;
    runs[0].files[0].lines[0].stamps = first;
    runs[1].files[0].lines[0].stamps = second;
    runs[0].files[0].lines[0].stamp_count = runs[1].files[0].lines[0].stamp_count = 2;
    merge_profiles(&merged, runs, 2);
    const struct profile_line *line = &merged.files[0].lines[0];
    static const double expected[] = {100.5, 100.75, 101, 101.5};
    assert_int_equal(line->stamp_count, 4);
    for (int i = 0; i < 4; i++)
        assert_close(line->stamps[i], expected[i]);
    assert_close(merged.start_perf_sec, 100);
    release_all(&merged, runs, 2);
}

static void stacks_and_timeline(void **state)
{
    static const char *const outer[] = {"main", "f"}, *const inner[] = {"main", "g"};
    struct profile runs[2], merged;
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 5);
    make_run(&runs[1], "/p/a.py", plain, 3, 1002, 5);
    runs[1].interval_sec = 0.02; /* its counts are worth twice as much */
    add_stack(&runs[0], outer, 2, 10);
    add_stack(&runs[1], inner, 2, 3);
    add_stack(&runs[1], outer, 2, 4);
    add_thread(&runs[0], 77, 5);
    add_thread(&runs[1], 77, 6);
    add_moment(&runs[0], 0, 0, 77);
    add_moment(&runs[0], 3, 0, 77);
    add_moment(&runs[1], 0, 1, 77);
    add_moment(&runs[1], 0.5, 0, 0);
    runs[0].main_ident = 77;
    merge_profiles(&merged, runs, 2);
    assert_int_equal(merged.stack_count, 2);
    assert_int_equal(merged.stacks[0].hits, 18);
    assert_string_equal(profile_str(&merged, merged.stacks[0].frames[1].name), "f");
    assert_close(merged.stacks[0].time.python_sec, 0.18);
    assert_int_equal(merged.stacks[1].hits, 6);
    static const struct profile_run expected[] = {
        {0, 0, 1, 77}, {2, 0, 2, 6}, {2.5, 1, 2, 0}, {3, 0, 1, 77}};
    assert_int_equal(merged.run_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_close(merged.runs[i].at_sec, expected[i].at_sec);
        assert_int_equal(merged.runs[i].stack, expected[i].stack);
        assert_int_equal(merged.runs[i].count, expected[i].count);
        assert_int_equal(merged.runs[i].thread_ident, expected[i].thread_ident);
    }
    assert_int_equal(merged.thread_count, 2);
    assert_int_equal(merged.threads[1].ident, 6);
    assert_int_equal(merged.main_ident, 77);
    release_all(&merged, runs, 2);
}

static void too_many_stacks(void **state)
{
    struct profile runs[2], merged;
    for (int i = 0; i < 2; i++) {
        enum { EACH = 6000 };
        make_run(&runs[i], "/p/a.py", plain, 3, 1000 + i, 5);
        runs[i].stack_count = EACH;
        runs[i].stacks = pool_alloc(&runs[i].pool, EACH * sizeof *runs[i].stacks);
        for (uint32_t k = 0; k < EACH; k++) {
            struct profile_frame *frame = pool_alloc(&runs[i].pool, sizeof *frame);
            *frame = (struct profile_frame){.file = runs[i].files[0].name,
                                            .line = (uint32_t)i * EACH + k};
            runs[i].stacks[k] =
                (struct profile_stack){.frames = frame, .frame_count = 1, .hits = 1 + (k >= 2000)};
        }
        add_moment(&runs[i], 0, 0, 0);
        add_moment(&runs[i], 1, EACH - 1, 0);
    }
    merge_profiles(&merged, runs, 2);
    assert_int_equal(merged.stack_count, PROFILE_STACKS_MAX);
    assert_int_equal(merged.loss_count, 1);
    assert_int_equal(merged.losses[0].count, 2000);
    /* The short stacks of the second run are the last ones, so they are left out. */
    assert_int_equal(merged.run_count, 3);
    for (uint32_t i = 0; i < merged.run_count; i++)
        assert_true(merged.runs[i].stack < merged.stack_count);
    release_all(&merged, runs, 2);
}

static void processes_notes_losses(void **state)
{
    struct profile runs[2], merged;
    for (int i = 0; i < 2; i++) {
        make_run(&runs[i], "/p/a.py", plain, 3, 1000 + 10 * i, 5);
        runs[i].processes = pool_alloc(&runs[i].pool, sizeof *runs[i].processes);
        runs[i].process_count = 1;
        runs[i].processes[0] = (struct profile_process){
            .pid = 40 + i, .command = intern_cstr(&runs[i].strings, i ? "two" : "one")};
        runs[i].notes = pool_alloc(&runs[i].pool, sizeof *runs[i].notes);
        runs[i].note_count = 1;
        runs[i].notes[0] = intern_cstr(&runs[i].strings, "read this");
        runs[i].losses = pool_alloc(&runs[i].pool, sizeof *runs[i].losses);
        runs[i].loss_count = 1;
        runs[i].losses[0] =
            (struct profile_loss){.key = intern_cstr(&runs[i].strings, "timer"), .count = 3};
        runs[i].memory = runs[i].gpu = i == 1;
    }
    merge_profiles(&merged, runs, 2);
    assert_int_equal(merged.process_count, 2);
    assert_string_equal(profile_str(&merged, merged.processes[1].command), "two");
    assert_close(merged.processes[1].start_sec, 10);
    assert_int_equal(merged.loss_count, 1);
    assert_int_equal(merged.losses[0].count, 6);
    assert_int_equal(merged.note_count, 2);
    assert_true(has_note(&merged, "read this"));
    assert_true(has_note(&merged, "GPU figures were not merged"));
    release_all(&merged, runs, 2);
}

/* ---- memory ---- */

static struct profile_memory memory_of(struct profile *run, double mb, double likelihood)
{
    struct profile_memory memory = {
        .allocated_mb = 4 * mb,
        .python_mb = mb,
        .live_mb = mb,
        .at_peak_mb = 2 * mb,
        .peak_mb = 3 * mb,
        .average_mb = mb,
        .copied_mb = mb / 2,
        .count = 100,
        .total_mb = 9 * mb,
        .total_count = 1000,
        .half_width_mb = {.allocated = mb, .live = mb / 2, .peak = mb / 4, .copied = mb / 8},
        .samples = 10,
        .leak = {.likelihood = likelihood, .velocity_mb_s = mb},
        .point_count = 1,
    };
    memory.points = pool_alloc(&run->pool, sizeof *memory.points);
    memory.own = pool_alloc(&run->pool, sizeof *memory.own);
    memory.points[0] = (struct profile_point){1, 3 * mb};
    memory.own[0] = (struct profile_point){1, 2 * mb};
    return memory;
}

/* The first run has the higher footprint, on a line that the second run's source has elsewhere. */
static void make_memory_runs(struct profile runs[2])
{
    static const struct line_spec edited[] = {
        {"new = 0\n", 0, 0, 0, 0}, {"a = 1\n", 1, 0, 0, 10}, {"c = 3\n", 2, 0, 0, 20}};
    make_run(&runs[0], "/p/a.py", plain, 3, 1000, 1);
    make_run(&runs[1], "/p/a.py", edited, 3, 2000, 1);
    for (int i = 0; i < 2; i++) {
        struct profile *run = &runs[i];
        double mb = i ? 10 : 100;
        run->memory = true;
        run->files[0].lines[i].memory = memory_of(run, mb, i ? 0.99 : 0.96); /* a = 1 */
        run->files[0].lines[i].memory.library =
            intern_cstr(&run->strings, i ? "small.so" : "big.so");
        run->files[0].lines[1 - i].memory = memory_of(run, 1, 0); /* only in its own source */
        run->all_memory = memory_of(run, mb + 1, 0);
        run->peak_file = run->files[0].name;
        run->peak_line = 1;
        run->peak_python_fraction = i ? 0.25 : 0.75;
        run->memory_stacks = pool_alloc(&run->pool, sizeof *run->memory_stacks);
        run->memory_stack_count = 1;
        run->memory_stacks[0].mb = mb;
        run->memory_stacks[0].frame_count = 1;
        run->memory_stacks[0].frames = pool_alloc(&run->pool, sizeof(struct profile_frame));
        run->memory_stacks[0].frames[0] = (struct profile_frame){
            .name = intern_cstr(&run->strings, "f"), .file = run->files[0].name, .line = 1};
    }
}

static void memory_is_merged(void **state)
{
    struct profile runs[2], merged;
    make_memory_runs(runs);
    merge_profiles(&merged, runs, 2);
    const struct profile_memory *line = &merged.files[0].lines[1].memory;
    assert_close(line->allocated_mb, 440);
    assert_close(line->python_mb, 110);
    assert_close(line->live_mb, 110);
    assert_close(line->copied_mb, 55);
    assert_close(line->peak_mb, 300);
    assert_close(line->at_peak_mb, 200);
    assert_close(line->average_mb, (100 * 400 + 10 * 40) / 440.0);
    assert_int_equal(line->count, 200);
    assert_close(line->total_mb, 990);
    assert_int_equal(line->total_count, 2000);
    assert_close(line->half_width_mb.allocated, sqrt(100 * 100 + 10 * 10));
    assert_close(line->half_width_mb.live, sqrt(50 * 50 + 5 * 5));
    assert_close(line->half_width_mb.peak, 25);
    assert_close(line->half_width_mb.copied, sqrt(12.5 * 12.5 + 1.25 * 1.25));
    assert_int_equal(line->samples, 20);
    assert_close(line->leak.likelihood, 0.99);
    assert_close(line->leak.velocity_mb_s, 10);
    assert_string_equal(profile_str(&merged, line->library), "big.so");
    assert_int_equal(line->point_count, 1);
    assert_close(line->points[0].mb, 300);
    assert_close(line->own[0].mb, 200);
    assert_close(merged.all_memory.allocated_mb, 448);
    assert_close(merged.all_memory.peak_mb, 303);
    assert_close(merged.all_memory.at_peak_mb, 202);
    assert_close(merged.growth_percent, 25);
    assert_close(merged.peak_python_fraction, 0.75);
    assert_int_equal(merged.peak_line, 2);
    assert_close(merged.untraced_memory.allocated_mb, 4); /* of the line that is gone */
    assert_int_equal(merged.memory_stack_count, 1);
    assert_close(merged.memory_stacks[0].mb, 110);
    assert_false(has_note(&merged, "not merged"));
    release_all(&merged, runs, 2);
}

/* ---- event loops ---- */

static const struct line_spec loop_lines[] = {
    {"await a()\n", 1, 0, 0, 100}, {"await b()\n", 1, 0, 0, 100}, {"block()\n", 1, 0, 0, 100}};

/* The second run is twice the first, and its source lacks the second line. */
static void make_loop_runs(struct profile runs[2])
{
    static const struct line_spec shorter[] = {{"await a()\n", 1, 0, 0, 100},
                                               {"block()\n", 1, 0, 0, 100}};
    make_run(&runs[0], "/p/a.py", loop_lines, 3, 1000, 10);
    make_run(&runs[1], "/p/a.py", shorter, 2, 1010, 10);
    for (int i = 0; i < 2; i++) {
        struct profile *run = &runs[i];
        double times = i + 1;
        struct profile_line *lines = run->files[0].lines;
        struct profile_async *first = &lines[0].async, *block = &lines[i ? 1 : 2].async;
        *first = (struct profile_async){.await_sec = 6 * times,
                                        .join_sec = 2 * times,
                                        .ready_sec = times,
                                        .present_sec = 4,
                                        .peak = 5 * times,
                                        .half_width_sec = 3 + i,
                                        .name_count = 2};
        first->names = pool_alloc(&run->pool, 2 * sizeof *first->names);
        first->names[0] = intern_cstr(&run->strings, i ? "Task-1" : "Task-2");
        first->names[1] = intern_cstr(&run->strings, "zoe");
        lines[0].is_coroutine = true;
        *block = (struct profile_async){
            .blocked_sec = times, .blocked_longest_sec = 0.5 / times, .blocked_count = 3};
        if (!i)
            lines[1].async.await_sec = 4;
        run->loops = (struct profile_loops){.count = 1,
                                            .busy_sec = times,
                                            .idle_sec = 9 * times,
                                            .blocked_sec = times,
                                            .longest_sec = 0.5 / times,
                                            .longest_file = run->files[0].name,
                                            .longest_line = i ? 2 : 3,
                                            .await_sec = i ? 12 : 10,
                                            .join_sec = 2 * times,
                                            .ready_sec = times,
                                            .untraced_await_sec = i,
                                            .tasks_peak = 7 * (uint64_t)times,
                                            .crowd_count = 1};
        run->loops.crowd = pool_alloc(&run->pool, sizeof *run->loops.crowd);
        run->loops.crowd[0] = (struct profile_crowd){1, 7 * (uint64_t)times};
    }
}

static void event_loops_are_merged(void **state)
{
    struct profile runs[2], merged;
    make_loop_runs(runs);
    merge_profiles(&merged, runs, 2);
    const struct profile_line *line = &merged.files[0].lines[0];
    assert_close(line->async.await_sec, 18);
    assert_close(line->async.join_sec, 6);
    assert_close(line->async.ready_sec, 3);
    assert_close(profile_concurrency(&line->async), 3);
    assert_close(line->async.peak, 10);
    assert_close(line->async.half_width_sec, 5);
    assert_true(line->is_coroutine);
    assert_int_equal(line->async.name_count, 3);
    static const char *const names[] = {"Task-1", "Task-2", "zoe"};
    for (int i = 0; i < 3; i++)
        assert_string_equal(profile_str(&merged, line->async.names[i]), names[i]);
    const struct profile_async *block = &merged.files[0].lines[1].async;
    assert_close(block->blocked_sec, 3);
    assert_close(block->blocked_longest_sec, 0.5);
    assert_int_equal(block->blocked_count, 6);
    const struct profile_loops *loops = &merged.loops;
    assert_int_equal(loops->count, 2);
    assert_close(loops->busy_sec, 3);
    assert_close(loops->idle_sec, 27);
    assert_close(loops->blocked_sec, 3);
    assert_close(loops->await_sec, 22);
    assert_close(loops->join_sec, 6);
    assert_close(loops->ready_sec, 3);
    assert_close(loops->untraced_await_sec, 1 + 4); /* of the line that is gone */
    assert_close(loops->longest_sec, 0.5);
    assert_int_equal(loops->longest_line, 2); /* where it is in the newest source */
    assert_string_equal(profile_str(&merged, loops->longest_file), "/p/a.py");
    assert_int_equal(loops->tasks_peak, 14);
    assert_int_equal(loops->crowd_count, 1);
    assert_close(loops->crowd[0].at_sec, 11);
    assert_int_equal(loops->crowd[0].tasks, 14);
    release_all(&merged, runs, 2);
}

/* ---- through the file ---- */

/* The original knows no seconds: its percents are of its elapsed time. */
static void original_profiles(void **state)
{
    static const char *const texts[] = {
        "{\"elapsed_time_sec\":2.0,\"files\":{\"/p/"
        "a.py\":{\"lines\":[{\"lineno\":1,\"line\":\"x\\n\","
        "\"n_cpu_percent_python\":50.0,\"n_sys_percent\":25.0}]}}}",
        "{\"elapsed_time_sec\":6.0,\"files\":{\"/p/"
        "a.py\":{\"lines\":[{\"lineno\":1,\"line\":\"x\\n\","
        "\"n_cpu_percent_python\":10.0,\"n_sys_percent\":90.0}]}}}"};
    struct profile runs[2], merged;
    for (int i = 0; i < 2; i++)
        assert_int_equal(json_read_profile(&runs[i], texts[i], strlen(texts[i]), NULL), 0);
    merge_profiles(&merged, runs, 2);
    assert_close(merged.total_sec, 8);
    assert_close(merged.elapsed_sec, 8);
    const struct profile_line *line = &merged.files[0].lines[0];
    assert_close(profile_percent(&merged, line->time.python_sec), 100 * 1.6 / 8);
    assert_close(profile_percent(&merged, line->time.system_sec), 100 * 5.9 / 8);
    release_all(&merged, runs, 2);
}

/* Merging a profile with an empty one is the profile, to the last byte. */
static void assert_identity(const char *path)
{
    struct buf before = {0}, after = {0}, text = {0};
    struct profile runs[2], merged;
    struct err err = {""};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = fgetc(file)) != EOF;)
        buf_char(&text, (char)c);
    fclose(file);
    if (json_read_profile(&runs[0], text.data, text.len, &err))
        fail_msg("%s", err.text);
    profile_init(&runs[1]);
    runs[1].empty = true;
    merge_profiles(&merged, runs, 2);
    json_write_profile(&runs[0], &before);
    /* Half-widths are made anew, from what they tell themselves: equal, but for rounding. */
    for (uint32_t f = 0; f < merged.file_count; f++) {
        struct profile_file *to = &merged.files[f], *from = &runs[0].files[f];
        for (uint32_t i = 0; i < to->line_count; i++) {
            assert_close(to->lines[i].half_width_percent, from->lines[i].half_width_percent);
            to->lines[i].half_width_percent = from->lines[i].half_width_percent;
            assert_close(to->lines[i].core_utilization, from->lines[i].core_utilization);
            to->lines[i].core_utilization = from->lines[i].core_utilization;
        }
        for (uint32_t i = 0; i < to->function_count; i++) {
            assert_close(to->functions[i].half_width_percent,
                         from->functions[i].half_width_percent);
            to->functions[i].half_width_percent = from->functions[i].half_width_percent;
            assert_close(to->functions[i].core_utilization, from->functions[i].core_utilization);
            to->functions[i].core_utilization = from->functions[i].core_utilization;
        }
        assert_close(profile_time_sum(&to->time), profile_time_sum(&from->time));
        to->time = from->time;
    }
    assert_close(merged.elapsed_sec, runs[0].elapsed_sec);
    merged.elapsed_sec = runs[0].elapsed_sec;
    json_write_profile(&merged, &after);
    assert_string_equal(after.data, before.data);
    buf_release(&text);
    buf_release(&before);
    buf_release(&after);
    release_all(&merged, runs, 2);
}

static void identity(void **state)
{
    assert_identity(SOURCE_ROOT "/tests/golden/basic.json");
    assert_identity(SOURCE_ROOT "/tests/golden/async.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(elapsed_is_what_is_covered),
        cmocka_unit_test(half_widths),
        cmocka_unit_test(half_widths_unknown),
        cmocka_unit_test(empty_runs),
        cmocka_unit_test(files_of_one_run_only),
        cmocka_unit_test(changed_source),
        cmocka_unit_test(source_without_text),
        cmocka_unit_test(sources_with_holes),
        cmocka_unit_test(functions),
        cmocka_unit_test(functions_of_one_name),
        cmocka_unit_test(alignment),
        cmocka_unit_test(stamps),
        cmocka_unit_test(stacks_and_timeline),
        cmocka_unit_test(too_many_stacks),
        cmocka_unit_test(processes_notes_losses),
        cmocka_unit_test(memory_is_merged),
        cmocka_unit_test(event_loops_are_merged),
        cmocka_unit_test(original_profiles),
        cmocka_unit_test(identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
