/*
 * Memory in a report: what sites, courses and live blocks of made-up recordings
 * become on lines, and which lines are suspected of leaking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_make.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM        "/nowhere/program/main.py"
#define NEAR(a, b, by) assert_true(fabs((a) - (b)) <= (by))

enum { MS = 1000000, MIB = 1 << 20, LEAK_LINE = 5, OTHER_LINE = 6 };

struct fixture {
    char directory[32];
    struct arena_make make;
    uint32_t leak_node, other_node, thread_node;
    struct profile profile;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.directory = "/tmp/scalene-test-XXXXXX"};
    if (!mkdtemp(fixture.directory))
        return -1;
    struct arena_make *make = &fixture.make;
    arena_make_init(make, 100);
    make->header.flags = WIRE_PROCESS_MEMORY | WIRE_PROCESS_FIRST;
    make->header.on_ns = 1000 * (uint64_t)MS;
    make->header.beat_mono_ns = make->header.start_mono_ns + 1000 * (uint64_t)MS;
    make->header.memory.look.at_cpu_ms = 1000;
    make->header.memory.interval_bytes = 128 << 10;
    make->header.memory.foot_stride = 1;
    uint32_t module = arena_make_code(make, PROGRAM, "<module>", 1, 20);
    fixture.leak_node = arena_make_frame(make, 0, module, LEAK_LINE);
    fixture.other_node = arena_make_frame(make, 0, module, OTHER_LINE);
    fixture.thread_node = arena_make_node(make, 0, WIRE_FRAME_NO_PYTHON, 0, 0);
    arena_make_cell(make, fixture.leak_node, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    profile_init(&fixture.profile);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char *path = mem_format("%s/100-0.arena", f->directory);
    unlink(path);
    free(path);
    profile_release(&f->profile);
    arena_make_release(&f->make);
    return rmdir(f->directory);
}

static const struct profile_memory *report(struct fixture *f, uint32_t line)
{
    char *path = mem_format("%s/100-0.arena", f->directory);
    arena_make_write(&f->make, path);
    free(path);
    struct report_config config = {
        .session_directory = f->directory,
        .program = PROGRAM,
        .program_path = "",
        .profile_only = "",
        .profile_exclude = "",
        .cpu_percent_threshold = 1,
        .memory = true,
        .leaks = true,
    };
    struct err err;
    assert_int_equal(harvest_build(&f->profile, &config, &err), 0);
    assert_int_equal(f->profile.file_count, 1);
    return &profile_line_at(&f->profile.files[0], line)->memory;
}

static void sites_add_up_on_lines(void **state)
{
    struct fixture *f = *state;
    uint32_t library = arena_make_module(&f->make, "/usr/lib/libsqlite3.so.0");
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB);
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_NATIVE, library, 10 * MIB, 4 * MIB);
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_COPY, 0, 7 * MIB, 0);
    arena_make_site(&f->make, f->thread_node, WIRE_SITE_NATIVE, library, 5 * MIB, 5 * MIB);
    const struct profile_memory *line = report(f, LEAK_LINE);
    NEAR(line->allocated_mb, 40, 1e-9);
    NEAR(line->python_mb, 30, 1e-9);
    NEAR(line->live_mb, 14, 1e-9);
    NEAR(line->copied_mb, 7, 1e-9);
    assert_string_equal(profile_str(&f->profile, line->library), "libsqlite3.so.0");
    NEAR(f->profile.all_memory.allocated_mb, 45, 1e-9);
    NEAR(f->profile.untraced_memory.allocated_mb, 5, 1e-9);
    NEAR(f->profile.native_threads_mb, 5, 1e-9);
    NEAR(f->profile.growth_percent, 100 * 19.0 / 45, 1e-9);
    assert_int_equal(f->profile.memory_stack_count, 1);
    NEAR(f->profile.memory_stacks[0].mb, 40, 1e-9);
}

static struct wire_site *site_at(struct fixture *f, uint32_t id)
{
    return (struct wire_site *)(void *)f->make.sections[WIRE_SITE].data + id;
}

/* What was gone again at once is in the total alone. */
static void churn_is_left_out(void **state)
{
    struct fixture *f = *state;
    uint32_t id = arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 100 * MIB, 10 * MIB);
    arena_make_site(&f->make, f->other_node, WIRE_SITE_NATIVE, 0, 20 * MIB, 0);
    site_at(f, id)->churned_bytes = 70 * MIB;
    site_at(f, id)->churned_count = 70 << 10;
    const struct profile_memory *line = report(f, LEAK_LINE);
    NEAR(line->allocated_mb, 30, 1e-9);
    NEAR(line->python_mb, 30, 1e-9);
    NEAR(line->total_mb, 100, 1e-9);
    assert_int_equal(line->count, 30 << 10);
    assert_int_equal(line->total_count, 100 << 10);
    NEAR(line->live_mb, 10, 1e-9);
    NEAR(f->profile.all_memory.allocated_mb, 50, 1e-9);
    NEAR(f->profile.all_memory.total_mb, 120, 1e-9);
    NEAR(f->profile.memory_stacks[0].mb, 30, 1e-9);
    NEAR(f->profile.growth_percent, 20, 1e-9);
}

