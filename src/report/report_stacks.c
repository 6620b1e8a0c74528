/*
 * The part of a report that is about stacks and time's course: the merged tree's
 * leaves become the profile's stacks, the arenas' logs its timeline and the
 * lines' time stamps.
 */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t in_intervals(const struct profile *profile, double sec)
{
    double n = profile->interval_sec > 0 ? round(sec / profile->interval_sec) : 1;
    return n < 1 ? 1 : n > 1e15 ? (uint64_t)1e15 : (uint64_t)n;
}

/* ---- stacks ---- */

struct candidate {
    double sec;
    uint32_t depth;
};

static int by_falling_time(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->sec < y->sec) - (x->sec > y->sec);
}

/* The time a stack must have to be among the longest: there are PROFILE_STACKS_MAX of them at most,
 * with PROFILE_FRAMES_MAX frames. */
static double least_time(const struct charge *charge)
{
    size_t count = charge->order_count, taken = 0, frames = 0;
    struct candidate *candidates = mem_alloc((count + 1) * sizeof *candidates);
    for (size_t i = 0; i < count; i++) {
        const struct charge_node *node = &charge->nodes[charge->order[i]];
        candidates[i] = (struct candidate){profile_time_sum(&node->time), node->depth};
    }
    if (count)
        qsort(candidates, count, sizeof *candidates, by_falling_time);
    while (taken < count && taken < PROFILE_STACKS_MAX &&
           frames + candidates[taken].depth <= PROFILE_FRAMES_MAX)
        frames += candidates[taken++].depth;
    double least = taken < count && taken ? candidates[taken - 1].sec : 0;
    free(candidates);
    return least;
}

void report_frames(const struct charge *charge, uint32_t node_id, struct profile_frame *frames)
{
    const struct charge_node *node = &charge->nodes[node_id];
    for (uint32_t at = node->depth; at--; node = &charge->nodes[node->parent]) {
        const struct charge_frame *frame = &charge->frames[node->frame];
        const struct charge_code *code = &charge->codes[frame->code];
        const struct charge_file *file = &charge->files[code->file];
        frames[at] = (struct profile_frame){
            .name = code->name, .file = file->name, .line = frame->line, .traced = file->traced};
    }
}

/* Fills profile->stacks; the answer gives, for each node, its stack + 1 (caller frees). */
static uint32_t *add_stacks(struct report *report)
{
    struct profile *profile = report->profile;
    const struct charge *charge = &report->charge;
    uint32_t *stack_of = mem_zalloc(charge->node_count, sizeof *stack_of);
    double least = least_time(charge);
    uint64_t left_out = 0, frames = 0;
    size_t room =
        charge->order_count < PROFILE_STACKS_MAX ? charge->order_count : PROFILE_STACKS_MAX;
    profile->stacks = pool_alloc(&profile->pool, room * sizeof *profile->stacks);
    for (size_t i = 0; i < charge->order_count; i++) {
        uint32_t id = charge->order[i];
        const struct charge_node *node = &charge->nodes[id];
        double sec = profile_time_sum(&node->time);
        if (!node->depth)
            continue;
        if (sec < least || profile->stack_count == room ||
            frames + node->depth > PROFILE_FRAMES_MAX) { /* as long as the least, but too many */
            left_out++;
            continue;
        }
        frames += node->depth;
        struct profile_stack *stack = &profile->stacks[profile->stack_count++];
        stack_of[id] = profile->stack_count;
        stack->frames = pool_alloc(&profile->pool, node->depth * sizeof *stack->frames);
        stack->frame_count = node->depth;
        report_frames(charge, id, stack->frames);
        stack->time = node->time;
        stack->hits = in_intervals(profile, sec);
    }
    report_loss(report, "stacks_left_out",
                "stacks left out of the stack views, the least of too many (totals are right)",
                left_out);
    return stack_of;
}

/* ---- timeline ---- */

enum { RUNS_HELD_MAX = 2 * PROFILE_RUNS_MAX };

static int by_start(const void *a, const void *b)
{
    const struct report_run *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->ident > y->ident) - (x->ident < y->ident);
}

