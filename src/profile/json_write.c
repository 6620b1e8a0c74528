/*
 * Writes a struct profile as JSON.  Called with a profile from harvest_build (or
 * one read back).  Keys must come in sorted order: json_key asserts it.  Fields
 * of what is not measured are there, at 0, so that the original's readers find
 * every key they know.
 */
#include "profile/json_write.h"

#include "base/json_out.h"
#include "base/map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALENE_VERSION
#error "SCALENE_VERSION comes from the build"
#endif

/* What a damaged recording says is kept to what a reader takes. */

static void put_real(struct json_out *out, double value)
{
    json_out_real(out, fmin(fmax(value, -JSON_AMOUNT_MAX), JSON_AMOUNT_MAX));
}

static void put_count(struct json_out *out, uint64_t value)
{
    json_out_int(out, (double)value < JSON_COUNT_MAX ? (int64_t)value : (int64_t)JSON_COUNT_MAX);
}

static void put_id(struct json_out *out, uint64_t value)
{
    json_out_int(out, (double)value < JSON_ID_MAX ? (int64_t)value : (int64_t)JSON_ID_MAX);
}

static void key_real(struct json_out *out, const char *key, double value)
{
    json_out_key(out, key);
    put_real(out, value);
}

static void key_int(struct json_out *out, const char *key, uint64_t value)
{
    json_out_key(out, key);
    put_count(out, value);
}

static void key_pid(struct json_out *out, const char *key, int32_t value)
{
    key_int(out, key, value > 0 ? (uint64_t)value : 0);
}

static void key_int_or_null(struct json_out *out, const char *key, bool is_known, uint64_t value)
{
    json_out_key(out, key);
    if (is_known)
        put_count(out, value);
    else
        json_out_null(out);
}

static void key_bool(struct json_out *out, const char *key, bool value)
{
    json_out_key(out, key);
    json_out_bool(out, value);
}

static void key_null(struct json_out *out, const char *key)
{
    json_out_key(out, key);
    json_out_null(out);
}

static void key_empty_list(struct json_out *out, const char *key)
{
    json_out_key(out, key);
    json_out_array(out);
    json_out_end(out);
}

static void put_text(struct json_out *out, const struct profile *profile, str_id id)
{
    json_out_string(out, profile_str(profile, id), intern_length(&profile->strings, id));
}

static void key_text(struct json_out *out, const char *key, const struct profile *profile,
                     str_id id)
{
    json_out_key(out, key);
    put_text(out, profile, id);
}

static void key_texts(struct json_out *out, const char *key, const struct profile *profile,
                      const str_id *ids, uint32_t count)
{
    json_out_key(out, key);
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++)
        put_text(out, profile, ids[i]);
    json_out_end(out);
}

/* A share of the total; rounding must not lift it over 100, which readers check. */
static double percent(const struct profile *profile, double sec)
{
    return fmin(profile_percent(profile, sec), 100);
}

/* The same of a part of a line's time: the parts together must not be over 100 either, also where a
 * damaged profile has more on one line than in all. */
static double line_percent(const struct profile *profile, const struct profile_time *time,
                           double sec)
{
    double sum = profile_time_sum(time);
    bool is_more = profile->total_sec > 0 && sum > profile->total_sec;
    return is_more ? 100 * sec / sum : percent(profile, sec);
}

/* Moments need no more digits than that, and there are many of them. */
static double to_microseconds(double sec)
{
    return round(sec * 1e6) / 1e6;
}

/* Causes that occurred, sorted by key. */
void json_write_waits(const struct profile_time *time, struct json_out *out)
{
    int causes[WAIT_CAUSES] = {0}, count = 0;
    for (int cause = 0; cause < WAIT_CAUSES; cause++) {
        if (!(time->wait_sec[cause] > 0))
            continue;
        int at = count++;
        for (; at > 0 && strcmp(wait_cause_key[causes[at - 1]], wait_cause_key[cause]) > 0; at--)
            causes[at] = causes[at - 1];
        causes[at] = cause;
    }
    json_out_object(out);
    for (int i = 0; i < count; i++)
        key_real(out, wait_cause_key[causes[i]], time->wait_sec[causes[i]]);
    json_out_end(out);
}

static void key_waits(struct json_out *out, const struct profile_time *time)
{
    json_out_key(out, "waits");
    json_write_waits(time, out);
}