/* Sixteen samples of a MiB on one line, of which four were gone at once and one lives; as many on
 * another; a copy of four samples. */
static void half_widths_come_from_weights(void **state)
{
    struct fixture *f = *state;
    const double one = (double)MIB * MIB;
    uint32_t id = arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 16 * MIB, MIB);
    uint32_t other = arena_make_site(&f->make, f->other_node, WIRE_SITE_PYTHON, 0, 116 * MIB, 0);
    uint32_t copy = arena_make_site(&f->make, f->leak_node, WIRE_SITE_COPY, 0, 4 * MIB, 0);
    site_at(f, id)->churned_bytes = 4 * MIB;
    site_at(f, id)->square = 16 * one;
    site_at(f, id)->churned_square = 4 * one;
    site_at(f, id)->live_square = one;
    site_at(f, id)->most_bytes = 2 * MIB;
    site_at(f, id)->most_square = 2 * one;
    site_at(f, id)->window_square = 9 * one;
    site_at(f, other)->square = 16 * one; /* 100 MiB of it are exact */
    site_at(f, other)->window_square = -one;
    site_at(f, copy)->square = 4 * one;
    const struct profile_memory *line = report(f, LEAK_LINE);
    double of_kept = 12 * (1 - 11.0 / 12 * 12 / 32), of_live = 1 - 11.0 / 12 / 32;
    NEAR(line->half_width_mb.allocated, 1.96 * sqrt(of_kept + 9 * 0.75 * 0.75), 1e-9);
    NEAR(line->half_width_mb.live, 1.96 * sqrt(of_live + 9.0 / 256), 1e-9);
    NEAR(line->half_width_mb.peak, 1.96 * sqrt(2 * (1 - 11.0 / 12 * 2 / 32) + 9.0 / 64), 1e-9);
    NEAR(line->half_width_mb.copied, 1.96 * sqrt(4.0 / 12), 1e-9);
    line = &profile_line_at(&f->profile.files[0], OTHER_LINE)->memory;
    NEAR(line->half_width_mb.allocated, 1.96 * sqrt(16 * (1 - 11.0 / 24)), 1e-9);
    NEAR(line->half_width_mb.live, 0, 1e-9);
}

static void the_cost_of_following_memory(void **state)
{
    struct fixture *f = *state;
    f->make.header.memory.sample_ns = 30 * (uint64_t)MS;
    f->make.header.memory.calls = 10000000;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB);
    report(f, LEAK_LINE);
    NEAR(f->profile.memory_sec, 0.05, 1e-9);
    NEAR(profile_overhead_sec(&f->profile), 0.05, 1e-9);
}

/* `count` more stacks, so many frames deep, of so much memory each. */
static void add_stacks(struct fixture *f, unsigned count, unsigned depth, uint64_t bytes)
{
    enum { FIRST = 10 };
    uint32_t code = arena_make_code(&f->make, PROGRAM, "deeper", FIRST, 400), node = f->other_node;
    while (depth-- > 2)
        node = arena_make_frame(&f->make, node, code, FIRST);
    for (unsigned i = 0; i < count; i++)
        arena_make_site(&f->make, arena_make_frame(&f->make, node, code, FIRST + 1 + (int)i),
                        WIRE_SITE_PYTHON, 0, bytes, 0);
}

