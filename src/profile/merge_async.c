/*
 * Event loops and tasks in a merged profile; merge.h says what becomes of which
 * figure.  Called by merge.c for the whole and by merge_files.c for each line and
 * function.
 */
#include "profile/merge_parts.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b, void *context)
{
    const struct profile *profile = context;
    return strcmp(profile_str(profile, *(const str_id *)a),
                  profile_str(profile, *(const str_id *)b));
}

static void add_names(struct merge *merge, const struct profile *run,
                      const struct profile_async *from, struct profile_async *into)
{
    if (!from->name_count)
        return;
    if (!into->names)
        into->names = pool_alloc(&merge->out->pool, PROFILE_TASK_NAMES_MAX * sizeof *into->names);
    for (uint32_t i = 0; i < from->name_count && into->name_count < PROFILE_TASK_NAMES_MAX; i++) {
        str_id name = merge_text(merge, run, from->names[i]);
        uint32_t at = 0;
        while (at < into->name_count && into->names[at] != name)
            at++;
        if (at == into->name_count)
            into->names[into->name_count++] = name;
    }
    qsort_r(into->names, into->name_count, sizeof *into->names, by_text, merge->out);
}

void merge_async_add(struct merge *merge, const struct profile *run,
                     const struct profile_async *from, struct profile_async *into)
{
    profile_async_add(into, from);
    add_names(merge, run, from, into);
}

/* ---- the whole ---- */

static void add_run(struct merge *merge, const struct profile *run)
{
    struct profile_loops *into = &merge->out->loops;
    const struct profile_loops *from = &run->loops;
    into->count += from->count;
    into->looks += from->looks;
    into->busy_sec += from->busy_sec;
    into->idle_sec += from->idle_sec;
    into->blocked_sec += from->blocked_sec;
    into->await_sec += from->await_sec;
    into->join_sec += from->join_sec;
    into->ready_sec += from->ready_sec;
    into->untraced_await_sec += from->untraced_await_sec;
    if (from->longest_sec > into->longest_sec) {
        into->longest_sec = from->longest_sec;
        into->longest_file = merge_text(merge, run, from->longest_file);
        into->longest_line = from->longest_line;
        merge->blocked_run = run;
    }
    if (from->tasks_peak > into->tasks_peak)
        into->tasks_peak = from->tasks_peak;
}

/* How many tasks there were over time, of the run that had most. */
static void add_crowd(struct merge *merge)
{
    struct profile_loops *into = &merge->out->loops;
    const struct profile *most = NULL;
    for (size_t i = 0; i < merge->count; i++)
        if (merge->runs[i]->loops.crowd_count &&
            (!most || merge->runs[i]->loops.tasks_peak > most->loops.tasks_peak))
            most = merge->runs[i];
    if (!most)
        return;
    into->crowd_count = most->loops.crowd_count;
    into->crowd = pool_alloc(&merge->out->pool, into->crowd_count * sizeof *into->crowd);
    for (uint32_t i = 0; i < into->crowd_count; i++) {
        into->crowd[i] = most->loops.crowd[i];
        into->crowd[i].at_sec += merge_offset_sec(merge, most);
    }
}

void merge_async(struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++)
        add_run(merge, merge->runs[i]);
    add_crowd(merge);
}
