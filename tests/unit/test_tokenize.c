/* Tests of src/source/tokenize.c: kinds and extents of tokens, and behaviour on broken text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "source/tokenize.h"

/* One letter a kind, so that a text's tokens read as "K:def N:f O:( ..." */
static const char kind_letters[] = "ENKB@#SDCOLI<?";

/* The tokens of a text: letter, colon, text; layout tokens as a letter alone. */
static char *dump(const char *text)
{
    struct buf out = {0};
    struct tokenizer *tokenizer = tokenizer_new(text, strlen(text));
    struct token token;
    while (tokenizer_next(tokenizer, &token)) {
        if (out.len)
            buf_char(&out, ' ');
        buf_char(&out, kind_letters[token.kind]);
        if (token.kind == TOKEN_NEWLINE || token.kind == TOKEN_INDENT || token.kind == TOKEN_DEDENT)
            continue;
        buf_char(&out, ':');
        buf_add(&out, text + token.start, token.length);
    }
    assert_int_equal(token.kind, TOKEN_END);
    tokenizer_free(tokenizer);
    return buf_detach(&out);
}

static void check(const char *text, const char *expected)
{
    char *got = dump(text);
    assert_string_equal(got, expected);
    free(got);
}

static void test_simple_tokens(void **state)
{
    check("", "");
    check("\n\n  \n", "");
    check("x = 1", "N:x O:= #:1 L");
    check("x = 1 # why\n", "N:x O:= #:1 C:# why L");
    check("# only\n", "C:# only");
    check("a.b\r\nc\rd\n", "N:a O:. N:b L N:c L N:d L");
    check("a+\\\n b\n", "N:a O:+ N:b L");
    check("a; b\n", "N:a O:; N:b L");
    check("\xef\xbb\xbfx\n", "N:x L");
    check("gr\xc3\xbc\xc3\x9f = 1\n", "N:gr\xc3\xbc\xc3\x9f O:= #:1 L");
}

static void test_operators(void **state)
{
    check("a **= b // c -> d := e != f ... @ ~g\n",
          "N:a O:**= N:b O:// N:c O:-> N:d O::= N:e O:!= N:f O:... O:@ O:~ N:g L");
    check("a>>=b<<c<=d\n", "N:a O:>>= N:b O:<< N:c O:<= N:d L");
    check("a $ b ? c\n", "N:a ?:$ N:b ?:? N:c L");
    check("a)\n", "N:a ?:) L");
}

static void test_numbers(void **state)
{
    check("1_0 0xFf 0b1 0o7 1. .5 1e5 1.5E-3j 1..real\n",
          "#:1_0 #:0xFf #:0b1 #:0o7 #:1. #:.5 #:1e5 #:1.5E-3j #:1. O:. N:real L");
    check("1if x else 2\n", "#:1 K:if N:x K:else #:2 L");
    check("0x1for x in y\n", "#:0x1f K:or N:x K:in N:y L");
}

static void test_words(void **state)
{
    check("def print(self): return len(x.len)\n",
          "K:def B:print O:( N:self O:) O:: K:return B:len O:( N:x O:. N:len O:) L");
    check("None True lambda await ValueError __import__\n",
          "K:None K:True K:lambda K:await B:ValueError B:__import__ L");
    check("@ a\nx @ y\n", "@:@ N:a L N:x O:@ N:y L");
}

static void test_soft_keywords(void **state)
{
    check("match x:\n case 1: pass\n", "K:match N:x O:: L I K:case #:1 O:: K:pass L <");
    check("match = case\nmatch.x: int\nmatch[x]: int\n",
          "N:match O:= N:case L N:match O:. N:x O:: B:int L N:match O:[ N:x O:] O:: B:int L");
    check("match(x)\nmatch: int\ncase = 1\n",
          "N:match O:( N:x O:) L N:match O:: B:int L N:case O:= #:1 L");
    check("match (a,\n b): # c\n  case _: x\n  case [y]: z\n",
          "K:match O:( N:a O:, N:b O:) O:: C:# c L I K:case N:_ O:: N:x L "
          "K:case O:[ N:y O:] O:: N:z L <");
    check("match:\n", "N:match O:: L");
    check("if a:\n case = 1\n", "K:if N:a O:: L I N:case O:= #:1 L <");
    check("type X = int\ntype X[T] = T\ntype(x)\ntype = 1\nx = type\n",
          "K:type N:X O:= B:int L K:type N:X O:[ N:T O:] O:= N:T L B:type O:( N:x O:) L "
          "B:type O:= #:1 L N:x O:= B:type L");
    check("lazy import a\nlazy = 1\n", "K:lazy K:import N:a L N:lazy O:= #:1 L");
}

