/* From tokens to statements; see statements.h. */
#include "source/statements.h"

#include "base/mem.h"
#include "source/tokenize.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text;
    struct statement current; /* first_line is 0 between two */
    uint32_t last_line;
    size_t depth;      /* open brackets */
    bool begins;       /* nothing but `async` was seen of it */
    bool heads_a_loop; /* before the colon of `for` and `while` */
    bool wants_body;   /* after it */
};

static bool is_word(const struct parser *p, const struct token *token, const char *word)
{
    return token->kind == TOKEN_KEYWORD && token->length == strlen(word) &&
           !memcmp(p->text + token->start, word, token->length);
}

static char operator_of(const struct parser *p, const struct token *token)
{
    return token->kind == TOKEN_OPERATOR && token->length == 1 ? p->text[token->start] : 0;
}

static void add_token(struct parser *p, const struct token *token)
{
    if (!p->current.first_line) {
        p->current.first_line = token->line;
        p->begins = true;
        p->depth = 0;
        p->heads_a_loop = p->wants_body = false;
    }
    p->last_line = token->end_line;
    bool is_for = is_word(p, token, "for");
    if (p->begins)
        p->heads_a_loop = is_for || is_word(p, token, "while");
    else if (is_for)
        p->current.has_comprehension = true;
    p->begins = p->begins && is_word(p, token, "async");
    if (p->wants_body)
        p->current.is_loop = true;
    char c = operator_of(p, token);
    if (c == '(' || c == '[' || c == '{')
        p->depth++;
    else if ((c == ')' || c == ']' || c == '}') && p->depth)
        p->depth--;
    else if (c == ':' && !p->depth && p->heads_a_loop)
        p->wants_body = true;
}

static void end_statement(struct parser *p, struct statements *out)
{
    for (uint32_t line = p->current.first_line;
         line && line <= p->last_line && line <= out->line_count; line++)
        out->of_line[line] = p->current;
    p->current = (struct statement){0};
}

static size_t count_lines(const char *text, size_t length)
{
    size_t lines = length > 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == length || text[i + 1] != '\n'));
    return lines;
}

void statements_parse(struct statements *statements, const char *text, size_t length)
{
    size_t lines = count_lines(text, length);
    *statements = (struct statements){.of_line = mem_zalloc(lines + 1, sizeof *statements->of_line),
                                      .line_count = lines};
    struct parser parser = {.text = text};
    struct tokenizer *tokenizer = tokenizer_new(text, length);
    struct token token;
    while (tokenizer_next(tokenizer, &token)) {
        if (token.kind == TOKEN_NEWLINE)
            end_statement(&parser, statements);
        else if (token.kind != TOKEN_COMMENT && token.kind != TOKEN_INDENT &&
                 token.kind != TOKEN_DEDENT)
            add_token(&parser, &token);
    }
    end_statement(&parser, statements);
    tokenizer_free(tokenizer);
}

struct statement statements_at(const struct statements *statements, uint32_t line)
{
    if (line <= statements->line_count && statements->of_line[line].first_line)
        return statements->of_line[line];
    return (struct statement){.first_line = line};
}

void statements_release(struct statements *statements)
{
    free(statements->of_line);
    *statements = (struct statements){0};
}
