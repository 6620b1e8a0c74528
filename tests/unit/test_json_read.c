/*
 * json_read: profiles of ours and of the original Scalene become the model,
 * damaged ones an error that names the place, and no text at all crashes it.
 */
#include <jansson.h> /* before json_out.h, whose short names are jansson's */

#include "profile/json_read.h"

#include "profile/json_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char ours[] =
    "{\"schema_version\":1,\"program\":\"/p/a.py\",\"args\":[\"a.py\",\"x\"],\"filename\":\"/p\","
    "\"entrypoint_dir\":\"/p\",\"elapsed_time_sec\":5.5,\"total_time_sec\":8.0,"
    "\"cpu_python_sec\":4.0,\"cpu_native_sec\":3.0,\"system_sec\":1.0,\"n_samples\":800,"
    "\"cpu_time_sec\":7.25,\"startup_sec\":0.25,\"unsampled_sec\":0.125,"
    "\"native_threads_sec\":0.5,\"start_time_perf\":100.0,\"start_time_absolute\":1.5e9,"
    "\"main_thread_id\":140737488355327,\"memory\":false,\"gpu\":false,\"async_profile\":true,"
    "\"untraced\":{\"python_sec\":0.5,\"native_sec\":0.25,\"system_sec\":0.125,\"percent\":10.9,"
    "\"n_samples\":7},\"waits\":{\"sleep\":1.0,\"gil\":0.5,\"future cause\":9},"
    "\"overhead\":{\"handler_sec\":0.01,\"memory_sec\":0.04,\"sampler_sec\":0.02,\"percent_of_"
    "cpu\":0.4},"
    "\"sampling\":{\"cpu_interval_sec\":0.01,\"wait_interval_sec\":0.02},"
    "\"losses\":[{\"kind\":\"table_full\",\"count\":3,\"text\":\"samples lost\"}],"
    "\"notes\":[\"n1\"],\"processes\":[{\"pid\":10,\"ppid\":1,\"command\":\"python a.py\","
    "\"python\":\"3.12.1\",\"start_sec\":0,\"elapsed_sec\":5.5,\"cpu_sec\":7.25,"
    "\"startup_sec\":0.25,\"sampled_cpu_sec\":7,\"peak_rss_mb\":1.5,\"ended\":true,"
    "\"forked\":false}],\"threads\":[{\"pid\":10,\"tid\":11,\"thread_id\":12,\"name\":\"t\","
    "\"python\":true,\"cpu_sec\":1,\"wait_sec\":2}],\"combined_stacks\":[[[{\"kind\":\"py\","
    "\"display_name\":\"f\",\"filename_or_module\":\"/p/a.py\",\"line\":2,\"ip\":null,"
    "\"offset\":null},{\"kind\":\"native\",\"display_name\":\"g\",\"filename_or_module\":\"l.so\","
    "\"line\":null,\"ip\":1,\"offset\":2}],5]],\"combined_stacks_timeline\":[{\"t_sec\":0.5,"
    "\"stack_index\":0,\"count\":5,\"thread_id\":12}],\"files\":{\"/p/b.py\":{\"lines\":[]},"
    "\"/p/a.py\":{\"percent_cpu_time\":87.5,\"cpu_python_sec\":3.5,\"cpu_native_sec\":2.75,"
    "\"system_sec\":0.75,\"n_samples\":700,\"imports\":[\"import numpy\"],\"leaks\":{},"
    "\"functions\":[{\"line\":\"f.\\\\u003clocals\\\\u003e\",\"lineno\":1,"
    "\"n_cpu_percent_python\":43.75,\"cpu_python_sec\":3.5,\"cpu_native_sec\":0,"
    "\"system_sec\":0}],\"lines\":[{\"lineno\":1,\"line\":\"a \\\\u003c b \\\\u0026\\\\u003E "
    "\\\\u00zz\\n\",\"n_cpu_percent_python\":43.75,\"n_cpu_percent_c\":34.375,"
    "\"n_sys_percent\":9.375,\"cpu_python_sec\":3.5,\"cpu_native_sec\":2.75,\"system_sec\":0.75,"
    "\"n_samples\":700,\"half_width_percent\":2.5,\"n_core_utilization\":0.5,"
    "\"waits\":{\"sleep\":0.75},\"cpu_samples_list\":[101.5,100.25],\"start_region_line\":1,"
    "\"end_region_line\":4,\"start_outermost_loop\":1,\"end_outermost_loop\":3,"
    "\"start_function_line\":0,\"end_function_line\":0},{\"lineno\":4,\"line\":\"end\"}]}}}";