/* ---- memory ---- */

/* [[nanoseconds since the start, MB], ...] */
void json_write_points(const struct profile_point *points, uint32_t count, struct json_out *out)
{
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++) {
        json_out_array(out);
        put_count(out, points[i].at_sec > 0 ? (uint64_t)fmin(points[i].at_sec * 1e9, JSON_COUNT_MAX)
                                            : 0);
        put_real(out, points[i].mb);
        json_out_end(out);
    }
    json_out_end(out);
}

static void key_points(struct json_out *out, const char *key, const struct profile_point *points,
                       uint32_t count)
{
    json_out_key(out, key);
    json_write_points(points, count, out);
}

static double share_of(double part, double whole)
{
    return whole > 0 && part > 0 ? fmin(part / whole, 1) : 0;
}

static void key_half_widths(struct json_out *out, const struct profile_memory *memory)
{
    key_real(out, "half_width_copy_mb", memory->half_width_mb.copied);
    key_real(out, "half_width_live_mb", memory->half_width_mb.live);
    key_real(out, "half_width_malloc_mb", memory->half_width_mb.allocated);
    key_real(out, "half_width_peak_mb", memory->half_width_mb.peak);
}

static void put_leaks(struct json_out *out, const struct profile_file *file)
{
    json_out_key(out, "leaks");
    json_out_object(out);
    for (uint32_t i = 0; i < file->line_count; i++) {
        const struct profile_leak *leak = &file->lines[i].memory.leak;
        if (!(leak->likelihood > 0))
            continue;
        char lineno[16];
        int length = snprintf(lineno, sizeof lineno, "%u", file->lines[i].lineno);
        json_out_key_raw(out, lineno, (size_t)length);
        json_out_object(out);
        key_real(out, "likelihood", leak->likelihood);
        key_real(out, "velocity_mb_s", leak->velocity_mb_s);
        json_out_end(out);
    }
    json_out_end(out);
}

/* ---- lines and functions ---- */

/* The page puts source text into markup and undoes this; the backslash is really in the text. */
static void put_source(struct json_out *out, const char *text, size_t length, struct buf *scratch)
{
    buf_reset(scratch);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '&' || text[i] == '<' || text[i] == '>')
            buf_addf(scratch, "\\u%04x", (unsigned)text[i]);
        else
            buf_char(scratch, text[i]);
    }
    json_out_string(out, scratch->data ? scratch->data : "", scratch->len);
}

static void put_line(struct json_out *out, const struct profile *profile,
                     const struct profile_line *line, bool is_function, struct buf *scratch)
{
    const struct profile_time *time = &line->time;
    const struct profile_memory *memory = &line->memory;
    json_out_object(out);
    key_empty_list(out, "async_task_names");
    key_real(out, "cpu_native_sec", time->native_sec);
    key_real(out, "cpu_python_sec", time->python_sec);
    json_out_key(out, "cpu_samples_list");
    json_out_array(out);
    for (uint32_t i = 0; i < line->stamp_count; i++)
        put_real(out, to_microseconds(line->stamps[i]));
    json_out_end(out);
    if (!is_function) {
        key_int(out, "end_function_line", line->end_function);
        key_int(out, "end_outermost_loop", line->end_outermost_loop);
        key_int(out, "end_region_line", line->end_region);
    }
    key_half_widths(out, memory);
    key_real(out, "half_width_percent", line->half_width_percent);
    key_bool(out, "is_coroutine", false);
    json_out_key(out, "line");
    if (is_function)
        put_text(out, profile, line->text);
    else
        put_source(out, profile_str(profile, line->text),
                   intern_length(&profile->strings, line->text), scratch);
    key_int(out, "lineno", line->lineno);
    key_points(out, "live_samples", memory->own, memory->point_count);
    key_points(out, "memory_samples", memory->points, memory->point_count);
    key_int(out, "n_alloc_count", memory->total_count);
    key_int(out, "n_alloc_samples", memory->samples);
    key_real(out, "n_alloc_total_mb", memory->total_mb);
    key_real(out, "n_async_await_percent", 0);
    key_real(out, "n_async_concurrency_mean", 0);
    key_real(out, "n_async_concurrency_peak", 0);
    key_real(out, "n_avg_mb", memory->average_mb);
    key_real(out, "n_copy_mb", memory->copied_mb);
    key_real(out, "n_copy_mb_s",
             profile->elapsed_sec > 0 ? memory->copied_mb / profile->elapsed_sec : 0);
    key_real(out, "n_core_utilization", line->core_utilization);
    key_real(out, "n_cpu_percent_c", line_percent(profile, time, time->native_sec));
    key_real(out, "n_cpu_percent_python", line_percent(profile, time, time->python_sec));
    key_real(out, "n_gpu_avg_memory_mb", 0);
    key_real(out, "n_gpu_peak_memory_mb", 0);
    key_real(out, "n_gpu_percent", 0);
    key_real(out, "n_growth_mb", memory->peak_mb);
    key_real(out, "n_live_at_peak_mb", memory->at_peak_mb);
    key_real(out, "n_live_mb", memory->live_mb);
    key_real(out, "n_malloc_mb", memory->allocated_mb);
    key_int(out, "n_mallocs", memory->count);
    key_real(out, "n_peak_mb", memory->peak_mb);
    key_real(out, "n_python_fraction", share_of(memory->python_mb, memory->allocated_mb));
    key_int(out, "n_samples", time->samples);
    key_real(out, "n_sys_percent", line_percent(profile, time, time->system_sec));
    key_real(out, "n_usage_fraction",
             share_of(memory->allocated_mb, profile->all_memory.allocated_mb));
    json_out_key(out, "native_library");
    if (memory->library)
        put_text(out, profile, memory->library);
    else
        json_out_null(out);
    if (!is_function) {
        key_int(out, "start_function_line", line->start_function);
        key_int(out, "start_outermost_loop", line->start_outermost_loop);
        key_int(out, "start_region_line", line->start_region);
    }
    key_real(out, "system_sec", time->system_sec);
    key_waits(out, time);
    json_out_end(out);
}