static void test_indentation(void **state)
{
    check("if a:\n  b\n\n  # c\n  if d:\n\te\nf\n",
          "K:if N:a O:: L I N:b L C:# c K:if N:d O:: L I N:e L < < N:f L");
    check("if a:\n  b", "K:if N:a O:: L I N:b L <");
    check("x = [\n  1,\n2]\ny\n", "N:x O:= O:[ #:1 O:, #:2 O:] L N:y L");
    /* Between two levels, an error in Python: stays in the inner one. */
    check("if a:\n    b\n  c\n  d\ne\n", "K:if N:a O:: L I N:b L N:c L N:d L < N:e L");
    check("if a:\n \\\n   if b:\n  c\n", "K:if N:a O:: L I K:if N:b O:: L I N:c L < <");
    check("\fif a:\n \\\n   b\n c\n", "K:if N:a O:: L I N:b L N:c L <");
}

static void test_strings(void **state)
{
    check("x = 'a\\'b' + \"c\"\n", "N:x O:= S:'a\\'b' O:+ S:\"c\" L");
    check("x = rb'\\' ' Rb\"\" u'' b'' ur''\n",
          "N:x O:= S:rb'\\' ' S:Rb\"\" S:u'' S:b'' N:ur S:'' L");
    check("x = '''a\n'b' ''' ''\n", "N:x O:= S:'''a\n'b' ''' S:'' L");
    check("x = 'a\\\nb'\n", "N:x O:= S:'a\\\nb' L");
    check("x = 'open\ny\n", "N:x O:= S:'open L N:y L");
    check("x = '''open\ny\n", "N:x O:= S:'''open\ny\n L");
    check("x = 'a\\", "N:x O:= S:'a\\ L");
}

static void test_docstrings(void **state)
{
    check("'doc'\n'a' 'b' # c\nx\n", "D:'doc' L D:'a' D:'b' C:# c L N:x L");
    check("'a'; 'b'", "D:'a' O:; D:'b' L");
    check("'a'.x\n'a' % b\nx: 'a'\n('a')\n",
          "S:'a' O:. N:x L S:'a' O:% N:b L N:x O:: S:'a' L O:( S:'a' O:) L");
}

static void test_fstrings(void **state)
{
    check("f'a{b}c'\n", "S:f'a O:{ N:b O:} S:c' L");
    check("x = f'{{}}' rf'\\{a}' f'\\N{DASH}{b}'\n",
          "N:x O:= S:f'{{}}' S:rf'\\ O:{ N:a O:} S:' S:f'\\N{DASH} O:{ N:b O:} S:' L");
    check("f'{a!r:>{w}.2}{b:=3}{c=}'\n",
          "S:f' O:{ N:a O:! N:r O:: S:> O:{ N:w O:} S:.2 O:} O:{ N:b O:: S:=3 O:} "
          "O:{ N:c O:= O:} S:' L");
    /* PEP 701: the same quotes, comments and newlines inside a field; lambdas in brackets. */
    check("f'{d['k']}{(lambda: 1)}{ # c\n x}'\n",
          "S:f' O:{ N:d O:[ S:'k' O:] O:} O:{ O:( K:lambda O:: #:1 O:) O:} "
          "O:{ C:# c N:x O:} S:' L");
    check("f'{f'{f'{1}'}'}'\n", "S:f' O:{ S:f' O:{ S:f' O:{ #:1 O:} S:' O:} S:' O:} S:' L");
    check("t\"\"\"a\n{b!=c}\n\"\"\"\n", "S:t\"\"\"a\n O:{ N:b O:!= N:c O:} S:\n\"\"\" L");
    check("f'open\nx\n", "D:f'open L N:x L");
    check("f'{a:open\nx\n", "S:f' O:{ N:a O:: S:open L N:x L");
    check("f'{a:b'\nx\n", "S:f' O:{ N:a O:: S:b' L N:x L");
}

