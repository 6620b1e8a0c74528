/* The drawing surface of the terminal view; see screen.h.  Used by table.c, summary.c, terminal.c.
 */
#include "view/screen.h"

#include "base/utf8.h"
#include "view/width.h"

#include <ctype.h>
#include <string.h>

enum { TAB_COLUMNS = 4 };

/* The sixteen basic colours only: their look is the user's choice, light or dark. */
static const char *const style_code[STYLES] = {
    [STYLE_PLAIN] = "",     [STYLE_DIM] = "2",       [STYLE_BOLD] = "1",    [STYLE_HOT] = "1;31",
    [STYLE_WARNING] = "33", [STYLE_PYTHON] = "34",   [STYLE_NATIVE] = "36", [STYLE_SYSTEM] = "33",
    [STYLE_WAIT] = "33",    [STYLE_TIMELINE] = "32", [STYLE_MEMORY] = "32", [STYLE_COPY] = "33",
    [STYLE_KEYWORD] = "35", [STYLE_BUILTIN] = "36",  [STYLE_STRING] = "32", [STYLE_NUMBER] = "34",
    [STYLE_COMMENT] = "2",
};

static const struct {
    const char *utf8, *ascii;
} glyphs[GLYPHS] = {
    [GLYPH_VERTICAL] = {"│", "|"},   [GLYPH_HORIZONTAL] = {"─", "-"},
    [GLYPH_CROSS] = {"┼", "+"},      [GLYPH_DOT] = {"·", "."},
    [GLYPH_ELLIPSIS] = {"…", ">"},   [GLYPH_PLUS_MINUS] = {"±", "~"},
    [GLYPH_BAR_PYTHON] = {"█", "#"}, [GLYPH_BAR_NATIVE] = {"▓", "="},
    [GLYPH_BAR_SYSTEM] = {"░", "-"},
};

const char *screen_glyph_text(const struct screen *screen, enum glyph glyph)
{
    return screen->ascii ? glyphs[glyph].ascii : glyphs[glyph].utf8;
}

static void set_style(struct screen *screen, enum style style)
{
    if (!screen->color || style == screen->style)
        return;
    if (screen->style != STYLE_PLAIN)
        buf_str(screen->out, "\033[0m");
    if (style != STYLE_PLAIN)
        buf_addf(screen->out, "\033[%sm", style_code[style]);
    screen->style = style;
}

/* Everything visible passes here: this is what keeps a line within the width. */
static void emit(struct screen *screen, enum style style, const char *bytes, size_t length,
                 int width)
{
    if (screen->at + width > screen->columns)
        return;
    if (screen->pending) { /* in whatever style: no style shows on a blank */
        buf_pad(screen->out, ' ', (size_t)screen->pending);
        screen->pending = 0;
    }
    set_style(screen, style);
    buf_add(screen->out, bytes, length);
    screen->at += width;
}

void screen_blank(struct screen *screen, int count)
{
    if (count > 0) {
        screen->at += count;
        screen->pending += count;
    }
}

void screen_blank_to(struct screen *screen, int column)
{
    screen_blank(screen, column - screen->at);
}

void screen_newline(struct screen *screen)
{
    set_style(screen, STYLE_PLAIN);
    buf_char(screen->out, '\n');
    screen->at = screen->pending = 0;
}

void screen_glyph(struct screen *screen, enum style style, enum glyph glyph, int count)
{
    const char *text = screen_glyph_text(screen, glyph);
    for (int i = 0; i < count; i++)
        emit(screen, style, text, strlen(text), 1);
}

/* The columns a character takes once it has been made harmless. */
static int shown_width(const struct screen *screen, uint32_t codepoint)
{
    if (width_is_unsafe(codepoint))
        return 1;
    int width = width_of(codepoint);
    return screen->ascii && codepoint >= 0x80 && !width ? 1 : width;
}

static void put(struct screen *screen, enum style style, uint32_t codepoint, const char *bytes,
                size_t length)
{
    int width = shown_width(screen, codepoint);
    if (screen->ascii && (codepoint >= 0x7F || codepoint < 0x20)) {
        emit(screen, style, "??", (size_t)width, width);
    } else if (width_is_unsafe(codepoint)) {
        struct buf picture = {0};
        buf_utf8(&picture, codepoint < 0x20    ? 0x2400 + codepoint
                           : codepoint == 0x7F ? 0x2421
                                               : 0xFFFD);
        emit(screen, style, picture.data, picture.len, 1);
        buf_release(&picture);
    } else if (codepoint == 0xFFFD) {
        emit(screen, style, "\xEF\xBF\xBD", 3, 1); /* the bytes may not have been valid UTF-8 */
    } else {
        emit(screen, style, bytes, length, width);
    }
}

