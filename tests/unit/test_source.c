/* Tests of src/source/source.c: encodings, line cutting, and files that are not as they should be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "source/source.h"

static char directory[] = "/tmp/test_source.XXXXXX";

static int make_directory(void **state)
{
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    return rmdir(directory);
}

/* Load a file with these bytes and compare the text. */
static void check_load(const char *bytes, size_t length, const char *expected)
{
    char *path = mem_format("%s/a.py", directory);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
    struct source source;
    struct err err;
    assert_int_equal(source_load(&source, path, &err), 0);
    assert_int_equal(source.length, strlen(expected));
    assert_string_equal(source.text, expected);
    source_release(&source);
    assert_int_equal(unlink(path), 0);
    free(path);
}

#define CHECK_LOAD(bytes, expected) check_load(bytes, sizeof(bytes) - 1, expected)

static void test_utf8(void **state)
{
    CHECK_LOAD("", "");
    CHECK_LOAD("x = '\xc3\xa9'\n", "x = '\xc3\xa9'\n");
    CHECK_LOAD("\xef\xbb\xbfx\n", "x\n");
    CHECK_LOAD("\xef\xbb\xbf# coding: latin-1\n\xc3\xa9\n", "# coding: latin-1\n\xc3\xa9\n");
    CHECK_LOAD("\xf0\x9f\x90\x8d \xe2\x82\xac\n", "\xf0\x9f\x90\x8d \xe2\x82\xac\n");
}

/* Not valid as declared: byte for byte. */
static void test_invalid(void **state)
{
    CHECK_LOAD("\xe9\n", "\xc3\xa9\n");
    CHECK_LOAD("\xc3", "\xc3\x83");
    CHECK_LOAD("\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"); /* a surrogate */
    CHECK_LOAD("\xc0\xaf", "\xc3\x80\xc2\xaf");             /* overlong */
    CHECK_LOAD("\xf4\x90\x80\x80", "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80");
    CHECK_LOAD("# coding: ascii\n\xe9", "# coding: ascii\n\xc3\xa9");
    CHECK_LOAD("# coding: no-such-thing\n\xe9", "# coding: no-such-thing\n\xc3\xa9");
    CHECK_LOAD("# coding: cp1252\n\x81", "# coding: cp1252\n\xc2\x81");
    CHECK_LOAD("a\0b", "a\xef\xbf\xbd"
                       "b");
}

static void test_cookies(void **state)
{
    CHECK_LOAD("# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\n\xc3\xa9");
    CHECK_LOAD("#!python\n# vim: set fileencoding=ISO_8859_15 :\n\xa4",
               "#!python\n# vim: set fileencoding=ISO_8859_15 :\n\xe2\x82\xac");
    CHECK_LOAD("\r\n# coding=cp1252\r\n\x80", "\r\n# coding=cp1252\r\n\xe2\x82\xac");
    CHECK_LOAD("# coding: latin-1-unix\n\xe9", "# coding: latin-1-unix\n\xc3\xa9");
    CHECK_LOAD("# coding: iso-8859-15\n\xbe", "# coding: iso-8859-15\n\xc5\xb8");
    /* Not cookies: after code, in the third line, not in a comment. */
    CHECK_LOAD("x\n# coding: latin-1\n\xc3\xa9", "x\n# coding: latin-1\n\xc3\xa9");
    CHECK_LOAD("\n\n# coding: latin-1\n\xc3\xa9", "\n\n# coding: latin-1\n\xc3\xa9");
    CHECK_LOAD("x = 'coding: latin-1'\n\xc3\xa9", "x = 'coding: latin-1'\n\xc3\xa9");
    CHECK_LOAD("# encoding latin-1\n\xc3\xa9", "# encoding latin-1\n\xc3\xa9");
}

static void test_lines(void **state)
{
    static const char text[] = "one\ntwo\r\nthree\rfour\x0c\n\nlast";
    static const char *const expected[] = {"one\n",      "two\r\n", "three\r",
                                           "four\x0c\n", "\n",      "last"};
    struct source source;
    source_from_text(&source, text, sizeof text - 1);
    assert_int_equal(source.line_count, 6);
    size_t length;
    for (size_t i = 0; i < source.line_count; i++) {
        const char *line = source_line(&source, i + 1, &length);
        assert_int_equal(length, strlen(expected[i]));
        assert_memory_equal(line, expected[i], length);
    }
    assert_int_equal(source.line_start[source.line_count], source.length);
    assert_null(source_line(&source, 0, &length));
    assert_null(source_line(&source, 7, &length));
    assert_int_equal(length, 0);
    source_release(&source);
    source_release(&source);

    source_from_text(&source, "a\n", 2);
    assert_int_equal(source.line_count, 1);
    source_release(&source);
    source_from_text(&source, NULL, 0);
    assert_int_equal(source.line_count, 0);
    assert_string_equal(source.text, "");
    source_release(&source);
}

static void test_refused(void **state)
{
    struct source source;
    struct err err;
    assert_int_equal(source_load(&source, directory, &err), -1);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_null(source.text);

    char *path = mem_format("%s/none.py", directory);
    assert_int_equal(source_load(&source, path, &err), -1);
    assert_non_null(strstr(err.text, "No such file"));

    /* A pipe nobody writes to must not block us; a sparse file stands for a large one. */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(source_load(&source, path, &err), -1);
    assert_int_equal(unlink(path), 0);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(ftruncate(fileno(stream), 64 * 1024 * 1024 + 1), 0);
    fclose(stream);
    assert_int_equal(source_load(&source, path, &err), -1);
    assert_non_null(strstr(err.text, "64 MiB"));
    assert_int_equal(unlink(path), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),    cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_cookies), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
