/*
 * The source of a file of the profile for the page: its lines, cut where one is
 * too long, and for each the stretches to colour, counted in UTF-16 units as
 * JavaScript counts.  Used by parts_file.c.
 */
#ifndef VIEW_COLOURS_H
#define VIEW_COLOURS_H

#include "base/json_out.h"
#include "profile/profile.h"

enum { COLOURS_LINE_MAX = 2000 }; /* UTF-16 units of a line that are shown */

struct colours {
    char *text;       /* all lines, each with its '\n' */
    size_t *starts;   /* line_count + 1 offsets into text */
    size_t *ends;     /* where each line is cut */
    uint8_t *of_byte; /* of each byte: 0, or one more than `Colour` in gui/src/format/parts.ts */
    uint32_t line_count;
};

void colours_init(struct colours *colours, const struct profile *profile,
                  const struct profile_file *file);
void colours_release(struct colours *colours);

/* All lines as one string, separated by '\n'. */
void colours_put_text(const struct colours *colours, struct json_out *out);
/* A line's [gap, length, class, ...]. */
void colours_put_line(const struct colours *colours, uint32_t line, struct json_out *out);

#endif
