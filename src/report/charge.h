/*
 * Charging: which line and function each stretch of time belongs to.  report.c
 * feeds it one recording after the other.  Their call trees are merged into one:
 * equal stacks become one node, be they of two processes or stored twice.  The
 * time of each cell is added to the innermost traced frame of its stack.
 *
 *   - CPU stays Python or native as the cell says, also when the charged frame
 *     is not the innermost one (library code called from a traced line).
 *   - Of a wait, the part that is charged (pass.c) is the line's system time; the
 *     whole goes to the line's waits by cause.  A server's wait for requests is
 *     nobody's time: `idle_sec`.
 *   - Of an installed program (`scalene run black`) its own package's frames count as traced
 *     where the stack has no other traced frame.
 *   - No traced frame: `untraced`.  Threads without Python code also count in
 *     `native_threads_sec`.
 *
 * A function is the charged frame's own; lambdas, comprehensions and generator
 * expressions belong to the named function around them, module code to none.
 * Functions are told apart by file, name and first line, so every function's
 * time is the sum of the time charged to frames of it.
 *
 * Ids (file, function, line, code, frame) are positions in the arrays below;
 * where 0 means "none", the id is the position + 1, as noted.
 */
#ifndef REPORT_CHARGE_H
#define REPORT_CHARGE_H

#include "profile/profile.h"
#include "report/filter.h"
#include "report/recording.h"
#include "report/sources.h"

/* Time stamps kept as a uniform random choice of those offered. */
struct charge_stamps {
    double *at_sec;
    uint32_t count, cap;
    uint64_t seen, next; /* how many were offered; the number of the next one to be taken */
    double threshold;
};

struct charge_file {
    str_id name;
    bool traced;
    bool is_tool;  /* traced where no other traced frame is on the stack: charge_settle_tool */
    bool reported; /* for report_files.c and what comes after it */
    struct profile_time time;
    struct profile_memory memory; /* here and below: filled by report_memory.c, */
    struct profile_async async;   /* and by report_async.c; `names` of both are their own */
};

/* Of tasks, PROFILE_TASK_NAMES_MAX at most. */
struct charge_names {
    str_id *items;
    uint32_t count, cap;
};

struct charge_line {
    uint32_t file, line;
    struct profile_time time;
    struct profile_memory memory;
    struct profile_async async;
    struct charge_names names;
    struct charge_stamps stamps;
};

struct charge_function {
    uint32_t file;
    str_id name;
    uint32_t first_line;
    struct profile_time time;
    struct profile_memory memory;
    struct profile_async async;
    struct charge_names names;
};

struct charge_code {
    uint32_t file;
    str_id name; /* qualified */
    uint32_t first_line;
    uint32_t function; /* + 1 */
};

struct charge_frame {
    uint32_t code, line;
};

enum { CHARGE_NO_STACK, CHARGE_NATIVE_THREAD, CHARGE_FIRST_NODE };

/* Thousands of processes may bring thousands of stacks each.  A tree with so many nodes grows only
 * by the traced frames themselves, each as a stack of its own: lines stay right, stacks get short.
 */
enum { CHARGE_NODES_MAX = 1 << 18 };

/* A frame below its caller, in the merged tree.  The first two have no frame. */
struct charge_node {
    uint32_t parent; /* CHARGE_NO_STACK: outermost */
    uint32_t frame;
    uint32_t depth;  /* frames from here to the root */
    uint32_t traced; /* the innermost traced node from here on outwards; CHARGE_NO_STACK: none */
    uint32_t line;   /* + 1: of a traced node, what it is charged to */
    struct profile_time time; /* of stacks that end here */
};

struct charge {
    struct intern *strings;
    const struct wire_filter *filter;
    struct sources *sources;
    struct map file_index, line_index, pair_index, function_index, code_index, frame_index,
        node_index;
    struct charge_file *files;
    size_t file_count, file_cap;
    struct charge_line *lines;
    size_t line_count, line_cap;
    struct charge_function *functions;
    size_t function_count, function_cap;
    struct charge_code *codes;
    size_t code_count, code_cap;
    struct charge_frame *frames;
    size_t frame_count, frame_cap;
    struct charge_node *nodes;
    size_t node_count, node_cap;
    uint32_t *order; /* nodes that got time, first seen first */
    size_t order_count, order_cap;
    struct profile_time total, untraced;
    double native_threads_sec, idle_sec;
    uint64_t cut_count; /* stacks that the full tree made shorter */
};

/* `strings`, `filter` and `sources` must outlive it. */
void charge_init(struct charge *charge, struct intern *strings, const struct wire_filter *filter,
                 struct sources *sources);
void charge_release(struct charge *charge); /* idempotent */

/* `to` is initialised and empty; its strings hold those of `from` under the same ids. */
void charge_copy(struct charge *to, const struct charge *from);

/* What something is charged to, each + 1; 0: not traced, or no function. */
struct charge_place {
    uint32_t line, function;
};
struct charge_place charge_place_of(const struct charge *charge, uint32_t node);

/* What the ids of one recording are here. */
struct charge_ids {
    uint32_t *node_of;             /* of a node: its node in the merged tree */
    struct charge_place *place_of; /* of a wire_place */
};
void charge_ids_release(struct charge_ids *ids);

/* Adds the time of all cells; returns their CPU time.  Nodes that anything in the recording refers
 * to are merged, and given in *ids. */
double charge_recording(struct charge *charge, const struct recording *recording,
                        struct charge_ids *ids);

/* When all is added: are the tool's own files the ones to look at?  If a file of the user's has
 * time, they are not traced any more; what was charged to them stays with their lines, and is
 * nobody's. */
bool charge_settle_tool(struct charge *charge);

/* Offer `count` stamps, `step_sec` apart, to the line a node is charged to. */
void charge_stamp(struct charge *charge, uint32_t node, double at_sec, double step_sec,
                  uint64_t count);

/* The file of a node that has a frame. */
const struct charge_file *charge_file_at(const struct charge *charge, uint32_t node);

/* Does the name stand for a piece of code without a name of its own: `<lambda>`,
 * `f.<locals>.<genexpr>`? */
bool charge_is_anonymous(const char *name);

#endif
