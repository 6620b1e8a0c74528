#include "cmd/nearest.h"

#include <string.h>

enum { NAME_MAX_BYTES = 63, LETTERS_PER_MISTAKE = 3 };

/* Levenshtein's distance, one row of the table at a time. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            size_t least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            diagonal = row[j];
            row[j] = changed < least ? changed : least;
        }
    }
    return row[b_length];
}

void nearest_init(struct nearest *nearest, const char *typed, size_t length)
{
    *nearest = (struct nearest){
        .typed = typed, .length = length, .distance = length / LETTERS_PER_MISTAKE + 1};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t length = strlen(name);
    if (length > NAME_MAX_BYTES || nearest->length > NAME_MAX_BYTES)
        return;
    size_t d = distance(nearest->typed, nearest->length, name, length);
    if (d < nearest->distance) {
        nearest->best = name;
        nearest->distance = d;
    }
}