static const char original[] =
    "{\"program\":\"/p/a.py\",\"args\":null,\"elapsed_time_sec\":2.0,\"alloc_samples\":0,"
    "\"gpu_device\":\"\",\"growth_rate\":-1.5,\"max_footprint_lineno\":null,\"samples\":[[1,2.5]],"
    "\"native_stacks\":[1],\"files\":{\"/p/a.py\":{\"percent_cpu_time\":100.0,\"lines\":["
    "{\"lineno\":1,\"line\":\"x\\n\",\"n_cpu_percent_python\":50.0,\"n_cpu_percent_c\":25.0,"
    "\"n_sys_percent\":12.5,\"n_python_fraction\":1.0000000001},"
    "{\"lineno\":2,\"line\":\"y\\n\",\"n_sys_percent\":5}]}}}";

static struct profile read_text(const char *text)
{
    struct profile profile;
    struct err err = {"untouched"};
    int result = json_read_profile(&profile, text, strlen(text), &err);
    if (result)
        print_error("%s\n", err.text);
    assert_int_equal(result, 0);
    assert_string_equal(err.text, "untouched");
    return profile;
}

static void test_ours(void **state)
{
    (void)state;
    struct profile p = read_text(ours);
    assert_false(p.empty);
    assert_string_equal(profile_str(&p, p.program), "/p/a.py");
    assert_string_equal(profile_str(&p, p.directory), "/p");
    assert_true(p.has_args && p.arg_count == 2);
    assert_string_equal(profile_str(&p, p.args[1]), "x");
    assert_true(p.async_profile && !p.memory && !p.gpu);
    assert_true(p.elapsed_sec == 5.5 && p.total_sec == 8 && p.cpu_sec == 7.25);
    assert_true(p.startup_sec == 0.25 && p.unsampled_sec == 0.125 && p.native_threads_sec == 0.5);
    assert_true(p.time.python_sec == 4 && p.time.native_sec == 3 && p.time.system_sec == 1);
    assert_true(p.time.wait_sec[WAIT_SLEEP] == 1 && p.time.wait_sec[WAIT_GIL] == 0.5);
    assert_true(p.untraced.native_sec == 0.25 && p.untraced.samples == 7 && p.time.samples == 800);
    assert_true(p.handler_sec == 0.01 && p.sampler_sec == 0.02 && p.memory_sec == 0.04);
    assert_true(p.interval_sec == 0.01 && p.wait_interval_sec == 0.02);
    assert_true(p.main_ident == 140737488355327ull);
    assert_true(p.loss_count == 1 && p.losses[0].count == 3 && p.note_count == 1);
    assert_true(p.process_count == 1 && p.processes[0].peak_rss_bytes == 1572864);
    assert_true(p.thread_count == 1 && p.threads[0].ident == 12 && p.threads[0].is_python);
    assert_true(p.stack_count == 1 && p.stacks[0].hits == 5 && p.stacks[0].frame_count == 2);
    assert_true(p.stacks[0].frames[0].traced && !p.stacks[0].frames[1].traced);
    assert_true(!p.stacks[0].frames[0].is_native && p.stacks[0].frames[1].is_native);
    assert_true(p.run_count == 1 && p.runs[0].thread_ident == 12);
    profile_release(&p);
}

