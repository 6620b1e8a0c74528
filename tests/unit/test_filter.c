/* The file filter: each rule, and the order among them. */
#include "base/mem.h"
#include "report/filter.h"
#include "wire/traced.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool traces(struct filter_config config, const char *file)
{
    struct wire_filter filter;
    if (!config.directory)
        config.directory = "/home/u/proj";
    filter_init(&filter, &config);
    return filter_traces(&filter, file);
}

#define WITH(...) ((struct filter_config){__VA_ARGS__})

static void by_default_the_program_s_directory(void **state)
{
    assert_true(traces(WITH(0), "/home/u/proj/main.py"));
    assert_true(traces(WITH(0), "/home/u/proj/sub/mod.py"));
    assert_true(traces(WITH(0), "/home/u/./x/../proj//main.py"));
    assert_true(traces(WITH(.directory = "/home/u/proj/"), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.directory = "/"), "/main.py"));
    assert_false(traces(WITH(0), "/home/u/project/main.py"));
    assert_false(traces(WITH(0), "/home/main.py"));
    assert_false(traces(WITH(0), "/home/u/proj/../other/main.py"));
    assert_false(traces(WITH(0), ""));
    assert_false(traces(WITH(.directory = ""), "/home/u/proj/main.py"));
}

static void directly_in_its_parent(void **state)
{
    assert_true(traces(WITH(0), "/home/u/helper.py"));
    assert_true(traces(WITH(0), "/home/u/proj/../helper.py"));
    assert_false(traces(WITH(0), "/home/u/other/helper.py"));
    assert_false(traces(WITH(0), "/home/helper.py"));
    assert_true(traces(WITH(.directory = "/p"), "/helper.py"));
    assert_false(traces(WITH(.directory = ""), "/helper.py"));
}

static void below_the_working_directory(void **state)
{
#define AT(work) WITH(.directory = "/home/u/proj/scripts", .work_directory = work)
    assert_true(traces(AT("/home/u/proj"), "/home/u/proj/package/deep/mod.py"));
    assert_true(traces(AT("/home/u/proj"), "/home/u/proj/scripts/train.py"));
    /* If the program does not lie below it, it is just where somebody stands. */
    assert_false(traces(AT("/home/u/other"), "/home/u/other/mod.py"));
    assert_false(traces(AT("/home/u/pro"), "/home/u/proj/package/mod.py"));
    assert_false(traces(AT("/"), "/opt/mod.py"));
    assert_false(traces(AT(""), "/home/u/proj/package/mod.py"));
    assert_false(traces(AT("/home/u/proj"), "/home/u/proj/.venv/lib/python3.12/os.py"));
#undef AT
}

static void the_script_wherever_it_lives(void **state)
{
    static const char script[] = "/usr/lib/python3.12/timeit.py";
    assert_true(traces(WITH(.directory = "/usr/lib/python3.12", .script = script), script));
    assert_false(traces(WITH(.directory = "/usr/lib/python3.12", .script = script),
                        "/usr/lib/python3.12/os.py"));
    assert_false(traces(WITH(.script = script, .profile_exclude = "timeit"), script));
    /* One that is part of an installed package has its own directory. */
    static const char benchmark[] = "/v/lib/python3.12/site-packages/suite/one/run.py";
#define IN(directory_) WITH(.directory = directory_, .script = benchmark)
    assert_true(traces(IN("/v/lib/python3.12/site-packages/suite/one"),
                       "/v/lib/python3.12/site-packages/suite/one/part/x.py"));
    assert_false(traces(IN("/v/lib/python3.12/site-packages/suite/one"),
                        "/v/lib/python3.12/site-packages/numpy/x.py"));
    assert_false(traces(IN("/v/lib/python3.12/site-packages/suite/one"),
                        "/v/lib/python3.12/site-packages/suite/one/lib/python3.12/os.py"));
    assert_false(traces(IN("/v/lib/python3.12/site-packages"),
                        "/v/lib/python3.12/site-packages/numpy/x.py"));
#undef IN
}

static void tools(void **state)
{
    struct wire_filter filter;
    filter_init(&filter, &WITH(.directory = "/home/u/proj", .tool = "black"));
    assert_true(filter_is_tool(&filter, "/v/lib/python3.12/site-packages/black/files.py"));
    assert_true(filter_is_tool(&filter, "/usr/lib/python3/dist-packages/black.py"));
    assert_true(filter_is_tool(&filter, "/src/black/__init__.py"));
    assert_false(filter_is_tool(&filter, "/v/lib/python3.12/site-packages/blackd/x.py"));
    assert_false(filter_is_tool(&filter, "/v/lib/python3.12/site-packages/x/black/x.py"));
    assert_false(filter_is_tool(&filter, "/src/blacker/x.py"));
    assert_false(filter_is_tool(&filter, "<frozen black>"));
    /* The script that starts it is nobody's, also in an environment inside the project. */
    static const char command[] = "/home/u/proj/.venv/bin/tidy";
    const struct filter_config config = {
        .directory = "/home/u/proj", .tool = "black", .script = command, .script_is_command = true};
    filter_init(&filter, &config);
    assert_true(filter_is_tool(&filter, command));
    assert_false(traces(config, command));
    assert_true(traces(config, "/home/u/proj/.venv/bin/other"));
    assert_true(
        traces(WITH(.script = command, .script_is_command = true, .profile_all = true), command));
    assert_true(traces(WITH(.script = command, .script_is_command = true, .profile_only = "tidy"),
                       command));
    filter_init(&filter, &WITH(.directory = "/home/u/proj", .tool = "json"));
    assert_false(filter_is_tool(&filter, "/usr/lib/python3.12/json/tool.py"));
    filter_init(&filter, &WITH(.directory = "/home/u/proj"));
    assert_false(filter_is_tool(&filter, "/v/lib/python3.12/site-packages/black/files.py"));
}

