/* Several runs become one profile; see merge.h.  Files and lines are in merge_files.c, figures
 * of memory in merge_memory.c, tasks in merge_async.c. */
#include "profile/merge_parts.h"

#include "base/buf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

str_id merge_text(struct merge *merge, const struct profile *run, str_id id)
{
    return intern_add(&merge->out->strings, profile_str(run, id), intern_length(&run->strings, id));
}

void merge_note(struct merge *merge, const char *text)
{
    str_id id = intern_cstr(&merge->out->strings, text);
    for (size_t i = 0; i < merge->note_count; i++)
        if (merge->notes[i] == id)
            return;
    VEC_PUSH(merge->notes, merge->note_count, merge->note_cap) = id;
}

/* The number of a row of values: rows that begin alike share the beginning's numbers. */
static uint64_t extend(struct map *index, uint64_t prefix, uint64_t part)
{
    uint64_t *at = map_put(index, hash_mix(prefix, part), NULL);
    if (!*at)
        *at = index->count;
    return *at;
}

struct profile_frame *merge_frames(struct merge *merge, const struct profile *run,
                                   const struct profile_frame *from, uint32_t count,
                                   struct map *index, uint64_t *row)
{
    struct profile_frame *frames = pool_alloc(&merge->out->pool, count * sizeof *frames);
    *row = 0;
    for (uint32_t i = 0; i < count; i++) {
        frames[i] = from[i];
        frames[i].name = merge_text(merge, run, frames[i].name);
        frames[i].file = merge_text(merge, run, frames[i].file);
        *row = extend(index, *row, (uint64_t)frames[i].file << 32 | frames[i].line);
        *row = extend(index, *row, frames[i].name);
    }
    return frames;
}

double merge_offset_sec(const struct merge *merge, const struct profile *run)
{
    return run->start_absolute_sec > 0 ? run->start_absolute_sec - merge->base_absolute_sec : 0;
}

/* ---- the whole ---- */

/*
 * The sum of squared sample weights is not in the file, but the half-widths
 * were made from it: any line's gives it back, the widest one most exactly.
 * -1: this profile does not know how sure it is.
 */
static double squares_of(const struct profile *run)
{
    double total = profile_time_sum(&run->time), widest = 0, share_there = 0;
    if (run->time.square_sec2 > 0 || !(total > 0))
        return run->time.square_sec2;
    for (uint32_t f = 0; f < run->file_count; f++)
        for (uint32_t i = 0; i < run->files[f].line_count; i++) {
            const struct profile_line *line = &run->files[f].lines[i];
            double share = profile_time_sum(&line->time) / total;
            if (line->half_width_percent > widest && line->half_width_percent < 100 && share > 0 &&
                share < 1) {
                widest = line->half_width_percent;
                share_there = share;
            }
        }
    if (widest > 0) {
        double error = widest / 196;
        return total * total * error * error / (share_there * (1 - share_there));
    }
    return run->time.samples ? total * total / (double)run->time.samples : -1;
}

static void add_totals(struct merge *merge)
{
    struct profile *out = merge->out;
    bool squares_known = true;
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        double squares = squares_of(run);
        double before = out->time.square_sec2;
        profile_time_add(&out->time, &run->time);
        profile_time_add(&out->untraced, &run->untraced);
        out->time.square_sec2 = before + squares;
        squares_known &= squares >= 0;
        out->total_sec += run->total_sec;
        out->idle_sec += run->idle_sec;
        out->native_threads_sec += run->native_threads_sec;
        out->cpu_sec += run->cpu_sec;
        out->startup_sec += run->startup_sec;
        out->unsampled_sec += run->unsampled_sec;
        out->handler_sec += run->handler_sec;
        out->sampler_sec += run->sampler_sec;
        out->memory_sec += run->memory_sec;
        out->async_profile |= run->async_profile;
        out->memory |= run->memory;
        out->gpu |= run->gpu;
    }
    if (!squares_known)
        out->time.square_sec2 = 0;
}

/* The time covered by at least one run; a run that does not say when it began covers its own. */
static double covered_sec(const struct merge *merge)
{
    double covered = 0, until = 0;
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        double start = merge_offset_sec(merge, run), end = start + run->elapsed_sec;
        if (!(run->start_absolute_sec > 0)) {
            covered += run->elapsed_sec;
        } else if (end > until) {
            covered += end - fmax(until, start);
            until = end;
        }
    }
    return covered;
}

