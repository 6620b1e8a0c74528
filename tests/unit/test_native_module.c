/* Tests of src/source/native_module.c on a made-up search path. */
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
#include "source/native_module.h"

static char root[] = "/tmp/test_native_module.XXXXXX";
static char *made[64]; /* in order of creation, to be removed backwards */
static size_t made_count;

/* Make an empty file or, with a slash at the end, a directory, under the root. */
static void make(const char *name)
{
    char *path = mem_format("%s/%s", root, name);
    size_t length = strlen(path);
    if (path[length - 1] == '/') {
        path[length - 1] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
    } else {
        FILE *stream = fopen(path, "wb");
        assert_non_null(stream);
        fclose(stream);
    }
    assert_true(made_count < sizeof made / sizeof *made);
    made[made_count++] = path;
}

static int set_up(void **state)
{
    static const char *const names[] = {
        "a/",
        "b/",
        "a/plain.py",
        "a/fast.cpython-312-x86_64-linux-gnu.so",
        "a/bare.so",
        "a/stable.abi3.so",
        "a/both.py",
        "a/both.cpython-312-x86_64-linux-gnu.so",
        "a/fastest.txt",
        "a/math.py",
        "a/sys.py",
        "a/pure/",
        "a/pure/__init__.py",
        "a/pure/core.py",
        "a/pure/data.so.txt",
        "a/heavy/",
        "a/heavy/__init__.py",
        "a/heavy/light.py",
        "a/heavy/_libs/",
        "a/heavy/_libs/__init__.py",
        "a/heavy/_libs/ops.so",
        "a/heavy/soft/",
        "a/heavy/soft/__init__.py",
        "a/space/",
        "a/space/one.py",
        "b/space/",
        "b/space/two.so",
        "b/plain.so",
        "b/pure.so",
        "a/deep/",
        "a/deep/__init__.py",
        "a/deep/2/",
        "a/deep/2/3/",
        "a/deep/2/3/4/",
        "a/deep/2/3/4/5/",
        "a/deep/2/3/4/5/6/",
        "a/deep/2/3/4/5/6/7/",
        "a/deep/2/3/4/5/6/7/x.so",
        "a/deep2/",
        "a/deep2/__init__.py",
        "a/deep2/2/",
        "a/deep2/2/3/",
        "a/deep2/2/3/4/",
        "a/deep2/2/3/4/5/",
        "a/deep2/2/3/4/5/6/",
        "a/deep2/2/3/4/5/6/x.so",
    };
    if (!mkdtemp(root))
        return -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        make(names[i]);
    return 0;
}

static int tear_down(void **state)
{
    while (made_count) {
        char *path = made[--made_count];
        remove(path);
        free(path);
    }
    return rmdir(root);
}

static bool native(const char *module)
{
    char *a = mem_format("%s/a", root), *b = mem_format("%s/b", root);
    const char *const dirs[] = {"/nonexistent", a, b};
    bool result = native_module(module, dirs, 3);
    free(a);
    free(b);
    return result;
}

static void test_extension_modules(void **state)
{
    assert_true(native("fast"));
    assert_true(native("bare"));
    assert_true(native("stable"));
    assert_true(native("both")); /* an extension wins over the source beside it */
    assert_false(native("fas"));
    assert_false(native("fastest"));
}

static void test_python_modules(void **state)
{
    assert_false(native("plain")); /* the first directory that has it decides */
    assert_false(native("pure"));
    assert_false(native("pure.core"));
    assert_false(native("nothing"));
    assert_false(native("nothing.at.all"));
}

static void test_packages(void **state)
{
    assert_true(native("heavy"));
    assert_true(native("heavy._libs"));
    assert_true(native("heavy._libs.ops"));
    assert_false(native("heavy.light"));
    assert_false(native("heavy.soft"));
    assert_false(native("heavy.attribute"));
    assert_false(native("space.one"));
    assert_true(native("space.two")); /* a namespace package goes on in the next directory */
    assert_true(native("deep2"));
    assert_false(native("deep")); /* more than 6 levels down */
}

static void test_builtins(void **state)
{
    assert_true(native("sys")); /* always built in: a file of that name is never imported */
    assert_true(native("time"));
    assert_true(native("itertools"));
    assert_true(native("_thread"));
    assert_true(native("builtins"));
    assert_true(native("_abc"));
    assert_true(native("zlib"));
    assert_false(
        native("math")); /* built in or not, by build: a file in the path stands before it */
    assert_true(native_module("math", NULL, 0));
    assert_false(native_module("os", NULL, 0));
    assert_false(native_module("warnings", NULL, 0));
    assert_false(native_module("json", NULL, 0));
}

static void test_odd_names(void **state)
{
    assert_false(native(""));
    assert_false(native("."));
    assert_false(native(".fast"));
    assert_false(native("..heavy"));
    assert_false(native("../a/fast"));
    assert_false(native("heavy."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extension_modules), cmocka_unit_test(test_python_modules),
        cmocka_unit_test(test_packages),          cmocka_unit_test(test_builtins),
        cmocka_unit_test(test_odd_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