static void test_recovery(void **state)
{
    check("x = (1,\ndef f():\n  return\n",
          "N:x O:= O:( #:1 O:, L K:def N:f O:( O:) O:: L I K:return L <");
    check("(]\nx\n", "O:( O:] L N:x L");
    check("%time x\n!ls -l\n%%bash\nx % y\n", "?:%time x L ?:!ls -l L ?:%%bash L N:x O:% N:y L");
    struct tokenizer *tokenizer = tokenizer_new("a\0b", 3);
    struct token token;
    enum token_kind expected[] = {TOKEN_NAME, TOKEN_OTHER, TOKEN_NAME, TOKEN_NEWLINE};
    for (size_t i = 0; i < 4; i++) {
        assert_true(tokenizer_next(tokenizer, &token));
        assert_int_equal(token.kind, expected[i]);
    }
    assert_false(tokenizer_next(tokenizer, &token));
    assert_false(tokenizer_next(tokenizer, &token));
    tokenizer_free(tokenizer);
}

static void test_lines(void **state)
{
    const char *text = "a = '''x\r\ny''' + \\\n  b\rc\n";
    static const struct {
        uint32_t line, end_line;
    } expected[] = {{1, 1}, {1, 1}, {1, 2}, {2, 2}, {3, 3}, {3, 3}, {4, 4}, {4, 4}};
    struct tokenizer *tokenizer = tokenizer_new(text, strlen(text));
    struct token token;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(tokenizer_next(tokenizer, &token));
        assert_int_equal(token.line, expected[i].line);
        assert_int_equal(token.end_line, expected[i].end_line);
    }
    assert_false(tokenizer_next(tokenizer, &token));
    assert_int_equal(token.line, 5);
    tokenizer_free(tokenizer);
}

/* Every word of the table is found: it is searched by bisection, so an unsorted row would be lost.
 */
static void test_vocabulary(void **state)
{
    check(
        "as if in is or and def del for not try elif else from pass with async await break class "
        "raise while yield assert except global import lambda return finally continue nonlocal\n",
        "K:as K:if K:in K:is K:or K:and K:def K:del K:for K:not K:try K:elif K:else K:from K:pass "
        "K:with K:async K:await K:break K:class K:raise K:while K:yield K:assert K:except "
        "K:global K:import K:lambda K:return K:finally K:continue K:nonlocal L");
    check("x abs id EOFError ExceptionGroup DeprecationWarning NotImplementedError "
          "ModuleNotFoundError PythonFinalizationError UnicodeTranslateError "
          "PendingDeprecationWarning zip staticmethod __build_class__ anext reversed\n",
          "N:x B:abs B:id B:EOFError B:ExceptionGroup B:DeprecationWarning B:NotImplementedError "
          "B:ModuleNotFoundError B:PythonFinalizationError B:UnicodeTranslateError "
          "B:PendingDeprecationWarning B:zip B:staticmethod B:__build_class__ B:anext "
          "B:reversed L");
}

/* Deep nesting costs memory of its own size and no stack. */
static void test_deep(void **state)
{
    enum { DEPTH = 1000000 };
    static const char *const units[] = {"(", "f'{", "f'{a:{", "match (\n", "'a' ", "\\\n"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct buf text = {0};
        for (size_t k = 0; k < DEPTH; k++)
            buf_str(&text, units[i]);
        struct tokenizer *tokenizer = tokenizer_new(text.data, text.len);
        struct token token;
        size_t end = 0;
        while (tokenizer_next(tokenizer, &token)) {
            assert_true(token.start >= end);
            end = token.start + token.length;
        }
        assert_true(end <= text.len);
        tokenizer_free(tokenizer);
        buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple_tokens), cmocka_unit_test(test_operators),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_soft_keywords), cmocka_unit_test(test_indentation),
        cmocka_unit_test(test_strings),       cmocka_unit_test(test_docstrings),
        cmocka_unit_test(test_fstrings),      cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_lines),         cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
