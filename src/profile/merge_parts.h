/* What merge.c, merge_async.c, merge_files.c and merge_memory.c share.  Nobody else includes this.
 */
#ifndef PROFILE_MERGE_PARTS_H
#define PROFILE_MERGE_PARTS_H

#include "base/map.h"
#include "profile/merge.h"

struct merge {
    struct profile *out;
    const struct profile **runs; /* the ones that are not empty, by start */
    size_t count;
    double base_absolute_sec, base_perf_sec; /* of the earliest run whose start is known */
    const struct profile
        *blocked_run;               /* the one whose event loop was blocked longest at a stretch */
    const struct profile *peak_run; /* the one with the highest footprint; NULL: none has any */
    str_id *notes;
    size_t note_count, note_cap;
};

/* A text of a run in the merged profile. */
str_id merge_text(struct merge *merge, const struct profile *run, str_id id);
void merge_note(struct merge *merge, const char *text); /* once, however often it is added */

/* How long after the earliest run this one began; 0 if unknown. */
double merge_offset_sec(const struct merge *merge, const struct profile *run);

/* Frames of a run in the merged profile.  `row` is their number: equal rows of frames have the same
 * one, as long as the same `index` (empty at first) is used. */
struct profile_frame *merge_frames(struct merge *merge, const struct profile *run,
                                   const struct profile_frame *from, uint32_t count,
                                   struct map *index, uint64_t *row);

/* merge_memory.c: of the whole, before merge_files; and of a line, function or file. */
void merge_memory(struct merge *merge);
void merge_memory_add(struct merge *merge, const struct profile *run,
                      const struct profile_memory *from, struct profile_memory *into);

/* merge_async.c: likewise. */
void merge_async(struct merge *merge);
void merge_async_add(struct merge *merge, const struct profile *run,
                     const struct profile_async *from, struct profile_async *into);

/* merge_files.c.  Needs out->time; adds to out->untraced, out->untraced_memory
 * and out->loops.untraced_await_sec. */
void merge_files(struct merge *merge);

#endif
