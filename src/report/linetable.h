/*
 * From an instruction's offset to its source line, for the three encodings
 * CPython has used.  The agent copies a code object's table into the arena as it
 * is; the launcher decodes it with this, long after the process has ended.
 *
 * Any context, no allocation, no state.  Tables come from a file that may be
 * damaged: every read is bounded, garbage gives some line or -1.
 */
#ifndef REPORT_LINETABLE_H
#define REPORT_LINETABLE_H

#include "wire/arena.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The line of the instruction at byte offset `at`; `at` < 0 (a frame that has
 * not begun) and a missing table give `first_line`.  -1: the instruction
 * belongs to no line, or the table ends before it.  0 is real: since 3.11 a
 * module's first instruction stands on line 0.
 */
int linetable_line(enum wire_line_format format, const uint8_t *table, size_t table_bytes,
                   int first_line, int at);

#endif
