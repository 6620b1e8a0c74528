/* Tests of src/source/structure.c on small texts; tests/e2e/test_structure.py compares it with ast.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "source/structure.h"

static struct structure parse(const char *text)
{
    struct structure structure;
    structure_parse(&structure, text, strlen(text));
    return structure;
}

/* Regions as "1-4 1-4 ..." for lines 1, 2, ... */
static void check_lines(const char *text, const char *region, const char *outermost,
                        const char *function)
{
    struct structure structure = parse(text);
    struct buf got[3] = {{0}};
    for (size_t i = 1; i <= structure.line_count; i++) {
        const struct structure_lines *line = &structure.lines[i];
        const char *blank = i > 1 ? " " : "";
        buf_addf(&got[0], "%s%u-%u", blank, line->start_region, line->end_region);
        buf_addf(&got[1], "%s%u-%u", blank, line->start_outermost_loop, line->end_outermost_loop);
        buf_addf(&got[2], "%s%u-%u", blank, line->start_function, line->end_function);
    }
    assert_string_equal(got[0].data, region);
    assert_string_equal(got[1].data, outermost);
    assert_string_equal(got[2].data, function);
    for (size_t i = 0; i < 3; i++)
        buf_release(&got[i]);
    structure_release(&structure);
}

static void check_functions(const char *text, const char *expected)
{
    struct structure structure = parse(text);
    struct buf got = {0};
    for (size_t i = 0; i < structure.function_count; i++) {
        const struct structure_function *function = &structure.functions[i];
        buf_addf(&got, "%s%s%s %u/%u-%u\n", function->is_async ? "async " : "",
                 function->is_class ? "class " : "", function->qualname, function->decorator_line,
                 function->first_line, function->last_line);
    }
    buf_str(&got, "");
    assert_string_equal(got.data, expected);
    buf_release(&got);
    structure_release(&structure);
}

static void check_imports(const char *text, const char *expected)
{
    struct structure structure = parse(text);
    struct buf got = {0};
    for (size_t i = 0; i < structure.import_count; i++)
        buf_addf(&got, "%u %s [%s]\n", structure.imports[i].line, structure.imports[i].text,
                 structure.imports[i].module);
    buf_str(&got, "");
    assert_string_equal(got.data, expected);
    buf_release(&got);
    structure_release(&structure);
}

static void test_empty(void **state)
{
    struct structure structure = parse("");
    assert_int_equal(structure.line_count, 0);
    assert_null(structure_find(&structure, 1, "f"));
    structure_release(&structure);
    structure_release(&structure);
    structure = parse("x");
    assert_int_equal(structure.line_count, 1);
    structure_release(&structure);
    structure = parse("x\n\n");
    assert_int_equal(structure.line_count, 2);
    structure_release(&structure);
}

static void test_regions(void **state)
{
    check_lines("x = 1\n"            /* 1 */
                "def f():\n"         /* 2 */
                "    a()\n"          /* 3 */
                "    for i in b:\n"  /* 4 */
                "        while c:\n" /* 5 */
                "            d()\n"  /* 6 */
                "    # trailing\n"   /* 7 */
                "\n"                 /* 8 */
                "class C:\n"         /* 9 */
                "    y = 2\n",       /* 10 */
                "1-1 2-6 2-6 4-6 5-6 5-6 7-7 8-8 9-10 9-10",
                "1-1 2-6 3-3 4-6 4-6 4-6 7-7 8-8 9-10 10-10",
                "0-0 2-6 2-6 2-6 2-6 2-6 0-0 0-0 9-10 9-10");
}

static void test_async(void **state)
{
    check_lines("async def f():\n"
                "    async for x in y:\n"
                "        z()\n"
                "    w()\n",
                "1-1 2-3 2-3 4-4", "1-4 2-3 2-3 4-4", "1-4 1-4 1-4 1-4");
}

static void test_function_in_loop(void **state)
{
    check_lines("for a in b:\n"
                "    @c\n"
                "    def d():\n"
                "        e()\n"
                "    f()\n"
                "else:\n"
                "    g()\n",
                "1-7 1-7 1-7 1-7 1-7 1-7 1-7", "1-7 1-7 3-4 4-4 1-7 1-7 1-7",
                "0-0 0-0 3-4 3-4 0-0 0-0 0-0");
}

static void test_headers(void **state)
{
    check_lines("if (a and\n"
                "        b):\n"
                "    c()\n"
                "elif d:\n"
                "    e()\n"
                "else:\n"
                "    f()\n"
                "with g: h()\n"
                "try:\n"
                "    i()\n"
                "except j: k()\n"
                "finally:\n"
                "    l(\n"
                "    )\n",
                "1-1 2-2 3-3 4-4 5-5 6-6 7-7 8-8 9-9 10-10 11-11 12-12 13-13 14-14",
                "1-7 1-7 3-3 4-7 5-5 6-6 7-7 8-8 9-14 10-10 11-11 12-12 13-13 14-14",
                "0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0 0-0");
    check_lines("match a:\n"
                "    case 1:\n"
                "        for b in c:\n"
                "            d()\n"
                "    case _: e()\n",
                "1-1 2-2 3-4 3-4 5-5", "1-5 2-2 3-4 3-4 5-5", "0-0 0-0 0-0 0-0 0-0");
}

