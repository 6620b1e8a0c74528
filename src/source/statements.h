/*
 * Which lines of Python text are one statement: what runs from its first line to
 * its last before the next one runs.  A logical line is one, as is the header of
 * a compound statement (`for x in y:`), without its block.  report_executions.c
 * asks it, to tell a statement that runs again from one that still runs.
 */
#ifndef SOURCE_STATEMENTS_H
#define SOURCE_STATEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statement {
    uint32_t first_line;
    bool has_comprehension; /* or a generator expression: it runs parts of itself many times */
    bool is_loop;           /* a loop with its body on the same logical line */
};

struct statements {
    struct statement *of_line; /* [0] is unused; line_count + 1 entries */
    size_t line_count;
};

/* Never fails, as tokenize.h.  The text is not needed afterwards. */
void statements_parse(struct statements *statements, const char *text, size_t length);

/* Of a line beyond the text: one that is the line alone. */
struct statement statements_at(const struct statements *statements, uint32_t line);
void statements_release(struct statements *statements); /* idempotent */

#endif
