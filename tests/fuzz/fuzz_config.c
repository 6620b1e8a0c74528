/*
 * Fuzzes the reader of configuration files: any text either applies or is refused
 * with a reason, and leaves options that can be used and released.
 *
 * Inputs are a few files of options, with lines and words exchanged, and pieces of
 * YAML put in.
 */
#include "base/mem.h"
#include "cmd/config_file.h"
#include "fuzz.h"

#include <string.h>

static long results[3]; /* applied, CONFIG_FILE_BAD, CONFIG_FILE_OTHER */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *const words[] = {(char *)"p.py", NULL};
    struct options options;
    struct buf warnings = {0};
    struct err err = {""};
    char *text = mem_alloc(size); /* without a NUL, so that a sanitizer sees a byte too many */
    memcpy(text, data, size);
    options_init(&options);
    CHECK(!options_parse(&options, VERB_RUN, words, &err));
    int rc = config_text_apply(&options, "f.yaml", text, size, &warnings, &err);
    CHECK(rc == 0 || rc == CONFIG_FILE_BAD || rc == CONFIG_FILE_OTHER);
    CHECK(!rc == !err.text[0]);
    CHECK(!warnings.len || warnings.data[warnings.len - 1] == '\n');
    if (!rc)
        options_finish(&options);
    CHECK(options.run.cpu_sampling_sec > 0 && options.run.cpu_percent_threshold >= 0);
    results[-rc]++;
    options_release(&options);
    buf_release(&warnings);
    free(text);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 20000, CHANGES_MAX = 4 };

static const char *const seeds[] = {
    "output: out.json\npython: /p\nprofile-all: true\nprofile_only: 'a,b'\n"
    "profile-exclude: c\nstacks: false\nasync: no\nprofile_interval: 2\n",
    "use-virtual-time: yes\ncpu-percent-threshold: 5\ncpu_sampling_rate: 0.002\n"
    "allocation-sampling-window: 4096\nmalloc-threshold: 7\nprogram-path: \"/x y\"\n",
    "memory-leak-detector: false\nprofile-system-libraries: on\ndisable-jit: True\noff: true\n",
    "# a comment\n---\nstacks: !!bool 'no'\n? output\n: &a out.json\npython: *a\n...\n",
    "{stacks: off, profile-only: [a, b], output: {a: b}, unknown: ~}\n",
};

static const char *const pieces[] = {
    "&a ",
    "*a",
    "!!str ",
    "!!binary ",
    "<<: ",
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "\\x00",
    "%YAML 1.1\n---\n",
    "---\n",
    "\n",
    "  ",
    "\t",
    "#",
    "null",
    "~",
    ".inf",
    "-.inf",
    ".nan",
    "-1",
    "0",
    "1e999",
    "0x7fffffffffffffff",
    "99999999999999999999",
    "true",
    "\xff",
    "\xef\xbb\xbf",
    "stacks",
    "output",
    "cpu-sampling-rate",
    "malloc-threshold",
    "profile-interval",
};

static void change(struct buf *text)
{
    size_t at = fuzz_below(text->len + 1), cut = fuzz_below(3) ? 0 : fuzz_below(12);
    if (cut > text->len - at)
        cut = text->len - at;
    const char *seed = seeds[fuzz_below(COUNT_OF(seeds))];
    const char *piece = pieces[fuzz_below(COUNT_OF(pieces))];
    size_t start = fuzz_below(strlen(seed));
    char byte = (char)fuzz_below(256);
    switch (fuzz_below(5)) {
    case 0:
        fuzz_splice(text, at, cut, &byte, 1);
        break;
    case 1:
        fuzz_splice(text, at, cut, seed + start, fuzz_below(strlen(seed) - start + 1));
        break;
    case 2: { /* a value: what stands between a colon and the end of the line */
        const char *colon = memchr(text->data + at, ':', text->len - at);
        if (!colon)
            break;
        size_t from = (size_t)(colon - text->data) + 1;
        fuzz_splice(text, from, strcspn(text->data + from, "\n"), " ", 1);
        fuzz_splice(text, from + 1, 0, piece, strlen(piece));
        break;
    }
    default:
        fuzz_splice(text, at, cut, piece, strlen(piece));
    }
}

int main(int argc, char **argv)
{
    while (fuzz_goes_on(argc, argv, INPUTS)) {
        struct buf text = {0};
        buf_str(&text, seeds[fuzz_below(COUNT_OF(seeds))]);
        for (size_t n = 1 + fuzz_below(CHANGES_MAX); n; n--)
            change(&text);
        LLVMFuzzerTestOneInput((const uint8_t *)text.data, text.len);
        buf_release(&text);
    }
    for (size_t i = 0; i < COUNT_OF(results); i++)
        CHECK(results[i] > 0);
    return 0;
}

#endif
