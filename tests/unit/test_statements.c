/* Tests of src/source/statements.c on small texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "source/statements.h"

/* "1 1c 3" for lines 1, 2, 3: the first line of each one's statement, c for a comprehension, l for
 * a loop with its body. */
static void check(const char *text, const char *expected)
{
    struct statements statements;
    struct buf got = {0};
    statements_parse(&statements, text, strlen(text));
    for (uint32_t line = 1; line <= statements.line_count; line++) {
        struct statement at = statements_at(&statements, line);
        buf_addf(&got, "%s%u%s%s", line > 1 ? " " : "", at.first_line,
                 at.has_comprehension ? "c" : "", at.is_loop ? "l" : "");
    }
    buf_str(&got, "");
    assert_string_equal(got.data, expected);
    buf_release(&got);
    statements_release(&statements);
    statements_release(&statements);
}

static void test_lines(void **state)
{
    check("", "");
    check("a()\nb()\n", "1 2 3");
    check("a(\n  b,\n  c)\nd()", "1 1 1 4");
    check("a = \"\"\"x\ny\"\"\"\n# nothing\nb \\\n  + c\n", "1 1 3 4 4 6");
    check("a(\r  b)\r\nc()\r\n", "1 1 3 4");
}

static void test_comprehensions(void **state)
{
    check("rows = [\n  f(x)\n  for x in y\n]\ng()\n", "1c 1c 1c 1c 5 6");
    check("f(x for x in y)\n", "1c 2");
    check("for a in [x for x in y]:\n    g()\n", "1c 2 3");
}

static void test_loops(void **state)
{
    check("for a in b:\n    c()\n", "1 2 3");
    check("for a in b: c()\n", "1l 2");
    check("async for a in b: c()\n", "1l 2");
    check("while a[1:2]: # go on\n    b()\n", "1 2 3");
    check("while a: b()\n", "1l 2");
    check("if a: b()\n", "1 2");
}

static void test_beyond(void **state)
{
    struct statements statements = {0};
    assert_int_equal(statements_at(&statements, 7).first_line, 7);
    statements_release(&statements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_comprehensions),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
