/*
 * The columns of lines and functions in a file's part: one array a figure, as
 * long as the rows chosen; a figure that is zero in all of them is left out.
 * Used by parts_file.c.
 */
#ifndef VIEW_PARTS_COLUMNS_H
#define VIEW_PARTS_COLUMNS_H

#include "base/json_out.h"
#include "profile/profile.h"

struct parts_rows {
    const struct profile *profile;
    const struct profile_line *lines;
    const uint32_t *rows; /* which of `lines` */
    uint32_t count;
    bool are_functions;
};

/* Time, waits or memory: such a line is worth a row. */
bool parts_is_active(const struct profile_line *line);

/* The columns as members of the open object. */
void parts_columns(const struct parts_rows *rows, struct json_out *out);

#endif
