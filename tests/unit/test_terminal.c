/*
 * The terminal view: golden files byte for byte, promises that hold at every
 * width, and the small parts it is made of.  UPDATE_GOLDEN=1 in the environment
 * writes the golden files anew; look at the difference before keeping it.
 */
#include "base/file.h"
#include "base/utf8.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "view/format.h"
#include "view/screen.h"
#include "view/terminal.h"
#include "view/width.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile load(const char *text, size_t length)
{
    struct profile profile;
    struct err err = {""};
    int result = json_read_profile(&profile, text, length, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
    return profile;
}

static void read_golden(const char *name, struct buf *out)
{
    char *path = mem_format("%s/tests/golden/%s", SOURCE_ROOT, name);
    struct err err = {""};
    if (file_read(path, out, &err))
        fail_msg("%s", err.text);
    free(path);
}

static struct profile load_golden(const char *name)
{
    struct buf text = {0};
    read_golden(name, &text);
    struct profile profile = load(text.data, text.len);
    buf_release(&text);
    return profile;
}

/* Of real runs, recorded with --reduced-profile --no-stacks; stacks of memory, which the terminal
 * does not show, are taken out. */
#define REAL(name, width)                                                                          \
    {                                                                                              \
        "real/" name ".json", "real/" name "_" #width ".txt",                                      \
        {                                                                                          \
            .columns = width, .cpu_percent_threshold = 1                                           \
        }                                                                                          \
    }

static const struct {
    const char *profile, *name;
    struct terminal_options options;
} goldens[] = {
    {"view_basic.json", "view_80.txt", {.columns = 80, .cpu_percent_threshold = 1}},
    {"view_basic.json", "view_120.txt", {.columns = 120, .cpu_percent_threshold = 1}},
    {"view_basic.json", "view_160.txt", {.columns = 160, .cpu_percent_threshold = 1}},
    {"view_basic.json",
     "view_100_color.txt",
     {.columns = 100, .color = true, .cpu_percent_threshold = 1}},
    {"view_basic.json",
     "view_80_reduced_ascii.txt",
     {.columns = 80, .ascii = true, .reduced = true, .cpu_percent_threshold = 1}},
    {"view_memory.json", "view_memory_80.txt", {.columns = 80, .cpu_percent_threshold = 1}},
    {"view_memory.json", "view_memory_100.txt", {.columns = 100, .cpu_percent_threshold = 1}},
    {"view_memory.json", "view_memory_160.txt", {.columns = 160, .cpu_percent_threshold = 1}},
    {"view_memory.json",
     "view_memory_120_color_ascii.txt",
     {.columns = 120, .color = true, .ascii = true, .cpu_percent_threshold = 1}},
    {"async.json", "view_async_80.txt", {.columns = 80, .cpu_percent_threshold = 1}},
    {"async.json", "view_async_160.txt", {.columns = 160, .cpu_percent_threshold = 1}},
    REAL("cpu", 80),
    REAL("cpu", 160),
    REAL("processes", 80),
    REAL("processes", 160),
    REAL("server", 80),
    REAL("server", 160),
    REAL("memory", 80),
    REAL("memory", 160),
    REAL("tool", 80),
    REAL("tool", 160),
};

static void test_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        struct profile profile = load_golden(goldens[i].profile);
        struct buf out = {0}, wanted = {0};
        terminal_render(&profile, &goldens[i].options, &out);
        if (getenv("UPDATE_GOLDEN")) {
            char *path = mem_format("%s/tests/golden/%s", SOURCE_ROOT, goldens[i].name);
            struct err err = {""};
            assert_int_equal(file_write_atomic(path, out.data, out.len, &err), 0);
            free(path);
        }
        read_golden(goldens[i].name, &wanted);
        assert_string_equal(out.data, wanted.data);
        assert_int_equal(out.len, wanted.len);
        buf_release(&out);
        buf_release(&wanted);
        profile_release(&profile);
    }
}

/* Every line by itself: valid, no wider than asked, nothing in it that a terminal obeys except
 * our own colours, no blank at its end. */