static void test_lines(void **state)
{
    (void)state;
    struct profile p = read_text(ours);
    assert_int_equal(p.file_count, 2);
    const struct profile_file *file = &p.files[0];
    assert_string_equal(profile_str(&p, file->name), "/p/a.py"); /* sorted */
    assert_string_equal(profile_str(&p, p.files[1].name), "/p/b.py");
    assert_true(file->time.python_sec == 3.5 && file->time.samples == 700);
    assert_true(file->time.wait_sec[WAIT_SLEEP] == 0.75);
    assert_int_equal(file->line_count, 2); /* lines 2 and 3 are not in the document */
    assert_string_equal(profile_str(&p, profile_line_at(file, 1)->text), "a < b &> \\u00zz\n");
    assert_string_equal(profile_str(&p, profile_line_at(file, 4)->text), "end");
    for (uint32_t lineno = 0; lineno < 6; lineno++)
        assert_int_equal(!profile_line_at(file, lineno), lineno != 1 && lineno != 4);
    assert_true(file->lines[0].half_width_percent == 2.5);
    assert_true(file->lines[0].stamp_count == 2 && file->lines[0].stamps[0] == 100.25);
    assert_int_equal(file->lines[0].end_region, 4);
    assert_int_equal(file->function_count, 1);
    assert_string_equal(profile_str(&p, file->functions[0].text), "f.<locals>");
    assert_int_equal(file->import_count, 1);
    profile_release(&p);
}

/* `stacks` shows traced frames alone: there two stacks look alike, and share its time by hits. */
static void test_times_of_stacks(void **state)
{
    (void)state;
#define FRAME(name, file, line)                                                                    \
    "{\"display_name\":\"" name "\",\"filename_or_module\":\"" file "\",\"line\":" line "}"
    struct profile p = read_text(
        "{\"elapsed_time_sec\":1,\"total_time_sec\":8,\"files\":{},\"combined_stacks\":["
        "[[" FRAME("f", "/p/small.py", "3") "," FRAME(
            "g", "/lib/l.py",
            "7") "],1],"
                 "[[" FRAME(
                     "f", "/p/small.py",
                     "3") "],3],"
                          "[[" FRAME(
                              "g", "/lib/l.py",
                              "7") "],2]],"
                                   "\"stacks\":[[[\"/p/small.py "
                                   "f:3;\"],{\"c_time\":0.25,\"count\":4,\"cpu_samples\":0.75,"
                                   "\"python_time\":0.375}],7,[[3],{}],[],[{},[]]]}");
#undef FRAME
    assert_int_equal(p.stack_count, 3);
    assert_true(p.stacks[0].frames[0].traced && !p.stacks[0].frames[1].traced);
    assert_true(p.stacks[0].time.python_sec == 0.75 && p.stacks[0].time.native_sec == 0.5);
    assert_true(p.stacks[0].time.system_sec == 0.25);
    assert_true(p.stacks[1].time.python_sec == 2.25 && p.stacks[1].time.native_sec == 1.5);
    assert_false(p.stacks[2].frames[0].traced);
    assert_true(profile_time_sum(&p.stacks[2].time) == 0);
    profile_release(&p);
}

static void test_original(void **state)
{
    (void)state;
    struct profile p = read_text(original);
    assert_false(p.has_args);
    assert_true(p.total_sec == 2);
    const struct profile_line *line = &p.files[0].lines[0];
    assert_true(line->time.python_sec == 1 && line->time.native_sec == 0.5);
    assert_true(line->time.system_sec == 0.25);
    assert_float_equal(p.files[0].time.system_sec, 0.35, 1e-9);
    assert_float_equal(profile_time_sum(&p.time), 1.85, 1e-9);
    profile_release(&p);
}

