/*
 * From an instruction's offset to its source line, for the three encodings
 * CPython has used.  The agent copies a code object's table into the arena as it
 * is; the launcher decodes it with this, long after the process has ended.
 *
 * A table is decoded once, into ranges that are then searched: many stacks may
 * stand in one large function.  Tables come from a file that may be damaged: every
 * read is bounded, garbage gives some line or -1.
 */
#ifndef REPORT_LINETABLE_H
#define REPORT_LINETABLE_H

#include "wire/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct linetable_range {
    int64_t end; /* byte offset; it begins where the one before ends */
    int line;    /* -1: none */
};

struct linetable {
    struct linetable_range *ranges;
    size_t count, cap;
    int first_line;
    bool is_missing; /* there was no table: all is on the first line */
};

void linetable_decode(struct linetable *lines, enum wire_line_format format, const uint8_t *table,
                      size_t table_bytes, int first_line);
void linetable_release(struct linetable *lines); /* idempotent */

/*
 * The line of the instruction at byte offset `at`; `at` < 0 (a frame that has
 * not begun) and a missing table give the first line.  -1: the instruction
 * belongs to no line, or the table ends before it.  0 is real: since 3.11 a
 * module's first instruction stands on line 0.
 */
int linetable_line(const struct linetable *lines, int at);

#endif
