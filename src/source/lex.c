/*
 * The lexer of lex.h.  Linear time on any input: each byte is looked at a
 * bounded number of times, and nothing recurses.
 *
 * Inside brackets and f-strings a stack of one byte a level says where we are:
 *
 *   f"a{b:>{w}} c"      FSTRING             literal text  f"a
 *                       FSTRING FIELD       expression    { b
 *                       FSTRING SPEC        literal text  : >
 *                       FSTRING SPEC FIELD  expression    { w }
 *
 * FIELD and SPEC carry the quote of their string, so that its end is seen there.
 */
#include "source/lex.h"

#include "base/mem.h"
#include "source/words.h"

#include <stdlib.h>
#include <string.h>

enum nest {
    NEST_BRACKET = 0,
    NEST_FSTRING = 1,
    NEST_FIELD = 2,
    NEST_SPEC = 3,
    NEST_MODE = 3, /* mask of the four above */
    NEST_TRIPLE = 4,
    NEST_RAW = 8,
    NEST_DOUBLE = 16, /* quoted by " rather than ' */
    NEST_QUOTE = NEST_TRIPLE | NEST_RAW | NEST_DOUBLE,
};

enum char_class { CHAR_NONE, CHAR_BLANK, CHAR_NEWLINE, CHAR_NAME, CHAR_DIGIT };

/* Bytes above ASCII count as letters: which of them Python accepts in a name matters to nobody
 * here. */
static const uint8_t char_class[256] = {
    [' '] = CHAR_BLANK,          ['\t'] = CHAR_BLANK,       ['\f'] = CHAR_BLANK,
    ['\n'] = CHAR_NEWLINE,       ['\r'] = CHAR_NEWLINE,     ['_'] = CHAR_NAME,
    ['a' ... 'z'] = CHAR_NAME,   ['A' ... 'Z'] = CHAR_NAME, ['0' ... '9'] = CHAR_DIGIT,
    [0x80 ... 0xff] = CHAR_NAME,
};

static const size_t NOWHERE = (size_t)-1;

static unsigned char peek(const struct lexer *lexer, size_t ahead)
{
    return ahead < lexer->length - lexer->pos ? (unsigned char)lexer->text[lexer->pos + ahead] : 0;
}

static bool at_newline(const struct lexer *lexer, size_t ahead)
{
    return char_class[peek(lexer, ahead)] == CHAR_NEWLINE;
}

static void skip_newline(struct lexer *lexer)
{
    lexer->pos += peek(lexer, 0) == '\r' && peek(lexer, 1) == '\n' ? 2 : 1;
    lexer->line++;
}

static unsigned nest_top(const struct lexer *lexer)
{
    return lexer->nest_count ? lexer->nest[lexer->nest_count - 1] : NEST_BRACKET;
}

static void nest_push(struct lexer *lexer, unsigned nest)
{
    VEC_PUSH(lexer->nest, lexer->nest_count, lexer->nest_cap) = (uint8_t)nest;
}

/* The f-string we are in has ended, whatever is still open inside it. */
static void nest_end_string(struct lexer *lexer)
{
    while (lexer->nest_count && (lexer->nest[--lexer->nest_count] & NEST_MODE) != NEST_FSTRING)
        ;
}

static void emit(struct lexer *lexer, struct token *out, enum token_kind kind, size_t start,
                 uint32_t line)
{
    *out = (struct token){
        .kind = kind,
        .start = start,
        .length = lexer->pos - start,
        .line = line,
        .end_line = lexer->line,
    };
}

/* A token of the program proper (not a comment, not layout), which the logical line now has. */
static void emit_code(struct lexer *lexer, struct token *out, enum token_kind kind, size_t start,
                      uint32_t line)
{
    emit(lexer, out, kind, start, line);
    /* A part of an f-string, or a string without end, may stop after a line's end. */
    if (char_class[(unsigned char)lexer->text[lexer->pos - 1]] == CHAR_NEWLINE)
        out->end_line--;
    lexer->head = lexer->statement_start;
    lexer->statement_start = false;
    lexer->line_open = true;
    lexer->after_dot = false;
    lexer->fresh = NOWHERE;
}