/* The original knows how awaiting is shared out, and no more of it. */
static void test_original_awaiting(void **state)
{
    (void)state;
    struct profile p =
        read_text("{\"elapsed_time_sec\":8,\"async_profile\":true,\"files\":{\"f\":{\"lines\":["
                  "{\"lineno\":1,\"n_async_await_percent\":75.0,\"n_async_concurrency_mean\":3.0,"
                  "\"n_async_concurrency_peak\":5.0,\"async_task_names\":[\"Task-1\",\"Task-2\"],"
                  "\"is_coroutine\":true},{\"lineno\":2,\"n_async_await_percent\":25.0}]}}}");
    const struct profile_line *line = &p.files[0].lines[0];
    assert_true(line->is_coroutine && profile_line_is_active(line));
    assert_float_equal(profile_await_percent(&p, &line->async), 75, 1e-9);
    assert_float_equal(profile_concurrency(&line->async), 3, 1e-9);
    assert_true(line->async.peak == 5 && line->async.name_count == 2);
    assert_float_equal(profile_await_percent(&p, &p.files[0].lines[1].async), 25, 1e-9);
    assert_int_equal(p.loops.count, 0);
    struct buf out = {0};
    json_write_profile(&p, &out);
    profile_release(&p);
    p = read_text(out.data);
    assert_float_equal(profile_await_percent(&p, &p.files[0].lines[0].async), 75, 1e-9);
    assert_float_equal(profile_concurrency(&p.files[0].lines[0].async), 3, 1e-9);
    profile_release(&p);
    buf_release(&out);
}

static void test_empty(void **state)
{
    (void)state;
    struct profile p = read_text("{}\n");
    assert_true(p.empty);
    profile_release(&p);
    p = read_text("{\"elapsed_time_sec\": 1, \"files\": {}}");
    assert_true(p.empty && p.file_count == 0);
    profile_release(&p);
}

static void test_many_stamps_are_thinned(void **state)
{
    (void)state;
    struct buf text = {0};
    buf_str(&text, "{\"elapsed_time_sec\":9,\"files\":{\"f\":{\"lines\":[{\"lineno\":1,"
                   "\"cpu_samples_list\":[0");
    for (int i = 1; i < 2000; i++)
        buf_addf(&text, ",%d", i);
    buf_str(&text, "]}]}}}");
    struct profile p = read_text(text.data);
    const struct profile_line *line = &p.files[0].lines[0];
    assert_int_equal(line->stamp_count, PROFILE_STAMPS_MAX);
    for (uint32_t i = 0; i < line->stamp_count; i++)
        assert_true(line->stamps[i] == 4.0 * i);
    profile_release(&p);
    buf_release(&text);
}

/* What was read can be written and read again, even where a line has more time than the whole, and
 * a number that only CPython's own bound limits. */
static void test_odd_but_valid(void **state)
{
    (void)state;
    struct profile p = read_text(
        "{\"elapsed_time_sec\":9,\"total_time_sec\":1,\"files\":{\"f\":{\"lines\":[{\"lineno\":"
        "2147483647,\"cpu_python_sec\":5,\"cpu_native_sec\":3,\"system_sec\":2}]}}}");
    struct buf out = {0};
    json_write_profile(&p, &out);
    profile_release(&p);
    assert_non_null(strstr(out.data, "\"n_cpu_percent_python\":50.0,"));
    assert_non_null(strstr(out.data, "\"n_sys_percent\":20.0,"));
    p = read_text(out.data);
    assert_int_equal(p.files[0].lines[0].lineno, INT32_MAX);
    assert_true(p.files[0].lines[0].time.native_sec == 3);
    profile_release(&p);
    buf_release(&out);
}

/* A few bytes must not become megabytes: made up to the line they name, these would be 300 GB. */
static void test_far_lines_take_no_room(void **state)
{
    (void)state;
    enum { FILES = 1000 };
    struct buf text = {0};
    buf_str(&text, "{\"elapsed_time_sec\":9,\"files\":{");
    for (int i = 0; i < FILES; i++)
        buf_addf(&text,
                 "%s\"f%d\":{\"lines\":[{\"lineno\":1000000,\"n_sys_percent\":1}],"
                 "\"leaks\":{\"1000000\":{\"likelihood\":1},\"99999999999999999999\":{},\"0\":{}}}",
                 i ? "," : "", i);
    buf_str(&text, "}}");
    struct profile p = read_text(text.data);
    assert_int_equal(p.file_count, FILES);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(p.files[i].line_count, 1);
        assert_int_equal(p.files[i].lines[0].lineno, 1000000);
        assert_true(p.files[i].lines[0].memory.leak.likelihood == 1);
    }
    profile_release(&p);
    buf_release(&text);
}

