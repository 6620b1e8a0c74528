/*
 * One arena file (wire/arena.h) as a checked snapshot.  report.c opens every
 * arena of a session with this, after the run or in the middle of it.
 *
 * The file is trusted for nothing: it may be cut off at any byte (disk full,
 * kill -9 of the machine), damaged, or still being written.  What arena_open
 * accepts can be asked for any id without a crash; what does not hold together
 * is answered with NULL or false.
 *
 * A snapshot, not a mapping: the writer may go on, and a record that was
 * checked must not change afterwards.  Sections are copied referrers first
 * (log, cells and memory, then nodes, then codes, then the blob), so that what a copied
 * record refers to was complete before its own section was copied.
 */
#ifndef COLLECT_ARENA_READ_H
#define COLLECT_ARENA_READ_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct arena_section {
    void *records;
    uint32_t count; /* whole records there; [0] is unused but for the blob, where it is a byte */
    uint64_t dropped;
};

struct arena {
    struct wire_header header;
    struct arena_section sections[WIRE_SECTIONS];
    bool is_cut; /* the file ended before its records did */
};

/* The counters of a cell or log entry, read once. */
struct arena_cell {
    enum wire_kind kind;
    uint32_t node;
    uint64_t count, ns, charged_ns, square_us2;
};

struct arena_run {
    enum wire_kind kind;
    uint32_t node, thread;
    uint64_t at_ns, count, us;
};

/* 0: opened.  1: a file whose process has not yet begun to write (nothing to release).
 * -1: not an arena, with the reason in `err`. */
/* The same of the header alone. */
int arena_peek(struct wire_header *header, const char *path, struct err *err);
int arena_open(struct arena *arena, const char *path, struct err *err);
void arena_release(struct arena *arena); /* idempotent */

/* Ids run from 1 to arena_count - 1; some of them may be unpublished. */
uint32_t arena_count(const struct arena *arena, enum wire_section_id section);
const struct wire_code *arena_code(const struct arena *arena, uint32_t id);
const struct wire_node *arena_node(const struct arena *arena, uint32_t id);
const struct wire_thread *arena_thread(const struct arena *arena, uint32_t id);
bool arena_cell(const struct arena *arena, uint32_t id, struct arena_cell *out);
bool arena_run(const struct arena *arena, uint32_t id, struct arena_run *out);

/* NULL when unpublished, or when the site they refer to is. */
const struct wire_module *arena_module(const struct arena *arena, uint32_t id);
const struct wire_site *arena_site(const struct arena *arena, uint32_t id);
const struct wire_block *arena_block(const struct arena *arena, uint32_t id);
const struct wire_foot *arena_foot(const struct arena *arena, uint32_t id);

/* The bytes of a span; NULL when it leaves the blob or is empty. */
const uint8_t *arena_bytes(const struct arena *arena, struct wire_span span);

/*
 * A Python string of `width` bytes a character, appended as UTF-8.  The
 * surrogates U+DC80..U+DCFF, which stand for undecodable bytes in file names,
 * become those bytes again, so that the name can be given to open(2).  NUL
 * characters become U+FFFD: names are C strings from here on.
 */
void arena_text(const struct arena *arena, struct wire_span span, unsigned width, struct buf *out);

#endif
