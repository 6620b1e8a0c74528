/* The name of the profile's file, and where it goes when it cannot go there. */
#include "base/file.h"
#include "base/mem.h"
#include "cmd/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void names(void **state)
{
    static const struct {
        const char *typed, *expected;
    } cases[] = {
        {NULL, "scalene-profile.json"}, {"foo", "foo.json"},
        {"foo.txt", "foo.json"},        {"foo.json", "foo.json"},
        {"a.b/foo", "a.b/foo.json"},    {"/x/y.tar.gz", "/x/y.tar.json"},
        {".hidden", ".hidden.json"},    {"d/..x.y", "d/..x.json"},
        {"foo.", "foo.json"},           {"/dev/null", "/dev/null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *name = output_name(cases[i].typed);
        assert_string_equal(name, cases[i].expected);
        free(name);
    }
}

static void directories(void **state)
{
    assert_true(output_is_directory("/"));
    assert_true(output_is_directory("/nonexistent/"));
    assert_false(output_is_directory("/nonexistent"));
    assert_false(output_is_directory("/dev/null"));
}

static void checks(void **state)
{
    struct err err = {""};
    assert_int_equal(output_check("/tmp/x.json", &err), 0);
    assert_int_equal(output_check("/dev/null", &err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(output_check("/nonexistent/x.json", &err), -1);
    assert_string_equal(err.text, "cannot write '/nonexistent/x.json': No such file or directory");
}

static void falls_back(void **state)
{
    char directory[] = "/tmp/test_output.XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct buf text = {0}, read_back = {0};
    struct err err = {""};
    buf_str(&text, "{}\n");

    char *wanted = mem_format("%s/a.json", directory);
    char *path = output_write(wanted, (const char *const[]){NULL}, &text, &err);
    assert_string_equal(path, wanted);
    assert_string_equal(err.text, "");
    free(path);
    unlink(wanted);

    path =
        output_write("/nonexistent/a.json",
                     (const char *const[]){"/also-nonexistent", "", directory, NULL}, &text, &err);
    assert_string_equal(path, wanted);
    assert_string_equal(err.text, "cannot write '/nonexistent/a.json': No such file or directory");
    assert_int_equal(file_read(path, &read_back, &err), 0);
    assert_string_equal(read_back.data, "{}\n");
    free(path);

    assert_null(
        output_write("/nonexistent/a.json", (const char *const[]){"/no", NULL}, &text, &err));
    unlink(wanted);
    assert_int_equal(rmdir(directory), 0); /* nothing else was left there */
    free(wanted);
    buf_release(&text);
    buf_release(&read_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(directories),
        cmocka_unit_test(checks),
        cmocka_unit_test(falls_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
