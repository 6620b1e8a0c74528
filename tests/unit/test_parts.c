/*
 * The parts of the page: they hold what the profile holds, for profiles of ours
 * and of the original; sums agree; and whatever a hostile profile has in it,
 * parts are JSON whose indices point at something.
 */
#include <jansson.h> /* before json_out.h, whose short names are jansson's */

#include "base/file.h"
#include "profile/json_read.h"
#include "view/parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile profile;
static struct parts parts = {.profile = &profile, .generation = 7, .path = "p/x.json"};

static void read_text(const char *text, size_t length)
{
    struct err err = {""};
    if (json_read_profile(&profile, text, length, &err))
        fail_msg("%s", err.text);
}

static void read_golden(const char *name)
{
    char *path = mem_format("%s/tests/golden/%s.json", SOURCE_ROOT, name);
    struct buf text = {0};
    struct err err;
    assert_int_equal(file_read(path, &text, &err), 0);
    read_text(text.data, text.len);
    buf_release(&text);
    free(path);
}

/* Parse what was made; ASCII only, so that no browser can take a byte for something else. */
static json_t *parsed(struct buf *out)
{
    json_error_t error;
    for (size_t i = 0; i < out->len; i++)
        assert_true((unsigned char)out->data[i] < 0x80 && out->data[i] != '\n');
    json_t *root = json_loadb(out->data, out->len, 0, &error);
    if (!root)
        fail_msg("%s in %.200s", error.text, out->data);
    assert_int_equal(json_integer_value(json_object_get(root, "generation")), 7);
    buf_release(out);
    return root;
}

static json_t *make(void (*part)(const struct parts *, struct buf *))
{
    struct buf out = {0};
    part(&parts, &out);
    return parsed(&out);
}

static json_t *make_file(uint32_t id)
{
    struct buf out = {0};
    parts_file(&parts, id, &out);
    return parsed(&out);
}

static json_t *make_search(const char *text)
{
    struct buf out = {0};
    parts_search(&parts, text, strlen(text), &out);
    return parsed(&out);
}

static const json_t *at(const json_t *list, size_t index)
{
    const json_t *value = json_array_get(list, index);
    assert_non_null(value);
    return value;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    assert_non_null(value);
    return value;
}

