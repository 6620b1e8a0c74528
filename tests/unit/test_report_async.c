/* Event loops in a report: whose line a task's time is, what is told of the whole, and that stacks
 * of tasks take nothing from the sum of all. */
#include "arena_make.h"
#include "base/file.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "report/report.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A pid beyond what any kernel gives. */
enum { MS = 1000000, PID = 5000000 };

static const char source[] = "import asyncio, io\n"           /* 1 */
                             "\n"                             /* 2 */
                             "@decorator\n"                   /* 3 */
                             "async def fetch(n):\n"          /* 4 */
                             "    await asyncio.sleep(n)\n"   /* 5 */
                             "    def inner():\n"             /* 6 */
                             "        return 1\n"             /* 7 */
                             "    await one(); await two()\n" /* 8 */
                             "\n"                             /* 9 */
                             "async def main():\n"            /* 10 */
                             "    await asyncio.gather(*a)\n" /* 11 */
                             "    work()\n"                   /* 12 */
                             "\n"                             /* 13 */
                             "asyncio.run(main())\n";         /* 14 */

static char base[] = "/tmp/scalene-test-XXXXXX";
static char *session, *script, *other;

static int set_up(void **state)
{
    if (!mkdtemp(base))
        return -1;
    session = mem_format("%s/session", base);
    script = mem_format("%s/main.py", base);
    other = mem_format("%s/other.py", base);
    return mkdir(session, 0700) || file_write_atomic(script, source, strlen(source), NULL) ||
                   file_write_atomic(other, "x = 1\n", 6, NULL)
               ? -1
               : 0;
}

static void empty_session(void)
{
    DIR *dir = opendir(session);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static int tear_down(void **state)
{
    empty_session();
    rmdir(session);
    unlink(script);
    unlink(other);
    free(session);
    free(script);
    free(other);
    return rmdir(base);
}

/* Codes of the program, and of the library it waits in. */
struct program {
    struct arena_make make;
    uint32_t module, fetch, main, other, sleep, select;
};

static void begin(struct program *program, int pid)
{
    struct arena_make *make = &program->make;
    arena_make_init(make, pid);
    make->header.on_ns = 1000 * (uint64_t)MS;
    make->header.beat_mono_ns = make->header.start_mono_ns + 1000 * (uint64_t)MS;
    program->module = arena_make_code(make, script, "<module>", 1, 14);
    program->fetch = arena_make_code(make, script, "fetch", 3, 8);
    program->main = arena_make_code(make, script, "main", 10, 12);
    program->other = arena_make_code(make, other, "spare", 1, 1);
    program->sleep = arena_make_code(make, "/usr/lib/python3.12/asyncio/tasks.py", "sleep", 1, 90);
    program->select = arena_make_code(make, "/usr/lib/python3.12/selectors.py", "select", 1, 90);
}

static void put(struct program *program)
{
    char *path = mem_format("%s/%d-0.arena", session, program->make.header.pid);
    arena_make_write(&program->make, path);
    free(path);
    arena_make_release(&program->make);
}

static uint32_t asleep(struct program *program)
{
    uint32_t awaits = arena_make_frame(&program->make, 0, program->fetch, 5);
    return arena_make_frame(&program->make, awaits, program->sleep, 50);
}

static void build(struct profile *profile)
{
    const struct report_config config = {
        .session_directory = session,
        .program = script,
        .program_path = "",
        .profile_only = "",
        .profile_exclude = "",
        .cpu_percent_threshold = 1,
        .stacks = true,
        .async_profile = true,
    };
    struct err err = {""};
    profile_init(profile);
    assert_int_equal(harvest_build(profile, &config, &err), 0);
    empty_session();
}

static const struct profile_file *file_named(const struct profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->file_count; i++)
        if (!strcmp(profile_str(profile, profile->files[i].name), name))
            return &profile->files[i];
    return NULL;
}

static const struct profile_line *line_at(const struct profile *profile, uint32_t lineno)
{
    const struct profile_file *file = file_named(profile, script);
    assert_non_null(file);
    return profile_line_at(file, lineno);
}

static const struct profile_line *function_named(const struct profile *profile, const char *name)
{
    const struct profile_file *file = file_named(profile, script);
    for (uint32_t i = 0; i < file->function_count; i++)
        if (!strcmp(profile_str(profile, file->functions[i].text), name))
            return &file->functions[i];
    return NULL;
}

