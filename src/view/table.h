/*
 * The tables of the terminal view: lines of a file, functions of a file.  What
 * can stand in a table is the array of columns in table_columns.h; which of them appear
 * depends on the width.  Used by terminal.c.
 */
#ifndef VIEW_TABLE_H
#define VIEW_TABLE_H

#include "profile/profile.h"
#include "view/screen.h"
#include "view/terminal.h"

/* Figures that not every profile has; a column without any would only take room. */
enum table_data {
    TABLE_HALF_WIDTHS = 1 << 0,
    TABLE_WAITS = 1 << 1,
    TABLE_STAMPS = 1 << 2,
    TABLE_MEMORY = 1 << 3,
    TABLE_COPIES = 1 << 4,
    TABLE_TOTALS = 1 << 5,
    TABLE_MEMORY_WIDTHS = 1 << 6,
    TABLE_AWAITS = 1 << 7,
    TABLE_BLOCKS = 1 << 8,
};

struct table_context {
    struct screen *screen;
    const struct profile *profile;
    const struct terminal_options *options;
    unsigned data;              /* enum table_data: what the profile has */
    double first_sec, last_sec; /* what the timelines span */
};

void table_init(struct table_context *context, struct screen *screen, const struct profile *profile,
                const struct terminal_options *options);
/* What the columns mean that appear at this width. */
void table_legend(const struct table_context *context);
void table_lines(const struct table_context *context, const struct profile_file *file);
/* Nothing is written when no function reaches the threshold. */
void table_functions(const struct table_context *context, const struct profile_file *file);

/* Lines that may leak, fastest first; nothing when there are none. */
void table_leaks(const struct table_context *context, const struct profile_file *file);

/* Is so much memory, asked for in all, worth telling?  From TABLE_TOTAL_MB for each second of the
 * run on it takes time: in small objects some percent of it. */
enum { TABLE_TOTAL_MB = 100 };
bool table_tells_total(const struct profile *profile, double total_mb);

/* `values` as a row of bars, `count` characters, scaled to the highest.  `text` has room for three
 * bytes each and a NUL. */
void table_spark(const struct screen *screen, const double *values, int count, char *text);

#endif
