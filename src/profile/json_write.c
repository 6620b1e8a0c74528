/*
 * Writes a struct profile as JSON.  Called with a profile from harvest_build (or
 * one read back).  Keys must come in sorted order: json_out_key asserts it.  Fields
 * of what is not measured are there, at 0, so that the original's readers find
 * every key they know.  Lines and functions are json_line.c's.
 */
#include "profile/json_write.h"

#include "base/json_out.h"
#include "base/map.h"
#include "profile/json_line.h"
#include "profile/json_put.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SCALENE_VERSION
#error "SCALENE_VERSION comes from the build"
#endif

static void key_half_widths(struct json_out *out, const struct profile_memory *memory)
{
    json_put_key_real(out, "half_width_copy_mb", memory->half_width_mb.copied);
    json_put_key_real(out, "half_width_live_mb", memory->half_width_mb.live);
    json_put_key_real(out, "half_width_malloc_mb", memory->half_width_mb.allocated);
    json_put_key_real(out, "half_width_peak_mb", memory->half_width_mb.peak);
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
        json_put_key_real(out, "likelihood", leak->likelihood);
        json_put_key_real(out, "velocity_mb_s", leak->velocity_mb_s);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_lines(struct json_out *out, const char *key, const struct profile *profile,
                      const struct profile_line *lines, uint32_t count, bool are_functions,
                      struct buf *scratch)
{
    json_out_key(out, key);
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++)
        json_line_put(out, profile, &lines[i], are_functions, scratch);
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
        json_put_key_real(out, "cpu_native_sec", file->time.native_sec);
        json_put_key_real(out, "cpu_python_sec", file->time.python_sec);
        put_lines(out, "functions", profile, file->functions, file->function_count, true, &scratch);
        json_put_key_texts(out, "imports", profile, file->imports, file->import_count);
        put_leaks(out, file);
        put_lines(out, "lines", profile, file->lines, file->line_count, false, &scratch);
        json_put_key_int(out, "n_samples", file->time.samples);
        json_put_key_percent(out, "percent_cpu_time", profile, profile_time_sum(&file->time));
        json_put_key_real(out, "system_sec", file->time.system_sec);
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
        json_put_key_real(out, "c_time", time->native_sec / total);
        json_put_key_int(out, "count", merged[i].hits);
        json_put_key_real(out, "cpu_samples", profile_time_sum(time) / total);
        json_put_key_real(out, "python_time", time->python_sec / total);
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
    json_put_key_text(out, "display_name", profile, frame->name);
    json_put_key_text(out, "filename_or_module", profile, frame->file);
    json_put_key_null(out, "ip");
    json_out_key(out, "kind");
    json_out_cstr(out, frame->is_native ? "native" : "py");
    json_put_key_int_or_null(out, "line", frame->line || !frame->is_native, frame->line);
    json_put_key_null(out, "offset");
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
        json_put_real(out, round(stack->mb * 1e6) / 1e6);
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
        json_put_count(out, stack->hits);
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
        json_put_key_int(out, "count", run->count);
        json_put_key_int(out, "stack_index", run->stack);
        json_out_key(out, "t_sec");
        json_put_moment(out, run->at_sec);
        json_out_key(out, "thread_id");
        if (run->thread_ident)
            json_put_id(out, run->thread_ident);
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
        json_put_key_int(out, "count", profile->losses[i].count);
        json_put_key_text(out, "kind", profile, profile->losses[i].key);
        json_put_key_text(out, "text", profile, profile->losses[i].text);
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_overhead(struct json_out *out, const struct profile *profile)
{
    double own = profile_overhead_sec(profile);
    json_out_key(out, "overhead");
    json_out_object(out);
    json_put_key_real(out, "handler_sec", profile->handler_sec);
    json_put_key_real(out, "memory_sec", profile->memory_sec);
    json_put_key_real(out, "percent_of_cpu",
                      profile->cpu_sec > 0 ? 100 * own / profile->cpu_sec : 0);
    json_put_key_real(out, "sampler_sec", profile->sampler_sec);
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
    json_put_key_real(out, "allocator_slack_mb", process->slack_mb);
    json_put_key_real(out, "mapped_live_mb", process->mapped_live_mb);
    json_put_key_real(out, "mapped_reserved_mb", process->mapped_reserved_mb);
    json_put_key_real(out, "native_live_mb", process->native_live_mb);
    json_put_key_real(out, "other_mb", process->other_mb);
    json_put_key_real(out, "python_live_mb", process->python_live_mb);
    json_put_key_real(out, "rss_mb", process->rss_mb);
    json_put_key_real(out, "start_rss_mb", process->start_rss_mb);
    json_put_key_real(out, "untouched_mb", process->untouched_mb);
    json_out_end(out);
}

static void put_processes(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "processes");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->process_count; i++) {
        const struct profile_process *process = &profile->processes[i];
        json_out_object(out);
        json_put_key_text(out, "command", profile, process->command);
        json_put_key_int(out, "count", process->count);
        json_put_key_real(out, "cpu_sec", process->cpu_sec);
        json_put_key_real(out, "elapsed_sec", process->elapsed_sec);
        json_put_key_bool(out, "ended", process->ended);
        json_put_key_int_or_null(out, "exit_status", process->exit_status >= 0,
                                 (uint64_t)process->exit_status);
        json_put_key_bool(out, "forked", process->forked);
        put_resident(out, process);
        json_put_key_real(out, "peak_rss_mb", (double)process->peak_rss_bytes / 1048576);
        json_put_key_pid(out, "pid", process->pid);
        json_put_key_pid(out, "ppid", process->ppid);
        json_put_key_text(out, "python", profile, process->python);
        json_put_key_bool(out, "running", process->running);
        json_put_key_real(out, "sampled_cpu_sec", process->sampled_cpu_sec);
        json_put_key_int_or_null(out, "signal", process->signal > 0, (uint64_t)process->signal);
        json_put_key_real(out, "start_sec", process->start_sec);
        json_put_key_real(out, "startup_sec", process->startup_sec);
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
        json_put_key_int(out, "count", thread->count);
        json_put_key_real(out, "cpu_sec", thread->cpu_sec);
        json_put_key_text(out, "name", profile, thread->name);
        json_put_key_pid(out, "pid", thread->pid);
        json_put_key_bool(out, "python", thread->is_python);
        json_out_key(out, "thread_id");
        json_put_id(out, thread->ident);
        json_put_key_pid(out, "tid", thread->tid);
        json_put_key_real(out, "wait_sec", thread->wait_sec);
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
        json_put_key_text(out, "name", profile, profile->elsewhere[i].name);
        json_put_key_real(out, "sec", profile->elsewhere[i].sec);
        json_out_end(out);
    }
    json_out_end(out);
    json_put_key_int(out, "n_samples", time->samples);
    json_put_key_real(out, "native_sec", time->native_sec);
    json_put_key_percent(out, "percent", profile, profile_time_sum(time));
    json_put_key_real(out, "python_sec", time->python_sec);
    json_put_key_real(out, "system_sec", time->system_sec);
    json_out_end(out);
}

