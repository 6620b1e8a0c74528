/*
 * A recording with a bit of everything, made by arena_make, becomes a profile
 * that is compared with tests/golden/basic.json to the byte; so does one with an
 * event loop, async.json.  The reader, the views and the page have tests over the
 * same files.
 *
 * UPDATE_GOLDEN=1 writes the files instead; look at the diff before
 * committing it.
 */
#include "arena_make.h"
#include "base/file.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "profile/json_write.h"
#include "report/report.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define GOLDEN  SOURCE_ROOT "/tests/golden"
#define MAIN    GOLDEN "/basic/main.py"
#define HELPER  GOLDEN "/basic/helper.py"
#define ASYNC   GOLDEN "/async/main.py"
#define TASKS   "/nowhere/lib/python3.12/asyncio/tasks.py"
#define EVENTS  "/nowhere/lib/python3.12/asyncio/base_events.py"
#define SELECT  "/nowhere/lib/python3.12/selectors.py"
#define JSON_PY "/nowhere/lib/python3.12/json/__init__.py"

/* Pids beyond what any kernel gives: nobody runs by them. */
enum { MS = 1000000, PARENT = 5000100, CHILD = 5000200, LOOP = 5000300 };

static char directory[] = "/tmp/scalene-test-XXXXXX";

static void command(struct arena_make *make, const char *words, size_t bytes)
{
    memcpy(make->header.command, words, bytes);
    make->header.command_bytes = (uint32_t)bytes;
}

static void write_arena(struct arena_make *make, int pid)
{
    char *path = mem_format("%s/%d-0.arena", directory, pid);
    arena_make_write(make, path);
    free(path);
    arena_make_release(make);
}

static void remove_arena(int pid)
{
    char *path = mem_format("%s/%d-0.arena", directory, pid);
    unlink(path);
    free(path);
}