static void put_lines(struct json_out *out, const char *key, const struct profile *profile,
                      const struct profile_line *lines, uint32_t count, bool are_functions,
                      struct buf *scratch)
{
    json_out_key(out, key);
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++)
        put_line(out, profile, &lines[i], are_functions, scratch);
    json_out_end(out);
}

static void put_files(struct json_out *out, const struct profile *profile)
{
    struct buf scratch = {0};
    json_out_key(out, "files");
    json_out_object(out);
    for (uint32_t i = 0; i < profile->file_count; i++) {
        const struct profile_file *file = &profile->files[i];
        json_out_key_raw(out, profile_str(profile, file->name),
                         intern_length(&profile->strings, file->name));
        json_out_object(out);
        key_real(out, "cpu_native_sec", file->time.native_sec);
        key_real(out, "cpu_python_sec", file->time.python_sec);
        put_lines(out, "functions", profile, file->functions, file->function_count, true, &scratch);
        key_texts(out, "imports", profile, file->imports, file->import_count);
        put_leaks(out, file);
        put_lines(out, "lines", profile, file->lines, file->line_count, false, &scratch);
        key_int(out, "n_samples", file->time.samples);
        key_real(out, "percent_cpu_time", percent(profile, profile_time_sum(&file->time)));
        key_real(out, "system_sec", file->time.system_sec);
        json_out_end(out);
    }
    json_out_end(out);
    buf_release(&scratch);
}

/* ---- stacks ---- */

/*
 * `stacks` shows traced frames only, so several stacks may look alike there.
 * They are told apart by the ids of their frames' texts: the key of each prefix
 * is its number in `index`, extended frame by frame.
 */
struct merged_stack {
    uint32_t first; /* the profile's stack whose frames are shown */
    struct profile_time time;
    uint64_t hits;
};

static uint64_t extend(struct map *index, uint64_t prefix, uint64_t part)
{
    uint64_t *at = map_put(index, hash_mix(prefix, part), NULL);
    if (!*at)
        *at = index->count;
    return *at;
}

static uint64_t traced_key(struct map *index, const struct profile_stack *stack)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct profile_frame *frame = &stack->frames[i];
        if (!frame->traced)
            continue;
        key = extend(index, key, (uint64_t)frame->file << 32 | frame->line);
        key = extend(index, key, frame->name);
    }
    return key;
}