static void put_sampling(struct json_out *out, const struct profile *profile)
{
    json_out_key(out, "sampling");
    json_out_object(out);
    json_put_key_real(out, "cpu_interval_sec", profile->interval_sec);
    json_put_key_real(out, "memory_interval_mb", profile->memory_interval_mb);
    json_put_key_real(out, "stack_least_percent", profile->stack_least_percent);
    json_put_key_real(out, "wait_interval_sec", profile->wait_interval_sec);
    json_out_end(out);
}

static void put_memory_totals(struct json_out *out, const struct profile *profile)
{
    if (profile->peak_file)
        json_put_key_text(out, "max_footprint_fname", profile, profile->peak_file);
    else
        json_put_key_null(out, "max_footprint_fname");
    if (profile->peak_line)
        json_put_key_int(out, "max_footprint_lineno", profile->peak_line);
    else
        json_put_key_null(out, "max_footprint_lineno");
    json_put_key_real(out, "max_footprint_mb", profile->all_memory.peak_mb);
    json_put_key_real(out, "max_footprint_python_fraction", profile->peak_python_fraction);
}

static void put_memory_whole(struct json_out *out, const char *key,
                             const struct profile_memory *memory)
{
    json_out_key(out, key);
    json_out_object(out);
    json_put_key_real(out, "allocated_mb", memory->allocated_mb);
    json_put_key_real(out, "copied_mb", memory->copied_mb);
    key_half_widths(out, memory);
    json_put_key_real(out, "live_at_peak_mb", memory->at_peak_mb);
    json_put_key_real(out, "live_mb", memory->live_mb);
    json_put_key_int(out, "n_alloc_count", memory->total_count);
    json_put_key_real(out, "n_alloc_total_mb", memory->total_mb);
    json_put_key_int(out, "n_mallocs", memory->count);
    json_put_key_real(out, "python_mb", memory->python_mb);
    json_out_end(out);
}