static void stacks_that_tell_little_are_left_out(void **state)
{
    struct fixture *f = *state;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 900 * (uint64_t)MIB, 0);
    add_stacks(f, 300, 10, MIB / 3); /* a tenth, in parts of a three-thousandth */
    report(f, LEAK_LINE);
    assert_int_equal(f->profile.memory_stack_count, 100);
    NEAR(f->profile.memory_stacks[0].mb, 900, 1e-9);
    NEAR(f->profile.all_memory.allocated_mb, 1000, 0.01);
}

static void stacks_that_make_up_all_are_told(void **state)
{
    struct fixture *f = *state;
    add_stacks(f, 200, 10, MIB);
    report(f, LEAK_LINE);
    assert_int_equal(f->profile.memory_stack_count, 198);
}

static void deep_stacks_are_fewer(void **state)
{
    struct fixture *f = *state;
    add_stacks(f, 200, 100, MIB);
    report(f, LEAK_LINE);
    assert_int_equal(f->profile.memory_stack_count, PROFILE_MEMORY_FRAMES_MAX / 100);
}

static void live_at_the_peak_by_epoch(void **state)
{
    struct fixture *f = *state;
    uint32_t first =
        arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB);
    arena_make_site(&f->make, f->other_node, WIRE_SITE_PYTHON, 0, 8 * MIB, 8 * MIB);
    struct wire_site *site = (struct wire_site *)(void *)f->make.sections[WIRE_SITE].data + first;
    site->peak_epoch = 3; /* changed since the peak: what it had then is kept aside */
    site->at_peak_bytes = 20 * MIB;
    site->most_bytes = 20 * MIB;
    f->make.header.memory.peak_epoch = 3;
    f->make.header.memory.peak_bytes = 28 * MIB;
    f->make.header.memory.peak_python_bytes = 14 * MIB;
    f->make.header.memory.peak_site = first;
    const struct profile_memory *line = report(f, LEAK_LINE);
    NEAR(line->at_peak_mb, 20, 1e-9);
    NEAR(line->peak_mb, 20, 1e-9);
    NEAR(profile_line_at(&f->profile.files[0], OTHER_LINE)->memory.at_peak_mb, 8, 1e-9);
    NEAR(f->profile.all_memory.peak_mb, 28, 1e-9);
    NEAR(f->profile.peak_python_fraction, 0.5, 1e-9);
    assert_string_equal(profile_str(&f->profile, f->profile.peak_file), PROGRAM);
    assert_int_equal(f->profile.peak_line, LEAK_LINE);
}

/* The interpreter itself may add a little on top of what a line has piled up. */
static void a_peak_on_no_line_is_the_last_line_s(void **state)
{
    struct fixture *f = *state;
    struct arena_make *make = &f->make;
    uint32_t a = arena_make_site(make, f->leak_node, WIRE_SITE_PYTHON, 0, 10 * MIB, 0);
    uint32_t b = arena_make_site(make, f->other_node, WIRE_SITE_PYTHON, 0, 10 * MIB, 0);
    uint32_t none = arena_make_site(make, f->thread_node, WIRE_SITE_NATIVE, 0, MIB, 0);
    arena_make_foot(make, 100 * MS, a, WIRE_FOOT_ALLOCATED, 10240, 10240);
    arena_make_foot(make, 200 * MS, b, WIRE_FOOT_ALLOCATED, 20480, 10240);
    arena_make_foot(make, 250 * MS, none, WIRE_FOOT_ALLOCATED, 21504, 1024);
    arena_make_foot(make, 300 * MS, none, WIRE_FOOT_FREED, 20480, 0);
    arena_make_foot(make, 400 * MS, b, WIRE_FOOT_FREED, 10240, 0);
    arena_make_foot(make, 500 * MS, a, WIRE_FOOT_ALLOCATED, 11264, 11264);
    make->header.memory.peak_bytes = 21 * MIB;
    make->header.memory.peak_at_ns = 250 * (uint64_t)MS;
    make->header.memory.peak_site = none;
    report(f, LEAK_LINE);
    assert_int_equal(f->profile.peak_line, OTHER_LINE);
}