static struct merged_stack *merge_traced(const struct profile *profile, size_t *count)
{
    struct merged_stack *merged = NULL;
    size_t cap = 0;
    struct map index = {0}, seen = {0};
    *count = 0;
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        uint64_t key = traced_key(&index, &profile->stacks[i]);
        if (!key)
            continue;
        uint64_t *at = map_put(&seen, key, NULL);
        if (!*at) {
            VEC_PUSH(merged, *count, cap) = (struct merged_stack){.first = i};
            *at = *count;
        }
        profile_time_add(&merged[*at - 1].time, &profile->stacks[i].time);
        merged[*at - 1].hits += profile->stacks[i].hits;
    }
    map_release(&index);
    map_release(&seen);
    return merged;
}

static void put_traced_frames(struct json_out *out, const struct profile *profile,
                              const struct profile_stack *stack, struct buf *scratch)
{
    json_out_array(out);
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct profile_frame *frame = &stack->frames[i];
        if (!frame->traced)
            continue;
        buf_reset(scratch);
        buf_addf(scratch, "%s %s:%u;", profile_str(profile, frame->file),
                 profile_str(profile, frame->name), frame->line);
        json_out_string(out, scratch->data, scratch->len);
    }
    json_out_end(out);
}

static void put_stacks(struct json_out *out, const struct profile *profile)
{
    size_t count;
    struct merged_stack *merged = merge_traced(profile, &count);
    struct buf scratch = {0};
    double total = profile->total_sec > 0 ? profile->total_sec : 1;
    json_out_key(out, "stacks");
    json_out_array(out);
    for (size_t i = 0; i < count; i++) {
        const struct profile_time *time = &merged[i].time;
        json_out_array(out);
        put_traced_frames(out, profile, &profile->stacks[merged[i].first], &scratch);
        json_out_object(out);
        key_real(out, "c_time", time->native_sec / total);
        key_int(out, "count", merged[i].hits);
        key_real(out, "cpu_samples", profile_time_sum(time) / total);
        key_real(out, "python_time", time->python_sec / total);
        json_out_end(out);
        json_out_end(out);
    }
    json_out_end(out);
    buf_release(&scratch);
    free(merged);
}

static void put_frame(struct json_out *out, const struct profile *profile,
                      const struct profile_frame *frame)
{
    json_out_object(out);
    key_text(out, "display_name", profile, frame->name);
    key_text(out, "filename_or_module", profile, frame->file);
    key_null(out, "ip");
    json_out_key(out, "kind");
    json_out_cstr(out, frame->is_native ? "native" : "py");
    key_int_or_null(out, "line", frame->line || !frame->is_native, frame->line);
    key_null(out, "offset");
    json_out_end(out);
}

/* [[frame, ...], MB], ... */
static void put_memory_stacks(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "memory_stacks");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->memory_stack_count; i++) {
        const struct profile_memory_stack *stack = &profile->memory_stacks[i];
        json_out_array(out);
        json_out_array(out);
        for (uint32_t k = 0; k < stack->frame_count; k++)
            put_frame(out, profile, &stack->frames[k]);
        json_out_end(out);
        put_real(out, round(stack->mb * 1e6) / 1e6);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_combined_stacks(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "combined_stacks");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        json_out_array(out);
        json_out_array(out);
        for (uint32_t k = 0; k < stack->frame_count; k++)
            put_frame(out, profile, &stack->frames[k]);
        json_out_end(out);
        put_count(out, stack->hits);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_timeline(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "combined_stacks_timeline");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->run_count; i++) {
        const struct profile_run *run = &profile->runs[i];
        json_out_object(out);
        key_int(out, "count", run->count);
        key_int(out, "stack_index", run->stack);
        key_real(out, "t_sec", to_microseconds(run->at_sec));
        json_out_key(out, "thread_id");
        if (run->thread_ident)
            put_id(out, run->thread_ident);
        else
            json_out_null(out);
        json_out_end(out);
    }
    json_out_end(out);
}

/* ---- the run ---- */

