/*
 * A line-oriented drawing surface over a buffer, for the terminal view: knows
 * the column it is at, never goes beyond the width, keeps blanks until
 * something follows them (no line ends in blanks), and is the only place where
 * escape sequences are made.
 *
 * Text given to it is data: control characters, an ESC for instance, come out
 * as pictures of themselves, and characters that would reorder the line as
 * U+FFFD.  With `ascii` nothing but ASCII comes out.
 */
#ifndef VIEW_SCREEN_H
#define VIEW_SCREEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_HOT,
    STYLE_WARNING,
    STYLE_PYTHON,
    STYLE_NATIVE,
    STYLE_SYSTEM,
    STYLE_WAIT,
    STYLE_TIMELINE,
    STYLE_MEMORY,
    STYLE_COPY,
    STYLE_KEYWORD,
    STYLE_BUILTIN,
    STYLE_STRING,
    STYLE_NUMBER,
    STYLE_COMMENT,
    STYLES,
};

enum glyph {
    GLYPH_VERTICAL,
    GLYPH_HORIZONTAL,
    GLYPH_CROSS,
    GLYPH_DOT, /* "something, but little" */
    GLYPH_ELLIPSIS,
    GLYPH_PLUS_MINUS,
    GLYPH_BAR_PYTHON,
    GLYPH_BAR_NATIVE,
    GLYPH_BAR_SYSTEM,
    GLYPHS,
};

struct screen {
    struct buf *out;
    int columns;
    bool color, ascii;
    int at;           /* columns used on this line, pending blanks included */
    int pending;      /* blanks not yet written */
    enum style style; /* what the terminal is set to */
};

const char *screen_glyph_text(const struct screen *screen, enum glyph glyph);
void screen_glyph(struct screen *screen, enum style style, enum glyph glyph, int count);

void screen_blank(struct screen *screen, int count);
void screen_blank_to(struct screen *screen, int column);
void screen_newline(struct screen *screen);

/* Text in at most `room` columns; what does not fit is cut and ends in an ellipsis. */
void screen_text(struct screen *screen, enum style style, const char *text, size_t length,
                 int room);
/* The same with a style for each byte (enum style), as highlight.h makes them. */
void screen_styled(struct screen *screen, const uint8_t *styles, const char *text, size_t length,
                   int room);
/* The same, but the end is kept: for paths. */
void screen_tail(struct screen *screen, enum style style, const char *text, int room);
void screen_cstr(struct screen *screen, enum style style, const char *text); /* room: the line */
void screen_right(struct screen *screen, enum style style, const char *text, int width);

/* Running text from the current column on, broken between words, never between a number and its
 * unit; further lines are indented. */
void screen_wrapped(struct screen *screen, enum style style, const char *text, int indent);

int screen_width(const struct screen *screen, const char *text, size_t length);

#endif