/* Two sites of one line: the line's peak is when both are high, not the sum of their peaks. */
static void the_course_of_a_line_is_replayed(void **state)
{
    struct fixture *f = *state;
    struct arena_make *make = &f->make;
    uint32_t a = arena_make_site(make, f->leak_node, WIRE_SITE_PYTHON, 0, 10 * MIB, 0);
    uint32_t b = arena_make_site(make, f->leak_node, WIRE_SITE_NATIVE, 0, 10 * MIB, 0);
    arena_make_foot(make, 0, a, WIRE_FOOT_ALLOCATED, 10240, 10240);
    arena_make_foot(make, 250 * MS, a, WIRE_FOOT_FREED, 2048, 2048);
    arena_make_foot(make, 500 * MS, b, WIRE_FOOT_ALLOCATED, 12288, 10240);
    arena_make_foot(make, 750 * MS, b, WIRE_FOOT_FREED, 2048, 0);
    arena_make_foot(make, 900 * MS, a, WIRE_FOOT_FREED, 0, 0);
    const struct profile_memory *line = report(f, LEAK_LINE);
    NEAR(line->peak_mb, 12, 1e-9);
    NEAR(line->average_mb, 0.25 * 10 + 0.25 * 2 + 0.25 * 12 + 0.15 * 2, 1e-6);
    assert_int_equal(line->point_count, 5);
    NEAR(line->own[2].mb, 12, 1e-9);
    NEAR(f->profile.all_memory.peak_mb, 12, 1e-9);
    assert_int_equal(f->profile.all_memory.point_count, 5);
}

enum { EVENTS = 400, RUN_MS = 10000 };

/* A CPU sample of something else than what allocates. */
static void run_other(struct fixture *f, uint64_t at_ns)
{
    arena_make_cell(&f->make, f->other_node, WIRE_CPU_PYTHON, 1, MS / 10, 0);
    arena_make_log(&f->make, at_ns, f->other_node, 0, WIRE_CPU_PYTHON, 1, 100);
}

static void take_sec(struct fixture *f, unsigned sec)
{
    struct wire_header *header = &f->make.header;
    header->on_ns = sec * 1000 * (uint64_t)MS;
    header->beat_mono_ns = header->start_mono_ns + header->on_ns;
}

/* `EVENTS` samples of a stack over the run; the i-th lives on if `survives(i)` says so.  Live
 * memory is those that live on, or always as much: then others went before the end.  Every
 * `again`-th time something else is seen to run in between; 0: never. */
static void pattern_of(struct fixture *f, uint32_t node, bool (*survives)(int), bool is_bounded,
                       int again)
{
    uint32_t site = arena_make_site(&f->make, node, WIRE_SITE_PYTHON, 0, 50 * MIB, 25 * MIB);
    uint32_t live_kib = is_bounded ? 4096 : 0;
    take_sec(f, RUN_MS / 1000);
    f->make.header.memory.look.at_cpu_ms = RUN_MS;
    for (int i = 0; i < EVENTS; i++) {
        uint64_t at_ms = (uint64_t)i * RUN_MS / EVENTS;
        bool lives_on = survives(i);
        if (lives_on)
            arena_make_block(&f->make, site, 128 << 10, at_ms);
        if (lives_on && !is_bounded)
            live_kib += 128;
        arena_make_foot(&f->make, at_ms * MS, site, WIRE_FOOT_ALLOCATED, live_kib, live_kib);
        if (again && i % again == 0)
            run_other(f, at_ms * MS + MS);
    }
}

/* The same of a line that runs again each time. */
static void pattern(struct fixture *f, bool (*survives)(int), bool is_bounded)
{
    pattern_of(f, f->leak_node, survives, is_bounded, 1);
}

static bool all(int i)
{
    return i >= 0;
}

static bool every_other(int i)
{
    return i % 2 == 0;
}

static bool the_last_tenth(int i)
{
    return i >= EVENTS - EVENTS / 10;
}

static bool the_younger_the_likelier(int i)
{
    return i > EVENTS / 2 || i % 8 == 0;
}

static bool the_first_third(int i)
{
    return i < EVENTS / 3;
}

/* Ever fewer: a memo of keys that have nearly all been seen. */
static bool fewer_and_fewer(int i)
{
    return (int)(160 * exp(-i / 120.0)) != (int)(160 * exp(-(i + 1) / 120.0));
}

static bool the_first_four_fifths(int i)
{
    return i < EVENTS * 4 / 5;
}