/* Where the text must stop to fit in `room` columns; *columns is what that part takes. */
static size_t fitting(const struct screen *screen, const char *text, size_t length, int room,
                      int *columns)
{
    size_t at = 0;
    *columns = 0;
    while (at < length) {
        size_t next = at;
        uint32_t codepoint = utf8_decode(text, length, &next);
        int width = codepoint == '\t' ? TAB_COLUMNS - *columns % TAB_COLUMNS
                                      : shown_width(screen, codepoint);
        if (*columns + width > room)
            break;
        *columns += width;
        at = next;
    }
    return at;
}

int screen_width(const struct screen *screen, const char *text, size_t length)
{
    int columns;
    fitting(screen, text, length, 1 << 30, &columns);
    return columns;
}

static void draw(struct screen *screen, enum style style, const uint8_t *styles, const char *text,
                 size_t length, int room)
{
    int left = screen->columns - screen->at;
    int columns;
    if (room > left)
        room = left;
    if (room <= 0)
        return;
    size_t end = fitting(screen, text, length, room, &columns);
    if (end < length)
        end = fitting(screen, text, length, room - 1, &columns);
    int start = screen->at;
    for (size_t at = 0; at < end;) {
        size_t next = at;
        uint32_t codepoint = utf8_decode(text, length, &next);
        if (codepoint == '\t')
            screen_blank(screen, TAB_COLUMNS - (screen->at - start) % TAB_COLUMNS);
        else if (codepoint == ' ')
            screen_blank(screen, 1);
        else
            put(screen, styles ? (enum style)styles[at] : style, codepoint, text + at, next - at);
        at = next;
    }
    if (end < length)
        screen_glyph(screen, STYLE_DIM, GLYPH_ELLIPSIS, 1);
}

void screen_text(struct screen *screen, enum style style, const char *text, size_t length, int room)
{
    draw(screen, style, NULL, text, length, room);
}

void screen_styled(struct screen *screen, const uint8_t *styles, const char *text, size_t length,
                   int room)
{
    draw(screen, STYLE_PLAIN, styles, text, length, room);
}

void screen_cstr(struct screen *screen, enum style style, const char *text)
{
    draw(screen, style, NULL, text, strlen(text), screen->columns);
}

void screen_tail(struct screen *screen, enum style style, const char *text, int room)
{
    size_t length = strlen(text), at = 0;
    int width = screen_width(screen, text, length);
    if (width > room) {
        screen_glyph(screen, STYLE_DIM, GLYPH_ELLIPSIS, 1);
        while (at < length && width > room - 1)
            width -= shown_width(screen, utf8_decode(text, length, &at));
        room--;
    }
    draw(screen, style, NULL, text + at, length - at, room);
}

void screen_right(struct screen *screen, enum style style, const char *text, int width)
{
    size_t length = strlen(text);
    screen_blank(screen, width - screen_width(screen, text, length));
    draw(screen, style, NULL, text, length, width);
}

/* A number and its unit, as format_memory writes them, are one word. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " \n");
    const char *unit = text + length;
    if (length && isdigit((unsigned char)unit[-1]) && unit[0] == ' ' && strchr("MGT", unit[1]) &&
        unit[1] && unit[2] == 'B')
        length += 1 + strcspn(unit + 1, " \n");
    return length;
}

void screen_wrapped(struct screen *screen, enum style style, const char *text, int indent)
{
    bool first = true;
    for (size_t at = 0; text[at];) {
        size_t length = word_length(text + at);
        int width = screen_width(screen, text + at, length);
        int gap = first ? 0 : 1;
        if (screen->at > indent && screen->at + gap + width > screen->columns) {
            screen_newline(screen);
            screen_blank_to(screen, indent);
            gap = 0;
        }
        screen_blank(screen, gap);
        /* A word longer than the line, a path for instance, goes on on the next one. */
        for (size_t done = 0; done < length;) {
            int columns;
            size_t part = fitting(screen, text + at + done, length - done,
                                  screen->columns - screen->at, &columns);
            if (!part)
                break; /* not even one character has room */
            draw(screen, style, NULL, text + at + done, part, columns);
            done += part;
            if (done < length) {
                screen_newline(screen);
                screen_blank_to(screen, indent);
            }
        }
        first = first && !length;
        at += length;
        at += strspn(text + at, " \n");
    }
}