static void lex_to_line_end(struct lexer *lexer)
{
    while (lexer->pos < lexer->length && !at_newline(lexer, 0))
        lexer->pos++;
}

static void lex_comment(struct lexer *lexer, struct token *out)
{
    size_t start = lexer->pos;
    lex_to_line_end(lexer);
    emit(lexer, out, TOKEN_COMMENT, start, lexer->line);
}

/*
 * Skip to the first token of the next logical line and return its column.  An
 * indentation split by a backslash counts as the part before it.
 */
static uint32_t skip_to_line(struct lexer *lexer)
{
    uint32_t column = 0, joined_column = 0;
    bool joined = false;
    for (; lexer->pos < lexer->length; lexer->pos++) {
        unsigned char c = peek(lexer, 0);
        if (c == ' ') {
            column++;
        } else if (c == '\t') {
            column = column / 8 * 8 + 8;
        } else if (c == '\f') {
            column = 0;
        } else if (char_class[c] == CHAR_NEWLINE) {
            skip_newline(lexer);
            lexer->pos--;
            column = 0;
            joined = false;
        } else if (c == '\\' && at_newline(lexer, 1)) {
            joined_column = joined ? joined_column : column;
            joined = true;
            lexer->pos++;
            skip_newline(lexer);
            lexer->pos--;
        } else {
            return joined ? joined_column : column;
        }
    }
    return 0;
}

/*
 * Begin a logical line: true when that made a token (a comment on its own line,
 * INDENT), false when the line's first code token is next, after lexer->dedents.
 */
static bool lex_line_start(struct lexer *lexer, struct token *out)
{
    uint32_t column = skip_to_line(lexer);
    if (peek(lexer, 0) == '#') {
        lex_comment(lexer, out);
        return true;
    }
    lexer->line_start = false;
    lexer->statement_start = true;
    lexer->after_dot = false;
    bool is_match = lexer->match_suite;
    lexer->match_suite = false;
    if (column > lexer->indents[lexer->indent_count - 1].column) {
        VEC_PUSH(lexer->indents, lexer->indent_count, lexer->indent_cap) =
            (struct lexer_indent){.column = column, .is_match = is_match};
        emit(lexer, out, TOKEN_INDENT, lexer->pos, lexer->line);
        return true;
    }
    while (lexer->indents[lexer->indent_count - 1].column > column) {
        if (lexer->indents[lexer->indent_count - 2].column < column) {
            /* An error in Python: between two levels.  We stay in the inner one. */
            lexer->indents[lexer->indent_count - 1].column = column;
            break;
        }
        lexer->indent_count--;
        lexer->dedents++;
    }
    return false;
}

/*
 * Literal text of an f-string from `start` (where its prefix or the part begins)
 * to its closing quote or the next replacement field.  False when there was none:
 * an unterminated string that ended right here.
 */
static bool lex_fstring(struct lexer *lexer, struct token *out, size_t start)
{
    unsigned top = nest_top(lexer);
    unsigned char quote = top & NEST_DOUBLE ? '"' : '\'';
    bool triple = top & NEST_TRIPLE, spec = (top & NEST_MODE) == NEST_SPEC;
    bool in_name = false; /* inside \N{...} */
    uint32_t line = lexer->line;
    while (lexer->pos < lexer->length) {
        unsigned char c = peek(lexer, 0);
        if (c == quote && (!triple || (peek(lexer, 1) == quote && peek(lexer, 2) == quote))) {
            lexer->pos += triple ? 3 : 1;
            nest_end_string(lexer);
            emit_code(lexer, out, TOKEN_STRING, start, line);
            return true;
        }
        if (char_class[c] == CHAR_NEWLINE) {
            if (!triple)
                break;
            skip_newline(lexer);
        } else if (c == '\\' && at_newline(lexer, 1)) {
            lexer->pos++;
            skip_newline(lexer);
        } else if (c == '\\') {
            /* A backslash does not hide a brace, but it does hide a quote, even in a raw string. */
            in_name = !(top & NEST_RAW) && peek(lexer, 1) == 'N' && peek(lexer, 2) == '{';
            unsigned char next = peek(lexer, 1);
            size_t width = in_name ? 3 : next == '{' || next == '}' ? 1 : 2;
            lexer->pos = width < lexer->length - lexer->pos ? lexer->pos + width : lexer->length;
        } else if (c == '{' && peek(lexer, 1) == '{' && !spec) {
            lexer->pos += 2;
        } else if (c == '{' || (c == '}' && spec && !in_name)) {
            if (lexer->pos > start) {
                emit_code(lexer, out, TOKEN_STRING, start, line);
                return true;
            }
            lexer->pos++;
            if (c == '{')
                nest_push(lexer, NEST_FIELD | (top & NEST_QUOTE));
            else
                lexer->nest_count--;
            emit_code(lexer, out, TOKEN_OPERATOR, start, line);
            return true;
        } else {
            in_name = in_name && c != '}';
            lexer->pos++;
        }
    }
    nest_end_string(lexer);
    if (lexer->pos > start)
        emit_code(lexer, out, TOKEN_STRING, start, line);
    return lexer->pos > start;
}

