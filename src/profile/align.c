/* Lines of two versions of a source; see align.h.  Called by merge_files.c. */
#include "profile/align.h"

#include <stdlib.h>

enum { CELLS_MAX = 32 << 20 }; /* of the table: 64 MB, about 5,700 lines on both sides */

/*
 * The textbook table: length[i][k] is the longest common subsequence of what
 * follows old line i and new line k; then walk it from the start.
 */
static void align_middle(const str_id *old_lines, uint32_t old_count, const str_id *new_lines,
                         uint32_t new_count, uint32_t new_first, uint32_t *new_of)
{
    size_t width = (size_t)new_count + 1;
    if (!old_count || !new_count || old_count >= UINT16_MAX || new_count >= UINT16_MAX ||
        (old_count + (size_t)1) * width > CELLS_MAX)
        return;
    uint16_t *length = mem_zalloc((old_count + (size_t)1) * width, sizeof *length);
    for (size_t i = old_count; i--;)
        for (size_t k = new_count; k--;) {
            const uint16_t *below = &length[(i + 1) * width + k];
            uint16_t *here = &length[i * width + k];
            if (old_lines[i] == new_lines[k])
                *here = (uint16_t)(below[1] + 1);
            else
                *here = below[0] > here[1] ? below[0] : here[1];
        }
    for (size_t i = 0, k = 0; i < old_count && k < new_count;) {
        if (old_lines[i] == new_lines[k]) {
            new_of[i] = new_first + (uint32_t)k;
            i++;
            k++;
        } else if (length[(i + 1) * width + k] >= length[i * width + k + 1]) {
            i++;
        } else {
            k++;
        }
    }
    free(length);
}

uint32_t *align_lines(const str_id *old_lines, uint32_t old_count, const str_id *new_lines,
                      uint32_t new_count)
{
    uint32_t *new_of = mem_zalloc((size_t)old_count + 1, sizeof *new_of);
    uint32_t least = old_count < new_count ? old_count : new_count, head = 0, tail = 0;
    while (head < least && old_lines[head] == new_lines[head]) {
        new_of[head] = head + 1;
        head++;
    }
    while (tail < least - head &&
           old_lines[old_count - tail - 1] == new_lines[new_count - tail - 1]) {
        new_of[old_count - tail - 1] = new_count - tail;
        tail++;
    }
    align_middle(old_lines + head, old_count - head - tail, new_lines + head,
                 new_count - head - tail, head + 1, new_of + head);
    return new_of;
}
