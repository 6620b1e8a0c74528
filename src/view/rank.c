/* Ranking of files and lines; see rank.h.  Used by the parts of the page and by html.c. */
#include "view/rank.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 200 }; /* characters */

static double memory_of(const struct profile_file *file)
{
    double sum = 0;
    for (uint32_t i = 0; i < file->line_count; i++)
        sum += file->lines[i].memory.at_peak_mb + file->lines[i].memory.allocated_mb;
    return sum;
}

struct ranked_file {
    double sec, mb;
    uint32_t place;
};

static int compare_files(const void *a, const void *b)
{
    const struct ranked_file *x = a, *y = b;
    if (x->sec != y->sec)
        return x->sec < y->sec ? 1 : -1;
    if (x->mb != y->mb)
        return x->mb < y->mb ? 1 : -1;
    return x->place < y->place ? -1 : x->place > y->place;
}

uint32_t *rank_files(const struct profile *profile)
{
    uint32_t count = profile->file_count;
    struct ranked_file *files = mem_zalloc(count, sizeof *files);
    for (uint32_t i = 0; i < count; i++)
        files[i] = (struct ranked_file){profile_time_sum(&profile->files[i].time),
                                        memory_of(&profile->files[i]), i};
    qsort(files, count, sizeof *files, compare_files);
    uint32_t *order = mem_zalloc(count, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = files[i].place;
    free(files);
    return order;
}

double rank_by_time(const struct profile_line *line)
{
    return profile_time_sum(&line->time);
}

double rank_by_peak(const struct profile_line *line)
{
    return line->memory.peak_mb;
}

size_t rank_lines(const struct profile *profile, rank_value *value, struct rank_line *lines,
                  size_t most)
{
    size_t count = 0;
    for (uint32_t f = 0; f < profile->file_count; f++) {
        const struct profile_file *file = &profile->files[f];
        for (uint32_t row = 0; row < file->line_count; row++) {
            double here = value(&file->lines[row]);
            if (!(here > 0) || (count == most && here <= lines[most - 1].value))
                continue;
            size_t at = count < most ? count++ : most - 1;
            for (; at > 0 && lines[at - 1].value < here; at--)
                lines[at] = lines[at - 1];
            lines[at] = (struct rank_line){f, row, here};
        }
    }
    return count;
}

const char *rank_text(const struct profile *profile, const struct profile_line *line,
                      size_t *length)
{
    static const char blanks[] = " \t\f\r\n";
    const char *text = profile_str(profile, line->text);
    size_t left = intern_length(&profile->strings, line->text);
    while (left && strchr(blanks, *text)) {
        text++;
        left--;
    }
    while (left && strchr(blanks, text[left - 1]))
        left--;
    *length = 0;
    for (unsigned count = 0; *length < left && count < TEXT_MAX; count++)
        utf8_decode(text, left, length);
    return text;
}