/* The length of a string prefix at the current position, or NOWHERE when no string begins here. */
static size_t string_prefix(const struct lexer *lexer, bool *is_format, bool *is_raw)
{
    unsigned seen = 0;
    for (size_t i = 0; i <= 2; i++) {
        unsigned char c = peek(lexer, i);
        if (c == '"' || c == '\'') {
            *is_format = seen & 4;
            *is_raw = seen & 1;
            return i;
        }
        /* r combines with one of b, f, t; u stands alone. */
        unsigned bit = 0;
        switch (c | 0x20) {
        case 'r':
            bit = 1;
            break;
        case 'b':
            bit = 2;
            break;
        case 'f':
        case 't':
            bit = 4;
            break;
        case 'u':
            bit = 8;
            break;
        }
        if (!bit || (seen && (seen | bit) != (1 | 2) && (seen | bit) != (1 | 4)) || (seen & bit))
            return NOWHERE;
        seen |= bit;
    }
    return NOWHERE;
}

static void lex_string(struct lexer *lexer, struct token *out, size_t prefix, bool is_format,
                       bool is_raw)
{
    size_t start = lexer->pos;
    uint32_t line = lexer->line;
    lexer->pos += prefix;
    unsigned char quote = peek(lexer, 0);
    bool triple = peek(lexer, 1) == quote && peek(lexer, 2) == quote;
    lexer->pos += triple ? 3 : 1;
    if (is_format) {
        nest_push(lexer, NEST_FSTRING | (triple ? NEST_TRIPLE : 0) | (is_raw ? NEST_RAW : 0) |
                             (quote == '"' ? NEST_DOUBLE : 0));
        lex_fstring(lexer, out, start); /* has text: the prefix and the quote at least */
        return;
    }
    while (lexer->pos < lexer->length) {
        unsigned char c = peek(lexer, 0);
        if (c == quote && (!triple || (peek(lexer, 1) == quote && peek(lexer, 2) == quote))) {
            lexer->pos += triple ? 3 : 1;
            break;
        }
        if (c == '\\' && lexer->pos + 1 < lexer->length) {
            lexer->pos++;
            c = peek(lexer, 0);
            if (char_class[c] == CHAR_NEWLINE)
                skip_newline(lexer);
            else
                lexer->pos++;
        } else if (char_class[c] == CHAR_NEWLINE) {
            if (!triple)
                break;
            skip_newline(lexer);
        } else {
            lexer->pos++;
        }
    }
    emit_code(lexer, out, TOKEN_STRING, start, line);
}

static bool is_digit(unsigned char c, unsigned base)
{
    if (c == '_')
        return true;
    if (base == 16)
        return char_class[c] == CHAR_DIGIT || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    return char_class[c] == CHAR_DIGIT;
}

static void skip_digits(struct lexer *lexer, unsigned base)
{
    while (is_digit(peek(lexer, 0), base))
        lexer->pos++;
}

