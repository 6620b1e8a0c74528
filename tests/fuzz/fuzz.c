/* The fuzzers' common part; see fuzz.h. */
#include "fuzz.h"

#include <string.h>
#include <time.h>

static uint64_t random_state = 0x5ca1e9e;

size_t fuzz_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)((random_state >> 16) % limit);
}

uint64_t fuzz_edge(void)
{
    if (!fuzz_below(3))
        return fuzz_below(300);
    uint64_t power = fuzz_below(65) == 64 ? 0 : UINT64_C(1) << fuzz_below(64);
    return power + fuzz_below(3) - 1;
}

bool fuzz_goes_on(int argc, char **argv, long inputs)
{
    static long done;
    static time_t began;
    bool is_time = argc > 1 && strchr(argv[1], 's');
    if (argc > 1)
        inputs = strtol(argv[1], NULL, 10);
    if (!began)
        began = time(NULL);
    if (is_time ? time(NULL) - began < inputs : done < inputs) {
        done++;
        return true;
    }
    printf("%ld inputs\n", done);
    return false;
}

void fuzz_check_numbers(const char *json, size_t length)
{
    bool in_text = false;
    for (size_t i = 0; i < length; i++) {
        if (json[i] == '\\' && in_text)
            i++;
        else if (json[i] == '"')
            in_text = !in_text;
        else if (!in_text) /* a '-' after an 'e' is a small number's */
            CHECK(!strchr("NIi", json[i]) && (json[i] != '-' || (i && json[i - 1] == 'e')));
    }
    CHECK(!in_text);
}

void fuzz_splice(struct buf *text, size_t at, size_t cut, const char *piece, size_t length)
{
    struct buf made = {0};
    buf_add(&made, text->data, at);
    buf_add(&made, piece, length);
    buf_add(&made, text->data + at + cut, text->len - at - cut);
    buf_release(text);
    *text = made;
}