static bool none(int i)
{
    return i < 0;
}

static bool few(int i)
{
    return i % 40 == 0;
}

static void leaks_are_found(void **state)
{
    struct fixture *f = *state;
    pattern(f, all, false);
    const struct profile_memory *line = report(f, LEAK_LINE);
    assert_true(line->leak.likelihood >= 0.95);
    NEAR(line->leak.velocity_mb_s, 5, 0.2);
}

static void a_leak_among_temporary_blocks_is_found(void **state)
{
    struct fixture *f = *state;
    pattern(f, every_other, false);
    assert_true(report(f, LEAK_LINE)->leak.likelihood >= 0.95);
}

static void assert_innocent(struct fixture *f, bool (*survives)(int), bool is_bounded)
{
    pattern(f, survives, is_bounded);
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

static void a_cache_with_a_bound_is_no_leak(void **state)
{
    assert_innocent(*state, the_last_tenth, true);
}

static void a_cache_that_evicts_by_age_is_no_leak(void **state)
{
    assert_innocent(*state, the_younger_the_likelier, false);
}

static void a_pool_that_is_filled_once_is_no_leak(void **state)
{
    assert_innocent(*state, the_first_third, false);
}

static void what_is_freed_is_no_leak(void **state)
{
    assert_innocent(*state, none, true);
}

static void little_evidence_is_no_leak(void **state)
{
    assert_innocent(*state, few, false);
}

static void what_fills_up_is_no_leak(void **state)
{
    assert_innocent(*state, fewer_and_fewer, false);
}

static void what_was_collected_before_the_end_is_no_leak(void **state)
{
    assert_innocent(*state, the_first_four_fifths, false);
}

/* The best so many of all: they may be of any age, but there are never more. */
static void what_is_bounded_is_no_leak(void **state)
{
    assert_innocent(*state, every_other, true);
}

/* By the clock on the wall a pattern began so late and took so many times less. */
static void squeeze(struct fixture *f, unsigned from_ms, unsigned times)
{
    struct wire_foot *feet = (struct wire_foot *)(void *)f->make.sections[WIRE_FOOT].data;
    struct wire_log *logs = (struct wire_log *)(void *)f->make.sections[WIRE_LOG].data;
    for (int i = 1; i <= EVENTS; i++) {
        feet[i].at_ns = feet[i].at_ns / times + from_ms * (uint64_t)MS;
        logs[i].at_ns = logs[i].at_ns / times + from_ms * (uint64_t)MS;
    }
}

static void a_run_that_is_short_tells_nothing(void **state)
{
    struct fixture *f = *state;
    pattern(f, all, false);
    squeeze(f, 0, 5);
    take_sec(f, RUN_MS / 5000);
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

static void what_one_execution_builds_is_no_leak(void **state)
{
    struct fixture *f = *state;
    pattern_of(f, f->leak_node, all, false, 0);
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

static void few_executions_are_no_leak(void **state)
{
    struct fixture *f = *state;
    pattern_of(f, f->leak_node, all, false, EVENTS / 8);
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

/* Other threads begin with other functions: what they do says nothing. */
static void another_thread_does_not_end_an_execution(void **state)
{
    struct fixture *f = *state;
    uint32_t code = arena_make_code(&f->make, PROGRAM, "run", 10, 20);
    uint32_t own = f->other_node;
    f->other_node = arena_make_frame(&f->make, 0, code, 12);
    pattern(f, all, false);
    f->other_node = own;
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

static void what_an_import_keeps_is_no_leak(void **state)
{
    struct fixture *f = *state;
    uint32_t code = arena_make_code(&f->make, "<frozen importlib._bootstrap>", "_load", 1, 9);
    pattern_of(f, arena_make_frame(&f->make, f->leak_node, code, 3), all, false, 1);
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

/* What runs again and again in between runs below the statement, which is still the same one. */
static bool is_leak_below(struct fixture *f, const char *name, uint32_t other)
{
    uint32_t code = arena_make_code(&f->make, PROGRAM, name, 10, 20);
    uint32_t own = f->other_node, inner = arena_make_frame(&f->make, f->leak_node, code, 12);
    f->other_node = other ? arena_make_frame(&f->make, other, code, 13) : own;
    for (int depth = 0; !strcmp(name, "build") && depth < 3; depth++)
        inner = arena_make_frame(&f->make, inner, code, 12);
    pattern_of(f, inner, all, false, 1);
    f->other_node = own;
    return report(f, 12)->leak.likelihood >= 0.95;
}

static void a_loop_in_a_function_is_a_leak(void **state)
{
    struct fixture *f = *state;
    assert_true(is_leak_below(f, "work", f->leak_node));
}

static void a_comprehension_is_one_execution(void **state)
{
    struct fixture *f = *state;
    assert_false(is_leak_below(f, "load.<locals>.<listcomp>", f->leak_node));
}

static void a_comprehension_that_runs_again_is_a_leak(void **state)
{
    assert_true(is_leak_below(*state, "load.<locals>.<listcomp>", 0));
}

static void what_recursion_builds_is_of_its_outermost_call(void **state)
{
    struct fixture *f = *state;
    uint32_t code = arena_make_code(&f->make, PROGRAM, "build", 10, 20);
    assert_false(is_leak_below(f, "build", arena_make_frame(&f->make, f->leak_node, code, 12)));
}

static void what_stopped_by_the_clock_is_no_leak(void **state)
{
    struct fixture *f = *state;
    pattern(f, all, false);
    take_sec(f, 2 * RUN_MS / 1000); /* and then it waited for as long again */
    assert_true(report(f, LEAK_LINE)->leak.likelihood == 0);
}

/* One list that is appended to: each time it is full it gets an eighth more.  `rounds` times it is
 * emptied. */
static const struct profile_memory *growing_list(struct fixture *f, uint32_t rounds)
{
    enum { APPENDS = 6000 };
    uint32_t site =
        arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 50 * MIB, 25 * MIB);
    uint32_t room_kib = 64, used_kib = 0;
    take_sec(f, RUN_MS / 1000);
    f->make.header.memory.look.at_cpu_ms = RUN_MS;
    for (uint32_t i = 0; i < APPENDS; i++) {
        uint64_t at_ns = (uint64_t)i * RUN_MS * MS / APPENDS;
        if (i % 100 == 0) {
            arena_make_log(&f->make, at_ns, f->leak_node, 0, WIRE_CPU_PYTHON, 1, 10000);
            run_other(f, at_ns + MS);
        }
        if (rounds && i % (APPENDS / rounds) == 0) {
            room_kib = 64;
            used_kib = 0;
            arena_make_foot(&f->make, at_ns, site, WIRE_FOOT_FREED, 0, 0);
        }
        used_kib += 8;
        if (used_kib <= room_kib)
            continue;
        room_kib += room_kib / 8;
        arena_make_foot(&f->make, at_ns, site, WIRE_FOOT_ALLOCATED, room_kib, room_kib);
    }
    arena_make_block(&f->make, site, (uint64_t)room_kib << 10, 1);
    ((struct wire_block *)(void *)f->make.sections[WIRE_BLOCK].data)[1].flags =
        WIRE_BLOCK_EXACT | WIRE_BLOCK_GREW;
    return report(f, LEAK_LINE);
}

static void a_list_that_grows_for_ever_is_a_leak(void **state)
{
    const struct profile_memory *line = growing_list(*state, 0);
    assert_true(line->leak.likelihood >= 0.95);
    NEAR(line->leak.velocity_mb_s, 4.8, 0.8);
}

static void a_list_that_is_emptied_is_no_leak(void **state)
{
    assert_true(growing_list(*state, 6)->leak.likelihood == 0);
}

/* A machine that was busy with something else: by the wall all of it happened at the end. */
static void leaks_are_judged_by_processor_time(void **state)
{
    struct fixture *f = *state;
    pattern(f, all, false);
    squeeze(f, RUN_MS / 10 * 9, 10);
    assert_true(report(f, LEAK_LINE)->leak.likelihood >= 0.95);
}

/* Months of processor time, as 64 processors have them in a day, are more milliseconds than 32 bits
 * hold. */
static void leaks_are_found_after_months(void **state)
{
    enum { LONGER = 6000000 };
    struct fixture *f = *state;
    pattern(f, all, false);
    struct wire_foot *feet = (struct wire_foot *)(void *)f->make.sections[WIRE_FOOT].data;
    struct wire_block *blocks = (struct wire_block *)(void *)f->make.sections[WIRE_BLOCK].data;
    for (int i = 1; i <= EVENTS; i++) {
        feet[i].at_cpu_ms *= LONGER;
        blocks[i].at_cpu_ms *= LONGER;
    }
    f->make.header.memory.look.at_cpu_ms *= LONGER;
    assert_true(blocks[EVENTS].at_cpu_ms > UINT32_MAX);
    assert_true(report(f, LEAK_LINE)->leak.likelihood >= 0.95);
}

/* Resident memory and the part of it that is files, at the start and at the last look, in MiB. */
static const struct profile_process *resident(struct fixture *f, unsigned start,
                                              unsigned start_file, unsigned rss, unsigned file)
{
    struct wire_memory *memory = &f->make.header.memory;
    memory->start_rss_bytes = (uint64_t)start * MIB;
    memory->start_file_bytes = (uint64_t)start_file * MIB;
    memory->look.rss_bytes = (uint64_t)rss * MIB;
    memory->look.file_bytes = (uint64_t)file * MIB;
    report(f, LEAK_LINE);
    const struct profile_process *process = &f->profile.processes[0];
    assert_true(process->has_memory);
    NEAR(process->start_rss_mb + process->python_live_mb + process->native_live_mb +
             process->mapped_live_mb + process->slack_mb + process->other_mb -
             process->untouched_mb,
         rss, 1e-9);
    return process;
}

static void resident_memory_is_explained(void **state)
{
    struct fixture *f = *state;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB);
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_NATIVE, 0, 5 * MIB, 5 * MIB);
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_MAPPED, 0, 4 * MIB, 4 * MIB);
    const struct profile_process *process = resident(f, 8, 6, 36, 8);
    NEAR(process->python_live_mb, 10, 1e-9);
    NEAR(process->native_live_mb, 5, 1e-9);
    NEAR(process->mapped_live_mb, 4, 1e-9);
    NEAR(process->slack_mb, 7, 1e-9);
    NEAR(process->other_mb, 2, 1e-9);
    NEAR(process->untouched_mb, 0, 1e-9);
}

static void memory_that_is_not_resident_is_explained(void **state)
{
    struct fixture *f = *state;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 30 * MIB);
    const struct profile_process *process = resident(f, 8, 6, 10, 5);
    NEAR(process->slack_mb, 0, 1e-9);
    NEAR(process->other_mb, 0, 1e-9);
    NEAR(process->untouched_mb, 27 + 1, 1e-9); /* 3 of 30 were written to; a MiB of files went */
}

static void shared_mappings_are_not_counted_twice(void **state)
{
    struct fixture *f = *state;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_MAPPED, 0, 20 * MIB, 20 * MIB);
    const struct profile_process *process = resident(f, 8, 6, 30, 28);
    NEAR(process->mapped_live_mb, 20, 1e-9);
    NEAR(process->slack_mb, 0, 1e-9);
    NEAR(process->other_mb, 2, 1e-9);
    NEAR(process->untouched_mb, 0, 1e-9);
}