static double sum(const json_t *list)
{
    double total = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_number_value(json_array_get(list, i));
    return total;
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-6 * (1 + fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

/* ---- what must hold for any profile ---- */

static const double TIME_TOTAL_SLACK = 1e-6;

static void check_columns(const json_t *columns, size_t limit)
{
    const char *key;
    json_t *value;
    size_t count = json_array_size(json_object_get(columns, "row"));
    if (!json_object_get(columns, "row"))
        count = json_array_size(json_object_get(columns, "name"));
    json_object_foreach((json_t *)columns, key, value)
        assert_int_equal(json_array_size(value), count);
    const json_t *rows = json_object_get(columns, "row");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        assert_true((size_t)json_integer_value(at(rows, i)) < limit);
        if (i)
            assert_true(json_integer_value(at(rows, i)) > json_integer_value(at(rows, i - 1)));
    }
}

/* Stretches of colour lie inside their line, counted as JavaScript counts. */
static void check_colours(const json_t *colours, const char *source)
{
    for (size_t line = 0; line < json_array_size(colours); line++) {
        size_t units = 0;
        for (; *source && *source != '\n'; source++)
            units += ((unsigned char)*source & 0xC0) != 0x80 ? 1 : 0, /* characters */
                units += (unsigned char)*source >= 0xF0 ? 1 : 0;      /* surrogate pairs */
        source += *source == '\n';
        const json_t *stretches = at(colours, line);
        size_t used = 0;
        assert_int_equal(json_array_size(stretches) % 3, 0);
        for (size_t i = 0; i < json_array_size(stretches); i += 3) {
            used += (size_t)json_integer_value(at(stretches, i));
            used += (size_t)json_integer_value(at(stretches, i + 1));
            assert_true(json_integer_value(at(stretches, i + 1)) > 0);
            assert_true(json_integer_value(at(stretches, i + 2)) <= 6);
        }
        assert_true(used <= units);
    }
}

static void check_file(const json_t *row)
{
    uint32_t id = (uint32_t)number(row, "id");
    json_t *file = make_file(id);
    const json_t *lines = json_object_get(file, "lines");
    const json_t *colours = json_object_get(file, "colours");
    size_t line_count = (size_t)number(row, "line_count");
    assert_string_equal(text(file, "name"), text(row, "name"));
    assert_int_equal(json_array_size(colours), line_count);
    const json_t *numbers = json_object_get(file, "numbers");
    assert_true(json_is_null(numbers) || json_array_size(numbers) == line_count);
    check_columns(lines, line_count);
    check_columns(json_object_get(file, "functions"), line_count);
    check_colours(colours, text(file, "text"));
    assert_int_equal(json_array_size(json_object_get(lines, "row")), number(row, "active_count"));
    assert_near(sum(json_object_get(row, "heat_sec")),
                sum(json_object_get(lines, "cpu_python_sec")) +
                    sum(json_object_get(lines, "cpu_native_sec")) +
                    sum(json_object_get(lines, "system_sec")));
    assert_near(sum(json_object_get(lines, "n_live_mb")), number(row, "live_mb"));
    assert_near(sum(json_object_get(lines, "n_malloc_mb")), number(row, "allocated_mb"));
    assert_int_equal(json_array_size(json_object_get(row, "heat_sec")), 64);
    assert_int_equal(json_array_size(json_object_get(row, "heat_kind")), 64);
    json_decref(file);
}

/* Returns the sum of `self`. */
static double check_tree(const json_t *stacks)
{
    const json_t *tree = json_object_get(stacks, "tree");
    const json_t *frames = json_object_get(stacks, "frames");
    const json_t *parents = json_object_get(tree, "parent");
    size_t nodes = json_array_size(parents), strings, frame_count;
    strings = json_array_size(json_object_get(stacks, "strings"));
    frame_count = json_array_size(json_object_get(frames, "name"));
    assert_int_equal(json_array_size(json_object_get(tree, "self")), nodes);
    assert_int_equal(json_array_size(json_object_get(tree, "frame")), nodes);
    for (size_t i = 0; i < nodes; i++) {
        json_int_t parent = json_integer_value(at(parents, i));
        assert_true(parent >= -1 && parent < (json_int_t)i);
        json_int_t frame = json_integer_value(at(json_object_get(tree, "frame"), i));
        assert_true(frame >= 0 && (size_t)frame < frame_count);
    }
    for (size_t i = 0; i < frame_count; i++) {
        assert_true((size_t)json_integer_value(at(json_object_get(frames, "name"), i)) < strings);
        assert_true((size_t)json_integer_value(at(json_object_get(frames, "file"), i)) < strings);
        assert_true(json_integer_value(at(json_object_get(frames, "kind"), i)) <= 3);
        assert_true(json_integer_value(at(json_object_get(frames, "line"), i)) >= 0);
    }
    return sum(json_object_get(tree, "self"));
}

static void check_stacks(void)
{
    json_t *stacks = make(parts_stacks), *memory = make(parts_memory_stacks);
    json_t *timeline = make(parts_timeline);
    double hits = 0, mb = 0;
    size_t nodes = json_array_size(json_object_get(json_object_get(stacks, "tree"), "self"));
    for (uint32_t i = 0; i < profile.stack_count; i++)
        hits += profile.stacks[i].frame_count ? (double)profile.stacks[i].hits : 0;
    for (uint32_t i = 0; i < profile.memory_stack_count; i++)
        mb += profile.memory_stacks[i].frame_count ? profile.memory_stacks[i].mb : 0;
    assert_near(check_tree(stacks), hits);
    assert_near(check_tree(memory), mb);
    const json_t *starts = json_object_get(timeline, "start_sec");
    for (size_t i = 0; i < json_array_size(starts); i++) {
        assert_true((size_t)json_integer_value(at(json_object_get(timeline, "node"), i)) < nodes);
        json_int_t thread = json_integer_value(at(json_object_get(timeline, "thread"), i));
        assert_true(thread >= -1 && thread < (json_int_t)profile.thread_count);
        if (i)
            assert_true(json_number_value(at(starts, i)) >= json_number_value(at(starts, i - 1)));
    }
    json_decref(stacks);
    json_decref(memory);
    json_decref(timeline);
}

/* Every part of the profile read last, which is released. */
static void check_all(void)
{
    json_t *summary = make(parts_summary);
    const json_t *files = json_object_get(summary, "files");
    const json_t *top = json_object_get(summary, "profile");
    double last = INFINITY;
    assert_int_equal(json_array_size(files), profile.file_count);
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *row = at(files, i);
        double sec = number(row, "cpu_python_sec") + number(row, "cpu_native_sec") +
                     number(row, "system_sec");
        assert_true(sec <= last + TIME_TOTAL_SLACK);
        last = sec;
        check_file(row);
    }
    assert_true(json_is_array(json_object_get(top, "samples")));
    assert_null(json_object_get(top, "files"));
    assert_null(json_object_get(top, "combined_stacks"));
    assert_null(json_object_get(top, "memory_stacks"));
    assert_true(json_array_size(json_object_get(summary, "hot")) <= 50);
    assert_true(json_array_size(json_object_get(summary, "high")) <= 20);
    json_decref(summary);
    check_stacks();
    json_decref(make_search("import"));
    profile_release(&profile);
}

