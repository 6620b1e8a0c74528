/*
 * Lets test_linetable.py ask the decoder: each input line is
 *   FORMAT FIRST_LINE CODE_BYTES TABLE_HEX        (TABLE_HEX "-" when empty)
 * and the answer is one line with the source lines of offsets 0, 2, 4, ...
 */
#include "base/mem.h"
#include "report/linetable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        out[n++] = (uint8_t)byte;
    return n;
}

int main(void)
{
    char *input = NULL;
    size_t cap = 0;
    while (getline(&input, &cap, stdin) > 0) {
        char *hex = mem_alloc(strlen(input) + 1);
        int format, first_line, code_bytes;
        if (sscanf(input, "%d %d %d %s", &format, &first_line, &code_bytes, hex) != 4)
            return 1;
        uint8_t *table = mem_alloc(strlen(hex));
        size_t table_bytes = from_hex(hex, table);
        struct linetable lines;
        linetable_decode(&lines, (enum wire_line_format)format, table, table_bytes, first_line);
        for (int at = 0; at < code_bytes; at += 2)
            printf("%d ", linetable_line(&lines, at));
        putchar('\n');
        linetable_release(&lines);
        free(table);
        free(hex);
    }
    free(input);
    return 0;
}