static void make_parent(void)
{
    struct arena_make make;
    arena_make_init(&make, PARENT);
    make.header.ended = 1;
    make.header.has_status = 1;
    make.header.exit_status = 3;
    make.header.start_cpu_ns = 20 * MS;
    make.header.beat_cpu_ns = 970 * MS;
    make.header.on_ns = 1200 * (uint64_t)MS;
    make.header.handler_ns = 2 * MS;
    make.header.sampler_cpu_ns = 1 * MS;
    make.header.peak_rss_bytes = 12 << 20;
    make.header.lost[WIRE_LOST_BAD_FRAME] = 1;
    static const char words[] = "python3\0main.py";
    command(&make, words, sizeof words);

    uint32_t module = arena_make_code(&make, MAIN, "<module>", 1, 26);
    uint32_t total = arena_make_code(&make, MAIN, "total", 7, 12);
    uint32_t lambda = arena_make_code(&make, MAIN, "Main.run.<locals>.<lambda>", 18, 18);
    uint32_t run = arena_make_code(&make, MAIN, "Main.run", 16, 19);
    uint32_t work = arena_make_code(&make, HELPER, "Worker.work", 8, 9);
    uint32_t dumps = arena_make_code(&make, JSON_PY, "dumps", 183, 238);

    uint32_t at_total = arena_make_frame(&make, 0, module, 23);
    uint32_t inner = arena_make_frame(&make, at_total, total, 11);
    uint32_t in_run = arena_make_frame(&make, at_total, run, 19);
    uint32_t in_lambda = arena_make_frame(&make, in_run, lambda, 18);
    uint32_t at_work = arena_make_frame(&make, 0, module, 24);
    uint32_t in_work = arena_make_frame(&make, at_work, work, 9);
    uint32_t in_dumps = arena_make_frame(&make, in_work, dumps, 231);
    uint32_t at_sleep = arena_make_frame(&make, 0, module, 25);
    uint32_t library = arena_make_frame(&make, 0, dumps, 190);
    uint32_t native = arena_make_node(&make, 0, WIRE_FRAME_NO_PYTHON, 0, 0);
    uint32_t unknown = arena_make_node(&make, 0, WIRE_FRAME_UNKNOWN, 0, 0);

    arena_make_cell(&make, inner, WIRE_CPU_PYTHON, 50, 500 * MS, 0);
    arena_make_cell(&make, inner, WIRE_CPU_NATIVE, 10, 100 * MS, 0);
    arena_make_cell(&make, in_lambda, WIRE_CPU_PYTHON, 3, 30 * MS, 0);
    arena_make_cell(&make, in_run, WIRE_CPU_PYTHON, 2, 20 * MS, 0);
    arena_make_cell(&make, in_dumps, WIRE_CPU_NATIVE, 20, 200 * MS, 0);
    arena_make_cell(&make, library, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(&make, native, WIRE_CPU_NATIVE, 2, 20 * MS, 0);
    arena_make_cell(&make, unknown, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(&make, at_sleep, WIRE_WAIT_SLEEP, 20, 200 * MS, 200 * MS);
    arena_make_cell(&make, inner, WIRE_WAIT_GIL, 4, 40 * MS, 0);

    uint16_t thread = (uint16_t)arena_make_thread(&make, 0x1000, PARENT, "python3", true);
    uint16_t pool = (uint16_t)arena_make_thread(&make, 0x2000, PARENT + 1, "pool-1", false);
    arena_make_log(&make, 1 * MS, inner, thread, WIRE_CPU_PYTHON, 3, 30000);
    arena_make_log(&make, 31 * MS, inner, thread, WIRE_CPU_PYTHON, 2, 20000);
    arena_make_log(&make, 60 * MS, in_lambda, thread, WIRE_CPU_PYTHON, 1, 10000);
    arena_make_log(&make, 70 * MS, in_dumps, pool, WIRE_CPU_NATIVE, 20, 200000);
    arena_make_log(&make, 900 * MS, at_sleep, thread, WIRE_WAIT_SLEEP, 20, 200000);
    make.header.flags = WIRE_PROCESS_MEMORY;
    uint32_t numpy = arena_make_module(&make, "/nowhere/numpy/_multiarray_umath.so");
    uint32_t objects = arena_make_site(&make, inner, WIRE_SITE_PYTHON, 0, 6 << 20, 2 << 20);
    uint32_t arrays = arena_make_site(&make, in_work, WIRE_SITE_NATIVE, numpy, 8 << 20, 0);
    arena_make_site(&make, native, WIRE_SITE_NATIVE, numpy, 1 << 20, 1 << 20);
    arena_make_site(&make, inner, WIRE_SITE_COPY, 0, 3 << 20, 0);
    arena_make_foot(&make, 100 * MS, objects, WIRE_FOOT_ALLOCATED, 2048, 2048);
    arena_make_foot(&make, 200 * MS, arrays, WIRE_FOOT_ALLOCATED, 10240, 8192);
    arena_make_foot(&make, 400 * MS, arrays, WIRE_FOOT_FREED, 2048, 0);
    arena_make_foot(&make, 800 * MS, 0, WIRE_FOOT_LOOK, 3072, 0);
    make.header.memory.peak_bytes = 10 << 20;
    make.header.memory.peak_python_bytes = 2 << 20;
    make.header.memory.peak_site = arrays;
    make.header.memory.look.rss_bytes = 13 << 20;
    make.header.memory.look.file_bytes = 7 << 20;
    make.header.memory.start_rss_bytes = 8 << 20;
    make.header.memory.start_file_bytes = 6 << 20;
    make.header.memory.interval_bytes = 128 << 10;
    make.header.beat_mono_ns = make.header.start_mono_ns + 1200 * (uint64_t)MS;
    write_arena(&make, PARENT);
}

/* Forked off, killed before its end, with a stack the parent has too. */
static void make_child(void)
{
    struct arena_make make;
    arena_make_init(&make, CHILD);
    make.header.ppid = PARENT;
    make.header.flags = WIRE_PROCESS_FORKED;
    make.header.start_mono_ns += 300 * MS;
    make.header.start_real_ns += 300 * MS;
    make.header.beat_cpu_ns = 110 * MS;
    make.header.on_ns = 150 * MS;
    static const char words[] = "python3\0main.py";
    command(&make, words, sizeof words);
    uint32_t module = arena_make_code(&make, MAIN, "<module>", 1, 26);
    uint32_t total = arena_make_code(&make, MAIN, "total", 7, 12);
    uint32_t at_total = arena_make_frame(&make, 0, module, 23);
    uint32_t inner = arena_make_frame(&make, at_total, total, 11);
    arena_make_cell(&make, inner, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    uint16_t thread = (uint16_t)arena_make_thread(&make, 0x1000, CHILD, "python3", true);
    arena_make_log(&make, 0, inner, thread, WIRE_CPU_PYTHON, 10, 100000);
    write_arena(&make, CHILD);
}

/*
 * Ten tasks that wait for 0.2 s twice, while one more waits for them all.  The
 * first time its line blocks the loop, so that they are ready later than they could.
 */
static void make_loop(void)
{
    struct arena_make make;
    arena_make_init(&make, LOOP);
    make.header.ended = 1;
    make.header.has_status = 1;
    make.header.beat_cpu_ns = 250 * MS;
    make.header.on_ns = 500 * MS;
    make.header.beat_mono_ns = make.header.start_mono_ns + 500 * MS;
    static const char words[] = "python3\0main.py";
    command(&make, words, sizeof words);
    uint32_t module = arena_make_code(&make, ASYNC, "<module>", 1, 27);
    uint32_t fetch = arena_make_code(&make, ASYNC, "fetch", 5, 7);
    uint32_t page = arena_make_code(&make, ASYNC, "page", 10, 12);
    uint32_t busy = arena_make_code(&make, ASYNC, "busy", 15, 16);
    uint32_t start = arena_make_code(&make, ASYNC, "main", 19, 22);
    uint32_t sleep = arena_make_code(&make, TASKS, "sleep", 627, 660);
    uint32_t once = arena_make_code(&make, EVENTS, "BaseEventLoop._run_once", 1922, 2000);
    uint32_t select = arena_make_code(&make, SELECT, "EpollSelector.select", 435, 480);

    uint32_t run = arena_make_frame(&make, 0, module, 26);
    uint32_t turn = arena_make_frame(&make, run, once, 1950);
    uint32_t polls = arena_make_frame(&make, turn, select, 468);
    uint32_t in_main = arena_make_frame(&make, turn, start, 21);
    uint32_t in_busy = arena_make_frame(&make, in_main, busy, 16);
    arena_make_cell(&make, in_busy, WIRE_CPU_PYTHON, 24, 240 * MS, 0);
    arena_make_cell(&make, turn, WIRE_CPU_PYTHON, 1, 10 * MS, 0);
    arena_make_cell(&make, polls, WIRE_WAIT_LOOP, 20, 250 * MS, 250 * MS);
    uint16_t thread = (uint16_t)arena_make_thread(&make, 0x1000, LOOP, "python3", true);
    arena_make_log(&make, 1 * MS, in_busy, thread, WIRE_CPU_PYTHON, 24, 240000);
    arena_make_log(&make, 250 * MS, polls, thread, WIRE_WAIT_LOOP, 20, 250000);

    uint32_t first = arena_make_frame(&make, 0, page, 11);
    uint32_t second = arena_make_frame(&make, 0, page, 12);
    uint32_t first_sleep =
        arena_make_frame(&make, arena_make_frame(&make, first, fetch, 6), sleep, 656);
    uint32_t second_sleep =
        arena_make_frame(&make, arena_make_frame(&make, second, fetch, 6), sleep, 656);
    uint32_t gathers = arena_make_frame(&make, 0, start, 22);
    arena_make_await(&make, first_sleep, WIRE_AWAIT_WAITS, 80, 2000000);
    arena_make_await(&make, second_sleep, WIRE_AWAIT_WAITS, 80, 2000000);
    arena_make_await(&make, first_sleep, WIRE_AWAIT_READY, 20, 400000);
    arena_make_await(&make, gathers, WIRE_AWAIT_TASKS, 20, 240000);
    arena_make_await(&make, in_busy, WIRE_AWAIT_BLOCKS, 1, 240000);
    uint32_t place = arena_make_place(&make, fetch, 6, 440000, 10, 0);
    for (uint64_t task = 2; task <= 11; task++)
        arena_make_name(&make, place, NULL, task);
    arena_make_name(&make, arena_make_place(&make, start, 22, 240000, 1, 0), "main", 0);
    arena_make_place(&make, busy, 16, 0, 0, 240000);
    arena_make_crowd(&make, 100 * MS, 11);
    arena_make_crowd(&make, 200 * MS, 11);
    arena_make_crowd(&make, 300 * MS, 11);
    arena_make_crowd(&make, 400 * MS, 4);
    make.header.async = (struct wire_async){
        .state = WIRE_ASYNC_OK,
        .loops = 1,
        .idle_us = 250000,
        .busy_us = 250000,
        .blocked_us = 240000,
        .longest_us = 240000,
        .longest_node = in_busy,
        .tasks_peak = 11,
        .passes = 120,
        .looks = 201,
    };
    write_arena(&make, LOOP);
}

static char *replace(const char *text, const char *from, const char *to)
{
    struct buf out = {0};
    const char *at;
    while ((at = strstr(text, from))) {
        buf_add(&out, text, (size_t)(at - text));
        buf_str(&out, to);
        text = at + strlen(from);
    }
    buf_str(&out, text);
    return buf_detach(&out);
}

static char *build_json(const char *program, bool has_memory)
{
    const char *args[] = {"main.py", "--size", "2", NULL};
    struct report_config config = {
        .session_directory = directory,
        .program = program,
        .program_path = "",
        .profile_only = "",
        .profile_exclude = "",
        .cpu_percent_threshold = 1,
        .stacks = true,
        .async_profile = true,
        .memory = has_memory,
        .leaks = has_memory,
        .args = (char *const *)args,
    };
    struct profile profile;
    struct err err;
    profile_init(&profile);
    assert_int_equal(harvest_build(&profile, &config, &err), 0);
    struct buf json = {0};
    json_write_profile(&profile, &json);
    profile_release(&profile);
    char *moved = replace(json.data, GOLDEN, "/golden");
    char *plain = replace(moved, "\"" SCALENE_VERSION "\"", "\"VERSION\"");
    free(moved);
    buf_release(&json);
    return plain;
}

/* Frees `json`. */
static void compare(char *json, const char *golden)
{
    const char *update = getenv("UPDATE_GOLDEN");
    if (update && update[0] == '1')
        assert_int_equal(file_write_atomic(golden, json, strlen(json), NULL), 0);
    struct buf expected = {0};
    struct err err = {""};
    file_read(golden, &expected, &err);
    bool same = expected.data && !strcmp(expected.data, json);
    if (!same) {
        char *given = mem_format("%s/given.json", directory);
        assert_int_equal(file_write_atomic(given, json, strlen(json), NULL), 0);
        char *diff = mem_format("diff -u '%s' '%s' >&2", golden, given);
        assert_int_not_equal(system(diff), -1);
        unlink(given);
        free(diff);
        free(given);
    }
    assert_true(same);
    buf_release(&expected);
    free(json);
}

static void is_as_checked_in(void **state)
{
    make_parent();
    make_child();
    char *json = build_json(MAIN, true);
    remove_arena(PARENT);
    remove_arena(CHILD);
    compare(json, GOLDEN "/basic.json");
}

static void tasks_are_as_checked_in(void **state)
{
    make_loop();
    char *json = build_json(ASYNC, false);
    remove_arena(LOOP);
    compare(json, GOLDEN "/async.json");
}

static int set_up(void **state)
{
    /* n_core_utilization depends on how many processors there are: let it be one. */
    cpu_set_t set, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof set, &set))
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &set))
            CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) || !mkdtemp(directory))
        return -1;
    return 0;
}

static int tear_down(void **state)
{
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_checked_in),
        cmocka_unit_test(tasks_are_as_checked_in),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