static void put_loops(struct json_out *out, const struct profile *profile)
{
    const struct profile_loops *loops = &profile->loops;
    json_out_key(out, "async");
    json_out_object(out);
    json_put_key_real(out, "await_sec", loops->await_sec);
    json_put_key_real(out, "blocked_sec", loops->blocked_sec);
    json_put_key_real(out, "busy_sec", loops->busy_sec);
    json_put_key_real(out, "idle_sec", loops->idle_sec);
    json_put_key_real(out, "join_sec", loops->join_sec);
    if (loops->longest_file)
        json_put_key_text(out, "longest_blocked_file", profile, loops->longest_file);
    else
        json_put_key_null(out, "longest_blocked_file");
    json_put_key_int_or_null(out, "longest_blocked_line", loops->longest_line, loops->longest_line);
    json_put_key_real(out, "longest_blocked_sec", loops->longest_sec);
    json_put_key_int(out, "looks", loops->looks);
    json_put_key_int(out, "loops", loops->count);
    json_put_key_real(out, "ready_sec", loops->ready_sec);
    json_out_key(out, "tasks");
    json_out_array(out);
    for (uint32_t i = 0; i < loops->crowd_count; i++) {
        json_out_array(out);
        json_put_moment(out, loops->crowd[i].at_sec);
        json_put_count(out, loops->crowd[i].tasks);
        json_out_end(out);
    }
    json_out_end(out);
    json_put_key_int(out, "tasks_peak", loops->tasks_peak);
    json_put_key_real(out, "untraced_await_sec", loops->untraced_await_sec);
    json_out_end(out);
}

/* `is_whole`: with files, stacks and timeline, which are nearly all of it. */
static void put_profile(struct json_out *out, const struct profile *profile, bool is_whole)
{
    json_out_object(out);
    json_put_key_int(out, "alloc_samples", profile->all_memory.samples);
    if (profile->has_args)
        json_put_key_texts(out, "args", profile, profile->args, profile->arg_count);
    else
        json_put_key_null(out, "args");
    put_loops(out, profile);
    json_put_key_bool(out, "async_profile", profile->async_profile);
    if (is_whole) {
        put_combined_stacks(out, profile);
        put_timeline(out, profile);
    }
    json_put_key_real(out, "cpu_native_sec", profile->time.native_sec);
    json_put_key_real(out, "cpu_python_sec", profile->time.python_sec);
    json_put_key_real(out, "cpu_time_sec", profile->cpu_sec);
    json_put_key_real(out, "elapsed_time_sec", profile->elapsed_sec);
    json_put_key_text(out, "entrypoint_dir", profile, profile->entrypoint_dir);
    json_put_key_text(out, "filename", profile, profile->directory);
    if (is_whole)
        put_files(out, profile);
    json_put_key_bool(out, "gpu", profile->gpu);
    json_out_key(out, "gpu_device");
    json_out_cstr(out, "");
    json_put_key_real(out, "growth_rate", profile->growth_percent);
    json_put_key_real(out, "idle_sec", profile->idle_sec);
    put_losses(out, profile);
    json_out_key(out, "main_thread_id");
    if (profile->main_ident)
        json_put_id(out, profile->main_ident);
    else
        json_out_null(out);
    put_memory_totals(out, profile);
    json_put_key_bool(out, "memory", profile->memory);
    if (is_whole)
        put_memory_stacks(out, profile);
    put_memory_whole(out, "memory_total", &profile->all_memory);
    put_memory_whole(out, "memory_untraced", &profile->untraced_memory);
    json_put_key_int(out, "n_samples", profile->time.samples);
    json_put_key_real(out, "native_allocations_mb", profile->native_threads_mb);
    json_put_key_real(out, "native_threads_sec", profile->native_threads_sec);
    json_put_key_texts(out, "notes", profile, profile->notes, profile->note_count);
    put_overhead(out, profile);
    put_processes(out, profile);
    json_put_key_text(out, "program", profile, profile->program);
    json_out_key(out, "samples");
    json_put_points(out, profile->all_memory.points, profile->all_memory.point_count);
    put_sampling(out, profile);
    json_out_key(out, "scalene_version");
    json_out_cstr(out, SCALENE_VERSION);
    json_put_key_int(out, "schema_version", JSON_WRITE_SCHEMA);
    if (is_whole)
        put_stacks(out, profile);
    json_put_key_real(out, "start_time_absolute", profile->start_absolute_sec);
    json_put_key_real(out, "start_time_perf", profile->start_perf_sec);
    json_put_key_real(out, "startup_sec", profile->startup_sec);
    json_put_key_real(out, "system_sec", profile->time.system_sec);
    put_threads(out, profile);
    json_put_key_real(out, "total_time_sec", profile->total_sec);
    json_put_key_real(out, "unsampled_sec", profile->unsampled_sec);
    put_untraced(out, profile);
    json_out_key(out, "waits");
    json_put_waits(out, &profile->time);
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
