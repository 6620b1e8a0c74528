/* What merge.c, merge_files.c and merge_memory.c share.  Nobody else includes this. */
#ifndef PROFILE_MERGE_PARTS_H
#define PROFILE_MERGE_PARTS_H

#include "profile/merge.h"

struct merge {
    struct profile *out;
    const struct profile **runs; /* the ones that are not empty, by start */
    size_t count;
    double base_absolute_sec, base_perf_sec; /* of the earliest run whose start is known */
    str_id *notes;
    size_t note_count, note_cap;
};

/* A text of a run in the merged profile. */
str_id merge_text(struct merge *merge, const struct profile *run, str_id id);
void merge_note(struct merge *merge, const char *text); /* once, however often it is added */

/* How long after the earliest run this one began; 0 if unknown. */
double merge_offset_sec(const struct merge *merge, const struct profile *run);

/* merge_memory.c. */
void merge_memory_add(struct merge *merge, const struct profile *run,
                      const struct profile_memory *from, struct profile_memory *into);
void merge_memory(struct merge *merge);

/* merge_files.c.  Needs out->time; adds to out->untraced. */
void merge_files(struct merge *merge);

#endif