/* Each frame is asked for its file: with as many files, that must not be a search. */
static void test_many_frames_and_files(void **state)
{
    (void)state;
    enum { FILES = 30000, FRAMES = 30000 };
    struct buf text = {0};
    buf_str(&text, "{\"elapsed_time_sec\":9,\"files\":{");
    for (int i = 0; i < FILES; i++)
        buf_addf(&text, "%s\"f%d\":{}", i ? "," : "", i);
    buf_str(&text, "},\"combined_stacks\":[[[");
    for (int i = 0; i < FRAMES; i++)
        buf_addf(&text, "%s{\"filename_or_module\":\"%c%d\"}", i ? "," : "", i % 3 ? 'f' : 'g', i);
    buf_str(&text, "],1]]}");
    struct profile p = read_text(text.data);
    assert_int_equal(p.stacks[0].frame_count, FRAMES);
    for (int i = 0; i < FRAMES; i++)
        assert_int_equal(p.stacks[0].frames[i].traced, i % 3 != 0);
    profile_release(&p);
    buf_release(&text);
}

#define FILE_WITH(lines) "{\"elapsed_time_sec\":1,\"files\":{\"/a/b.py\":{\"lines\":[" lines "]}}}"

static const struct {
    const char *text, *error;
    int result;
} bad[] = {
    {"", "line 1, column 0: '[' or '{' expected near end of file", JSON_READ_SYNTAX},
    {"{\"a\": NaN}", "line 1, column 9: invalid token near 'NaN'", JSON_READ_SYNTAX},
    {"{\"files\":{},\n \"b\": [1,\n  tru]}", "line 3, column 5: invalid token near 'tru'",
     JSON_READ_SYNTAX},
    {"{\"files\":{} \"b\":1}", "line 1, column 13: '}' expected", JSON_READ_SYNTAX},
    {"{\"files\":{}} x", "line 1, column 14: end of file expected", JSON_READ_SYNTAX},
    {"{\"files\":{},}", "line 1, column 13: string or '}' expected", JSON_READ_SYNTAX},
    {"{\"files\" 1}", "line 1, column 10: ':' expected", JSON_READ_SYNTAX},
    {"{\"files\":}", "line 1, column 10: value expected", JSON_READ_SYNTAX},
    {"{\"elapsed_time_sec\":1,\"files\":{\"a\":{\"lines\":[{\"lineno\":1",
     "line 1, column 56: the document ends in the middle", JSON_READ_SYNTAX},
    {FILE_WITH("{\"lineno\":1},\n{\"lineno\":2,\"line\":\"\\ud800\"}"),
     "line 2, column 27: invalid Unicode '\\uD800' near '\"\\ud800\"'", JSON_READ_SYNTAX},
    {FILE_WITH("{\"lineno\":1 ]"), "line 1, column 64: '}' expected near ']'", JSON_READ_SYNTAX},
    {"[]", "this is no Scalene profile: expected an object, got a list", JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1}", "this is no Scalene profile: it has no \"files\"",
     JSON_READ_INVALID},
    {"{\"files\":{}}", "\"elapsed_time_sec\" is missing", JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":[]}", "files: expected an object, got a list",
     JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":\"1\",\"files\":{}}",
     "elapsed_time_sec: expected a number from 0 to 1e+12, got \"1\"", JSON_READ_INVALID},
    {"{\"schema_version\":2,\"files\":{}}",
     "this profile was written by a newer scalene (schema_version 2; this one reads up to 1)",
     JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":{},\"waits\":{\"lock\":-1}}",
     "waits.lock: expected a number from 0 to 1e+12, got -1", JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":{},\"args\":[\"a\",1]}", "args[1]: expected text, got 1",
     JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":{},\"combined_stacks\":[],\"combined_stacks_timeline\":"
     "[{\"stack_index\":0}]}",
     "combined_stacks_timeline[0]: there is no stack 0 in combined_stacks", JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":{},\"combined_stacks\":[[5,1]]}",
     "combined_stacks[0]: expected a list of frames and a count, got a list", JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1},{\"lineno\":2},{\"lineno\":3},{\"lineno\":4,"
               "\"n_cpu_percent_c\":\"x\"}"),
     "files[\"/a/b.py\"].lines[3].n_cpu_percent_c: expected a number from 0 to 100, got \"x\"",
     JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1,\"n_sys_percent\":100.5}"),
     "files[\"/a/b.py\"].lines[0].n_sys_percent: expected a number from 0 to 100, got 100.5",
     JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1,\"n_sys_percent\":60,\"n_cpu_percent_c\":60}"),
     "files[\"/a/b.py\"].lines[0]: n_cpu_percent_python, n_cpu_percent_c and n_sys_percent add up "
     "to 120.0, expected at most 100",
     JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1.5}"),
     "files[\"/a/b.py\"].lines[0].lineno: expected an integer from 1 to 2147483647, got 1.5",
     JSON_READ_INVALID},
    {FILE_WITH("{}"), "files[\"/a/b.py\"].lines[0]: \"lineno\" is missing", JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":2},{\"lineno\":2}"),
     "files[\"/a/b.py\"].lines[1]: line numbers do not ascend", JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1,\"line\":{}}"),
     "files[\"/a/b.py\"].lines[0].line: expected text, got an object", JSON_READ_INVALID},
    {FILE_WITH("{\"lineno\":1,\"memory_samples\":3}"),
     "files[\"/a/b.py\"].lines[0].memory_samples: expected a list, got 3", JSON_READ_INVALID},
    {"{\"elapsed_time_sec\":1,\"files\":{\"\\u001b[2J\":1}}",
     "files[\"\\u001B[2J\"]: expected an object, got 1", JSON_READ_INVALID},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct profile p;
        struct err err = {""};
        int result = json_read_profile(&p, bad[i].text, strlen(bad[i].text), &err);
        assert_string_equal(err.text, bad[i].error);
        assert_int_equal(result, bad[i].result);
        profile_release(&p); /* allowed, though there is nothing left */
    }
}

