/*
 * Stacks of what was awaited: a task's coroutines from the outside to the innermost
 * traced one, whose frame is named "[await] fetch (Task-3)".
 *
 * Their time is no time of the run: a hundred tasks wait at once.  What they share
 * is the time that event loops waited, in which no thread ran, in proportion to
 * what was awaited.  It is taken from the stacks in which the loops poll, so all
 * stacks together are what they were; at least 1 hit stays there, since the
 * timeline refers to them.
 */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>

struct awaited {
    uint32_t node; /* the innermost traced one, or the innermost */
    double sec;
};

static int by_falling_time(const void *a, const void *b)
{
    const struct awaited *x = a, *y = b;
    if (x->sec != y->sec)
        return x->sec < y->sec ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Largest first; the caller frees it. */
static struct awaited *collect(const struct report *report, size_t *count)
{
    const struct charge *charge = &report->charge;
    double *sec = mem_zalloc(charge->node_count, sizeof *sec);
    struct awaited *all = NULL;
    size_t cap = 0;
    *count = 0;
    for (uint32_t i = CHARGE_FIRST_NODE; i < report->async.stack_count; i++) {
        uint32_t traced = charge->nodes[i].traced;
        sec[traced == CHARGE_NO_STACK ? i : traced] += report->async.stack_sec[i];
    }
    for (uint32_t i = CHARGE_FIRST_NODE; i < charge->node_count; i++)
        if (sec[i] > 0)
            VEC_PUSH(all, *count, cap) = (struct awaited){i, sec[i]};
    free(sec);
    if (*count)
        qsort(all, *count, sizeof *all, by_falling_time);
    return all;
}

/* How many of them are told; *sec is what they awaited. */
static size_t count_told(const struct charge *charge, const struct awaited *all, size_t count,
                         double *sec)
{
    size_t told = 0, frames = 0;
    *sec = 0;
    while (told < count && told < PROFILE_AWAIT_STACKS_MAX) {
        frames += charge->nodes[all[told].node].depth;
        if (told && frames > PROFILE_AWAIT_FRAMES_MAX)
            break;
        *sec += all[told++].sec;
    }
    return told;
}

/* Hits of a stack in which a loop waited while nothing ran. */
static uint64_t idle_hits(const struct profile_stack *stack)
{
    const struct profile_time *time = &stack->time;
    double waited_sec = 0, all_sec = profile_time_sum(time);
    for (int cause = 0; cause < WAIT_CAUSES; cause++)
        waited_sec += cause == WAIT_REQUEST ? 0 : time->wait_sec[cause];
    if (!(time->wait_sec[WAIT_LOOP] > 0) || !(all_sec > 0))
        return 0;
    double share = time->system_sec / all_sec * time->wait_sec[WAIT_LOOP] / waited_sec;
    double hits = floor((double)stack->hits * fmin(share, 1));
    return hits < (double)stack->hits ? (uint64_t)hits : stack->hits - 1;
}

/* The next part of `whole` when `done` of `all` are given out, and rounding errors do not add up.
 */
static uint64_t next_part(uint64_t whole, double *done, double part, double all)
{
    uint64_t before = (uint64_t)round((double)whole * (*done / all));
    *done += part;
    uint64_t after = *done < all ? (uint64_t)round((double)whole * (*done / all)) : whole;
    return after > before ? after - before : 0;
}

/* Takes `hits` of `all` idle ones away from the loops; the time they stand for. */
static double take_idle(struct profile *profile, uint64_t hits, uint64_t all)
{
    double done = 0, taken_sec = 0;
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        struct profile_stack *stack = &profile->stacks[i];
        uint64_t own = idle_hits(stack), taken = next_part(hits, &done, (double)own, (double)all);
        taken = taken < own ? taken : own;
        double sec = fmin(profile_time_sum(&stack->time) * (double)taken / (double)stack->hits,
                          stack->time.system_sec);
        stack->hits -= taken;
        stack->time.system_sec -= sec;
        taken_sec += sec;
    }
    return taken_sec;
}

/* "[await] fetch (Task-3)", "[await] fetch (12 tasks)". */
static str_id name_of(struct report *report, uint32_t node)
{
    const struct charge *charge = &report->charge;
    const struct charge_frame *frame = &charge->frames[charge->nodes[node].frame];
    const char *function = intern_get(charge->strings, charge->codes[frame->code].name);
    struct charge_place place = charge_place_of(charge, node);
    struct buf text = {0};
    buf_addf(&text, "[await] %s", function);
    if (place.line) {
        const struct charge_line *line = &charge->lines[place.line - 1];
        uint32_t names = line->names.count;
        if (names == 1)
            buf_addf(&text, " (%s)", intern_get(charge->strings, line->names.items[0]));
        else if (names == PROFILE_TASK_NAMES_MAX && line->async.peak <= names)
            buf_addf(&text, " (%u or more tasks)", (unsigned)names);
        else if (names)
            buf_addf(&text, " (%.0f tasks)", fmax(names, line->async.peak));
    }
    str_id id = intern_add(charge->strings, text.data, text.len);
    buf_release(&text);
    return id;
}

static void add_stack(struct report *report, uint32_t node, uint64_t hits, double sec)
{
    struct profile *profile = report->profile;
    uint32_t depth = report->charge.nodes[node].depth;
    struct profile_stack *stack = &profile->stacks[profile->stack_count++];
    *stack = (struct profile_stack){
        .frames = pool_alloc(&profile->pool, depth * sizeof *stack->frames),
        .frame_count = depth,
        .hits = hits,
        .time = {.system_sec = sec},
    };
    report_frames(&report->charge, node, stack->frames);
    stack->frames[depth - 1].name = name_of(report, node);
}

static void make_room(struct profile *profile, size_t more)
{
    struct profile_stack *stacks =
        pool_alloc(&profile->pool, (profile->stack_count + more) * sizeof *stacks);
    for (uint32_t i = 0; i < profile->stack_count; i++)
        stacks[i] = profile->stacks[i];
    profile->stacks = stacks;
}

void report_async_stacks(struct report *report)
{
    struct profile *profile = report->profile;
    size_t count;
    double told_sec, done_sec = 0;
    struct awaited *all = collect(report, &count);
    uint64_t idle = 0;
    for (uint32_t i = 0; i < profile->stack_count; i++)
        idle += idle_hits(&profile->stacks[i]);
    count = count_told(&report->charge, all, count, &told_sec);
    uint64_t hits =
        count ? (uint64_t)round((double)idle * fmin(told_sec / report->async.loops.await_sec, 1))
              : 0;
    if (hits) {
        double sec = take_idle(profile, hits, idle);
        make_room(profile, count);
        for (size_t i = 0; i < count; i++) {
            uint64_t own = next_part(hits, &done_sec, all[i].sec, told_sec);
            if (own)
                add_stack(report, all[i].node, own, sec * (double)own / (double)hits);
        }
    }
    free(all);
}