static void close_to(double a, double b)
{
    if (fabs(a - b) > 1e-9)
        fail_msg("%.12f is not %.12f", a, b);
}

static void kinds_go_to_the_innermost_traced_line(void **state)
{
    struct program program;
    struct profile profile;
    begin(&program, PID);
    struct arena_make *make = &program.make;
    uint32_t sleeps = asleep(&program);
    uint32_t gathers = arena_make_frame(make, 0, program.main, 11);
    uint32_t works = arena_make_frame(make, 0, program.main, 12);
    uint32_t foreign = arena_make_frame(make, 0, program.sleep, 7);
    arena_make_await(make, sleeps, WIRE_AWAIT_WAITS, 30, 3000000);
    arena_make_await(make, sleeps, WIRE_AWAIT_READY, 5, 500000);
    arena_make_await(make, gathers, WIRE_AWAIT_TASKS, 9, 900000);
    arena_make_await(make, works, WIRE_AWAIT_BLOCKS, 3, 70000);
    arena_make_await(make, foreign, WIRE_AWAIT_WAITS, 10, 1000000);
    struct wire_await *awaits = (void *)make->sections[WIRE_AWAIT].data;
    awaits[1].square_us2 = 0.64e10; /* the two of one line, together 0.1 seconds squared */
    awaits[2].square_us2 = 0.36e10;
    awaits[3].square_us2 = 0.81e12; /* one look, it might be */
    uint32_t place = arena_make_place(make, program.fetch, 5, 750000, 6, 0);
    arena_make_name(make, place, "zoe", 0);
    arena_make_name(make, place, NULL, 12);
    arena_make_name(make, place, "zoe", 0);
    arena_make_place(make, program.main, 12, 0, 0, 40000);
    make->header.async = (struct wire_async){.state = WIRE_ASYNC_OK,
                                             .loops = 2,
                                             .idle_us = 600000,
                                             .busy_us = 300000,
                                             .blocked_us = 70000,
                                             .longest_us = 40000,
                                             .longest_node = works,
                                             .tasks_peak = 8,
                                             .passes = 30};
    put(&program);
    build(&profile);
    assert_false(profile.empty);

    const struct profile_async *async = &line_at(&profile, 5)->async;
    close_to(async->await_sec, 3);
    close_to(async->ready_sec, 0.5);
    close_to(async->join_sec, 0);
    double each_sec = 0.01 / 3.5;
    close_to(async->half_width_sec,
             1.96 * 1.96 / 2 * each_sec + 1.96 * hypot(0.1, 1.96 / 2 * each_sec));
    close_to(profile_concurrency(async), 4);
    close_to(async->peak, 6);
    close_to(profile_await_percent(&profile, async), 75);
    assert_int_equal(async->name_count, 2);
    assert_string_equal(profile_str(&profile, async->names[0]), "Task-12");
    assert_string_equal(profile_str(&profile, async->names[1]), "zoe");
    const struct profile_line *fetch = function_named(&profile, "fetch");
    close_to(fetch->async.await_sec, 3);
    close_to(profile_concurrency(&fetch->async), 4);
    assert_int_equal(fetch->async.name_count, 2);
    close_to(line_at(&profile, 11)->async.join_sec, 0.9);
    /* 5.66 times 0.9 is Wilson's limit for one sighting. */
    assert_in_range(1000 * line_at(&profile, 11)->async.half_width_sec, 4190, 4200);
    const struct profile_async *blocks = &line_at(&profile, 12)->async;
    close_to(blocks->blocked_sec, 0.07);
    close_to(blocks->blocked_longest_sec, 0.04);
    assert_int_equal(blocks->blocked_count, 3);
    assert_true(profile_line_is_active(line_at(&profile, 12)));

    const struct profile_loops *loops = &profile.loops;
    assert_int_equal(loops->count, 2);
    assert_int_equal(loops->looks, 30);
    close_to(loops->idle_sec, 0.6);
    close_to(loops->busy_sec, 0.3);
    close_to(loops->blocked_sec, 0.07);
    close_to(loops->longest_sec, 0.04);
    assert_string_equal(profile_str(&profile, loops->longest_file), script);
    assert_int_equal(loops->longest_line, 12);
    close_to(loops->await_sec, 4);
    close_to(loops->untraced_await_sec, 1);
    close_to(loops->join_sec, 0.9);
    close_to(loops->ready_sec, 0.5);
    assert_int_equal(loops->tasks_peak, 8);
    profile_release(&profile);
}

