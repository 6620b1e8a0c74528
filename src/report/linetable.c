/*
 * Decoders of co_lnotab (3.8, 3.9), PEP 626's co_linetable (3.10) and the
 * location table (3.11 on).  Called by charge.c for every code that was sampled;
 * sums are kept in 64 bits so that a hostile table cannot overflow.
 */
#include "report/linetable.h"

#include "base/mem.h"

#include <limits.h>
#include <stdlib.h>

static int line_or_none(int64_t line)
{
    return line < 0 || line > INT_MAX ? -1 : (int)line;
}

/* Ranges without instructions are left out. */
static void add_range(struct linetable *lines, int64_t end, int line)
{
    int64_t start = lines->count ? lines->ranges[lines->count - 1].end : 0;
    if (end > start)
        VEC_PUSH(lines->ranges, lines->count, lines->cap) = (struct linetable_range){end, line};
}

/* Pairs (offset step, signed line step); a pair takes effect from its offset on. */
static void decode_lnotab(struct linetable *lines, const uint8_t *table, size_t table_bytes)
{
    int64_t address = 0, line = lines->first_line;
    for (size_t i = 0; i + 1 < table_bytes; i += 2) {
        address += table[i];
        add_range(lines, address, line_or_none(line));
        line += (int8_t)table[i + 1];
    }
    add_range(lines, INT64_MAX, line_or_none(line));
}

/* Pairs (length of a range, signed line step at its start); step -128: a range without a line. */
static void decode_pep626(struct linetable *lines, const uint8_t *table, size_t table_bytes)
{
    int64_t end = 0, line = lines->first_line;
    for (size_t i = 0; i + 1 < table_bytes; i += 2) {
        int step = (int8_t)table[i + 1];
        end += table[i];
        if (step != -128)
            line += step;
        add_range(lines, end, step == -128 ? -1 : line_or_none(line));
    }
}

struct cursor {
    const uint8_t *at, *end;
};

/* 6 bits a byte, lowest first, 0x40 = more to come. */
static uint64_t read_varint(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor->at < cursor->end; shift += 6) {
        unsigned byte = *cursor->at++;
        if (shift < 60)
            value |= (uint64_t)(byte & 0x3F) << shift;
        if (!(byte & 0x40))
            break;
    }
    return value;
}

static void skip(struct cursor *cursor, size_t bytes)
{
    size_t left = (size_t)(cursor->end - cursor->at);
    cursor->at += bytes < left ? bytes : left;
}

enum { LOCATION_ONE_LINE_0 = 10, LOCATION_NO_COLUMNS = 13, LOCATION_LONG = 14, LOCATION_NONE = 15 };

/*
 * Entries of one or more bytes; only the first has bit 7 set:
 *
 *   1 kkkk nnn   kind k, covers n + 1 instruction units of 2 bytes
 *   k  0- 9      same line, 1 byte of columns
 *   k 10-12      k - 10 lines further, 2 bytes of columns
 *   k 13         signed varint of lines
 *   k 14         signed varint of lines, then three varints (end line, columns)
 *   k 15         no line
 */
static void decode_location(struct linetable *lines, const uint8_t *table, size_t table_bytes)
{
    struct cursor cursor = {table, table + table_bytes};
    int64_t end = 0;
    /* The sum may wrap on garbage: unsigned, judged when it is used. */
    uint64_t line = (uint64_t)(int64_t)lines->first_line;
    while (cursor.at < cursor.end) {
        unsigned head = *cursor.at++;
        unsigned kind = head >> 3 & 15;
        end += ((head & 7) + 1) * 2;
        if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG) {
            uint64_t step = read_varint(&cursor);
            line += step & 1 ? -(step >> 1) : step >> 1;
            if (kind == LOCATION_LONG)
                for (int i = 0; i < 3; i++)
                    read_varint(&cursor);
        } else if (kind < LOCATION_ONE_LINE_0) {
            skip(&cursor, 1);
        } else if (kind != LOCATION_NONE) {
            line += kind - LOCATION_ONE_LINE_0;
            skip(&cursor, 2);
        }
        add_range(lines, end, kind == LOCATION_NONE ? -1 : line_or_none((int64_t)line));
    }
}

void linetable_decode(struct linetable *lines, enum wire_line_format format, const uint8_t *table,
                      size_t table_bytes, int first_line)
{
    *lines = (struct linetable){.first_line = first_line};
    if (table && format == WIRE_LINES_LNOTAB)
        decode_lnotab(lines, table, table_bytes);
    else if (table && format == WIRE_LINES_PEP626)
        decode_pep626(lines, table, table_bytes);
    else if (table && format == WIRE_LINES_LOCATION)
        decode_location(lines, table, table_bytes);
    else
        lines->is_missing = true;
}

void linetable_release(struct linetable *lines)
{
    free(lines->ranges);
    *lines = (struct linetable){0};
}

int linetable_line(const struct linetable *lines, int at)
{
    if (at < 0 || lines->is_missing)
        return lines->first_line;
    size_t first = 0, end = lines->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (lines->ranges[middle].end <= at)
            first = middle + 1;
        else
            end = middle;
    }
    return first < lines->count ? lines->ranges[first].line : -1;
}