static void check_lines(const struct buf *out, const struct terminal_options *options)
{
    struct screen measure = {.columns = 1 << 20};
    struct buf plain = {0};
    for (size_t at = 0; at < out->len;) {
        size_t end = at + strcspn(out->data + at, "\n");
        assert_int_equal(out->data[end], '\n');
        buf_reset(&plain);
        while (at < end) {
            if (options->color && out->data[at] == '\033') {
                size_t digits = strspn(out->data + at + 2, "0123456789;");
                assert_int_equal(out->data[at + 1], '[');
                assert_int_equal(out->data[at + 2 + digits], 'm');
                at += digits + 3;
                continue;
            }
            size_t next = at;
            uint32_t codepoint = utf8_decode(out->data, out->len, &next);
            assert_false(width_is_unsafe(codepoint));
            if (options->ascii)
                assert_true(codepoint < 0x80);
            buf_add(&plain, out->data + at, next - at);
            at = next;
        }
        if (plain.len) {
            assert_int_not_equal(plain.data[plain.len - 1], ' ');
            int width = screen_width(&measure, plain.data, plain.len);
            if (width > options->columns)
                fail_msg("%d columns of %d: %s", width, options->columns, plain.data);
        }
        at = end + 1;
    }
    buf_release(&plain);
}

static void check_every_width(const char *name)
{
    struct profile profile = load_golden(name);
    for (int columns = 40; columns <= 200; columns++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            struct terminal_options options = {
                .columns = columns,
                .color = bits & 1,
                .ascii = bits & 2,
                .reduced = bits & 4,
                .cpu_percent_threshold = 1,
            };
            struct buf out = {0};
            terminal_render(&profile, &options, &out);
            assert_true(out.len > 1000);
            check_lines(&out, &options);
            buf_release(&out);
        }
    }
    profile_release(&profile);
}

static void test_every_width(void **state)
{
    (void)state;
    check_every_width("view_basic.json");
    check_every_width("view_memory.json");
    check_every_width("real/server.json");
}

/* However many figures there are, two fifths of the terminal are code. */
static void test_room_for_code(void **state)
{
    (void)state;
    struct profile profile = load_golden("view_memory.json");
    for (int columns = 70; columns <= 240; columns++) {
        struct terminal_options options = {
            .columns = columns, .ascii = true, .cpu_percent_threshold = 1};
        struct buf out = {0};
        terminal_render(&profile, &options, &out);
        const char *rule = strstr(out.data, "\n-----+"), *end = strchr(rule + 1, '\n'), *code = end;
        while (code[-1] != '+')
            code--;
        assert_true(end - code - 1 >= (columns < 80 ? 30 : columns < 100 ? 40 : columns * 2 / 5));
        buf_release(&out);
    }
    profile_release(&profile);
}

static void check_round_trip(const char *name)
{
    const struct terminal_options options = {.columns = 160, .cpu_percent_threshold = 1};
    struct profile first = load_golden(name);
    struct buf json = {0}, before = {0}, after = {0};
    terminal_render(&first, &options, &before);
    json_write_profile(&first, &json);
    profile_release(&first);
    struct profile second = load(json.data, json.len);
    terminal_render(&second, &options, &after);
    assert_string_equal(after.data, before.data);
    profile_release(&second);
    buf_release(&json);
    buf_release(&before);
    buf_release(&after);
}

/* Written and read again, a profile looks the same. */
static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip("view_basic.json");
    check_round_trip("view_memory.json");
    check_round_trip("real/server.json");
}

static struct buf render(const char *json, struct terminal_options options)
{
    struct profile profile = load(json, strlen(json));
    struct buf out = {0};
    if (options.columns == 0)
        options.columns = 80;
    terminal_render(&profile, &options, &out);
    check_lines(&out, &options);
    profile_release(&profile);
    return out;
}

#define DOCUMENT(lines) "{\"elapsed_time_sec\":2,\"files\":{\"/p/f.py\":{\"lines\":[" lines "]}}}"

static void test_empty(void **state)
{
    (void)state;
    struct buf out = render("{}", (struct terminal_options){0});
    assert_string_equal(out.data, "No profile data found in the file.\n");
    buf_release(&out);
    out = render("{\"elapsed_time_sec\":1,\"files\":{}}", (struct terminal_options){.color = true});
    assert_string_equal(out.data, "\033[33mNo profile data found in the file.\033[0m\n");
    buf_release(&out);
}

