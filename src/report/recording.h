/*
 * One arena file (wire/arena.h) as a checked snapshot.  report.c opens every
 * arena of a session with this, after the run or in the middle of it.
 *
 * The file is trusted for nothing: it may be cut off at any byte (disk full,
 * kill -9 of the machine), damaged, or still being written.  Everything is checked
 * when it is opened (recording_check.h says what holds then); a file that is no
 * honest one is refused, a single bad record left out.  What was accepted can be
 * asked for any id without a crash; what is not there is answered with NULL or
 * false.
 *
 * A snapshot, not a mapping: the writer may go on, and a record that was
 * checked must not change afterwards.  Sections are copied referrers first
 * (log, cells, tasks and memory, then nodes, then codes, then the blob), so that what a copied
 * record refers to was complete before its own section was copied.
 */
#ifndef REPORT_RECORDING_H
#define REPORT_RECORDING_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct recording_section {
    void *records;
    uint32_t count; /* whole records there; [0] is unused but for the blob, where it is a byte */
    uint64_t dropped;
};

struct recording {
    struct wire_header header;
    struct recording_section sections[WIRE_SECTIONS];
    bool is_cut;        /* the file ended before its records did */
    uint64_t bad_count; /* records left out because they made no sense */
};

/* The counters of a cell or log entry, read once. */
struct recording_cell {
    enum wire_kind kind;
    uint32_t node;
    uint64_t count, ns, charged_ns;
    double square_us2;
};

struct recording_await {
    enum wire_await_kind kind;
    uint32_t node;
    uint64_t count, us;
    double square_us2;
};

struct recording_run {
    enum wire_kind kind;
    uint32_t node, thread;
    uint64_t at_ns, count, us;
};

/* 0: opened.  1: a file whose process has not yet begun to write (nothing to release).
 * -1: not a recording, or a damaged one, with the reason in `err`. */
int recording_open(struct recording *recording, const char *path, struct err *err);
/* The same of the header alone. */
int recording_peek(struct wire_header *header, const char *path, struct err *err);
void recording_release(struct recording *recording); /* idempotent */

/* Ids run from 1 to recording_count - 1; some of them may be unpublished. */
uint32_t recording_count(const struct recording *recording, enum wire_section_id section);
const struct wire_code *recording_code(const struct recording *recording, uint32_t id);
const struct wire_node *recording_node(const struct recording *recording, uint32_t id);
const struct wire_thread *recording_thread(const struct recording *recording, uint32_t id);
bool recording_cell(const struct recording *recording, uint32_t id, struct recording_cell *out);
bool recording_run(const struct recording *recording, uint32_t id, struct recording_run *out);
bool recording_await(const struct recording *recording, uint32_t id, struct recording_await *out);

/* NULL when unpublished. */
const struct wire_place *recording_place(const struct recording *recording, uint32_t id);
const struct wire_name *recording_name(const struct recording *recording, uint32_t id);
const struct wire_crowd *recording_crowd(const struct recording *recording, uint32_t id);
const struct wire_module *recording_module(const struct recording *recording, uint32_t id);
const struct wire_site *recording_site(const struct recording *recording, uint32_t id);
const struct wire_block *recording_block(const struct recording *recording, uint32_t id);
const struct wire_foot *recording_foot(const struct recording *recording, uint32_t id);

/* The bytes of a span; NULL when it leaves the blob or is empty. */
const uint8_t *recording_bytes(const struct recording *recording, struct wire_span span);

/*
 * A Python string of `width` bytes a character, appended as UTF-8.  The
 * surrogates U+DC80..U+DCFF, which stand for undecodable bytes in file names,
 * become those bytes again, so that the name can be given to open(2).  NUL
 * characters become U+FFFD: names are C strings from here on.
 */
void recording_text(const struct recording *recording, struct wire_span span, unsigned width,
                    struct buf *out);

#endif
