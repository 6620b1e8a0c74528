/*
 * What no arena goes beyond.  The agent plans its sections and cuts its texts by
 * these numbers; who reads a file believes no larger ones, so that a damaged or
 * hostile file costs what an honest one may and no more.  One list for both: they
 * cannot come to differ.
 */
#ifndef WIRE_LIMITS_H
#define WIRE_LIMITS_H

#include "wire/arena.h"

/* Records of each section, the unused one with id 0 included. */
enum {
    WIRE_BLOB_MAX = 8 << 20,
    WIRE_CODES_MAX = 16384,
    WIRE_NODES_MAX = 131072,
    WIRE_CELLS_MAX = 65536,
    WIRE_LOGS_MAX = 131072,
    WIRE_THREADS_MAX = 1024,
    WIRE_AWAITS_MAX = 16384,
    WIRE_PLACES_MAX = 4096,
    WIRE_NAMES_MAX = 16384,
    WIRE_CROWDS_MAX = 4096,
    WIRE_MODULES_MAX = 1024,
    WIRE_SITES_MAX = 65536,
    WIRE_BLOCKS_MAX = 131072,
    WIRE_FEET_MAX = 65536,
};

static const struct wire_limit {
    uint32_t record_bytes, records_max;
} wire_limits[WIRE_SECTIONS] = {
    [WIRE_BLOB] = {1, WIRE_BLOB_MAX},
    [WIRE_CODE] = {sizeof(struct wire_code), WIRE_CODES_MAX},
    [WIRE_NODE] = {sizeof(struct wire_node), WIRE_NODES_MAX},
    [WIRE_CELL] = {sizeof(struct wire_cell), WIRE_CELLS_MAX},
    [WIRE_LOG] = {sizeof(struct wire_log), WIRE_LOGS_MAX},
    [WIRE_THREAD] = {sizeof(struct wire_thread), WIRE_THREADS_MAX},
    [WIRE_AWAIT] = {sizeof(struct wire_await), WIRE_AWAITS_MAX},
    [WIRE_PLACE] = {sizeof(struct wire_place), WIRE_PLACES_MAX},
    [WIRE_NAME] = {sizeof(struct wire_name), WIRE_NAMES_MAX},
    [WIRE_CROWD] = {sizeof(struct wire_crowd), WIRE_CROWDS_MAX},
    [WIRE_MODULE] = {sizeof(struct wire_module), WIRE_MODULES_MAX},
    [WIRE_SITE] = {sizeof(struct wire_site), WIRE_SITES_MAX},
    [WIRE_BLOCK] = {sizeof(struct wire_block), WIRE_BLOCKS_MAX},
    [WIRE_FOOT] = {sizeof(struct wire_foot), WIRE_FEET_MAX},
};

/* Texts and stacks. */
enum {
    WIRE_FILE_BYTES_MAX = 4096,
    WIRE_NAME_BYTES_MAX = 1024,
    WIRE_PATH_BYTES_MAX = 1024, /* of a library */
    WIRE_LINE_TABLE_BYTES_MAX = 256 << 10,
    WIRE_FRAMES_MAX = 512,                      /* of one stack */
    WIRE_DEPTH_MAX = 2 * (WIRE_FRAMES_MAX + 2), /* with the nodes that say it was cut, or another's;
                                                   twice: below the line it works for */
    WIRE_NAMES_OF_PLACE_MAX = 100,
    WIRE_TASK_NAME_BYTES_MAX = 256,
    WIRE_CALLER_SLACK_MAX = UINT8_MAX, /* the agent keeps it in a byte */
    WIRE_SECTION_END_MAX = 1 << 30,    /* of the file: 34 MB are planned */
};

/*
 * Numbers.  Each is far beyond what a run of months can reach, and so small that
 * the sums and differences that readers make of them cannot overflow.
 */
#define WIRE_MOMENT_NS_MAX (UINT64_C(1) << 61) /* a clock, or a time since the start: 73 years */
#define WIRE_BYTES_MAX     (UINT64_C(1) << 62)
#define WIRE_COUNT_MAX     (UINT64_C(1) << 48)
#define WIRE_CPU_MS_MAX    (UINT64_C(1) << 48) /* 8900 years of processor time */
#define WIRE_STRIDE_MAX    (UINT64_C(1) << 31)
#define WIRE_SQUARE_MAX    1e40 /* of wire_cell.square_us2, and of a site's squares in bytes^2 */

/* All time of a process is the time since its start, in so many threads at most; waits count in
 * each of them. */
enum { WIRE_THREADS_AT_ONCE_MAX = 1 << 16, WIRE_TASKS_AT_ONCE_MAX = 1 << 28 };

#endif
