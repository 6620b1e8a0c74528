/*
 * What recording.c asks of a file before anybody else sees it.  The file may be
 * anything: whatever the rest of src/report divides by, counts up to, allocates
 * for or follows is checked here, once, against wire/limits.h, so that nothing
 * there needs to.  Nobody but recording.c calls these.
 *
 * What holds afterwards:
 *   - sections lie apart, have records of the right size and no more than an
 *     honest file;
 *   - clocks do not run backwards, and no sum or difference of two moments
 *     overflows; no time is longer than so many threads, or tasks, could have
 *     spent;
 *   - a node's parent has a smaller id than the node (the agent makes it first),
 *     and no stack is deeper than WIRE_DEPTH_MAX;
 *   - texts lie in the blob, are no longer than the agent writes them, and all
 *     together no larger than the blob;
 *   - nodes, threads, modules and sites that records refer to are there; 0 else.
 *     Places and names of tasks that refer to nothing are left out.
 */
#ifndef REPORT_RECORDING_CHECK_H
#define REPORT_RECORDING_CHECK_H

#include "report/recording.h"

/* Of the header as it was read: -1 and the reason if this is no honest one. */
int recording_check_header(const struct wire_header *header, struct err *err);

/* Of all records, when every section is there.  One that makes no sense is emptied and counted in
 * `bad_count`; -1 if the whole cannot be trusted. */
int recording_check_records(struct recording *recording, struct err *err);

#endif
