/*
 * The source lines of a file of the profile, with a style for each byte.  A
 * line here is exactly one line: its end is taken off, and a line break inside
 * it (only a damaged profile has one) is a blank.
 *
 * highlight_init, then highlight_line for any line, then highlight_release.
 */
#ifndef VIEW_HIGHLIGHT_H
#define VIEW_HIGHLIGHT_H

#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct highlight {
    char *text;      /* all lines, each with its '\n' */
    size_t *starts;  /* line_count + 1 offsets into text */
    uint8_t *styles; /* enum style of each byte; NULL without colour */
};

struct highlight_line {
    const char *text;
    size_t length; /* without blanks at its end */
    const uint8_t *styles;
};

void highlight_init(struct highlight *highlight, const struct profile *profile,
                    const struct profile_file *file, bool color);
struct highlight_line highlight_line(const struct highlight *highlight, uint32_t index);
void highlight_release(struct highlight *highlight);

#endif