/* `1if x else 2` is legal: a letter that does not continue the number begins the next token. */
static void lex_number(struct lexer *lexer, struct token *out)
{
    size_t start = lexer->pos;
    unsigned char second = peek(lexer, 1) | 0x20;
    if (peek(lexer, 0) == '0' && (second == 'x' || second == 'o' || second == 'b')) {
        lexer->pos += 2;
        skip_digits(lexer, second == 'x' ? 16 : 10);
    } else {
        skip_digits(lexer, 10);
        if (peek(lexer, 0) == '.') {
            lexer->pos++;
            skip_digits(lexer, 10);
        }
        if ((peek(lexer, 0) | 0x20) == 'e') {
            size_t sign = peek(lexer, 1) == '+' || peek(lexer, 1) == '-';
            if (char_class[peek(lexer, 1 + sign)] == CHAR_DIGIT) {
                lexer->pos += 1 + sign;
                skip_digits(lexer, 10);
            }
        }
        if ((peek(lexer, 0) | 0x20) == 'j')
            lexer->pos++;
    }
    emit_code(lexer, out, TOKEN_NUMBER, start, lexer->line);
}

static void lex_newline(struct lexer *lexer, struct token *out, size_t length)
{
    size_t start = lexer->pos;
    lexer->pos += length;
    emit(lexer, out, TOKEN_NEWLINE, start, lexer->line);
    lexer->line += length > 0;
    lexer->line_start = true;
    lexer->line_open = false;
    lexer->head = false;
}

static void lex_word(struct lexer *lexer, struct token *out)
{
    size_t start = lexer->pos;
    while (char_class[peek(lexer, 0)] >= CHAR_NAME)
        lexer->pos++;
    enum word_kind word = word_classify(lexer->text + start, lexer->pos - start);
    if (word == WORD_STATEMENT && lexer->fresh != NOWHERE) {
        /* A line that begins with `def` or `return` inside brackets: somebody forgot to close them.
         * Take the line as a new statement rather than lose the rest of the file. */
        lexer->nest_count = 0;
        lexer->pos = lexer->fresh;
        lexer->line = lexer->fresh_line;
        lexer->fresh = NOWHERE;
        lex_newline(lexer, out, 0);
        return;
    }
    bool after_dot = lexer->after_dot;
    emit_code(lexer, out, TOKEN_NAME, start, lexer->line);
    if (word == WORD_KEYWORD || word == WORD_STATEMENT)
        out->kind = TOKEN_KEYWORD;
    else if (word == WORD_BUILTIN && !after_dot)
        out->kind = TOKEN_BUILTIN;
}

/* The length of the longest operator at the current position; 0 when there is none. */
static size_t operator_length(const struct lexer *lexer)
{
    unsigned char c = peek(lexer, 0), second = peek(lexer, 1);
    switch (c) {
    case '*':
    case '/':
    case '<':
    case '>':
        if (second == c)
            return peek(lexer, 2) == '=' ? 3 : 2;
        return second == '=' ? 2 : 1;
    case '-':
        return second == '>' || second == '=' ? 2 : 1;
    case '.':
        return second == '.' && peek(lexer, 2) == '.' ? 3 : 1;
    case '+':
    case '%':
    case '@':
    case '&':
    case '|':
    case '^':
    case '=':
    case ':':
        return second == '=' ? 2 : 1;
    case '!':
        return second == '=' ? 2 : (nest_top(lexer) & NEST_MODE) == NEST_FIELD;
    case '~':
    case ',':
    case ';':
    case '(':
    case '[':
    case '{':
    case ')':
    case ']':
    case '}':
        return 1;
    default:
        return 0;
    }
}