static void put_losses(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "losses");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->loss_count; i++) {
        json_out_object(out);
        key_int(out, "count", profile->losses[i].count);
        key_text(out, "kind", profile, profile->losses[i].key);
        key_text(out, "text", profile, profile->losses[i].text);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_overhead(struct json_out *out, const struct profile *profile)
{
    double own = profile_overhead_sec(profile);
    json_out_key(out, "overhead");
    json_out_object(out);
    key_real(out, "handler_sec", profile->handler_sec);
    key_real(out, "memory_sec", profile->memory_sec);
    key_real(out, "percent_of_cpu", profile->cpu_sec > 0 ? 100 * own / profile->cpu_sec : 0);
    key_real(out, "sampler_sec", profile->sampler_sec);
    json_out_end(out);
}

static void put_resident(struct json_out *out, const struct profile_process *process)
{
    json_out_key(out, "memory");
    if (!process->has_memory) {
        json_out_null(out);
        return;
    }
    json_out_object(out);
    key_real(out, "allocator_slack_mb", process->slack_mb);
    key_real(out, "mapped_live_mb", process->mapped_live_mb);
    key_real(out, "mapped_reserved_mb", process->mapped_reserved_mb);
    key_real(out, "native_live_mb", process->native_live_mb);
    key_real(out, "other_mb", process->other_mb);
    key_real(out, "python_live_mb", process->python_live_mb);
    key_real(out, "rss_mb", process->rss_mb);
    key_real(out, "start_rss_mb", process->start_rss_mb);
    key_real(out, "untouched_mb", process->untouched_mb);
    json_out_end(out);
}

static void put_processes(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "processes");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->process_count; i++) {
        const struct profile_process *process = &profile->processes[i];
        json_out_object(out);
        key_text(out, "command", profile, process->command);
        key_int(out, "count", process->count);
        key_real(out, "cpu_sec", process->cpu_sec);
        key_real(out, "elapsed_sec", process->elapsed_sec);
        key_bool(out, "ended", process->ended);
        key_int_or_null(out, "exit_status", process->exit_status >= 0,
                        (uint64_t)process->exit_status);
        key_bool(out, "forked", process->forked);
        put_resident(out, process);
        key_real(out, "peak_rss_mb", (double)process->peak_rss_bytes / 1048576);
        key_pid(out, "pid", process->pid);
        key_pid(out, "ppid", process->ppid);
        key_text(out, "python", profile, process->python);
        key_bool(out, "running", process->running);
        key_real(out, "sampled_cpu_sec", process->sampled_cpu_sec);
        key_int_or_null(out, "signal", process->signal > 0, (uint64_t)process->signal);
        key_real(out, "start_sec", process->start_sec);
        key_real(out, "startup_sec", process->startup_sec);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_threads(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "threads");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        json_out_object(out);
        key_int(out, "count", thread->count);
        key_real(out, "cpu_sec", thread->cpu_sec);
        key_text(out, "name", profile, thread->name);
        key_pid(out, "pid", thread->pid);
        key_bool(out, "python", thread->is_python);
        json_out_key(out, "thread_id");
        put_id(out, thread->ident);
        key_pid(out, "tid", thread->tid);
        key_real(out, "wait_sec", thread->wait_sec);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_untraced(struct json_out *out, const struct profile *profile)
{
    const struct profile_time *time = &profile->untraced;
    json_out_key(out, "untraced");
    json_out_object(out);
    json_out_key(out, "hottest");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->elsewhere_count; i++) {
        json_out_object(out);
        key_text(out, "name", profile, profile->elsewhere[i].name);
        key_real(out, "sec", profile->elsewhere[i].sec);
        json_out_end(out);
    }
    json_out_end(out);
    key_int(out, "n_samples", time->samples);
    key_real(out, "native_sec", time->native_sec);
    key_real(out, "percent", percent(profile, profile_time_sum(time)));
    key_real(out, "python_sec", time->python_sec);
    key_real(out, "system_sec", time->system_sec);
    json_out_end(out);
}

static void put_sampling(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "sampling");
    json_out_object(out);
    key_real(out, "cpu_interval_sec", profile->interval_sec);
    key_real(out, "memory_interval_mb", profile->memory_interval_mb);
    key_real(out, "stack_least_percent", profile->stack_least_percent);
    key_real(out, "wait_interval_sec", profile->wait_interval_sec);
    json_out_end(out);
}

static void put_memory_totals(struct json_out *out, const struct profile *profile)
{
    if (profile->peak_file)
        key_text(out, "max_footprint_fname", profile, profile->peak_file);
    else
        key_null(out, "max_footprint_fname");
    if (profile->peak_line)
        key_int(out, "max_footprint_lineno", profile->peak_line);
    else
        key_null(out, "max_footprint_lineno");
    key_real(out, "max_footprint_mb", profile->all_memory.peak_mb);
    key_real(out, "max_footprint_python_fraction", profile->peak_python_fraction);
}