/* What a profile can say only once: the earliest run's. */
static void settle_program(struct merge *merge)
{
    struct profile *out = merge->out;
    const struct profile *first = merge->runs[0];
    out->program = merge_text(merge, first, first->program);
    out->entrypoint_dir = merge_text(merge, first, first->entrypoint_dir);
    out->directory = merge_text(merge, first, first->directory);
    out->has_args = first->has_args;
    out->arg_count = first->arg_count;
    out->args = pool_alloc(&out->pool, first->arg_count * sizeof *out->args);
    for (uint32_t i = 0; i < first->arg_count; i++)
        out->args[i] = merge_text(merge, first, first->args[i]);
    out->interval_sec = first->interval_sec;
    out->wait_interval_sec = first->wait_interval_sec;
    for (size_t i = 0; i < merge->count; i++)
        if (out->stack_least_percent < merge->runs[i]->stack_least_percent)
            out->stack_least_percent = merge->runs[i]->stack_least_percent;
    out->main_ident = first->main_ident;
    out->start_absolute_sec = merge->base_absolute_sec;
    out->start_perf_sec = merge->base_perf_sec;
    out->elapsed_sec = covered_sec(merge);
}

/* A snapshot and the profile at the end, or the same file twice; the runs are sorted by start. */
static bool is_same_run(const struct profile *a, const struct profile *b)
{
    return a->start_absolute_sec > 0 && a->start_absolute_sec == b->start_absolute_sec &&
           a->process_count && b->process_count && a->processes[0].pid == b->processes[0].pid;
}

static void add_notes(struct merge *merge)
{
    bool programs_differ = false;
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        if (i && is_same_run(run, merge->runs[i - 1]))
            merge_note(merge, "two of these profiles are of the same run: its time counts twice");
        programs_differ |= strcmp(profile_str(run, run->program),
                                  profile_str(merge->runs[0], merge->runs[0]->program)) != 0;
        for (uint32_t k = 0; k < run->note_count; k++)
            merge_note(merge, profile_str(run, run->notes[k]));
    }
    if (programs_differ)
        merge_note(merge, "these are runs of different programs: see the processes");
    if (merge->out->gpu)
        merge_note(merge, "GPU figures were not merged: only times and memory are");
}

static void add_losses(struct merge *merge)
{
    struct profile *out = merge->out;
    size_t most = 1; /* one for the stacks that are left out here */
    for (size_t i = 0; i < merge->count; i++)
        most += merge->runs[i]->loss_count;
    out->losses = pool_alloc(&out->pool, most * sizeof *out->losses);
    for (size_t i = 0; i < merge->count; i++)
        for (uint32_t k = 0; k < merge->runs[i]->loss_count; k++) {
            const struct profile_loss *loss = &merge->runs[i]->losses[k];
            str_id key = merge_text(merge, merge->runs[i], loss->key);
            uint32_t at = 0;
            while (at < out->loss_count && out->losses[at].key != key)
                at++;
            if (at == out->loss_count)
                out->losses[out->loss_count++] = (struct profile_loss){
                    .key = key, .text = merge_text(merge, merge->runs[i], loss->text)};
            out->losses[at].count += loss->count;
        }
}

