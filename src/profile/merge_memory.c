/*
 * Memory of a merged profile.  What was allocated, copied and left over adds up;
 * peaks are those of the run that had the highest, with its timeline: the runs
 * did not share their memory.
 */
#include "profile/merge_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct profile_point *copy_points(struct merge *merge, const struct profile_point *points,
                                         uint32_t count)
{
    struct profile_point *copy = pool_alloc(&merge->out->pool, count * sizeof *copy);
    if (count)
        memcpy(copy, points, count * sizeof *copy);
    return copy;
}

static double mean(double a, uint64_t weight_a, double b, uint64_t weight_b)
{
    if (!weight_a || !weight_b)
        return weight_b ? b : a;
    return (a * (double)weight_a + b * (double)weight_b) / (double)(weight_a + weight_b);
}

void merge_memory_add(struct merge *merge, const struct profile *run,
                      const struct profile_memory *from, struct profile_memory *into)
{
    into->average_mb = mean(into->average_mb, into->samples, from->average_mb, from->samples);
    into->allocated_mb += from->allocated_mb;
    into->python_mb += from->python_mb;
    into->live_mb += from->live_mb;
    into->copied_mb += from->copied_mb;
    into->count += from->count;
    into->samples += from->samples;
    if (from->library && from->library_mb >= into->library_mb) {
        into->library = merge_text(merge, run, from->library);
        into->library_mb = from->library_mb;
    }
    if (from->leak.likelihood > into->leak.likelihood)
        into->leak = from->leak;
    if (from->peak_mb < into->peak_mb || (into->point_count && !from->point_count))
        return;
    into->peak_mb = from->peak_mb;
    into->at_peak_mb = from->at_peak_mb;
    into->points = copy_points(merge, from->points, from->point_count);
    into->own = from->own ? copy_points(merge, from->own, from->point_count) : into->points;
    into->point_count = from->point_count;
}

static int by_falling_mb(const void *a, const void *b)
{
    const struct profile_memory_stack *x = a, *y = b;
    return (x->mb < y->mb) - (x->mb > y->mb);
}

static void add_stacks(struct merge *merge)
{
    struct profile *out = merge->out;
    size_t most = 0;
    for (size_t i = 0; i < merge->count; i++)
        most += merge->runs[i]->memory_stack_count;
    out->memory_stacks = pool_alloc(&out->pool, most * sizeof *out->memory_stacks);
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        for (uint32_t k = 0; k < run->memory_stack_count; k++) {
            const struct profile_memory_stack *from = &run->memory_stacks[k];
            struct profile_memory_stack *stack = &out->memory_stacks[out->memory_stack_count++];
            *stack = *from;
            stack->frames = pool_alloc(&out->pool, from->frame_count * sizeof *stack->frames);
            for (uint32_t n = 0; n < from->frame_count; n++) {
                stack->frames[n] = from->frames[n];
                stack->frames[n].name = merge_text(merge, run, from->frames[n].name);
                stack->frames[n].file = merge_text(merge, run, from->frames[n].file);
            }
        }
    }
    if (out->memory_stack_count)
        qsort(out->memory_stacks, out->memory_stack_count, sizeof *out->memory_stacks,
              by_falling_mb);
    if (out->memory_stack_count > PROFILE_MEMORY_STACKS_MAX)
        out->memory_stack_count = PROFILE_MEMORY_STACKS_MAX;
}

void merge_memory(struct merge *merge)
{
    struct profile *out = merge->out;
    const struct profile *highest = NULL;
    unsigned measured = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        merge_memory_add(merge, run, &run->all_memory, &out->all_memory);
        merge_memory_add(merge, run, &run->untraced_memory, &out->untraced_memory);
        out->native_threads_mb += run->native_threads_mb;
        out->memory_interval_mb = fmax(out->memory_interval_mb, run->memory_interval_mb);
        measured += run->memory;
        if (!highest || run->all_memory.peak_mb > highest->all_memory.peak_mb)
            highest = run;
    }
    if (!measured)
        return;
    out->peak_python_fraction = highest->peak_python_fraction;
    out->peak_file = highest->peak_file ? merge_text(merge, highest, highest->peak_file) : 0;
    out->peak_line = highest->peak_line;
    const struct profile_memory *all = &out->all_memory;
    if (measured == 1)
        out->growth_percent = highest->growth_percent;
    else
        out->growth_percent = all->allocated_mb > 0 ? 100 * all->live_mb / all->allocated_mb : 0;
    add_stacks(merge);
}