/* Runs are left out by chance and not by turns: the choice is as fair to a process that comes late
 * as to those whose runs were thinned already. */
static bool is_chosen(const struct report_run *run, unsigned halvings)
{
    return !(hash_mix(run->at_ns, run->ident) & ((UINT64_C(1) << halvings) - 1));
}

/* Neighbours with the same stack and thread are one run, as long as none was left out. */
static void join_neighbours(struct report *report)
{
    if (!report->run_count)
        return;
    qsort(report->runs, report->run_count, sizeof *report->runs, by_start);
    if (report->run_halvings)
        return;
    size_t kept = 1;
    for (size_t i = 1; i < report->run_count; i++) {
        struct report_run *last = &report->runs[kept - 1], *run = &report->runs[i];
        if (run->node == last->node && run->ident == last->ident)
            last->us += run->us;
        else
            report->runs[kept++] = *run;
    }
    report->run_count = kept;
}

static void thin_runs(struct report *report)
{
    join_neighbours(report);
    while (report->run_count > RUNS_HELD_MAX / 4 * 3 && report->run_halvings < 63) {
        size_t kept = 0;
        report->run_halvings++;
        for (size_t i = 0; i < report->run_count; i++)
            if (is_chosen(&report->runs[i], report->run_halvings))
                report->runs[kept++] = report->runs[i];
        report->run_count = kept;
    }
}

/* One pass over a log gives both: stamps to the lines, and runs if stacks are kept. */
void report_stacks_add(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, const uint64_t *ident_of)
{
    for (uint32_t i = 1; i < recording_count(recording, WIRE_LOG); i++) {
        struct recording_run run;
        if (!recording_run(recording, i, &run) || !run.us || !run.count)
            continue;
        uint32_t node = node_of[run.node];
        uint64_t at_ns = recording->header.start_mono_ns + run.at_ns;
        charge_stamp(&report->charge, node, (double)at_ns / 1e9,
                     (double)run.us / 1e6 / (double)run.count, run.count);
        struct report_run made = {
            .at_ns = at_ns, .ident = ident_of[run.thread], .node = node, .us = run.us};
        if (!report->config->stacks || node < CHARGE_FIRST_NODE ||
            !is_chosen(&made, report->run_halvings))
            continue;
        VEC_PUSH(report->runs, report->run_count, report->run_cap) = made;
        if (report->run_count == RUNS_HELD_MAX)
            thin_runs(report);
    }
}

/* Only runs of stacks that are shown. */
static void drop_runs_without_stack(struct report *report, const uint32_t *stack_of)
{
    size_t kept = 0;
    for (size_t i = 0; i < report->run_count; i++)
        if (stack_of[report->runs[i].node])
            report->runs[kept++] = report->runs[i];
    report->run_count = kept;
}

/* What is beyond the cap is thinned evenly. */
static void add_runs(struct report *report, const uint32_t *stack_of)
{
    struct profile *profile = report->profile;
    struct map idents = {0};
    for (uint32_t i = 0; i < profile->thread_count; i++)
        map_put(&idents, profile->threads[i].ident, NULL);
    drop_runs_without_stack(report, stack_of);
    join_neighbours(report);
    size_t kept = report->run_count, count = kept < PROFILE_RUNS_MAX ? kept : PROFILE_RUNS_MAX;
    profile->runs = pool_alloc(&profile->pool, count * sizeof *profile->runs);
    profile->run_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const struct report_run *run = &report->runs[i * kept / count];
        profile->runs[i] = (struct profile_run){
            .at_sec = (double)(run->at_ns - report->runs[0].at_ns) / 1e9,
            .stack = stack_of[run->node] - 1,
            .count = in_intervals(profile, (double)run->us / 1e6),
            .thread_ident = map_get(&idents, run->ident) ? run->ident : 0,
        };
    }
    map_release(&idents);
}

void report_stacks_finish(struct report *report)
{
    if (!report->config->stacks)
        return;
    uint32_t *stack_of = add_stacks(report);
    add_runs(report, stack_of);
    free(stack_of);
}