static void coroutines_are_known_by_the_source(void **state)
{
    struct program program;
    struct profile profile;
    begin(&program, PID);
    uint32_t in_main = arena_make_frame(&program.make, 0, program.main, 12);
    arena_make_cell(&program.make, in_main, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_await(&program.make, asleep(&program), WIRE_AWAIT_WAITS, 1, 10000);
    put(&program);
    build(&profile);
    static const bool expected[] = {false, false, false, false, true, true,  false, false,
                                    true,  false, true,  true,  true, false, false};
    for (uint32_t n = 1; n <= 14; n++)
        if (line_at(&profile, n)->is_coroutine != expected[n])
            fail_msg("line %u", n);
    assert_true(function_named(&profile, "fetch")->is_coroutine);
    assert_true(function_named(&profile, "main")->is_coroutine);
    profile_release(&profile);
}

/* Two instructions of one line, and of two processes. */
static void places_of_a_line_and_processes_add_up(void **state)
{
    struct profile profile;
    for (int i = 0; i < 2; i++) {
        struct program program;
        begin(&program, PID + i);
        struct arena_make *make = &program.make;
        uint32_t awaits = arena_make_frame(make, 0, program.fetch, 8);
        arena_make_await(make, awaits, WIRE_AWAIT_WAITS, 10, 2000000);
        arena_make_await(make, awaits, WIRE_AWAIT_TASKS, 10, 1000000);
        uint32_t first = arena_make_place(make, program.fetch, 8, 500000, 3 + (uint32_t)i, 1000);
        uint32_t second = arena_make_place(make, program.fetch, 8, 1000000, 5, 2000);
        for (uint64_t n = 0; n < 60; n++) {
            arena_make_name(make, first, NULL, 100 * (uint64_t)i + n);
            arena_make_name(make, second, NULL, 100 * (uint64_t)i + n);
        }
        arena_make_crowd(make, 100 * MS, 10);
        arena_make_crowd(make, 500 * MS, 30);
        make->header.async.longest_us = 1000 + (uint64_t)i;
        make->header.async.tasks_peak = 31;
        make->header.async.loops = 1;
        put(&program);
    }
    build(&profile);
    const struct profile_async *async = &line_at(&profile, 8)->async;
    close_to(async->await_sec, 4);
    close_to(async->join_sec, 2);
    close_to(profile_concurrency(async), 2);
    close_to(async->peak, 5);
    close_to(async->blocked_longest_sec, 0.002);
    assert_int_equal(async->name_count, 100);
    for (uint32_t i = 1; i < 100; i++)
        assert_true(strcmp(profile_str(&profile, async->names[i - 1]),
                           profile_str(&profile, async->names[i])) < 0);
    assert_int_equal(profile.loops.count, 2);
    close_to(profile.loops.longest_sec, 0.001001);
    assert_int_equal(profile.loops.longest_line, 0);
    assert_int_equal(profile.loops.tasks_peak, 60);
    assert_int_equal(profile.loops.crowd_count, 2);
    assert_int_equal(profile.loops.crowd[0].tasks, 20);
    assert_int_equal(profile.loops.crowd[1].tasks, 60);
    assert_true(fabs(profile.loops.crowd[0].at_sec - 0.1) < 0.02);
    assert_true(fabs(profile.loops.crowd[1].at_sec - 0.5) < 0.02);
    profile_release(&profile);
}

/* Days of points, and a process that began at another time: still a hundred, and the highest there.
 */
static void a_long_course_is_thinned(void **state)
{
    struct profile profile;
    for (int i = 0; i < 2; i++) {
        struct program program;
        begin(&program, PID + i);
        struct arena_make *make = &program.make;
        make->header.start_mono_ns += (uint64_t)i * 3600 * 1000 * MS;
        make->header.beat_mono_ns = make->header.start_mono_ns + UINT64_C(86400000) * MS;
        arena_make_await(make, asleep(&program), WIRE_AWAIT_WAITS, 1, 1000);
        for (uint32_t n = 0; n < 4000; n++)
            arena_make_crowd(make, (uint64_t)n * 20000 * MS, n == 1234 ? 5000 : n / 100);
        put(&program);
    }
    build(&profile);
    const struct profile_loops *loops = &profile.loops;
    assert_in_range(loops->crowd_count, 30, PROFILE_POINTS_MAX);
    uint64_t most = 0;
    for (uint32_t i = 0; i < loops->crowd_count; i++) {
        assert_true(!i || loops->crowd[i].at_sec > loops->crowd[i - 1].at_sec);
        most = most > loops->crowd[i].tasks ? most : loops->crowd[i].tasks;
    }
    assert_in_range(most, 5000, 5040);
    assert_true(loops->crowd[loops->crowd_count - 1].at_sec > 80000);
    profile_release(&profile);
}

/* A file that takes no time but waits is shown; one that does neither to speak of is not. */
static void files_that_only_wait_are_reported(void **state)
{
    for (int share = 0; share < 2; share++) {
        struct program program;
        struct profile profile;
        begin(&program, PID);
        struct arena_make *make = &program.make;
        uint32_t at = arena_make_frame(make, 0, program.module, 14);
        arena_make_cell(make, at, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
        arena_make_await(make, asleep(&program), WIRE_AWAIT_WAITS, 10, 1000000);
        uint32_t spare = arena_make_frame(make, 0, program.other, 1);
        arena_make_await(make, spare, WIRE_AWAIT_WAITS, 10, share ? 20000 : 5000);
        put(&program);
        build(&profile);
        if (share)
            assert_non_null(file_named(&profile, other));
        else
            assert_null(file_named(&profile, other));
        close_to(profile.loops.untraced_await_sec, share ? 0 : 0.005);
        profile_release(&profile);
    }
}

static void only_tasks_are_something_to_report(void **state)
{
    struct program program;
    struct profile profile;
    begin(&program, PID);
    arena_make_await(&program.make, asleep(&program), WIRE_AWAIT_WAITS, 10, 1000000);
    put(&program);
    build(&profile);
    assert_false(profile.empty);
    assert_non_null(file_named(&profile, script));
    profile_release(&profile);
}

static uint64_t all_hits(const struct profile *profile)
{
    uint64_t hits = 0;
    for (uint32_t i = 0; i < profile->stack_count; i++)
        hits += profile->stacks[i].hits;
    return hits;
}

static const struct profile_stack *stack_ending(const struct profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        if (!strcmp(profile_str(profile, stack->frames[stack->frame_count - 1].name), name))
            return stack;
    }
    return NULL;
}

/* A loop that waited 1 s, of which 0.9 s were charged: 90 hits, of which one stays. */
static void tasks_share_the_time_the_loop_waited(void **state)
{
    struct program program;
    struct profile profile;
    begin(&program, PID);
    struct arena_make *make = &program.make;
    uint32_t run = arena_make_frame(make, 0, program.module, 14);
    uint32_t polls = arena_make_frame(make, run, program.select, 40);
    uint32_t in_main = arena_make_frame(make, run, program.main, 12);
    arena_make_cell(make, polls, WIRE_WAIT_LOOP, 100, 1000 * (uint64_t)MS, 900 * MS);
    arena_make_cell(make, in_main, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    uint16_t thread = (uint16_t)arena_make_thread(make, 0x1000, PID, "python", true);
    arena_make_log(make, 5 * MS, polls, thread, WIRE_WAIT_LOOP, 90, 900000);
    uint32_t main_awaits = arena_make_frame(make, 0, program.main, 12);
    uint32_t below = arena_make_frame(make, main_awaits, program.fetch, 5);
    arena_make_await(make, arena_make_frame(make, below, program.sleep, 50), WIRE_AWAIT_WAITS, 10,
                     2000000);
    uint32_t eight = arena_make_frame(make, main_awaits, program.fetch, 8);
    arena_make_await(make, eight, WIRE_AWAIT_WAITS, 10, 1000000);
    arena_make_await(make, main_awaits, WIRE_AWAIT_TASKS, 10, 9000000);
    arena_make_name(make, arena_make_place(make, program.fetch, 5, 1000, 1, 0), "zoe", 0);
    uint32_t place = arena_make_place(make, program.fetch, 8, 1000, 12, 0);
    arena_make_name(make, place, NULL, 1);
    arena_make_name(make, place, NULL, 2);
    put(&program);
    build(&profile);
    assert_int_equal(all_hits(&profile), 100);
    assert_int_equal(stack_ending(&profile, "main")->hits, 10);
    assert_int_equal(stack_ending(&profile, "select")->hits, 1);
    const struct profile_stack *zoe = stack_ending(&profile, "[await] fetch (zoe)");
    assert_non_null(zoe);
    assert_in_range(zoe->hits, 59, 60);
    assert_int_equal(zoe->frame_count, 2);
    assert_string_equal(profile_str(&profile, zoe->frames[0].name), "main");
    assert_int_equal(stack_ending(&profile, "[await] fetch (12 tasks)")->hits, 89 - zoe->hits);
    double sec = 0;
    for (uint32_t i = 0; i < profile.stack_count; i++)
        sec += profile_time_sum(&profile.stacks[i].time);
    close_to(sec, profile.total_sec);
    assert_int_equal(profile.run_count, 1);
    const struct profile_stack *told = &profile.stacks[profile.runs[0].stack];
    assert_string_equal(profile_str(&profile, told->frames[told->frame_count - 1].name), "select");

    struct buf json = {0};
    struct profile again;
    struct err err = {""};
    json_write_profile(&profile, &json);
    assert_int_equal(json_read_profile(&again, json.data, json.len, &err), 0);
    assert_int_equal(all_hits(&again), 100);
    close_to(profile_time_sum(&stack_ending(&again, "[await] fetch (zoe)")->time),
             profile_time_sum(&zoe->time));
    profile_release(&again);
    buf_release(&json);
    profile_release(&profile);
}

/* The loop waited for requests: nobody's time, which nobody shares. */
static void a_server_s_tasks_take_nothing(void **state)
{
    struct program program;
    struct profile profile;
    begin(&program, PID);
    struct arena_make *make = &program.make;
    uint32_t run = arena_make_frame(make, 0, program.module, 14);
    arena_make_cell(make, arena_make_frame(make, run, program.select, 40), WIRE_WAIT_REQUEST, 100,
                    1000 * (uint64_t)MS, 900 * MS);
    arena_make_cell(make, run, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    arena_make_await(make, asleep(&program), WIRE_AWAIT_WAITS, 10, 2000000);
    put(&program);
    build(&profile);
    assert_int_equal(all_hits(&profile), 10);
    assert_null(stack_ending(&profile, "[await] fetch"));
    close_to(line_at(&profile, 5)->async.await_sec, 2);
    profile_release(&profile);
}

static void what_cannot_be_read_is_said(void **state)
{
    static const uint32_t states[] = {WIRE_ASYNC_UNKNOWN_PYTHON, WIRE_ASYNC_SELFCHECK};
    for (int i = 0; i < 2; i++) {
        struct program program;
        struct profile profile;
        begin(&program, PID);
        program.make.header.async.state = states[i];
        program.make.header.sections[WIRE_AWAIT].dropped = 3;
        uint32_t run = arena_make_frame(&program.make, 0, program.module, 14);
        arena_make_cell(&program.make, run, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
        put(&program);
        build(&profile);
        assert_int_equal(profile.note_count, 1);
        assert_non_null(
            strstr(profile_str(&profile, profile.notes[0]), "async code was not followed: "));
        assert_int_equal(profile.loss_count, 1);
        assert_string_equal(profile_str(&profile, profile.losses[0].key), "dropped_await");
        assert_int_equal(profile.losses[0].count, 3);
        profile_release(&profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_go_to_the_innermost_traced_line),
        cmocka_unit_test(coroutines_are_known_by_the_source),
        cmocka_unit_test(places_of_a_line_and_processes_add_up),
        cmocka_unit_test(a_long_course_is_thinned),
        cmocka_unit_test(files_that_only_wait_are_reported),
        cmocka_unit_test(only_tasks_are_something_to_report),
        cmocka_unit_test(tasks_share_the_time_the_loop_waited),
        cmocka_unit_test(a_server_s_tasks_take_nothing),
        cmocka_unit_test(what_cannot_be_read_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
