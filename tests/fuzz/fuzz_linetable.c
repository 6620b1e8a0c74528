/*
 * Fuzzes src/report/linetable.c.  Tables that were encoded from known lines must
 * give those lines again at every instruction, in all three encodings; any bytes
 * give some line or none, and nothing beyond them is read.
 */
#include "base/mem.h"
#include "fuzz.h"
#include "report/linetable.h"

#include <limits.h>
#include <string.h>

/* The first byte chooses the encoding and the next four the first line; the rest is the table. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEAD = 5 };
    static const int at_edges[] = {INT_MIN, -1, 0, 1, 2, 65534, INT_MAX - 1, INT_MAX};
    if (size < HEAD)
        return 0;
    enum wire_line_format format = data[0] % (WIRE_LINES_LOCATION + 1);
    int first_line;
    memcpy(&first_line, data + 1, sizeof first_line);
    size_t length = size - HEAD;
    uint8_t *table = mem_copy(data + HEAD, length); /* exactly, for the sanitizer */
    struct linetable lines;
    linetable_decode(&lines, format, table, length, first_line);
    for (size_t i = 0; i < COUNT_OF(at_edges); i++) {
        int line = linetable_line(&lines, at_edges[i]);
        CHECK(line >= -1 || line == first_line);
    }
    for (int at = 0; at < 4 * (int)length + 8; at += 2) {
        int line = linetable_line(&lines, at);
        CHECK(line >= -1 || line == first_line);
    }
    linetable_release(&lines);
    free(table);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 20000, RANGES_MAX = 24, UNITS_MAX = 300, FIRST_LINE_MAX = 100000 };

/* So many instruction units of 2 bytes on this line; -1: on none. */
struct range {
    int units, line;
};

struct code {
    struct range ranges[RANGES_MAX];
    int count, first_line;
};

static void make_code(struct code *code, bool has_holes)
{
    code->count = 1 + (int)fuzz_below(RANGES_MAX);
    code->first_line = 1 + (int)fuzz_below(FIRST_LINE_MAX);
    int line = code->first_line;
    for (int i = 0; i < code->count; i++) {
        static const int steps[] = {1, 3, 40, 130, 1000, 70000};
        int step = (int)fuzz_below((size_t)steps[fuzz_below(COUNT_OF(steps))] + 1);
        line += fuzz_below(3) ? step : -step;
        if (line < 0)
            line = 0;
        bool is_hole = has_holes && !fuzz_below(6);
        code->ranges[i] =
            (struct range){1 + (int)fuzz_below(fuzz_below(4) ? 8 : UNITS_MAX), is_hole ? -1 : line};
    }
}

static void put_pair(struct buf *out, int bytes, int step)
{
    buf_char(out, (char)bytes);
    buf_char(out, (char)step);
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

/* Objects/lnotab_notes.txt: long steps of either kind take several pairs. */
static void encode_lnotab(const struct code *code, struct buf *out)
{
    int line = code->first_line, bytes = 0;
    for (int i = 0; i < code->count; i++) {
        int step = code->ranges[i].line - line;
        for (; bytes > 254; bytes -= 254)
            put_pair(out, 254, 0);
        do {
            int part = clamp(step, -128, 127);
            put_pair(out, bytes, part);
            step -= part;
            bytes = 0;
        } while (step);
        line = code->ranges[i].line;
        bytes = code->ranges[i].units * 2;
    }
}

static void encode_pep626(const struct code *code, struct buf *out)
{
    int line = code->first_line;
    for (int i = 0; i < code->count; i++) {
        int bytes = code->ranges[i].units * 2, step = -128;
        if (code->ranges[i].line >= 0) {
            step = code->ranges[i].line - line;
            line = code->ranges[i].line;
            for (; step > 127; step -= 127)
                put_pair(out, 0, 127);
            for (; step < -127; step += 127)
                put_pair(out, 0, -127);
        }
        for (; bytes > 254; bytes -= 254) {
            put_pair(out, 254, step);
            step = step == -128 ? -128 : 0;
        }
        put_pair(out, bytes, step);
    }
}

static void put_varint(struct buf *out, unsigned value)
{
    for (; value >= 64; value >>= 6)
        buf_char(out, (char)(0x40 | (value & 63)));
    buf_char(out, (char)value);
}

static void put_entry(struct buf *out, int units, int step)
{
    unsigned value = step < 0 ? (unsigned)-step << 1 | 1 : (unsigned)step << 1;
    size_t way = fuzz_below(3);
    unsigned kind = way == 0 && step == 0               ? (unsigned)fuzz_below(10)
                    : way == 1 && step >= 0 && step < 3 ? 10 + (unsigned)step
                                                        : 13 + (unsigned)fuzz_below(2);
    buf_char(out, (char)(0x80 | kind << 3 | (unsigned)(units - 1)));
    if (kind >= 13)
        put_varint(out, value);
    for (unsigned i = 0; i < (kind < 10 ? 1 : kind < 13 ? 2 : 0); i++)
        buf_char(out, (char)fuzz_below(128));
    for (int i = 0; kind == 14 && i < 3; i++)
        put_varint(out, (unsigned)fuzz_below(5000));
}

static void encode_location(const struct code *code, struct buf *out)
{
    int line = code->first_line;
    for (int i = 0; i < code->count; i++) {
        for (int units = code->ranges[i].units; units > 0; units -= 8) {
            int part = units < 8 ? units : 8;
            if (code->ranges[i].line < 0) {
                buf_char(out, (char)(0x80 | 15 << 3 | (part - 1)));
                continue;
            }
            put_entry(out, part, code->ranges[i].line - line);
            line = code->ranges[i].line;
        }
    }
}

static void check_lines(const struct code *code, enum wire_line_format format,
                        const struct buf *table)
{
    struct linetable lines;
    int at = 0;
    linetable_decode(&lines, format, (const uint8_t *)table->data, table->len, code->first_line);
    for (int i = 0; i < code->count; i++)
        for (int unit = 0; unit < code->ranges[i].units; unit++, at += 2)
            CHECK(linetable_line(&lines, at) == code->ranges[i].line);
    if (format != WIRE_LINES_LNOTAB) /* which goes on for ever */
        CHECK(linetable_line(&lines, at) == -1);
    linetable_release(&lines);
}

static void damage(struct buf *input)
{
    for (size_t n = fuzz_below(6); n && input->len; n--) {
        size_t at = fuzz_below(input->len);
        if (fuzz_below(4))
            input->data[at] = (char)fuzz_edge();
        else
            input->len = at;
    }
}

int main(int argc, char **argv)
{
    static void (*const encode[])(const struct code *, struct buf *) = {
        [WIRE_LINES_LNOTAB] = encode_lnotab,
        [WIRE_LINES_PEP626] = encode_pep626,
        [WIRE_LINES_LOCATION] = encode_location,
    };
    while (fuzz_goes_on(argc, argv, INPUTS)) {
        enum wire_line_format format = WIRE_LINES_LNOTAB + fuzz_below(3);
        struct code code;
        struct buf table = {0}, input = {0};
        make_code(&code, format != WIRE_LINES_LNOTAB);
        encode[format](&code, &table);
        check_lines(&code, format, &table);
        buf_char(&input, (char)format);
        buf_add(&input, &code.first_line, sizeof code.first_line);
        buf_add(&input, table.data, table.len);
        damage(&input);
        LLVMFuzzerTestOneInput((const uint8_t *)input.data, input.len);
        buf_release(&table);
        buf_release(&input);
    }
    return 0;
}

#endif
