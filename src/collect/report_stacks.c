/*
 * The part of a report that is about stacks and time's course: the merged tree's
 * leaves become the profile's stacks, the arenas' logs its timeline and the
 * lines' time stamps.
 */
#include "collect/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t in_intervals(const struct profile *profile, double sec)
{
    double n = profile->interval_sec > 0 ? round(sec / profile->interval_sec) : 1;
    return n < 1 ? 1 : n > 1e15 ? (uint64_t)1e15 : (uint64_t)n;
}

/* ---- stacks ---- */

static int by_falling_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The time a stack must have to be among the PROFILE_STACKS_MAX longest. */
static double least_time(const struct charge *charge)
{
    if (charge->order_count <= PROFILE_STACKS_MAX)
        return 0;
    double *times = mem_alloc(charge->order_count * sizeof *times);
    for (size_t i = 0; i < charge->order_count; i++)
        times[i] = profile_time_sum(&charge->nodes[charge->order[i]].time);
    qsort(times, charge->order_count, sizeof *times, by_falling_time);
    double least = times[PROFILE_STACKS_MAX - 1];
    free(times);
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
    uint64_t left_out = 0;
    size_t room =
        charge->order_count < PROFILE_STACKS_MAX ? charge->order_count : PROFILE_STACKS_MAX;
    profile->stacks = pool_alloc(&profile->pool, room * sizeof *profile->stacks);
    for (size_t i = 0; i < charge->order_count; i++) {
        uint32_t id = charge->order[i];
        const struct charge_node *node = &charge->nodes[id];
        double sec = profile_time_sum(&node->time);
        if (!node->depth)
            continue;
        if (sec < least || profile->stack_count == room) {
            left_out++;
            continue;
        }
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

struct run {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    uint32_t stack; /* + 1 */
    uint64_t us, ident;
};

struct runs {
    struct run *items;
    size_t count, cap;
};

static int by_start(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->ident > y->ident) - (x->ident < y->ident);
}

/* One pass over a log gives both: stamps to the lines, runs (if stacks are kept) to `runs`. */
static void read_log(struct report *report, const struct recording *recording,
                     const uint32_t *stack_of, struct runs *runs)
{
    const struct arena *arena = &recording->arena;
    for (uint32_t i = 1; i < arena_count(arena, WIRE_LOG); i++) {
        struct arena_run run;
        if (!arena_run(arena, i, &run) || !run.us || !run.count)
            continue;
        uint32_t node = run.node && run.node < arena_count(arena, WIRE_NODE)
                            ? recording->node_of[run.node]
                            : CHARGE_NO_STACK;
        uint64_t at_ns = arena->header.start_mono_ns + run.at_ns;
        charge_stamp(&report->charge, node, (double)at_ns / 1e9,
                     (double)run.us / 1e6 / (double)run.count, run.count);
        if (!stack_of || !stack_of[node])
            continue;
        bool known = run.thread && run.thread < arena_count(arena, WIRE_THREAD);
        VEC_PUSH(runs->items, runs->count, runs->cap) = (struct run){
            at_ns, stack_of[node], run.us, known ? recording->ident_of[run.thread] : 0};
    }
}

/* Neighbours with the same stack and thread are one run; what is beyond the cap is thinned evenly.
 */
static void add_runs(struct profile *profile, struct runs *runs)
{
    if (!runs->count)
        return;
    qsort(runs->items, runs->count, sizeof *runs->items, by_start);
    size_t kept = 1;
    for (size_t i = 1; i < runs->count; i++) {
        struct run *last = &runs->items[kept - 1], *run = &runs->items[i];
        if (run->stack == last->stack && run->ident == last->ident)
            last->us += run->us;
        else
            runs->items[kept++] = *run;
    }
    size_t count = kept < PROFILE_RUNS_MAX ? kept : PROFILE_RUNS_MAX;
    profile->runs = pool_alloc(&profile->pool, count * sizeof *profile->runs);
    profile->run_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &runs->items[i * kept / count];
        profile->runs[i] = (struct profile_run){
            .at_sec = (double)(run->at_ns - runs->items[0].at_ns) / 1e9,
            .stack = run->stack - 1,
            .count = in_intervals(profile, (double)run->us / 1e6),
            .thread_ident = run->ident,
        };
    }
}

void report_stacks(struct report *report)
{
    uint32_t *stack_of = report->config->stacks ? add_stacks(report) : NULL;
    struct runs runs = {0};
    for (size_t i = 0; i < report->recording_count; i++)
        read_log(report, &report->recordings[i], stack_of, &runs);
    add_runs(report->profile, &runs);
    free(runs.items);
    free(stack_of);
}
