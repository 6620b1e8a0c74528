/*
 * The lower half of the tokenizer: bytes to tokens.  It knows strings, numbers,
 * brackets and indentation, but not what a statement means: it reports every
 * string as TOKEN_STRING and soft keywords as names.  tokenize.c, its only
 * caller, sits on top and refines that.
 */
#ifndef SOURCE_LEX_H
#define SOURCE_LEX_H

#include "source/tokenize.h"

struct lexer_indent {
    uint32_t column;
    bool is_match; /* the suite of a `match` statement: its lines begin with `case` */
};

struct lexer {
    const char *text; /* the caller's, must outlive the lexer */
    size_t length, pos;
    uint32_t line;

    uint8_t *nest; /* open brackets, f-strings and replacement fields, see lex.c */
    size_t nest_count, nest_cap;
    struct lexer_indent *indents; /* the first is column 0 and stays */
    size_t indent_count, indent_cap;
    size_t dedents; /* closed levels not yet reported */

    bool head;            /* the token just returned begins a statement */
    bool statement_start; /* the next code token will */
    bool line_start;      /* ... and begins a logical line */
    bool line_open;       /* the logical line has a token: its NEWLINE is owed */
    bool after_dot;
    bool match_suite; /* set by the caller: the line just ended was `match ...:` */
    size_t fresh;     /* inside brackets: where the physical line begins, if it has no token yet */
    uint32_t fresh_line;
};

void lexer_init(struct lexer *lexer, const char *text, size_t length);
void lexer_next(struct lexer *lexer, struct token *out); /* TOKEN_END again and again at the end */
void lexer_release(struct lexer *lexer);

#endif
