/*
 * A profile in the parts that the page asks for, as compact JSON; the exact shape
 * of each is gui/src/format/parts.ts.  Served by src/serve, or put into one file by
 * html.h.  A part is made from the profile alone and appended to a buffer; making
 * one takes time and memory linear in what it shows.
 *
 * Text goes out as it is, never escaped for markup: the page shows it as text.
 */
#ifndef VIEW_PARTS_H
#define VIEW_PARTS_H

#include "base/buf.h"
#include "profile/profile.h"

struct parts {
    const struct profile *profile;
    uint64_t generation; /* which reading of the file it is; a page drops parts of another one */
    const char *path;    /* the file as it was named */
};

void parts_summary(const struct parts *parts, struct buf *out);
/* `id` is the place in profile->files, and must be below file_count. */
void parts_file(const struct parts *parts, uint32_t id, struct buf *out);
void parts_stacks(const struct parts *parts, struct buf *out);
void parts_memory_stacks(const struct parts *parts, struct buf *out);
void parts_timeline(const struct parts *parts, struct buf *out);
/* Lines that hold `text`; letters of ASCII match in either case. */
void parts_search(const struct parts *parts, const char *text, size_t length, struct buf *out);

bool parts_is_running(const struct profile *profile);

#endif