static void test_goldens(void **state)
{
    static const char *const names[] = {"basic", "async", "view_basic", "view_memory"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        read_golden(names[i]);
        check_all();
    }
}

/* ---- what the parts of known profiles say ---- */

static const char original[] =
    "{\"program\":\"/p/a.py\",\"args\":null,\"elapsed_time_sec\":2.0,\"growth_rate\":-1.5,"
    "\"memory\":true,\"max_footprint_mb\":12.5,\"samples\":[[1,2.5]],\"combined_stacks\":[[["
    "{\"kind\":\"py\",\"display_name\":\"f\",\"filename_or_module\":\"/p/a.py\",\"line\":1,"
    "\"ip\":null,\"offset\":null},{\"kind\":\"native\",\"display_name\":\"\","
    "\"filename_or_module\":\"l.so\",\"line\":null,\"ip\":1,\"offset\":2}],3],"
    "[[{\"kind\":\"py\",\"display_name\":\"[await] g (Task-1)\",\"filename_or_module\":\"/p/a.py\","
    "\"line\":2,\"ip\":null,\"offset\":null}],4],"
    "[[{\"kind\":\"py\",\"display_name\":\"f\",\"filename_or_module\":\"/p/a.py\",\"line\":1,"
    "\"ip\":null,\"offset\":null}],5]],"
    "\"combined_stacks_timeline\":[{\"t_sec\":1.5,\"stack_index\":0,\"count\":3,\"thread_id\":9},"
    "{\"t_sec\":0.5,\"stack_index\":1,\"count\":4,\"thread_id\":null}],"
    "\"files\":{\"/p/a.py\":{\"percent_cpu_time\":100.0,\"leaks\":{\"2\":{\"likelihood\":0.96,"
    "\"velocity_mb_s\":1.5}},\"lines\":["
    "{\"lineno\":1,\"line\":\"x = '\\ud83d\\ude00' + f(1)  # \\\\u003cb\\\\u003e\\n\","
    "\"n_cpu_percent_python\":50.0,\"n_cpu_percent_c\":25.0,\"n_sys_percent\":12.5},"
    "{\"lineno\":2,\"line\":\"    \\n\",\"n_malloc_mb\":2.5,\"n_peak_mb\":1.5,"
    "\"n_usage_fraction\":0.5,\"memory_samples\":[[10,1.5]]},"
    "{\"lineno\":3,\"line\":\"@a.b(c)\\n\"},"
    "{\"lineno\":4,\"line\":\"def print(): pass\\n\"}],\"functions\":[]},"
    "\"/p/b.py\":{\"percent_cpu_time\":0,\"lines\":[{\"lineno\":7,\"line\":\"F(2)\"}]}}}";

