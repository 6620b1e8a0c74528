/*
 * What the fuzzers share.  Each has LLVMFuzzerTestOneInput, which takes any bytes
 * and aborts where a promise is broken.  With -DLIBFUZZER, libFuzzer calls it;
 * without, the fuzzer's own main() makes inputs by a fixed random sequence that
 * knows the format, so that they run as an ordinary test, under sanitizers where
 * the build has them.  Its argument is another number of inputs, or how long to go
 * on: `fuzz_arena 100000`, `fuzz_arena 300s`.  The number that ran is printed.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* assert() that stays in release builds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

size_t fuzz_below(size_t limit);
/* A number at which something may turn: 0, 1, powers of two, what is next to them, small ones. */
uint64_t fuzz_edge(void);

/* Shall there be one more input?  To be asked before each. */
bool fuzz_goes_on(int argc, char **argv, long inputs);

/* Text that json_write made: no number in it is negative, infinite or none at all. */
void fuzz_check_numbers(const char *json, size_t length);

/* Replace `cut` bytes at `at` by others. */
void fuzz_splice(struct buf *text, size_t at, size_t cut, const char *piece, size_t length);

#endif
