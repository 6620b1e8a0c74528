/*
 * A small Python tokenizer: enough to find blocks and imports (structure.h) and
 * to colour source text in the views.  It follows Python's lexical rules
 * (strings with prefixes, triple quotes, f-strings incl. nested PEP 701 ones
 * and t-strings, line joining, indentation; the soft keywords match, case, type
 * and lazy are names unless they head a statement) and never fails: what it does
 * not understand is TOKEN_OTHER, an unterminated string ends with its line
 * (single-quoted) or with the file (triple-quoted), an unclosed bracket ends
 * before a line that begins with a statement's keyword (def, return, ...).  A
 * notebook's magic line (%time, !ls) is one TOKEN_OTHER.
 *
 * Tokens cover the text without overlap; blanks between them are not reported.
 * An f-string is several tokens: TOKEN_STRING for each part of its literal text
 * (the quotes and a format specification included), and between them the braces
 * as operators and the tokens of the expression.
 *
 * Time is linear in the text, memory linear in its nesting and in the longest
 * statement.
 */
#ifndef SOURCE_TOKENIZE_H
#define SOURCE_TOKENIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_KEYWORD,   /* hard keywords, and soft ones where they act as such */
    TOKEN_BUILTIN,   /* a name of Python's builtins, not after a dot (for colours) */
    TOKEN_DECORATOR, /* '@' at the start of a statement */
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_DOCSTRING, /* a string that is a whole statement */
    TOKEN_COMMENT,
    TOKEN_OPERATOR,
    TOKEN_NEWLINE, /* end of a logical line */
    TOKEN_INDENT,  /* zero-length, before the first token of a deeper line */
    TOKEN_DEDENT,  /* zero-length, one a closed level */
    TOKEN_OTHER,
};

struct token {
    enum token_kind kind;
    size_t start, length; /* bytes in the text */
    uint32_t line;        /* 1-based line of its first byte */
    uint32_t end_line;    /* line of its last byte (strings span lines) */
};

struct tokenizer;

/* The text is the caller's and must outlive the tokenizer. */
struct tokenizer *tokenizer_new(const char *text, size_t length);
bool tokenizer_next(struct tokenizer *tokenizer, struct token *out); /* false at TOKEN_END */
void tokenizer_free(struct tokenizer *tokenizer);

#endif
