/*
 * Help made from the option table.  Everything renders into a buffer; the
 * callers know the stream, its width and whether it wants colour.
 */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include "base/buf.h"
#include "cmd/options.h"

struct help_style {
    bool color;
    size_t width; /* columns */
};

void help_main(struct buf *out, const struct help_style *style);
/* `level`: LEVEL_BASIC, or LEVEL_ADVANCED for only the advanced options. */
void help_verb(struct buf *out, enum option_verb verb, enum option_level level,
               const struct help_style *style);
void help_markdown(struct buf *out); /* docs/options.md */

#endif
