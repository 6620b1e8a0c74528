/*
 * The tokenizer of tokenize.h: the lexer's tokens, refined by what only the rest
 * of the statement tells (is this string a docstring, is this `match` a keyword).
 * For that it lexes ahead into a queue, at most to the end of the statement, so
 * every byte is still lexed once.  Called by structure.c and by the views, in the
 * launcher only; one tokenizer belongs to one thread.
 */
#include "source/tokenize.h"

#include "base/mem.h"
#include "source/lex.h"

#include <stdlib.h>
#include <string.h>

struct tokenizer {
    struct lexer lexer;
    struct token *queue; /* lexed ahead: [queue_head, queue_count) */
    size_t queue_head, queue_count, queue_cap;
};

static bool token_is(const struct tokenizer *tokenizer, const struct token *token, const char *text)
{
    size_t length = strlen(text);
    return token->length == length && !memcmp(tokenizer->lexer.text + token->start, text, length);
}

static bool ends_statement(const struct tokenizer *tokenizer, const struct token *token)
{
    return token->kind == TOKEN_NEWLINE || token->kind == TOKEN_END ||
           (tokenizer->lexer.statement_start && token_is(tokenizer, token, ";"));
}

/* Lex one token more into the queue; false when it ends the statement. */
static bool look(struct tokenizer *tokenizer)
{
    struct token token;
    lexer_next(&tokenizer->lexer, &token);
    VEC_PUSH(tokenizer->queue, tokenizer->queue_count, tokenizer->queue_cap) = token;
    return !ends_statement(tokenizer, &token);
}

/* Strings that make up a whole statement, comments aside, are documentation. */
static void look_docstring(struct tokenizer *tokenizer)
{
    bool more = true;
    while (more) {
        more = look(tokenizer);
        enum token_kind kind = tokenizer->queue[tokenizer->queue_count - 1].kind;
        if (more && (kind != TOKEN_STRING && kind != TOKEN_COMMENT))
            return;
    }
    for (size_t i = 0; i < tokenizer->queue_count; i++)
        if (tokenizer->queue[i].kind == TOKEN_STRING)
            tokenizer->queue[i].kind = TOKEN_DOCSTRING;
}

/* `match SUBJECT:` with nothing after the colon; no other statement looks like that. */
static bool look_match(struct tokenizer *tokenizer)
{
    size_t code = 1, last = 0;
    bool more = true;
    while (more) {
        more = look(tokenizer);
        if (more && tokenizer->queue[tokenizer->queue_count - 1].kind != TOKEN_COMMENT) {
            code++;
            last = tokenizer->queue_count - 1;
        }
    }
    tokenizer->lexer.match_suite =
        code >= 3 && tokenizer->queue[tokenizer->queue_count - 1].kind == TOKEN_NEWLINE &&
        token_is(tokenizer, &tokenizer->queue[last], ":");
    return tokenizer->lexer.match_suite;
}

static bool is_name(const struct token *token)
{
    return token->kind == TOKEN_NAME || token->kind == TOKEN_BUILTIN;
}

/* `type NAME =` or `type NAME[` */
static bool look_type(struct tokenizer *tokenizer)
{
    return look(tokenizer) && is_name(&tokenizer->queue[1]) && look(tokenizer) &&
           (token_is(tokenizer, &tokenizer->queue[2], "=") ||
            token_is(tokenizer, &tokenizer->queue[2], "["));
}

static bool look_lazy(struct tokenizer *tokenizer)
{
    return look(tokenizer) && (token_is(tokenizer, &tokenizer->queue[1], "import") ||
                               token_is(tokenizer, &tokenizer->queue[1], "from"));
}

/* The queue holds one word that begins a statement: is it a keyword here? */
static bool look_soft_keyword(struct tokenizer *tokenizer)
{
    const struct token word = tokenizer->queue[0];
    switch (tokenizer->lexer.text[word.start]) {
    case 'c':
        return token_is(tokenizer, &word, "case") &&
               tokenizer->lexer.indents[tokenizer->lexer.indent_count - 1].is_match;
    case 'l':
        return token_is(tokenizer, &word, "lazy") && look_lazy(tokenizer);
    case 'm':
        return token_is(tokenizer, &word, "match") && look_match(tokenizer);
    case 't':
        return token_is(tokenizer, &word, "type") && look_type(tokenizer);
    default:
        return false;
    }
}

struct tokenizer *tokenizer_new(const char *text, size_t length)
{
    struct tokenizer *tokenizer = mem_zalloc(1, sizeof *tokenizer);
    lexer_init(&tokenizer->lexer, text, length);
    return tokenizer;
}

bool tokenizer_next(struct tokenizer *tokenizer, struct token *out)
{
    if (tokenizer->queue_head == tokenizer->queue_count) {
        tokenizer->queue_head = tokenizer->queue_count = 0;
        look(tokenizer);
        if (tokenizer->lexer.head && tokenizer->queue[0].kind == TOKEN_STRING)
            look_docstring(tokenizer);
        else if (tokenizer->lexer.head && is_name(&tokenizer->queue[0]) &&
                 look_soft_keyword(tokenizer))
            tokenizer->queue[0].kind = TOKEN_KEYWORD;
    }
    *out = tokenizer->queue[tokenizer->queue_head++];
    return out->kind != TOKEN_END;
}

void tokenizer_free(struct tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    lexer_release(&tokenizer->lexer);
    free(tokenizer->queue);
    free(tokenizer);
}