static void test_lambda_colons(void **state)
{
    check_imports("if lambda: (lambda: 0): import a\n", "1 import a [a]\n");
    check_imports("if lambda x=lambda: 0: x: import a\n", "1 import a [a]\n");
    check_functions("def f(a=lambda: 1) -> lambda x: x:\n    pass\n", "f 1/1-2\n");
    check_lines("while lambda: {a: b}:\n    c()\n", "1-2 1-2", "1-2 1-2", "0-0 0-0");
    check_lines("for x in lambda y=lambda: 0: y, lambda: 1: z()\na()\n", "1-1 2-2", "1-1 2-2",
                "0-0 0-0");
}

static void test_functions(void **state)
{
    check_functions("class A:\n"
                    "    @property\n"
                    "    @other(\n"
                    "        1)\n"
                    "    def m(self):\n"
                    "        async def inner(): pass\n"
                    "        class B(object): x = '''\n"
                    "'''; \n"
                    "        return inner\n"
                    "\n"
                    "    # not part of it\n"
                    "@d\n"
                    "class C: pass\n"
                    "def e(): pass\n",
                    "class A 1/1-9\n"
                    "A.m 2/5-9\n"
                    "async A.m.<locals>.inner 6/6-6\n"
                    "class A.m.<locals>.B 7/7-8\n"
                    "class C 12/13-13\n"
                    "e 14/14-14\n");
}

static void test_global_names(void **state)
{
    check_functions("def f():\n"
                    "    global g\n"
                    "    def g(): pass\n"
                    "    def h():\n"
                    "        def g(): pass\n",
                    "f 1/1-5\ng 3/3-3\nf.<locals>.h 4/4-5\nf.<locals>.h.<locals>.g 5/5-5\n");
}

static void test_long_names(void **state)
{
    struct buf text = {0};
    buf_str(&text, "class ");
    buf_pad(&text, 'a', 10000);
    buf_str(&text, ":\n def ");
    buf_pad(&text, 'b', 10000);
    buf_str(&text, "(): pass\n");
    struct structure structure = parse(text.data);
    assert_int_equal(structure.function_count, 2);
    assert_int_equal(strlen(structure.functions[0].qualname), 4096);
    assert_int_equal(strlen(structure.functions[1].qualname), 4096);
    structure_release(&structure);
    buf_release(&text);
}

static void test_imports(void **state)
{
    check_imports("import numpy as np, os . path\n"
                  "from os import (path as p,\n"
                  "  sep, )\n"
                  "if x: import a; from b import *\n"
                  "def f():\n"
                  "    from . import c\n"
                  "    from ...d.e import f as g; import h\n"
                  "lazy import i\n"
                  "lazy from j import k\n"
                  "yield_from = 1; raise X from y\n"
                  "s = 'import no'  # import no\n",
                  "1 import numpy as np [numpy]\n"
                  "1 import os.path [os.path]\n"
                  "2 from os import path as p, sep [os]\n"
                  "4 import a [a]\n"
                  "4 from b import * [b]\n"
                  "6 from . import c [.]\n"
                  "7 from ...d.e import f as g [...d.e]\n"
                  "7 import h [h]\n"
                  "8 import i [i]\n"
                  "9 from j import k [j]\n");
    check_imports("import\nfrom\nfrom x\nfrom import y\nimport as\nimport a as\n",
                  "6 import a [a]\n");
}

static void test_find(void **state)
{
    struct structure structure = parse("def f():\n"         /* 1 */
                                       "    def g():\n"     /* 2 */
                                       "        x()\n"      /* 3 */
                                       "    y()\n"          /* 4 */
                                       "class C:\n"         /* 5 */
                                       "    @d\n"           /* 6 */
                                       "    def f(self):\n" /* 7 */
                                       "        z()\n"      /* 8 */
                                       "w()\n");            /* 9 */
    static const struct {
        uint32_t line;
        const char *name, *qualname;
    } cases[] = {
        {1, "f", "f"},         {3, "g", "f.<locals>.g"}, {3, "f", "f"},   {4, "g", NULL},
        {4, "f", "f"},         {5, "C", NULL},           {6, "f", "C.f"}, {8, "f", "C.f"},
        {8, "g", NULL},        {9, "f", NULL},           {0, "f", NULL},  {99, "f", NULL},
        {3, "<module>", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct structure_function *found =
            structure_find(&structure, cases[i].line, cases[i].name);
        if (!cases[i].qualname) {
            assert_null(found);
        } else {
            assert_non_null(found);
            assert_string_equal(found->qualname, cases[i].qualname);
        }
    }
    structure_release(&structure);
}

/* Text that is not Python loses no more than it must. */
static void test_broken(void **state)
{
    check_functions("x = (1,\ndef f(:\n    y\ndef g():\n    z\n", "f 2/2-3\ng 4/4-5\n");
    check_functions("def\nclass\ndef 1():\n  x\nasync\nasync x\nelse:\n  y\nelif z: w\n", "");
    check_functions("  def f(): x\n y\n", "f 1/1-1\n");
    check_functions("async def f(): pass\nasync class C:\n x\n",
                    "async f 1/1-1\nasync class C 2/2-3\n");
    check_lines("else:\n  for x in y:\n    z\n w\n", "1-1 2-3 2-3 4-4", "1-1 2-3 2-3 4-4",
                "0-0 0-0 0-0 0-0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),      cmocka_unit_test(test_regions),
        cmocka_unit_test(test_async),      cmocka_unit_test(test_function_in_loop),
        cmocka_unit_test(test_headers),    cmocka_unit_test(test_lambda_colons),
        cmocka_unit_test(test_functions),  cmocka_unit_test(test_global_names),
        cmocka_unit_test(test_long_names), cmocka_unit_test(test_imports),
        cmocka_unit_test(test_find),       cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