static void test_original(void **state)
{
    (void)state;
    read_text(original, strlen(original));
    json_t *summary = make(parts_summary);
    assert_string_equal(text(summary, "path"), "p/x.json");
    assert_true(json_is_false(json_object_get(summary, "running")));
    assert_true(number(summary, "stack_count") == 3 && number(summary, "run_count") == 2);
    const json_t *first = at(json_object_get(summary, "files"), 0);
    assert_true(number(first, "id") == 0 && number(first, "cpu_python_sec") == 1);
    assert_true(number(first, "active_count") == 2 && number(first, "line_count") == 4);
    assert_true(number(at(json_object_get(first, "leaks"), 0), "lineno") == 2);
    const json_t *hot = at(json_object_get(summary, "hot"), 0);
    assert_string_equal(text(hot, "text"), "x = '\xF0\x9F\x98\x80' + f(1)  # <b>");
    assert_true(number(hot, "file") == 0 && number(hot, "lineno") == 1);
    const json_t *high = at(json_object_get(summary, "high"), 0);
    assert_true(number(high, "lineno") == 2 && number(high, "n_peak_mb") == 1.5);
    assert_string_equal(text(high, "text"), "");
    json_decref(summary);

    json_t *file = make_file(0);
    assert_true(json_is_null(json_object_get(file, "numbers")));
    char *colours = json_dumps(json_object_get(file, "colours"), JSON_COMPACT);
    /* The face is two units: 4 + 4 of the string, 8 to the comment. */
    assert_string_equal(colours, "[[4,4,1,5,1,2,3,5,3],[],[0,4,6],[0,3,0,1,5,5,4,4,0]]");
    free(colours);
    const json_t *lines = json_object_get(file, "lines");
    assert_true(sum(json_object_get(lines, "row")) == 1);
    assert_true(sum(json_object_get(lines, "n_cpu_percent_python")) == 50);
    assert_null(json_object_get(lines, "n_copy_mb"));
    assert_null(json_object_get(lines, "waits"));
    assert_int_equal(json_array_size(at(json_object_get(lines, "memory_samples"), 1)), 1);
    json_decref(file);
    file = make_file(1);
    assert_true(json_integer_value(at(json_object_get(file, "numbers"), 0)) == 7);
    json_decref(file);
    check_all();
}