static void put_memory_whole(struct json_out *out, const char *key,
                             const struct profile_memory *memory)
{
    json_out_key(out, key);
    json_out_object(out);
    key_real(out, "allocated_mb", memory->allocated_mb);
    key_real(out, "copied_mb", memory->copied_mb);
    key_half_widths(out, memory);
    key_real(out, "live_at_peak_mb", memory->at_peak_mb);
    key_real(out, "live_mb", memory->live_mb);
    key_int(out, "n_alloc_count", memory->total_count);
    key_real(out, "n_alloc_total_mb", memory->total_mb);
    key_int(out, "n_mallocs", memory->count);
    key_real(out, "python_mb", memory->python_mb);
    json_out_end(out);
}

/* `is_whole`: with files, stacks and timeline, which are nearly all of it. */
static void put_profile(struct json_out *out, const struct profile *profile, bool is_whole)
{
    json_out_object(out);
    key_int(out, "alloc_samples", profile->all_memory.samples);
    if (profile->has_args)
        key_texts(out, "args", profile, profile->args, profile->arg_count);
    else
        key_null(out, "args");
    key_bool(out, "async_profile", profile->async_profile);
    if (is_whole) {
        put_combined_stacks(out, profile);
        put_timeline(out, profile);
    }
    key_real(out, "cpu_native_sec", profile->time.native_sec);
    key_real(out, "cpu_python_sec", profile->time.python_sec);
    key_real(out, "cpu_time_sec", profile->cpu_sec);
    key_real(out, "elapsed_time_sec", profile->elapsed_sec);
    key_text(out, "entrypoint_dir", profile, profile->entrypoint_dir);
    key_text(out, "filename", profile, profile->directory);
    if (is_whole)
        put_files(out, profile);
    key_bool(out, "gpu", profile->gpu);
    json_out_key(out, "gpu_device");
    json_out_cstr(out, "");
    key_real(out, "growth_rate", profile->growth_percent);
    key_real(out, "idle_sec", profile->idle_sec);
    put_losses(out, profile);
    json_out_key(out, "main_thread_id");
    if (profile->main_ident)
        put_id(out, profile->main_ident);
    else
        json_out_null(out);
    put_memory_totals(out, profile);
    key_bool(out, "memory", profile->memory);
    if (is_whole)
        put_memory_stacks(out, profile);
    put_memory_whole(out, "memory_total", &profile->all_memory);
    put_memory_whole(out, "memory_untraced", &profile->untraced_memory);
    key_int(out, "n_samples", profile->time.samples);
    key_real(out, "native_allocations_mb", profile->native_threads_mb);
    key_real(out, "native_threads_sec", profile->native_threads_sec);
    key_texts(out, "notes", profile, profile->notes, profile->note_count);
    put_overhead(out, profile);
    put_processes(out, profile);
    key_text(out, "program", profile, profile->program);
    key_points(out, "samples", profile->all_memory.points, profile->all_memory.point_count);
    put_sampling(out, profile);
    json_out_key(out, "scalene_version");
    json_out_cstr(out, SCALENE_VERSION);
    key_int(out, "schema_version", JSON_WRITE_SCHEMA);
    if (is_whole)
        put_stacks(out, profile);
    key_real(out, "start_time_absolute", profile->start_absolute_sec);
    key_real(out, "start_time_perf", profile->start_perf_sec);
    key_real(out, "startup_sec", profile->startup_sec);
    key_real(out, "system_sec", profile->time.system_sec);
    put_threads(out, profile);
    key_real(out, "total_time_sec", profile->total_sec);
    key_real(out, "unsampled_sec", profile->unsampled_sec);
    put_untraced(out, profile);
    key_waits(out, &profile->time);
    json_out_end(out);
}

void json_write_top(const struct profile *profile, struct json_out *out)
{
    put_profile(out, profile, false);
}

void json_write_profile(const struct profile *profile, struct buf *out)
{
    struct json_out json;
    json_out_begin(&json, out);
    if (profile->empty) {
        json_out_object(&json);
        json_out_end(&json);
    } else {
        put_profile(&json, profile, true);
    }
    buf_char(out, '\n');
}