static void test_hot_lines(void **state)
{
    (void)state;
    static const char json[] = DOCUMENT("{\"lineno\":1,\"line\":\"a\",\"n_sys_percent\":40},"
                                        "{\"lineno\":2,\"line\":\"b\",\"n_cpu_percent_c\":20}");
    struct buf out =
        render(json, (struct terminal_options){.color = true, .cpu_percent_threshold = 1});
    assert_non_null(strstr(out.data, "\033[1;31m40%"));
    assert_null(strstr(out.data, "\033[1;31m20%"));
    assert_non_null(strstr(out.data, "\033[36m20%"));
    buf_release(&out);
}

static void test_threshold(void **state)
{
    (void)state;
    static const char json[] = DOCUMENT("{\"lineno\":1,\"line\":\"a\",\"n_cpu_percent_c\":3},"
                                        "{\"lineno\":2,\"line\":\"b\",\"n_cpu_percent_c\":20}");
    struct terminal_options options = {.ascii = true, .reduced = true, .cpu_percent_threshold = 5};
    struct buf out = render(json, options);
    assert_null(strstr(out.data, "3.0%"));
    assert_non_null(strstr(out.data, "\n ...\n   2 |           20%        | b\n"));
    buf_release(&out);
    options.reduced = false;
    out = render(json, options);
    assert_non_null(strstr(out.data, "\n   1 |             .        | a\n"));
    buf_release(&out);
}

/* Lines the document does not have are shown as left out, and are not made up. */
static void test_holes(void **state)
{
    (void)state;
    static const char json[] =
        DOCUMENT("{\"lineno\":7,\"line\":\"a\",\"n_sys_percent\":40},"
                 "{\"lineno\":900000000,\"line\":\"b\",\"n_cpu_percent_c\":20}");
    struct buf out =
        render(json, (struct terminal_options){.ascii = true, .cpu_percent_threshold = 1});
    assert_non_null(strstr(out.data, "\n      ...\n        7 |"));
    assert_non_null(strstr(out.data, "\n      ...\n900000000 |"));
    buf_release(&out);
}

static void test_files_by_time(void **state)
{
    (void)state;
    struct buf out = render("{\"elapsed_time_sec\":100,\"files\":{"
                            "\"/a.py\":{\"lines\":[{\"lineno\":1,\"n_cpu_percent_c\":10}]},"
                            "\"/b.py\":{\"lines\":[{\"lineno\":1,\"n_cpu_percent_c\":30}]}}}",
                            (struct terminal_options){.cpu_percent_threshold = 1});
    const char *a = strstr(out.data, "/a.py: % of time =  10.00% (10.000s) out of 1m:40.000s.\n");
    const char *b = strstr(out.data, "/b.py: % of time =  30.00% (30.000s) out of 1m:40.000s.\n");
    assert_true(a && b && b < a);
    assert_non_null(strstr(out.data, "Elsewhere  60% (60.0s) is on no line below\n"));
    buf_release(&out);
}

/* Profile texts as hostile as they come, at a width where everything is cut. */
static void test_hostile_text(void **state)
{
    (void)state;
    static const char json[] =
        "{\"elapsed_time_sec\":2,\"program\":\"\\u001b]0;x\\u0007\",\"notes\":[\"\\u009b2J\\n\\t\"]"
        ","
        "\"args\":[\"\",\"\\r\\u202e\"],\"files\":{\"\\u001b[2J/"
        "\\u0085\":{\"lines\":[{\"lineno\":1,"
        "\"line\":\"\\u001b[2J\\n\\r\\b\\u007f\\u2028 "
        "\\ud83d\\udc1d\\t\\u0301\",\"n_sys_percent\":50}],"
        "\"functions\":[{\"lineno\":1,\"line\":\"\\u001b[2J\\n\\t\",\"n_sys_percent\":50}]}}}";
    for (int bits = 0; bits < 4; bits++) {
        struct buf out = render(json, (struct terminal_options){.columns = 44,
                                                                .color = bits & 1,
                                                                .ascii = bits & 2,
                                                                .cpu_percent_threshold = 1});
        assert_null(strstr(out.data, "\033[2J"));
        buf_release(&out);
    }
}

