/* The JSON writer: shape and escaping; test_golden.c compares a whole document. */
#include "base/json_out.h"
#include "base/mem.h"
#include "profile/json_write.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *written(const struct profile *profile)
{
    struct buf out = {0};
    json_error_t error;
    json_write_profile(profile, &out);
    assert_true(out.len && out.data[out.len - 1] == '\n');
    for (size_t i = 0; i < out.len; i++)
        assert_true((unsigned char)out.data[i] < 0x80);
    json_t *root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("line %d: %s", error.line, error.text);
    buf_release(&out);
    return root;
}

static void assert_sorted(json_t *value)
{
    const char *key, *last = NULL;
    json_t *item;
    size_t i;
    if (json_is_object(value))
        json_object_foreach(value, key, item)
        {
            assert_true(!last || strcmp(last, key) < 0);
            last = key;
            assert_sorted(item);
        }
    if (json_is_array(value))
        json_array_foreach(value, i, item) assert_sorted(item);
}

static void empty_is_an_empty_object(void **state)
{
    struct profile profile;
    struct buf out = {0};
    profile_init(&profile);
    profile.empty = true;
    json_write_profile(&profile, &out);
    assert_string_equal(out.data, "{}\n");
    buf_release(&out);
    profile_release(&profile);
}

static void numbers_read_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } reals[] = {
        {0, "0.0"},
        {-2, "-2.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {0.1 + 0.2, "0.30000000000000004"},
        {4102444800, "4102444800.0"},
        {1e-5, "1e-05"},
        {1e300, "1e+300"},
        {HUGE_VAL, "0.0"},
    };
    static const struct {
        int64_t value;
        const char *text;
    } whole[] = {{0, "0"},
                 {-1, "-1"},
                 {1000, "1000"},
                 {INT64_MAX, "9223372036854775807"},
                 {INT64_MIN, "-9223372036854775808"}};
    struct buf buf = {0};
    struct json_out out;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        buf_reset(&buf);
        json_out_begin(&out, &buf);
        json_out_real(&out, reals[i].value);
        assert_string_equal(buf.data, reals[i].text);
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        buf_reset(&buf);
        json_out_begin(&out, &buf);
        json_out_int(&out, whole[i].value);
        assert_string_equal(buf.data, whole[i].text);
    }
    buf_release(&buf);
}

static void make_profile(struct profile *profile, struct profile_file *file,
                         struct profile_line *lines, struct profile_stack *stacks,
                         struct profile_frame *frames)
{
    profile_init(profile);
    struct intern *strings = &profile->strings;
    lines[0] = (struct profile_line){.lineno = 1,
                                     .text = intern_cstr(strings, "a<b>&\"\xC3\xA4\xFF\\u0026\n")};
    lines[0].time.python_sec = 1.0 / 3;
    lines[0].time.native_sec = 2.0 / 3;
    lines[0].time.wait_sec[WAIT_STARVED] = 0.5;
    lines[0].time.samples = 7;
    *file = (struct profile_file){.name = intern_cstr(strings, "/tmp/\xE2\x82\xAC.py"),
                                  .time = lines[0].time,
                                  .lines = lines,
                                  .line_count = 1};
    /* Two stacks that differ only in an untraced frame, and one without any traced frame. */
    str_id name = intern_cstr(strings, "f"), library = intern_cstr(strings, "/lib.py");
    frames[0] = (struct profile_frame){name, file->name, 1, true, false};
    frames[1] = (struct profile_frame){name, library, 2, false, false};
    stacks[0] = (struct profile_stack){.frames = frames, .frame_count = 1, .hits = 3};
    stacks[1] = (struct profile_stack){.frames = frames, .frame_count = 2, .hits = 4};
    stacks[2] = (struct profile_stack){.frames = frames + 1, .frame_count = 1, .hits = 5};
    stacks[0].time.python_sec = stacks[1].time.native_sec = 0.5;
    profile->total_sec = 1;
    profile->time = lines[0].time;
    profile->files = file;
    profile->file_count = 1;
    profile->stacks = stacks;
    profile->stack_count = 3;
}