static void test_tree(void **state)
{
    (void)state;
    read_text(original, strlen(original));
    json_t *stacks = make(parts_stacks), *timeline = make(parts_timeline);
    char *tree = json_dumps(json_object_get(stacks, "tree"), JSON_COMPACT | JSON_SORT_KEYS);
    char *frames = json_dumps(json_object_get(stacks, "frames"), JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(tree, "{\"frame\":[0,1,2],\"parent\":[-1,0,-1],\"self\":[5,3,4]}");
    assert_string_equal(frames,
                        "{\"file\":[1,3,1],\"kind\":[0,2,3],\"line\":[1,0,2],\"name\":[0,2,4]}");
    /* By start; neither thread is in the profile's list. */
    char *node = json_dumps(json_object_get(timeline, "node"), JSON_COMPACT);
    char *thread = json_dumps(json_object_get(timeline, "thread"), JSON_COMPACT);
    assert_string_equal(node, "[2,1]");
    assert_string_equal(thread, "[-1,-1]");
    free(tree);
    free(frames);
    free(node);
    free(thread);
    json_decref(stacks);
    json_decref(timeline);
    profile_release(&profile);
}

static void test_search(void **state)
{
    (void)state;
    read_text(original, strlen(original));
    json_t *found = make_search("F(");
    char *matches = json_dumps(json_object_get(found, "matches"), JSON_COMPACT);
    assert_string_equal(matches, "[[0,0],[1,0]]");
    assert_true(json_is_false(json_object_get(found, "more")));
    free(matches);
    json_decref(found);
    found = make_search("");
    assert_int_equal(json_array_size(json_object_get(found, "matches")), 0);
    json_decref(found);
    profile_release(&profile);
}

static void test_many_matches(void **state)
{
    (void)state;
    struct buf document = {0};
    buf_str(&document, "{\"elapsed_time_sec\":1,\"files\":{\"f\":{\"lines\":[");
    for (int i = 1; i <= 501; i++)
        buf_addf(&document, "%s{\"lineno\":%d,\"line\":\"same\"}", i > 1 ? "," : "", i);
    buf_str(&document, "]}}}");
    read_text(document.data, document.len);
    json_t *found = make_search("same");
    assert_int_equal(json_array_size(json_object_get(found, "matches")), 500);
    assert_true(json_is_true(json_object_get(found, "more")));
    json_decref(found);
    buf_release(&document);
    check_all();
}

/* A line is cut at 2,000 units, never inside a character; its colours with it.  A string alone is
 * documentation, which has a comment's colour. */
static void test_long_line(void **state)
{
    (void)state;
    struct buf document = {0};
    buf_str(&document, "{\"elapsed_time_sec\":1,\"files\":{\"f\":{\"lines\":[{\"lineno\":1,"
                       "\"n_cpu_percent_c\":1,\"line\":\"'");
    for (int i = 0; i < 1500; i++)
        buf_str(&document, "\\ud83d\\ude00");
    buf_str(&document, "'\"}]}}}");
    read_text(document.data, document.len);
    json_t *file = make_file(0);
    assert_int_equal(strlen(text(file, "text")), 1 + 4 * 999);
    char *colours = json_dumps(json_object_get(file, "colours"), JSON_COMPACT);
    assert_string_equal(colours, "[[0,1999,3]]");
    free(colours);
    json_decref(file);
    json_t *summary = make(parts_summary);
    assert_int_equal(strlen(text(at(json_object_get(summary, "hot"), 0), "text")), 1 + 4 * 199);
    json_decref(summary);
    buf_release(&document);
    check_all();
}

/* Names and numbers that mean harm, and cycles of processes. */
static void test_hostile(void **state)
{
    static const char document[] =
        "{\"elapsed_time_sec\":1e12,\"total_time_sec\":0,\"program\":\"</script><b>\","
        "\"args\":[\"__proto__\",\"\\u202e\\u2028\"],\"processes\":[{\"pid\":1,\"ppid\":2},"
        "{\"pid\":2,\"ppid\":1,\"running\":true}],\"threads\":[{\"name\":\"__proto__\","
        "\"thread_id\":5},{\"name\":\"constructor\",\"thread_id\":5}],\"combined_stacks\":[[[],7],"
        "[[{\"display_name\":\"__proto__\",\"filename_or_module\":\"javascript:alert(1)\","
        "\"line\":2147483647,\"kind\":\"\"}],9e15]],\"combined_stacks_timeline\":["
        "{\"t_sec\":1e12,\"stack_index\":1,\"count\":9e15,\"thread_id\":5},"
        "{\"t_sec\":0,\"stack_index\":0,\"count\":1}],\"files\":{\"__proto__\":{\"lines\":["
        "{\"lineno\":2147483647,\"line\":\"\\u0001\\u202e\\n\\r\\n<!--\\u007f\","
        "\"cpu_python_sec\":1e12,\"cpu_native_sec\":1e12,\"n_malloc_mb\":1e12,"
        "\"memory_samples\":[[1e308,1e308],[-1,-1]]}]},\"\":{\"lines\":[]},"
        "\"javascript:alert(1)\":{}}}";
    (void)state;
    read_text(document, strlen(document));
    json_t *summary = make(parts_summary);
    assert_true(json_is_true(json_object_get(summary, "running")));
    json_decref(summary);
    json_t *timeline = make(parts_timeline);
    /* The run of the stack without frames is at no node. */
    assert_int_equal(json_array_size(json_object_get(timeline, "node")), 1);
    assert_int_equal(json_integer_value(at(json_object_get(timeline, "thread"), 0)), 0);
    json_decref(timeline);
    json_t *file = make_file(1);
    assert_null(strchr(text(file, "text"), '\n'));
    json_decref(file);
    check_all();
}

static void test_empty(void **state)
{
    (void)state;
    read_text("{}", 2);
    check_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),      cmocka_unit_test(test_original),
        cmocka_unit_test(test_tree),         cmocka_unit_test(test_search),
        cmocka_unit_test(test_many_matches), cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
