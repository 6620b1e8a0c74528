/*
 * Python or native, where a sample alone does not tell: CPU time in a call that
 * went into the interpreter's own code (WIRE_CPU_CALL).  It is Python if it is the
 * price of calling a Python function or of making an instance of a Python class,
 * and native if a C function of the interpreter was at work (sorted, a dict's
 * method).  Judged by the call site: charge.c asks, for each recording.
 */
#ifndef REPORT_JUDGE_H
#define REPORT_JUDGE_H

#include "base/map.h"
#include "report/recording.h"

struct judge {
    const struct recording *recording;
    struct map sites; /* code and instruction -> position + 1 in `calls` */
    struct judge_call *calls;
    size_t call_count, call_cap;
};

/* The recording outlives it. */
void judge_init(struct judge *judge, const struct recording *recording);
/* Of a cell of kind WIRE_CPU_CALL: WIRE_CPU_PYTHON or WIRE_CPU_NATIVE. */
enum wire_kind judge_kind(const struct judge *judge, const struct recording_cell *cell);
void judge_release(struct judge *judge); /* idempotent */

#endif
