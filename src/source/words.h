/*
 * Python's vocabulary: which words are keywords and which are names of the
 * builtins module.  Used by the tokenizer only.  The soft keywords (match,
 * case, type, lazy) are plain words here: whether they act as keywords depends
 * on the statement, which is the tokenizer's business.
 *
 * The table is the union over all supported versions of Python; it is constant,
 * so every function may be called from any thread.
 */
#ifndef SOURCE_WORDS_H
#define SOURCE_WORDS_H

#include <stddef.h>

enum word_kind {
    WORD_NAME,
    WORD_KEYWORD,
    WORD_STATEMENT, /* a keyword that never occurs inside an expression */
    WORD_BUILTIN,
};

enum word_kind word_classify(const char *text, size_t length);

#endif