static void libraries_inside_the_directory_are_libraries(void **state)
{
    static const char *const libraries[] = {
        "/home/u/proj/.venv/lib/python3.12/site-packages/numpy/core.py",
        "/home/u/proj/.venv/lib/python3.12/os.py",
        "/home/u/proj/lib64/python3.13t/os.py",
        "/home/u/proj/dist-packages/x.py",
        "/home/u/proj/python312.zip/os.pyc",
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        assert_true(filter_is_library(libraries[i]));
        assert_false(traces(WITH(0), libraries[i]));
        assert_true(traces(WITH(.profile_system_libraries = true), libraries[i]));
        assert_true(traces(WITH(.profile_all = true), libraries[i]));
    }
    static const char *const own[] = {
        "/home/u/proj/lib/python/x.py",       "/home/u/proj/python3.12/x.py",
        "/home/u/proj/lib/python3/x.py",      "/home/u/proj/my-site-packages/x.py",
        "/home/u/proj/lib/python3.x/x.py",    "/home/u/proj/site-packages",
        "/home/u/proj/lib/python3.12.1/x.py",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        assert_false(filter_is_library(own[i]));
        assert_true(traces(WITH(0), own[i]));
    }
}

static void patterns(void **state)
{
    const char *numpy = "/usr/lib/python3/dist-packages/numpy/core.py";
    assert_false(traces(WITH(.profile_exclude = "main"), "/home/u/proj/main.py"));
    assert_false(
        traces(WITH(.profile_exclude = "x,main", .profile_all = true), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.profile_exclude = ",, ,"), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.profile_only = ""), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.profile_only = " , "), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.profile_only = "zzz, main"), "/home/u/proj/main.py"));
    assert_false(traces(WITH(.profile_only = "zzz"), "/home/u/proj/main.py"));
    assert_true(traces(WITH(.profile_only = "numpy"), numpy));
    assert_false(traces(WITH(.profile_only = "numpy", .profile_exclude = "core"), numpy));
    assert_false(
        traces(WITH(.profile_only = "elsewhere"), "/somewhere/elsewhere.py.d/../b/main.py"));
}

static void names_in_angle_brackets(void **state)
{
    assert_false(traces(WITH(.profile_all = true), "<frozen importlib._bootstrap>"));
    assert_false(traces(WITH(0), "<string>"));
    assert_false(traces(WITH(.program_is_stdin = true), "<string>"));
    assert_true(traces(WITH(.program_is_code = true), "<string>"));
    assert_true(traces(WITH(.program_is_stdin = true), "<stdin>"));
    assert_false(traces(WITH(.program_is_stdin = true, .profile_exclude = "std"), "<stdin>"));
}

static void scalene_itself_never(void **state)
{
    const char *own = "/usr/lib/python3/site-packages/scalene/profile.py";
    assert_false(traces(WITH(.profile_all = true), own));
    assert_false(traces(WITH(.profile_only = "scalene"), own));
    assert_true(traces(WITH(0), "/home/u/proj/scalene/profile.py"));
}

static void links_are_followed_both_ways(void **state)
{
    char base[] = "/tmp/scalene-test-XXXXXX";
    assert_non_null(mkdtemp(base));
    char *real = mem_format("%s/real", base), *link = mem_format("%s/link", base);
    char *file = mem_format("%s/m.py", real), *through = mem_format("%s/m.py", link);
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink(real, link), 0);
    assert_int_equal(close(creat(file, 0600)), 0);
    assert_true(traces(WITH(.directory = link), file));
    assert_true(traces(WITH(.directory = real), through));
    unlink(file);
    unlink(link);
    rmdir(real);
    rmdir(base);
    free(real);
    free(link);
    free(file);
    free(through);
}

static void roots_of_libraries(void **state)
{
    assert_int_equal(traced_library_root("/usr/lib/python3.11/os.py"),
                     strlen("/usr/lib/python3.11"));
    assert_int_equal(traced_library_root("/v/lib/python3.11/site-packages/a/b.py"),
                     strlen("/v/lib/python3.11/site-packages"));
    assert_int_equal(traced_library_root("/home/u/a.py"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_the_program_s_directory),
        cmocka_unit_test(directly_in_its_parent),
        cmocka_unit_test(below_the_working_directory),
        cmocka_unit_test(the_script_wherever_it_lives),
        cmocka_unit_test(tools),
        cmocka_unit_test(libraries_inside_the_directory_are_libraries),
        cmocka_unit_test(patterns),
        cmocka_unit_test(names_in_angle_brackets),
        cmocka_unit_test(scalene_itself_never),
        cmocka_unit_test(links_are_followed_both_ways),
        cmocka_unit_test(roots_of_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
