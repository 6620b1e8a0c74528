/*
 * Fuzzes src/source: on any bytes, the tokenizer and the structure parser keep
 * what their headers promise.
 *
 * Inputs are a few seed texts, mutated.
 */
#include "base/mem.h"
#include "fuzz.h"
#include "source/source.h"
#include "source/structure.h"
#include "source/tokenize.h"

#include <stdlib.h>
#include <string.h>

/* Between tokens there is nothing but blanks, line ends and backslashes that join lines. */
static void check_gap(const char *text, size_t start, size_t end)
{
    if (start == 0 && end >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        start = 3;
    for (size_t i = start; i < end; i++)
        CHECK(strchr(" \t\f\r\n\\", text[i]) && text[i]);
}

static uint32_t count_lines(const char *text, size_t start, size_t end)
{
    uint32_t count = 0;
    for (size_t i = start; i < end; i++)
        count += text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n');
    return count;
}

static void check_tokens(const char *text, size_t length)
{
    struct tokenizer *tokenizer = tokenizer_new(text, length);
    struct token token;
    size_t end = 0, depth = 0, count = 0;
    uint32_t line = 1;
    bool more;
    do {
        more = tokenizer_next(tokenizer, &token);
        CHECK(more == (token.kind != TOKEN_END));
        CHECK(token.start >= end && token.start <= length && token.length <= length - token.start);
        check_gap(text, end, token.start);
        line += count_lines(text, end, token.start);
        CHECK(token.line == line);
        end = token.start + token.length;
        if (token.length)
            CHECK(token.end_line == line + count_lines(text, token.start, end - 1));
        else
            CHECK(token.end_line == line);
        line += count_lines(text, token.start, end);
        bool is_layout = token.kind == TOKEN_INDENT || token.kind == TOKEN_DEDENT;
        CHECK(!is_layout || token.length == 0);
        CHECK(is_layout || token.kind == TOKEN_NEWLINE || token.kind == TOKEN_END || token.length);
        depth += token.kind == TOKEN_INDENT;
        CHECK(token.kind != TOKEN_DEDENT || depth > 0);
        depth -= token.kind == TOKEN_DEDENT;
        CHECK(++count <= 4 * length + 4);
    } while (more);
    CHECK(depth == 0 && end == length);
    tokenizer_free(tokenizer);
}

static void check_range(uint32_t start, uint32_t line, uint32_t end, size_t line_count)
{
    CHECK(1 <= start && start <= line && line <= end && end <= line_count);
}

static void check_structure(const char *text, size_t length)
{
    struct structure structure;
    structure_parse(&structure, text, length);
    struct source source;
    source_from_text(&source, text, length);
    CHECK(source.line_count == structure.line_count);
    CHECK(source.line_start[source.line_count] == source.length);
    source_release(&source);
    size_t count = structure.line_count;
    for (uint32_t line = 1; line <= count; line++) {
        const struct structure_lines *l = &structure.lines[line];
        check_range(l->start_region, line, l->end_region, count);
        check_range(l->start_outermost_loop, line, l->end_outermost_loop, count);
        if (l->start_function || l->end_function)
            check_range(l->start_function, line, l->end_function, count);
    }
    for (size_t i = 0; i < structure.function_count; i++) {
        const struct structure_function *function = &structure.functions[i];
        check_range(function->decorator_line, function->first_line, function->last_line, count);
        CHECK(i == 0 || function[-1].first_line < function->decorator_line);
        CHECK(function->parent <= i);
        if (function->parent) {
            const struct structure_function *parent = &structure.functions[function->parent - 1];
            CHECK(parent->first_line < function->decorator_line);
            CHECK(parent->last_line >= function->last_line);
        } else if (i) {
            /* At module level: after everything that came before. */
            CHECK(function[-1].last_line < function->decorator_line);
        }
        const char *dot = strrchr(function->qualname, '.');
        const struct structure_function *found =
            structure_find(&structure, function->first_line, dot ? dot + 1 : function->qualname);
        CHECK(function->is_class || found == function);
    }
    for (size_t i = 0; i < structure.import_count; i++) {
        CHECK(strstr(structure.imports[i].text, structure.imports[i].module));
        CHECK(structure.imports[i].line >= 1 && structure.imports[i].line <= count);
    }
    structure_release(&structure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* An exact copy, so that a sanitizer sees each byte read beyond the text; one past the end is
     * ours to look at in count_lines(). */
    char *text = mem_alloc(size);
    memcpy(text, data, size);
    struct tokenizer *tokenizer = tokenizer_new(text, size);
    struct token token;
    while (tokenizer_next(tokenizer, &token))
        ;
    tokenizer_free(tokenizer);
    check_structure(text, size);
    free(text);
    text = mem_strndup((const char *)data, size);
    check_tokens(text, size);
    free(text);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 20000, TEXT_MAX = 2048 };

static const char *const seeds[] = {
    "import os, sys as s\nfrom . import (a as b,\n  c)\n@d\n@e(1)\nclass F(G):\n    'doc'\n"
    "    async def h(self, i=lambda: 0):\n        for j in k:\n            while l: m()\n"
    "        else:\n            pass\n    n = 1; import o\n",
    "if a:\n    b\nelif c:\n\td\nelse: e\ntry:\n  f\nexcept g as h: i\nfinally:\n  with j: k\n",
    "match x:\n    case [1, y] if z: a\n    case _:\n        def b():\n            global c\n"
    "            def c(): pass\nmatch = type\ntype X[T] = int\nlazy import q\n",
    "f'{a!r:>{w}.2}{{}}' rf\"\\{b}\" f'''{\n c:%d}\n''' f'{d['k']}{f\"{1:{2}}\"}' "
    "t'\\N{DASH}{e}'\n",
    "x = (1, [2, {3: '\\'', }], \"\"\"a\n\\\nb\"\"\") + \\\n  0x1f if 1.e5j else .5\r\ny = "
    "'open\rz\n%magic\n",
};

/* What mutations insert: the pieces that change the tokenizer's mind. */
static const char *const pieces[] = {
    "(",       ")",       "[",       "]",     "{",       "}",      "'",       "\"",
    "'''",     "\"\"\"",  "f'",      "rf\"",  "t'''",    "\\",     "\n",      "\r",
    "\r\n",    "\t",      "    ",    "\f",    "#",       ":",      ";",       "@",
    ":=",      "!",       "...",     "def ",  "class ",  "async ", "for ",    "while ",
    "match ",  "case ",   "type ",   "lazy ", "import ", "from ",  "global ", "else:",
    "elif x:", "except:", "lambda ", "as ",   "\\N{",    "0x",     "1e",      "\xef\xbb\xbf",
    "\xff",    "if x:\n",
};

/* Replace `cut` bytes at `at` by a piece. */
static size_t splice(char *text, size_t length, size_t at, size_t cut, const char *piece,
                     size_t size)
{
    if (length - cut + size > TEXT_MAX)
        return length;
    memmove(text + at + size, text + at + cut, length - at - cut);
    memcpy(text + at, piece, size);
    return length - cut + size;
}

static size_t mutate(char *text, size_t length)
{
    size_t at = fuzz_below(length + 1);
    size_t cut = fuzz_below(8) < 5 ? 0 : fuzz_below(16);
    if (cut > length - at)
        cut = length - at;
    char byte = (char)fuzz_below(256);
    switch (fuzz_below(8)) {
    case 0: /* any byte, NUL included */
        return splice(text, length, at, cut, &byte, 1);
    case 1: /* only cut */
        return splice(text, length, at, cut, "", 0);
    case 2: { /* a part of another seed */
        const char *seed = seeds[fuzz_below(sizeof seeds / sizeof *seeds)];
        size_t start = fuzz_below(strlen(seed));
        return splice(text, length, at, cut, seed + start, fuzz_below(strlen(seed) - start + 1));
    }
    default: {
        const char *piece = pieces[fuzz_below(sizeof pieces / sizeof *pieces)];
        return splice(text, length, at, cut, piece, strlen(piece));
    }
    }
}

int main(int argc, char **argv)
{
    static char text[TEXT_MAX];
    size_t length = 0;
    for (long i = 0; fuzz_goes_on(argc, argv, INPUTS); i++) {
        /* Begin anew now and then; in between, mutations pile up. */
        if (i % 20 == 0) {
            const char *seed = seeds[(size_t)i / 20 % (sizeof seeds / sizeof *seeds)];
            length = strlen(seed);
            memcpy(text, seed, length);
        } else {
            length = mutate(text, length);
        }
        LLVMFuzzerTestOneInput((const uint8_t *)text, length);
    }
    return 0;
}

#endif