/* The interpreter frees what the program left: neither that nor what is resident then counts. */
static void the_look_has_its_own_live_memory(void **state)
{
    struct fixture *f = *state;
    arena_make_site(&f->make, f->leak_node, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB);
    f->make.header.memory.live_bytes = f->make.header.memory.live_python_bytes = 25 * MIB;
    const struct profile_process *process = resident(f, 8, 6, 20, 6);
    NEAR(process->python_live_mb, 10, 1e-9);
    NEAR(process->slack_mb, 2, 1e-9);
}

/* References into nowhere must not be followed. */
static void damaged_references_are_ignored(void **state)
{
    struct fixture *f = *state;
    struct arena_make *make = &f->make;
    arena_make_site(make, 999999, WIRE_SITE_PYTHON, 77777, MIB, MIB);
    arena_make_site(make, f->leak_node, WIRE_SITE_KINDS, 0, MIB, MIB);
    arena_make_foot(make, 0, 4242, WIRE_FOOT_ALLOCATED, 1, 1);
    arena_make_block(make, 4242, MIB, 1);
    make->header.memory.peak_site = 4242;
    make->header.memory.peak_bytes = MIB;
    const struct profile_memory *line = report(f, LEAK_LINE);
    NEAR(line->allocated_mb, 0, 1e-9);
    NEAR(f->profile.untraced_memory.allocated_mb, 1, 1e-9);
    assert_int_equal(f->profile.peak_line, 0);
}