static int by_time(const void *a, const void *b)
{
    const struct profile_place *x = a, *y = b;
    if (x->sec != y->sec)
        return x->sec < y->sec ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static void add_elsewhere(struct merge *merge)
{
    struct profile *out = merge->out;
    size_t most = 0;
    for (size_t i = 0; i < merge->count; i++)
        most += merge->runs[i]->elsewhere_count;
    out->elsewhere = pool_alloc(&out->pool, most * sizeof *out->elsewhere);
    for (size_t i = 0; i < merge->count; i++)
        for (uint32_t k = 0; k < merge->runs[i]->elsewhere_count; k++) {
            const struct profile_place *place = &merge->runs[i]->elsewhere[k];
            str_id name = merge_text(merge, merge->runs[i], place->name);
            uint32_t at = 0;
            while (at < out->elsewhere_count && out->elsewhere[at].name != name)
                at++;
            if (at == out->elsewhere_count)
                out->elsewhere[out->elsewhere_count++] = (struct profile_place){.name = name};
            out->elsewhere[at].sec += place->sec;
        }
    if (out->elsewhere_count)
        qsort(out->elsewhere, out->elsewhere_count, sizeof *out->elsewhere, by_time);
    if (out->elsewhere_count > PROFILE_ELSEWHERE_MAX)
        out->elsewhere_count = PROFILE_ELSEWHERE_MAX;
}

static void add_processes(struct merge *merge)
{
    struct profile *out = merge->out;
    size_t most = 0;
    for (size_t i = 0; i < merge->count; i++)
        most += merge->runs[i]->process_count;
    out->processes = pool_alloc(&out->pool, most * sizeof *out->processes);
    for (size_t i = 0; i < merge->count; i++)
        for (uint32_t k = 0; k < merge->runs[i]->process_count; k++) {
            struct profile_process *process = &out->processes[out->process_count++];
            *process = merge->runs[i]->processes[k];
            process->command = merge_text(merge, merge->runs[i], process->command);
            process->python = merge_text(merge, merge->runs[i], process->python);
            process->start_sec += merge_offset_sec(merge, merge->runs[i]);
        }
}

/* ---- threads, stacks, timeline ---- */

/* What the ids of the run that is being added are in the merged profile. */
struct translation {
    struct map idents;
    uint32_t *stacks;
};

/* An ident that no earlier run had: the same if it can be, else the kernel's id of the thread, else
 * some number. */
static uint64_t new_ident(struct map *taken, struct map *idents, uint64_t ident, int32_t tid)
{
    bool is_new;
    uint64_t *known = map_put(idents, ident, &is_new);
    if (!is_new)
        return *known;
    uint64_t candidate = ident;
    map_put(taken, candidate, &is_new);
    if (!is_new && tid > 0) {
        candidate = (uint64_t)tid;
        map_put(taken, candidate, &is_new);
    }
    for (uint64_t n = taken->count; !is_new; n++) {
        candidate = UINT64_C(1) << 62 | n;
        map_put(taken, candidate, &is_new);
    }
    return *known = candidate;
}

static void add_threads(struct merge *merge, const struct profile *run, struct map *taken,
                        struct translation *translation)
{
    struct profile *out = merge->out;
    for (uint32_t i = 0; i < run->thread_count; i++) {
        struct profile_thread *thread = &out->threads[out->thread_count++];
        *thread = run->threads[i];
        thread->name = merge_text(merge, run, thread->name);
        thread->ident = new_ident(taken, &translation->idents, thread->ident, thread->tid);
    }
}

/* In units of the merged profile's interval. */
static uint64_t rescale(const struct merge *merge, const struct profile *run, uint64_t count)
{
    double from = run->interval_sec, to = merge->out->interval_sec;
    if (!(from > 0) || !(to > 0) || from == to)
        return count;
    double scaled = round((double)count * from / to);
    return scaled < 1 ? count > 0 : scaled > 9e15 ? (uint64_t)9e15 : (uint64_t)scaled;
}

struct stacks {
    struct profile_stack *items;
    size_t count, cap;
    struct map index; /* prefixes of rows of frames */
    struct map found; /* such a row -> place in `items` + 1 */
};

static void add_stack(struct merge *merge, const struct profile *run, struct stacks *stacks,
                      const struct profile_stack *stack, uint32_t *place)
{
    uint64_t row;
    struct profile_frame *frames =
        merge_frames(merge, run, stack->frames, stack->frame_count, &stacks->index, &row);
    uint64_t *at = map_put(&stacks->found, row, NULL);
    if (!*at) {
        VEC_PUSH(stacks->items, stacks->count, stacks->cap) =
            (struct profile_stack){.frames = frames, .frame_count = stack->frame_count};
        *at = stacks->count;
    }
    struct profile_stack *sum = &stacks->items[*at - 1];
    profile_time_add(&sum->time, &stack->time);
    sum->hits += rescale(merge, run, stack->hits);
    *place = (uint32_t)*at - 1;
}

struct runs {
    struct profile_run *items;
    size_t count, cap;
};

static void add_timeline(struct merge *merge, const struct profile *run, struct map *taken,
                         struct translation *translation, struct runs *runs)
{
    for (uint32_t i = 0; i < run->run_count; i++) {
        struct profile_run item = run->runs[i];
        item.at_sec += merge_offset_sec(merge, run);
        item.stack = translation->stacks[item.stack];
        item.count = rescale(merge, run, item.count);
        if (item.thread_ident)
            item.thread_ident = new_ident(taken, &translation->idents, item.thread_ident, 0);
        VEC_PUSH(runs->items, runs->count, runs->cap) = item;
    }
}

static int by_falling_hits(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The PROFILE_STACKS_MAX longest stacks; the answer has the new place + 1 of each, 0 if it was left
 * out (caller frees). */
static uint32_t *keep_stacks(struct merge *merge, const struct stacks *stacks)
{
    struct profile *out = merge->out;
    uint32_t *place = mem_zalloc(stacks->count + 1, sizeof *place);
    uint64_t least = 0;
    if (stacks->count > PROFILE_STACKS_MAX) {
        uint64_t *hits = mem_alloc(stacks->count * sizeof *hits);
        for (size_t i = 0; i < stacks->count; i++)
            hits[i] = stacks->items[i].hits;
        qsort(hits, stacks->count, sizeof *hits, by_falling_hits);
        least = hits[PROFILE_STACKS_MAX - 1];
        free(hits);
    }
    size_t room = stacks->count < PROFILE_STACKS_MAX ? stacks->count : PROFILE_STACKS_MAX;
    out->stacks = pool_alloc(&out->pool, room * sizeof *out->stacks);
    for (size_t i = 0; i < stacks->count; i++)
        if (stacks->items[i].hits >= least && out->stack_count < room) {
            out->stacks[out->stack_count++] = stacks->items[i];
            place[i] = out->stack_count;
        }
    if (stacks->count > room)
        out->losses[out->loss_count++] = (struct profile_loss){
            .key = intern_cstr(&out->strings, "stacks_left_out"),
            .text = intern_cstr(&out->strings, "stacks left out of the stack views when profiles "
                                               "were merged (totals are right)"),
            .count = stacks->count - room};
    return place;
}

static int by_moment(const void *a, const void *b)
{
    const struct profile_run *x = a, *y = b;
    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return (x->thread_ident > y->thread_ident) - (x->thread_ident < y->thread_ident);
}

static void keep_timeline(struct profile *out, struct runs *runs, const uint32_t *place)
{
    size_t kept = 0;
    for (size_t i = 0; i < runs->count; i++)
        if (place[runs->items[i].stack]) {
            runs->items[kept] = runs->items[i];
            runs->items[kept++].stack = place[runs->items[i].stack] - 1;
        }
    if (!kept)
        return;
    qsort(runs->items, kept, sizeof *runs->items, by_moment);
    size_t count = kept < PROFILE_RUNS_MAX ? kept : PROFILE_RUNS_MAX;
    out->runs = pool_alloc(&out->pool, count * sizeof *out->runs);
    out->run_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        out->runs[i] = runs->items[i * kept / count];
        out->runs[i].at_sec -= runs->items[0].at_sec;
    }
}

static void add_threads_and_stacks(struct merge *merge)
{
    struct profile *out = merge->out;
    struct stacks stacks = {0};
    struct runs runs = {0};
    struct map taken = {0};
    size_t thread_count = 0;
    for (size_t i = 0; i < merge->count; i++)
        thread_count += merge->runs[i]->thread_count;
    out->threads = pool_alloc(&out->pool, thread_count * sizeof *out->threads);
    for (size_t i = 0; i < merge->count; i++) {
        const struct profile *run = merge->runs[i];
        struct translation translation = {
            .stacks = mem_zalloc((size_t)run->stack_count + 1, sizeof *translation.stacks)};
        add_threads(merge, run, &taken, &translation);
        for (uint32_t k = 0; k < run->stack_count; k++)
            add_stack(merge, run, &stacks, &run->stacks[k], &translation.stacks[k]);
        add_timeline(merge, run, &taken, &translation, &runs);
        map_release(&translation.idents);
        free(translation.stacks);
    }
    uint32_t *place = keep_stacks(merge, &stacks);
    keep_timeline(out, &runs, place);
    free(place);
    free(stacks.items);
    map_release(&stacks.index);
    map_release(&stacks.found);
    free(runs.items);
    map_release(&taken);
}

static int by_start(const void *a, const void *b)
{
    const struct profile *x = *(const struct profile *const *)a;
    const struct profile *y = *(const struct profile *const *)b;
    if (x->start_absolute_sec != y->start_absolute_sec)
        return x->start_absolute_sec < y->start_absolute_sec ? -1 : 1;
    return x < y ? -1 : x > y; /* as given: they are elements of one array */
}

void merge_profiles(struct profile *merged, const struct profile *runs, size_t count)
{
    struct merge merge = {.out = merged};
    profile_init(merged);
    merge.runs = mem_alloc((count + 1) * sizeof *merge.runs);
    for (size_t i = 0; i < count; i++)
        if (!runs[i].empty)
            merge.runs[merge.count++] = &runs[i];
    merged->empty = !merge.count;
    if (merge.count) {
        qsort(merge.runs, merge.count, sizeof *merge.runs, by_start);
        for (size_t i = merge.count; i--;)
            if (merge.runs[i]->start_absolute_sec > 0) {
                merge.base_absolute_sec = merge.runs[i]->start_absolute_sec;
                merge.base_perf_sec = merge.runs[i]->start_perf_sec;
            }
        settle_program(&merge);
        add_totals(&merge);
        add_notes(&merge);
        add_losses(&merge);
        add_elsewhere(&merge);
        add_processes(&merge);
        add_threads_and_stacks(&merge);
        merge_memory(&merge);
        merge_async(&merge);
        merge_files(&merge);
    }
    merged->notes = pool_alloc(&merged->pool, merge.note_count * sizeof *merged->notes);
    merged->note_count = (uint32_t)merge.note_count;
    for (size_t i = 0; i < merge.note_count; i++)
        merged->notes[i] = merge.notes[i];
    free(merge.notes);
    free(merge.runs);
}
