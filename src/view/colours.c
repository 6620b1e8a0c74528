/* Source text and its colours for the page; see colours.h. */
#include "view/colours.h"

#include "base/utf8.h"
#include "source/tokenize.h"
#include "view/highlight.h"

#include <stdlib.h>
#include <string.h>

/* `Colour` in gui/src/format/parts.ts, plus one. */
enum colour {
    COLOUR_NONE,
    COLOUR_KEYWORD,
    COLOUR_STRING,
    COLOUR_NUMBER,
    COLOUR_COMMENT,
    COLOUR_BUILTIN,
    COLOUR_DEFINITION,
    COLOUR_DECORATOR,
};

/* What the token before says of this one. */
struct context {
    bool defines;   /* after `def` or `class` */
    bool decorates; /* in the dotted name after '@' */
};

static bool is_word(const char *text, const struct token *token, const char *word)
{
    return token->length == strlen(word) && !memcmp(text + token->start, word, token->length);
}

static enum colour colour_of(const char *text, const struct token *token, struct context *context)
{
    struct context before = *context;
    bool is_name = token->kind == TOKEN_NAME || token->kind == TOKEN_BUILTIN;
    *context = (struct context){
        .defines = token->kind == TOKEN_KEYWORD &&
                   (is_word(text, token, "def") || is_word(text, token, "class")),
        .decorates = token->kind == TOKEN_DECORATOR ||
                     (before.decorates && (is_name || is_word(text, token, "."))),
    };
    if (context->decorates)
        return COLOUR_DECORATOR;
    if (before.defines && is_name)
        return COLOUR_DEFINITION;
    switch (token->kind) {
    case TOKEN_KEYWORD:
        return COLOUR_KEYWORD;
    case TOKEN_STRING:
        return COLOUR_STRING;
    case TOKEN_NUMBER:
        return COLOUR_NUMBER;
    case TOKEN_DOCSTRING:
    case TOKEN_COMMENT:
        return COLOUR_COMMENT;
    case TOKEN_BUILTIN:
        return COLOUR_BUILTIN;
    default:
        return COLOUR_NONE;
    }
}

static unsigned utf16_units(uint32_t codepoint)
{
    return codepoint >= 0x10000 ? 2 : 1;
}

/* Where the line [start, end) is cut. */
static size_t cut(const char *text, size_t start, size_t end)
{
    unsigned units = 0;
    for (size_t at = start; at < end;) {
        size_t next = at;
        units += utf16_units(utf8_decode(text, end, &next));
        if (units > COLOURS_LINE_MAX)
            return at;
        at = next;
    }
    return end;
}

void colours_init(struct colours *colours, const struct profile *profile,
                  const struct profile_file *file)
{
    struct highlight plain;
    highlight_init(&plain, profile, file, false);
    *colours = (struct colours){
        .text = plain.text, .starts = plain.starts, .line_count = file->line_count};
    size_t length = colours->starts[file->line_count];
    colours->ends = mem_zalloc(file->line_count, sizeof *colours->ends);
    for (uint32_t i = 0; i < file->line_count; i++)
        colours->ends[i] = cut(colours->text, colours->starts[i], colours->starts[i + 1] - 1);
    colours->of_byte = mem_zalloc(length, 1);
    struct tokenizer *tokenizer = tokenizer_new(colours->text, length);
    struct context context = {0};
    struct token token;
    while (tokenizer_next(tokenizer, &token))
        memset(colours->of_byte + token.start, colour_of(colours->text, &token, &context),
               token.length);
    tokenizer_free(tokenizer);
}

void colours_release(struct colours *colours)
{
    free(colours->text);
    free(colours->starts);
    free(colours->ends);
    free(colours->of_byte);
    *colours = (struct colours){0};
}

void colours_put_text(const struct colours *colours, struct json_out *out)
{
    struct buf joined = {0};
    for (uint32_t i = 0; i < colours->line_count; i++) {
        if (i)
            buf_char(&joined, '\n');
        buf_add(&joined, colours->text + colours->starts[i], colours->ends[i] - colours->starts[i]);
    }
    json_out_string(out, joined.data ? joined.data : "", joined.len);
    buf_release(&joined);
}

void colours_put_line(const struct colours *colours, uint32_t line, struct json_out *out)
{
    size_t end = colours->ends[line];
    unsigned gap = 0, length = 0;
    uint8_t colour = COLOUR_NONE;
    json_out_array(out);
    for (size_t at = colours->starts[line]; at <= end;) {
        uint8_t here = at < end ? colours->of_byte[at] : COLOUR_NONE;
        if (here != colour || at == end) {
            if (colour != COLOUR_NONE) {
                json_out_int(out, gap);
                json_out_int(out, length);
                json_out_int(out, colour - 1);
                gap = 0;
            }
            colour = here;
            length = 0;
        }
        if (at == end)
            break;
        unsigned units = utf16_units(utf8_decode(colours->text, end, &at));
        if (colour == COLOUR_NONE)
            gap += units;
        else
            length += units;
    }
    json_out_end(out);
}
