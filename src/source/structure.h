/*
 * Where functions, classes and loops begin and end, and what is imported: the
 * `start_*`/`end_*` fields and `imports` of the profile, by reading the text
 * alone (the original parsed with ast and imported every module to see whether
 * it is native; this imports nothing).
 *
 * A block's last line is the last line of its last statement (as ast's
 * end_lineno): trailing blank lines and comments are not part of it.  A
 * decorated function begins at its `def` line (as ast's lineno since 3.8).
 */
#ifndef SOURCE_STRUCTURE_H
#define SOURCE_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct structure_lines {
    uint32_t start_region, end_region; /* innermost for/while (also async for); else innermost
                                          def (not async); else class; else the line itself */
    uint32_t start_outermost_loop, end_outermost_loop; /* outermost loop of the enclosing
                                          function/class/module, or the line itself; the header
                                          (first line up to the body's first statement) of a block
                                          statement (if, elif, with, try, match, def, class) not in
                                          a loop gets that block's extent */
    uint32_t start_function, end_function; /* narrowest def/async def/class, else 0, 0 */
};

struct structure_function {
    char *qualname; /* "Class.method", "outer.<locals>.inner", as co_qualname; cut at 4096 bytes */
    uint32_t first_line;     /* of `def`; with decorators, see decorator_line */
    uint32_t decorator_line; /* first decorator's line, else == first_line: equals co_firstlineno */
    uint32_t last_line;
    uint32_t parent; /* index + 1 of the function or class around it, 0 at module level */
    bool is_class, is_async;
};

struct structure_import {
    char *text;   /* re-rendered: "import numpy as np" (of several, each by itself), "from os import
                     path, sep" */
    char *module; /* the module's dotted name: "numpy", "os" ; relative ones keep their dots */
    uint32_t line;
};

struct structure {
    struct structure_lines *lines; /* lines[0] is unused; line_count + 1 entries */
    size_t line_count;
    struct structure_function *functions; /* by first_line */
    size_t function_count, function_cap;
    struct structure_import *imports; /* in order of appearance */
    size_t import_count, import_cap;
};

/* Never fails; on text that is not valid Python the result is a best effort, with every range still
 * nested and within 1..line_count.  The text is not needed afterwards. */
void structure_parse(struct structure *structure, const char *text, size_t length);

/* The narrowest function (not class) around a line, its decorators included, whose name is `name`
 * (last part of a qualname); NULL when there is none. */
const struct structure_function *structure_find(const struct structure *structure, uint32_t line,
                                                const char *name);
void structure_release(struct structure *structure);

#endif
