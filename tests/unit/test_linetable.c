/* The line-table decoders: known tables, and bytes that are no table at all. */
#include "base/map.h"
#include "report/linetable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int line_at(enum wire_line_format format, const uint8_t *table, size_t table_bytes,
                   int first_line, int at)
{
    struct linetable lines;
    linetable_decode(&lines, format, table, table_bytes, first_line);
    int line = linetable_line(&lines, at);
    linetable_release(&lines);
    return line;
}

static void lnotab_takes_effect_from_its_offset(void **state)
{
    static const uint8_t table[] = {0, 1, 4, 2, 6, 0xFF};
    const int expected[] = {11, 11, 13, 13, 13, 12, 12};
    for (int i = 0; i < 7; i++)
        assert_int_equal(line_at(WIRE_LINES_LNOTAB, table, sizeof table, 10, 2 * i), expected[i]);
    assert_int_equal(line_at(WIRE_LINES_LNOTAB, table, sizeof table, 10, -1), 10);
    assert_int_equal(line_at(WIRE_LINES_LNOTAB, NULL, 0, 10, 4), 10);
}

static void pep626_knows_ranges_without_a_line(void **state)
{
    static const uint8_t table[] = {4, 1, 2, 0x80, 2, 3};
    const int expected[] = {11, 11, -1, 14, -1};
    for (int i = 0; i < 5; i++)
        assert_int_equal(line_at(WIRE_LINES_PEP626, table, sizeof table, 10, 2 * i), expected[i]);
}

static void locations_of_every_kind(void **state)
{
    static const uint8_t table[] = {
        0x80 | 13 << 3 | 0, 0x09,                                /* 4 lines back, 1 unit */
        0x80 | 0 << 3 | 1,  0x00,                                /* same line, 2 units */
        0x80 | 12 << 3 | 0, 0x01,        0x02,                   /* 2 further */
        0x80 | 15 << 3 | 0,                                      /* no line */
        0x80 | 14 << 3 | 0, 0x40 | 0x08, 0x02, 0x00, 0x00, 0x00, /* 68 further */
    };
    const int expected[] = {6, 6, 6, 8, -1, 76, -1};
    for (int i = 0; i < 7; i++)
        assert_int_equal(line_at(WIRE_LINES_LOCATION, table, sizeof table, 10, 2 * i), expected[i]);
}

/* Heap blocks of the exact size, so that a sanitizer sees the first byte beyond. */
static void garbage_stays_in_bounds(void **state)
{
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t length = hash_mix(++seed, 7) % 64;
        uint8_t *table = malloc(length ? length : 1);
        assert_non_null(table);
        for (size_t i = 0; i < length; i++)
            table[i] = (uint8_t)hash_mix(++seed, 7);
        int first_line = (int)(uint32_t)hash_mix(++seed, 7);
        for (int format = WIRE_LINES_NONE; format <= WIRE_LINES_LOCATION; format++) {
            struct linetable lines;
            linetable_decode(&lines, (enum wire_line_format)format, table, length, first_line);
            for (int at = -2; at < 300; at += 7) {
                int line = linetable_line(&lines, at);
                assert_true(line >= -1 || line == first_line);
            }
            linetable_release(&lines);
        }
        free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lnotab_takes_effect_from_its_offset),
        cmocka_unit_test(pep626_knows_ranges_without_a_line),
        cmocka_unit_test(locations_of_every_kind),
        cmocka_unit_test(garbage_stays_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