static void shape_and_escapes(void **state)
{
    struct profile profile;
    struct profile_file file;
    struct profile_line lines[1];
    struct profile_stack stacks[3];
    struct profile_frame frames[2];
    make_profile(&profile, &file, lines, stacks, frames);
    json_t *root = written(&profile);
    assert_sorted(root);
    assert_true(json_is_null(json_object_get(root, "args")));
    assert_true(json_is_null(json_object_get(root, "main_thread_id")));
    assert_null(json_object_get(root, "native_stacks"));
    assert_int_equal(json_integer_value(json_object_get(root, "schema_version")), 1);
    json_t *out = json_object_get(json_object_get(root, "files"), "/tmp/\xE2\x82\xAC.py");
    assert_non_null(out);
    json_t *line = json_array_get(json_object_get(out, "lines"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "line")),
                        "a\\u003cb\\u003e\\u0026\"\xC3\xA4\xEF\xBF\xBD\\u0026\n");
    double python = json_real_value(json_object_get(line, "n_cpu_percent_python"));
    double native = json_real_value(json_object_get(line, "n_cpu_percent_c"));
    assert_true(python > 33.3 && python < 33.4 && python + native <= 100.0000001);
    json_t *waits = json_object_get(line, "waits");
    assert_int_equal(json_object_size(waits), 1);
    assert_true(json_real_value(json_object_get(waits, "starved")) == 0.5);
    json_decref(root);
    profile_release(&profile);
}

/* Lines with anything at all, and functions, have all keys; others the original's. */
static void quiet_lines_have_fewer_keys(void **state)
{
    enum { QUIET, TIMED, WAITED, ALLOCATED, COPIED, LEFT, LINES };
    struct profile profile;
    struct profile_line lines[LINES] = {0}, function = {.lineno = 1};
    for (uint32_t i = 0; i < LINES; i++)
        lines[i].lineno = i + 1;
    lines[TIMED].time.system_sec = 1e-9;
    lines[WAITED].time.wait_sec[WAIT_CAUSES - 1] = 1e-9;
    lines[ALLOCATED].memory.total_mb = 1e-9;
    lines[COPIED].memory.copied_mb = 1e-9;
    lines[LEFT].memory.live_mb = 1e-9;
    profile_init(&profile);
    struct profile_file file = {.name = intern_cstr(&profile.strings, "a.py"),
                                .lines = lines,
                                .line_count = LINES,
                                .functions = &function,
                                .function_count = 1};
    profile.files = &file;
    profile.file_count = 1;
    json_t *root = written(&profile);
    json_t *out = json_object_get(json_object_get(root, "files"), "a.py");
    json_t *written_lines = json_object_get(out, "lines");
    size_t all = json_object_size(json_array_get(written_lines, TIMED));
    for (size_t i = 0; i < LINES; i++) {
        const json_t *line = json_array_get(written_lines, i);
        assert_int_equal(json_integer_value(json_object_get(line, "lineno")), i + 1);
        assert_non_null(json_object_get(line, "n_peak_mb"));
        assert_int_equal(!json_object_get(line, "n_live_mb"), i == QUIET);
        assert_int_equal(!json_object_get(line, "waits"), i == QUIET);
        assert_true(i == QUIET ? json_object_size(line) < all : json_object_size(line) == all);
    }
    const json_t *only = json_array_get(json_object_get(out, "functions"), 0);
    assert_int_equal(json_object_size(only), all - 6); /* no regions */
    json_decref(root);
    profile_release(&profile);
}

static void stacks_alike_are_one(void **state)
{
    struct profile profile;
    struct profile_file file;
    struct profile_line lines[1];
    struct profile_stack stacks[3];
    struct profile_frame frames[2];
    make_profile(&profile, &file, lines, stacks, frames);
    json_t *root = written(&profile);
    assert_int_equal(json_array_size(json_object_get(root, "combined_stacks")), 3);
    json_t *plain = json_object_get(root, "stacks");
    assert_int_equal(json_array_size(plain), 1);
    json_t *stats = json_array_get(json_array_get(plain, 0), 1);
    assert_int_equal(json_integer_value(json_object_get(stats, "count")), 7);
    assert_true(json_real_value(json_object_get(stats, "python_time")) == 0.5);
    assert_true(json_real_value(json_object_get(stats, "cpu_samples")) == 1);
    json_t *frame = json_array_get(json_array_get(json_array_get(plain, 0), 0), 0);
    assert_string_equal(json_string_value(frame), "/tmp/\xE2\x82\xAC.py f:1;");
    json_decref(root);
    profile_release(&profile);
}

static void all_wait_causes_have_a_name(void **state)
{
    for (int i = 0; i < WAIT_CAUSES; i++) {
        assert_non_null(wait_cause_key[i]);
        assert_non_null(wait_cause_label[i]);
    }
    struct profile profile;
    profile_init(&profile);
    for (int i = 0; i < WAIT_CAUSES; i++)
        profile.time.wait_sec[i] = i + 1;
    json_t *root = written(&profile);
    assert_int_equal(json_object_size(json_object_get(root, "waits")), WAIT_CAUSES);
    assert_sorted(root);
    json_decref(root);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_an_empty_object),
        cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(shape_and_escapes),
        cmocka_unit_test(stacks_alike_are_one),
        cmocka_unit_test(all_wait_causes_have_a_name),
        cmocka_unit_test(quiet_lines_have_fewer_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