/* Of members with the same name the last one counts, as everywhere in JSON. */
static void test_same_names(void **state)
{
    (void)state;
    struct profile p =
        read_text("{\"elapsed_time_sec\":1,\"files\":{\"x\":{}},\"fil\\u0065s\":{"
                  "\"b\":{\"lines\":[{\"lineno\":1}],\"lines\":[{\"lineno\":2},{\"lineno\":3}]},"
                  "\"a\":{\"lines\":[{\"lineno\":4}]},\"b\":{\"lines\":[{\"lineno\":5}]}},"
                  "\"elapsed_time_sec\":7}");
    assert_int_equal(p.file_count, 2);
    assert_true(p.elapsed_sec == 7);
    assert_string_equal(profile_str(&p, p.files[1].name), "b");
    assert_true(p.files[1].line_count == 1 && p.files[1].lines[0].lineno == 5);
    profile_release(&p);
}

static void test_check_and_dump(void **state)
{
    (void)state;
    static const char text[] =
        "{\"files\":{},\"b\":[1,0.1,1e3,\"\\u00e9\\ud83d\\udc1d\",null,true],"
        "\"a\":{},\"elapsed_time_sec\":2}";
    struct buf out = {0};
    struct err err;
    buf_str(&out, "before ");
    assert_int_equal(json_check_and_dump(text, strlen(text), &out, &err), 0);
    assert_string_equal(
        out.data, "before {\n    \"a\": {},\n    \"b\": [\n        1,\n        0.1,\n"
                  "        1000.0,\n        \"\\u00e9\\ud83d\\udc1d\",\n        null,\n"
                  "        true\n    ],\n    \"elapsed_time_sec\": 2,\n    \"files\": {}\n}\n");
    buf_reset(&out);
    assert_int_equal(json_check_and_dump("{}", 2, &out, &err), 0);
    assert_string_equal(out.data, "{}\n");
    buf_reset(&out);
    assert_int_equal(json_check_and_dump("{", 1, &out, &err), JSON_READ_SYNTAX);
    assert_int_equal(json_check_and_dump("{\"x\":1}", 7, &out, &err), JSON_READ_INVALID);
    assert_int_equal(out.len, 0);

    struct buf deep = {0};
    buf_str(&deep, "{\"elapsed_time_sec\":1,\"files\":{},\"x\":");
    buf_pad(&deep, '[', 40);
    buf_pad(&deep, ']', 40);
    buf_char(&deep, '}');
    assert_int_equal(json_check_and_dump(deep.data, deep.len, &out, &err), JSON_READ_INVALID);
    assert_string_equal(err.text, "the document is nested more than 32 levels deep");
    assert_int_equal(out.len, 0);
    buf_release(&deep);
    buf_release(&out);
}

