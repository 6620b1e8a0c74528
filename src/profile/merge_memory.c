/*
 * Memory in a merged profile; merge.h says what becomes of which figure.  Called
 * by merge.c for the whole and by merge_files.c for each line and function.
 *
 * Runs are not added up over time: they need not have run together.  What belongs
 * to a moment is therefore taken from one run, the one with the highest footprint.
 */
#include "profile/merge_parts.h"

#include <math.h>
#include <stdlib.h>

/* ---- one figure ---- */

static struct profile_point *later_points(struct merge *merge, const struct profile_point *points,
                                          uint32_t count, double offset_sec)
{
    struct profile_point *out = pool_alloc(&merge->out->pool, count * sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (struct profile_point){points[i].at_sec + offset_sec, points[i].mb};
    return out;
}

static void take_course(struct merge *merge, const struct profile_memory *from,
                        struct profile_memory *into)
{
    double offset_sec = merge_offset_sec(merge, merge->peak_run);
    into->at_peak_mb += from->at_peak_mb;
    if (into->points || !from->point_count)
        return;
    into->point_count = from->point_count;
    into->points = later_points(merge, from->points, from->point_count, offset_sec);
    into->own =
        later_points(merge, from->own ? from->own : from->points, from->point_count, offset_sec);
}

void merge_memory_add(struct merge *merge, const struct profile *run,
                      const struct profile_memory *from, struct profile_memory *into)
{
    double both_mb = into->allocated_mb + from->allocated_mb;
    if (into->allocated_mb > 0 && both_mb > 0)
        into->average_mb =
            (into->average_mb * into->allocated_mb + from->average_mb * from->allocated_mb) /
            both_mb;
    else if (into->average_mb < from->average_mb)
        into->average_mb = from->average_mb;
    into->allocated_mb = both_mb;
    into->total_mb += from->total_mb;
    into->total_count += from->total_count;
    into->half_width_mb.allocated =
        hypot(into->half_width_mb.allocated, from->half_width_mb.allocated);
    into->half_width_mb.live = hypot(into->half_width_mb.live, from->half_width_mb.live);
    into->half_width_mb.copied = hypot(into->half_width_mb.copied, from->half_width_mb.copied);
    into->python_mb += from->python_mb;
    into->live_mb += from->live_mb;
    into->copied_mb += from->copied_mb;
    into->count += from->count;
    into->samples += from->samples;
    if (into->peak_mb < from->peak_mb) {
        into->peak_mb = from->peak_mb;
        into->half_width_mb.peak = from->half_width_mb.peak;
    }
    if (into->leak.likelihood < from->leak.likelihood)
        into->leak = from->leak;
    double native_mb = from->allocated_mb - from->python_mb; /* the file does not say how much */
    if (from->library && (!into->library || native_mb > into->library_mb)) {
        into->library = merge_text(merge, run, from->library);
        into->library_mb = native_mb;
    }
    if (run == merge->peak_run)
        take_course(merge, from, into);
}

/* ---- stacks ---- */

struct stacks {
    struct profile_memory_stack *items;
    size_t count, cap;
    struct map index, found; /* see merge_frames; its row -> place in `items` + 1 */
};

static int by_falling_mb(const void *a, const void *b)
{
    const struct profile_memory_stack *x = a, *y = b;
    return (x->mb < y->mb) - (x->mb > y->mb);
}

static void add_stacks(struct merge *merge)
{
    struct profile *out = merge->out;
    struct stacks stacks = {0};
    for (size_t i = 0; i < merge->count; i++)
        for (uint32_t k = 0; k < merge->runs[i]->memory_stack_count; k++) {
            const struct profile_memory_stack *stack = &merge->runs[i]->memory_stacks[k];
            uint64_t row;
            struct profile_frame *frames = merge_frames(merge, merge->runs[i], stack->frames,
                                                        stack->frame_count, &stacks.index, &row);
            uint64_t *at = map_put(&stacks.found, row, NULL);
            if (!*at) {
                VEC_PUSH(stacks.items, stacks.count, stacks.cap) = (struct profile_memory_stack){
                    .frames = frames, .frame_count = stack->frame_count};
                *at = stacks.count;
            }
            stacks.items[*at - 1].mb += stack->mb;
        }
    if (stacks.count)
        qsort(stacks.items, stacks.count, sizeof *stacks.items, by_falling_mb);
    size_t count =
        stacks.count < PROFILE_MEMORY_STACKS_MAX ? stacks.count : PROFILE_MEMORY_STACKS_MAX;
    out->memory_stacks = pool_alloc(&out->pool, count * sizeof *out->memory_stacks);
    out->memory_stack_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        out->memory_stacks[i] = stacks.items[i];
    map_release(&stacks.index);
    map_release(&stacks.found);
    free(stacks.items);
}

/* ---- the whole ---- */

static const struct profile *find_peak_run(const struct merge *merge)
{
    const struct profile *found = NULL;
    for (size_t i = 0; i < merge->count; i++)
        if (merge->runs[i]->memory &&
            (!found || merge->runs[i]->all_memory.peak_mb > found->all_memory.peak_mb))
            found = merge->runs[i];
    return found;
}

void merge_memory(struct merge *merge)
{
    struct profile *out = merge->out;
    const struct profile *peak_run = merge->peak_run = find_peak_run(merge);
    if (!peak_run)
        return;
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        merge_memory_add(merge, run, &run->all_memory, &out->all_memory);
        merge_memory_add(merge, run, &run->untraced_memory, &out->untraced_memory);
        out->native_threads_mb += run->native_threads_mb;
        if (out->memory_interval_mb < run->memory_interval_mb)
            out->memory_interval_mb = run->memory_interval_mb;
    }
    out->peak_python_fraction = peak_run->peak_python_fraction;
    out->peak_file = merge_text(merge, peak_run, peak_run->peak_file);
    out->peak_line = peak_run->peak_line;
    /* The original's profiles tell their growth but not all that it is made of. */
    out->growth_percent = peak_run->growth_percent;
    if (merge->count > 1 && out->all_memory.live_mb > 0 && out->all_memory.allocated_mb > 0)
        out->growth_percent = 100 * out->all_memory.live_mb / out->all_memory.allocated_mb;
    add_stacks(merge);
}