static void test_width(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int width;
    } cases[] = {
        {"", 0},     {"abc", 3},      {"女王", 4},     {"é", 1}, {"e\xCC\x81", 1},    {"🐝", 2},
        {"한국", 4}, {"\xFF\xFE", 2}, {"│", 1},        {"ｱ", 1}, {"\xE2\x80\x8B", 0}, {"a\tb", 5},
        {"\t", 4},   {"\033[", 2},    {"\xE5\xA5", 2},
    };
    struct screen screen = {.columns = 80};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(screen_width(&screen, cases[i].text, strlen(cases[i].text)),
                         cases[i].width);
}

static void test_units_stay_with_their_numbers(void **state)
{
    (void)state;
    static const char text[] = "peak 40 MB, then 7.5 GB, 3 Mice and 9 TB";
    struct buf out = {0};
    struct screen screen = {.out = &out, .columns = 8};
    screen_wrapped(&screen, STYLE_PLAIN, text, 0);
    screen_newline(&screen);
    assert_string_equal(out.data, "peak\n40 MB,\nthen\n7.5 GB,\n3 Mice\nand 9 TB\n");
    buf_release(&out);
}

static void check_cut(const char *text, int room, const char *wanted)
{
    struct buf out = {0};
    struct screen screen = {.out = &out, .columns = 80};
    screen_text(&screen, STYLE_PLAIN, text, strlen(text), room);
    screen_newline(&screen);
    assert_string_equal(out.data, wanted);
    buf_release(&out);
}

static void test_cut(void **state)
{
    (void)state;
    check_cut("abcdef", 6, "abcdef\n");
    check_cut("abcdef", 5, "abcd…\n");
    check_cut("女王蜂", 6, "女王蜂\n");
    check_cut("女王蜂", 5, "女王…\n");
    check_cut("女王蜂", 4, "女…\n"); /* half a character is never shown */
    check_cut("a\tb", 5, "a   b\n");
    check_cut("a\tb", 4, "a…\n");
    check_cut("abc", 1, "…\n");
    check_cut("abc", 0, "\n");
}

static void test_format(void **state)
{
    (void)state;
    assert_string_equal(format_time(0.0123).text, "12.300ms");
    assert_string_equal(format_time(0.99999996).text, "1.000s");
    assert_string_equal(format_time(1.335).text, "1.335s");
    assert_string_equal(format_time(59.9996).text, "1m:0.000s");
    assert_string_equal(format_time(123).text, "2m:3.000s");
    assert_string_equal(format_time(3723).text, "1h:2m:3.000s");
    assert_string_equal(format_time(-1).text, "0.000ms");
}

static struct format format_whole(double count)
{
    return format_count((uint64_t)count);
}

static const struct {
    const char *name;
    struct format (*format)(double);
} formats[] = {
    {"percent", format_percent},
    {"short_time", format_short_time},
    {"short_memory", format_short_memory},
    {"memory", format_memory},
    {"count", format_whole},
};

/* The page formats numbers too, and is held to the same table. */
static void test_numbers(void **state)
{
    (void)state;
    struct buf table = {0};
    read_golden("../numbers.tsv", &table);
    char *rest = table.data;
    size_t checked = 0;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        const char *name = strsep(&line, "\t"), *value = strsep(&line, "\t");
        size_t i = 0;
        while (strcmp(formats[i].name, name) != 0)
            assert_true(++i < sizeof formats / sizeof formats[0]);
        assert_string_equal(formats[i].format(strtod(value, NULL)).text, line);
        checked++;
    }
    assert_true(checked > 40);
    buf_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_width),   cmocka_unit_test(test_room_for_code),
        cmocka_unit_test(test_empty),         cmocka_unit_test(test_hot_lines),
        cmocka_unit_test(test_threshold),     cmocka_unit_test(test_holes),
        cmocka_unit_test(test_files_by_time), cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_width),         cmocka_unit_test(test_units_stay_with_their_numbers),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_format),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
