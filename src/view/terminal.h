/*
 * The profile as text for a terminal (`scalene view --cli`): a summary, then for
 * each file, the most expensive first, a table of its lines and one of its
 * functions.
 *
 * Only renders: the command finds out the width, whether there is a terminal,
 * whether it understands UTF-8, and what NO_COLOR says.  No line is wider than
 * `columns`, and nothing in the profile's texts reaches the terminal as an
 * escape sequence.
 */
#ifndef VIEW_TERMINAL_H
#define VIEW_TERMINAL_H

#include "base/buf.h"
#include "profile/profile.h"

#include <stdbool.h>

enum { TERMINAL_COLUMNS_MIN = 40, TERMINAL_COLUMNS_MAX = 500 };

struct terminal_options {
    int columns;                  /* taken to the nearest of the bounds above */
    bool color;                   /* escape sequences for colours */
    bool ascii;                   /* nothing but ASCII: for terminals without UTF-8 */
    bool reduced;                 /* runs of lines without time become one `...` */
    double cpu_percent_threshold; /* from this percent of total time on a line has numbers; usually
                                     1 */
};

void terminal_render(const struct profile *profile, const struct terminal_options *options,
                     struct buf *out);

#endif