static void memory_that_was_not_followed_is_told(void **state)
{
    struct fixture *f = *state;
    f->make.header.flags = WIRE_PROCESS_FIRST;
    report(f, LEAK_LINE);
    assert_false(f->profile.processes[0].has_memory);
    bool is_told = false;
    for (uint32_t i = 0; i < f->profile.note_count; i++)
        is_told |= strstr(profile_str(&f->profile, f->profile.notes[i]), "not be followed") != NULL;
    assert_true(is_told);
}

/* Any byte may be wrong: nothing is read that is not there, and the report is made all the same. */
static void damaged_anywhere(void **state)
{
    struct fixture *f = *state;
    uint32_t library = arena_make_module(&f->make, "/usr/lib/libsqlite3.so.0");
    arena_make_site(&f->make, f->other_node, WIRE_SITE_NATIVE, library, 10 * MIB, 4 * MIB);
    pattern(f, few, false);
    struct buf image = {0};
    arena_make_image(&f->make, &image);
    char *path = mem_format("%s/100-0.arena", f->directory);
    struct report_config config = {
        .session_directory = f->directory,
        .program = PROGRAM,
        .program_path = "",
        .profile_only = "",
        .profile_exclude = "",
        .memory = true,
        .leaks = true,
    };
    for (size_t i = 0; i < image.len; i += i < sizeof(struct wire_header) ? 97 : 11) {
        char before = image.data[i];
        image.data[i] = (char)(before ^ (1 << i % 8 | 0x80));
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(image.data, 1, image.len, file), image.len);
        fclose(file);
        image.data[i] = before;
        struct profile profile;
        struct err err;
        profile_init(&profile);
        assert_int_equal(harvest_build(&profile, &config, &err), 0);
        profile_release(&profile);
    }
    free(path);
    buf_release(&image);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sites_add_up_on_lines),
        TEST(churn_is_left_out),
        TEST(half_widths_come_from_weights),
        TEST(the_cost_of_following_memory),
        TEST(stacks_that_tell_little_are_left_out),
        TEST(stacks_that_make_up_all_are_told),
        TEST(deep_stacks_are_fewer),
        TEST(live_at_the_peak_by_epoch),
        TEST(a_peak_on_no_line_is_the_last_line_s),
        TEST(the_course_of_a_line_is_replayed),
        TEST(leaks_are_found),
        TEST(a_leak_among_temporary_blocks_is_found),
        TEST(a_cache_with_a_bound_is_no_leak),
        TEST(a_cache_that_evicts_by_age_is_no_leak),
        TEST(a_pool_that_is_filled_once_is_no_leak),
        TEST(what_is_freed_is_no_leak),
        TEST(little_evidence_is_no_leak),
        TEST(what_fills_up_is_no_leak),
        TEST(what_was_collected_before_the_end_is_no_leak),
        TEST(what_is_bounded_is_no_leak),
        TEST(a_run_that_is_short_tells_nothing),
        TEST(what_one_execution_builds_is_no_leak),
        TEST(few_executions_are_no_leak),
        TEST(another_thread_does_not_end_an_execution),
        TEST(what_an_import_keeps_is_no_leak),
        TEST(a_loop_in_a_function_is_a_leak),
        TEST(a_comprehension_is_one_execution),
        TEST(a_comprehension_that_runs_again_is_a_leak),
        TEST(what_recursion_builds_is_of_its_outermost_call),
        TEST(what_stopped_by_the_clock_is_no_leak),
        TEST(a_list_that_grows_for_ever_is_a_leak),
        TEST(a_list_that_is_emptied_is_no_leak),
        TEST(leaks_are_judged_by_processor_time),
        TEST(leaks_are_found_after_months),
        TEST(resident_memory_is_explained),
        TEST(memory_that_is_not_resident_is_explained),
        TEST(shared_mappings_are_not_counted_twice),
        TEST(the_look_has_its_own_live_memory),
        TEST(damaged_references_are_ignored),
        TEST(memory_that_was_not_followed_is_told),
        TEST(damaged_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