static uint64_t random_next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Cut out, double, overwrite with bytes, or put in a piece of JSON, once to four times. */
static void mutate(struct buf *text, uint64_t *seed)
{
    static const char *const pieces[] = {
        "null", "-1",  "1e308", "\"\\u001b\"", "[]", "{}",  "0",          "99999999999999999999",
        "true", "1.5", ",",     ":",           "\"", "100", "4294967295", "\\u003c"};
    struct buf copy = {0};
    size_t at = random_next(seed) % (text->len + 1);
    size_t length = random_next(seed) % 12;
    if (length > text->len - at)
        length = text->len - at;
    uint64_t how = random_next(seed) % 4;
    buf_add(&copy, text->data, at);
    if (how == 0)
        buf_str(&copy, pieces[random_next(seed) % (sizeof pieces / sizeof pieces[0])]);
    else if (how == 1)
        buf_char(&copy, (char)random_next(seed));
    else if (how == 2)
        buf_add(&copy, text->data + at, length);
    size_t skip = how == 2 ? 0 : length;
    buf_add(&copy, text->data + at + skip, text->len - at - skip);
    buf_release(text);
    *text = copy;
}

/* Replaces one number of a valid text, so that the result is still JSON. */
static void replace_number(struct buf *text, uint64_t *seed)
{
    static const char *const values[] = {"-1",   "0",     "101", "1e300", "\"x\"", "null",
                                         "true", "[[1]]", "{}",  "70000", "2.5",   "1e12"};
    size_t at = random_next(seed) % text->len;
    while (at < text->len &&
           !(text->data[at] >= '0' && text->data[at] <= '9' && strchr(":[,", text->data[at - 1])))
        at++;
    size_t length = strspn(text->data + at, "0123456789.e+");
    struct buf copy = {0};
    buf_add(&copy, text->data, at);
    buf_str(&copy, values[random_next(seed) % (sizeof values / sizeof values[0])]);
    buf_str(&copy, text->data + at + length);
    buf_release(text);
    *text = copy;
}

static void test_mutations(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252ull;
    int counts[3] = {0};
    for (int i = 0; i < 20000; i++) {
        struct buf text = {0};
        buf_str(&text, i % 8 ? ours : original);
        for (uint64_t n = random_next(&seed) % 4 + 1; n; n--) {
            if (i % 2)
                replace_number(&text, &seed);
            else
                mutate(&text, &seed);
        }
        struct profile p;
        struct err err = {""};
        char *exact = mem_copy(text.data, text.len); /* nothing behind it may be looked at */
        int result = json_read_profile(&p, exact, text.len, &err);
        /* It is read in pieces; what is taken is JSON as a whole, too. */
        json_t *whole = json_loadb(exact, text.len, 0, NULL);
        assert_true(whole || result);
        assert_true(!whole || result != JSON_READ_SYNTAX);
        json_decref(whole);
        free(exact);
        assert_true(result <= 0 && result >= -2);
        assert_true(result ? err.text[0] != '\0' : err.text[0] == '\0');
        counts[-result]++;
        if (!result)
            profile_release(&p);
        buf_release(&text);
    }
    /* Each outcome must be met often, or the mutations test nothing. */
    for (int i = 0; i < 3; i++)
        assert_true(counts[i] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ours),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_times_of_stacks),
        cmocka_unit_test(test_original),
        cmocka_unit_test(test_original_awaiting),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_many_stamps_are_thinned),
        cmocka_unit_test(test_odd_but_valid),
        cmocka_unit_test(test_far_lines_take_no_room),
        cmocka_unit_test(test_many_frames_and_files),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_same_names),
        cmocka_unit_test(test_check_and_dump),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
