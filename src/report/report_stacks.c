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

/*
 * A stack is told to its last frame only if the frame and what it called took their
 * part of the time: a program of many functions has as many stacks as samples, each
 * with the same fifty frames on the outside.  What took less is told of the caller,
 * but no further out than the innermost traced frame, which has the line.
 */
struct fold {
    const struct charge *charge;
    double *sec;      /* of each node: with all that it called */
    uint32_t *end_of; /* of each node: where its stack ends */
    double least_sec; /* of a frame that is told */
};

static void fold_begin(struct fold *fold, const struct charge *charge)
{
    *fold = (struct fold){
        .charge = charge,
        .sec = mem_zalloc(charge->node_count, sizeof *fold->sec),
        .end_of = mem_zalloc(charge->node_count, sizeof *fold->end_of),
    };
    for (size_t i = charge->node_count; i-- > CHARGE_FIRST_NODE;) {
        fold->sec[i] += profile_time_sum(&charge->nodes[i].time);
        fold->sec[charge->nodes[i].parent] += fold->sec[i];
    }
}

static void fold_release(struct fold *fold)
{
    free(fold->sec);
    free(fold->end_of);
}

static bool is_few(size_t stacks, size_t frames)
{
    return stacks <= PROFILE_STACKS_MAX && frames <= PROFILE_FRAMES_MAX;
}

/* Callers come before callees: each end is known when it is asked for. */
static bool fold_by(struct fold *fold, double least_sec, bool keeps_traced)
{
    const struct charge *charge = fold->charge;
    fold->least_sec = least_sec;
    for (uint32_t id = CHARGE_FIRST_NODE; id < charge->node_count; id++) {
        const struct charge_node *node = &charge->nodes[id];
        bool is_told = fold->sec[id] >= least_sec || (keeps_traced && node->traced == id);
        fold->end_of[id] = is_told ? id : fold->end_of[node->parent];
    }
    size_t stacks = 0, frames = 0;
    bool *is_end = mem_zalloc(charge->node_count, sizeof *is_end);
    for (size_t i = 0; i < charge->order_count; i++) {
        uint32_t end = fold->end_of[charge->order[i]];
        if (end && !is_end[end]) {
            stacks++;
            frames += charge->nodes[end].depth;
        }
        is_end[end] = true;
    }
    free(is_end);
    return is_few(stacks, frames);
}

static void fold_stacks(struct fold *fold)
{
    enum { FINEST = 16 }; /* a 65536th of the time */
    double all_sec = profile_time_sum(&fold->charge->total);
    if (fold_by(fold, 0, true))
        return;
    for (int halvings = FINEST; halvings >= 0; halvings--)
        if (fold_by(fold, ldexp(all_sec, -halvings), true))
            return;
    for (int halvings = FINEST; halvings >= 0; halvings--)
        if (fold_by(fold, ldexp(all_sec, -halvings), false))
            return;
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
    struct fold fold;
    fold_begin(&fold, charge);
    fold_stacks(&fold);
    size_t room =
        charge->order_count < PROFILE_STACKS_MAX ? charge->order_count : PROFILE_STACKS_MAX;
    profile->stacks = pool_alloc(&profile->pool, room * sizeof *profile->stacks);
    for (size_t i = 0; i < charge->order_count; i++) {
        uint32_t id = charge->order[i], end = fold.end_of[id];
        if (!end)
            continue;
        if (!stack_of[end]) {
            struct profile_stack *stack = &profile->stacks[profile->stack_count++];
            stack->frame_count = charge->nodes[end].depth;
            stack->frames = pool_alloc(&profile->pool, stack->frame_count * sizeof *stack->frames);
            report_frames(charge, end, stack->frames);
            stack_of[end] = profile->stack_count;
        }
        stack_of[id] = stack_of[end];
        profile_time_add(&profile->stacks[stack_of[end] - 1].time, &charge->nodes[id].time);
    }
    for (uint32_t i = 0; i < profile->stack_count; i++)
        profile->stacks[i].hits = in_intervals(profile, profile_time_sum(&profile->stacks[i].time));
    double all_sec = profile_time_sum(&charge->total);
    profile->stack_least_percent = all_sec > 0 ? 100 * fold.least_sec / all_sec : 0;
    fold_release(&fold);
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
    report_async_stacks(report);
    add_runs(report, stack_of);
    free(stack_of);
}
