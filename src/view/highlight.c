/* Source text with colours by src/source/tokenize.h; see highlight.h.  Used by table.c. */
#include "view/highlight.h"

#include "base/buf.h"
#include "base/mem.h"
#include "source/tokenize.h"
#include "view/screen.h"

#include <stdlib.h>
#include <string.h>

static enum style style_of(enum token_kind kind)
{
    switch (kind) {
    case TOKEN_KEYWORD:
    case TOKEN_DECORATOR:
        return STYLE_KEYWORD;
    case TOKEN_BUILTIN:
        return STYLE_BUILTIN;
    case TOKEN_NUMBER:
        return STYLE_NUMBER;
    case TOKEN_STRING:
        return STYLE_STRING;
    case TOKEN_DOCSTRING:
    case TOKEN_COMMENT:
        return STYLE_COMMENT;
    default:
        return STYLE_PLAIN;
    }
}

static void join_lines(struct highlight *highlight, const struct profile *profile,
                       const struct profile_file *file, struct buf *joined)
{
    highlight->starts = mem_zalloc((size_t)file->line_count + 1, sizeof *highlight->starts);
    for (uint32_t i = 0; i < file->line_count; i++) {
        str_id id = file->lines[i].text;
        const char *text = profile_str(profile, id);
        size_t length = strlen(text);
        while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
            length--;
        highlight->starts[i] = joined->len;
        buf_add(joined, text, length);
        for (size_t at = highlight->starts[i]; at < joined->len; at++)
            if (joined->data[at] == '\n' || joined->data[at] == '\r')
                joined->data[at] = ' ';
        buf_char(joined, '\n');
    }
    highlight->starts[file->line_count] = joined->len;
}

void highlight_init(struct highlight *highlight, const struct profile *profile,
                    const struct profile_file *file, bool color)
{
    *highlight = (struct highlight){0};
    struct buf joined = {0};
    join_lines(highlight, profile, file, &joined);
    size_t length = joined.len;
    highlight->text = buf_detach(&joined);
    if (!color)
        return;
    highlight->styles = mem_zalloc(length, 1);
    struct tokenizer *tokenizer = tokenizer_new(highlight->text, length);
    struct token token;
    while (tokenizer_next(tokenizer, &token))
        memset(highlight->styles + token.start, style_of(token.kind), token.length);
    tokenizer_free(tokenizer);
}

struct highlight_line highlight_line(const struct highlight *highlight, uint32_t index)
{
    size_t start = highlight->starts[index], end = highlight->starts[index + 1] - 1;
    while (end > start && (highlight->text[end - 1] == ' ' || highlight->text[end - 1] == '\t'))
        end--;
    return (struct highlight_line){
        .text = highlight->text + start,
        .length = end - start,
        .styles = highlight->styles ? highlight->styles + start : NULL,
    };
}

void highlight_release(struct highlight *highlight)
{
    free(highlight->text);
    free(highlight->starts);
    free(highlight->styles);
    *highlight = (struct highlight){0};
}