static void lex_operator(struct lexer *lexer, struct token *out)
{
    size_t start = lexer->pos, length = operator_length(lexer);
    unsigned char c = peek(lexer, 0);
    unsigned top = nest_top(lexer);
    bool in_field = (top & NEST_MODE) == NEST_FIELD;
    bool line_head = !lexer->line_open;
    enum token_kind kind = length ? TOKEN_OPERATOR : TOKEN_OTHER;
    switch (c) {
    case '(':
    case '[':
    case '{':
        nest_push(lexer, NEST_BRACKET);
        break;
    case ')':
    case ']':
    case '}':
        /* Kinds of brackets are not matched, but none reaches out of its replacement field. */
        if (lexer->nest_count && (!in_field || c == '}'))
            lexer->nest_count--;
        else
            kind = TOKEN_OTHER;
        break;
    case ':':
        if (in_field) {
            length = 1;
            lexer->nest[lexer->nest_count - 1] = (uint8_t)(NEST_SPEC | (top & NEST_QUOTE));
        }
        break;
    case '@':
        if (line_head && length == 1)
            kind = TOKEN_DECORATOR;
        break;
    case '%':
    case '!':
    case '?':
        /* No Python statement begins so: a notebook's magic or shell line. */
        if (line_head) {
            lex_to_line_end(lexer);
            emit_code(lexer, out, TOKEN_OTHER, start, lexer->line);
            return;
        }
        break;
    }
    lexer->pos += length ? length : 1;
    emit_code(lexer, out, kind, start, lexer->line);
    lexer->after_dot = c == '.' && length == 1;
    lexer->statement_start = c == ';' && !lexer->nest_count;
}

/* Skip what separates tokens.  Inside brackets a line's end is only a blank. */
static void skip_blanks(struct lexer *lexer)
{
    for (;;) {
        unsigned char c = peek(lexer, 0);
        if (char_class[c] == CHAR_BLANK) {
            lexer->pos++;
        } else if (c == '\\' && at_newline(lexer, 1)) {
            lexer->pos++;
            skip_newline(lexer);
        } else if (char_class[c] == CHAR_NEWLINE && lexer->nest_count) {
            skip_newline(lexer);
            lexer->fresh = lexer->pos;
            lexer->fresh_line = lexer->line;
        } else {
            return;
        }
    }
}

static void lex_end(struct lexer *lexer, struct token *out)
{
    lexer->nest_count = 0;
    if (lexer->line_open) {
        lex_newline(lexer, out, 0);
        return;
    }
    emit(lexer, out, TOKEN_END, lexer->pos, lexer->line);
    lexer->head = false;
}

void lexer_next(struct lexer *lexer, struct token *out)
{
    lexer->head = false;
    if (lexer->line_start && lex_line_start(lexer, out))
        return;
    if (lexer->dedents) {
        lexer->dedents--;
        emit(lexer, out, TOKEN_DEDENT, lexer->pos, lexer->line);
        return;
    }
    unsigned mode = nest_top(lexer) & NEST_MODE;
    if ((mode == NEST_FSTRING || mode == NEST_SPEC) && lex_fstring(lexer, out, lexer->pos))
        return;
    skip_blanks(lexer);
    if (lexer->pos == lexer->length) {
        lex_end(lexer, out);
        return;
    }
    unsigned char c = peek(lexer, 0);
    bool is_format, is_raw;
    size_t prefix;
    switch ((enum char_class)char_class[c]) {
    case CHAR_NEWLINE:
        lex_newline(lexer, out, c == '\r' && peek(lexer, 1) == '\n' ? 2 : 1);
        return;
    case CHAR_NAME:
        prefix = string_prefix(lexer, &is_format, &is_raw);
        if (prefix != NOWHERE)
            lex_string(lexer, out, prefix, is_format, is_raw);
        else
            lex_word(lexer, out);
        return;
    case CHAR_DIGIT:
        lex_number(lexer, out);
        return;
    default:
        break;
    }
    if (c == '"' || c == '\'')
        lex_string(lexer, out, 0, false, false);
    else if (c == '.' && char_class[peek(lexer, 1)] == CHAR_DIGIT)
        lex_number(lexer, out);
    else if (c == '#')
        lex_comment(lexer, out);
    else
        lex_operator(lexer, out);
}

void lexer_init(struct lexer *lexer, const char *text, size_t length)
{
    *lexer = (struct lexer){
        .text = text, .length = length, .line = 1, .line_start = true, .fresh = NOWHERE};
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        lexer->pos = 3;
    VEC_PUSH(lexer->indents, lexer->indent_count, lexer->indent_cap) =
        (struct lexer_indent){.column = 0};
}

void lexer_release(struct lexer *lexer)
{
    free(lexer->nest);
    free(lexer->indents);
    *lexer = (struct lexer){0};
}
