/*
 * The part of a report that tells about the run itself: rows of processes and
 * threads, and CPU time by the processes' own clocks.
 *
 * A program may have started a hundred thousand processes.  Beyond twice
 * PROFILE_ROWS_MAX rows, those that used least CPU are summed up in one row, so
 * that what is held is bounded and the cost of choosing is spread.
 */
#include "report/report_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROWS_HELD_MAX = 2 * PROFILE_ROWS_MAX, IDENTS_MAX = 1 << 16 };

static double since(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

/* ---- processes ---- */

static char *command_text(const struct wire_header *header)
{
    size_t length = header->command_bytes;
    while (length && !header->command[length - 1])
        length--;
    char *text = mem_strndup(header->command, length);
    for (size_t i = 0; i < length; i++)
        if (!text[i])
            text[i] = ' ';
    return text;
}

static str_id version_text(struct intern *strings, uint32_t python_hex)
{
    char text[32];
    snprintf(text, sizeof text, "%u.%u.%u", python_hex >> 24, python_hex >> 16 & 0xFF,
             python_hex >> 8 & 0xFF);
    return intern_cstr(strings, text);
}

/* The clock when the process was last heard of.  The sampler writes that down, and samples may have
 * come since: it may not have had a processor before the process ended by exec or a signal. */
static uint64_t last_cpu_ns(const struct wire_header *header, double sampled_cpu_sec)
{
    uint64_t beat_ns = atomic_load(&header->beat_cpu_ns);
    uint64_t sampled_ns = header->start_cpu_ns + (uint64_t)(sampled_cpu_sec * 1e9);
    return beat_ns > sampled_ns ? beat_ns : sampled_ns;
}

/* A pid's CPU clock runs on over exec: the earlier image's time is not the later one's start-up.
 * (A clock that is behind belongs to another process that got the same pid.) */
static uint64_t cpu_before_ns(struct report *report, const struct wire_header *header,
                              uint64_t end_ns, enum report_fate fate)
{
    uint64_t key = (uint64_t)(uint32_t)header->pid, before_ns = 0;
    const uint64_t *known = map_get(&report->cpu_end_ns, key);
    if (known && *known <= header->start_cpu_ns)
        before_ns = *known;
    if (fate == REPORT_REPLACED)
        *map_put(&report->cpu_end_ns, key, NULL) = end_ns;
    return before_ns;
}

static void add_clocks(struct report_clocks *clocks, const struct wire_header *header,
                       const struct profile_process *row)
{
    double off_sec = (double)atomic_load(&header->off_cpu_ns) / 1e9;
    double sampler_sec = (double)atomic_load(&header->sampler_cpu_ns) / 1e9; /* ours, not missing */
    double unsampled_sec = since(header->start_cpu_ns, atomic_load(&header->beat_cpu_ns)) -
                           off_sec - sampler_sec - row->sampled_cpu_sec;
    if (unsampled_sec > 0)
        clocks->unsampled_sec += unsampled_sec;
    clocks->cpu_sec += row->cpu_sec;
    clocks->startup_sec += row->startup_sec;
    clocks->handler_sec += (double)atomic_load(&header->handler_ns) / 1e9;
    clocks->sampler_sec += sampler_sec;
    clocks->sampled_sec += row->sampled_cpu_sec;
    clocks->cpu_samples += atomic_load(&header->handler_count);
    clocks->memory_sec += report_memory_cost_sec(header);
    if (clocks->elapsed_sec < row->elapsed_sec)
        clocks->elapsed_sec = row->elapsed_sec;
}

/* Those that must have a row: the program itself, and what still runs. */
static bool is_kept(const struct report_process *process)
{
    return process->is_first || process->row.running;
}

static int by_weight(const void *a, const void *b)
{
    const struct report_process *x = a, *y = b;
    if (is_kept(x) != is_kept(y))
        return is_kept(x) ? -1 : 1;
    if (x->row.cpu_sec != y->row.cpu_sec)
        return x->row.cpu_sec > y->row.cpu_sec ? -1 : 1;
    return (x->start_mono_ns > y->start_mono_ns) - (x->start_mono_ns < y->start_mono_ns);
}

static void sum_up_process(struct report_process *sum, const struct report_process *process)
{
    struct profile_process *into = &sum->row;
    const struct profile_process *from = &process->row;
    if (!into->count) {
        into->ended = into->forked = true;
        into->exit_status = -1;
        sum->start_mono_ns = process->start_mono_ns;
    }
    into->count += from->count;
    into->cpu_sec += from->cpu_sec;
    into->startup_sec += from->startup_sec;
    into->sampled_cpu_sec += from->sampled_cpu_sec;
    if (into->elapsed_sec < from->elapsed_sec)
        into->elapsed_sec = from->elapsed_sec;
    if (into->peak_rss_bytes < from->peak_rss_bytes)
        into->peak_rss_bytes = from->peak_rss_bytes;
    if (sum->start_mono_ns > process->start_mono_ns)
        sum->start_mono_ns = process->start_mono_ns;
    into->ended &= from->ended;
    into->forked &= from->forked;
    into->running |= from->running;
}

static void thin_processes(struct report *report)
{
    if (report->process_count <= PROFILE_ROWS_MAX)
        return;
    for (size_t i = 0; i < report->process_count; i++) /* in copies of recordings nobody is named */
        report->processes[i].is_first |=
            report->processes[i].start_mono_ns == report->first_mono_ns;
    qsort(report->processes, report->process_count, sizeof *report->processes, by_weight);
    for (size_t i = PROFILE_ROWS_MAX; i < report->process_count; i++) {
        sum_up_process(&report->more_processes, &report->processes[i]);
        free(report->processes[i].command);
    }
    report->process_count = PROFILE_ROWS_MAX;
}

void report_run_add(struct report *report, const struct recording *recording,
                    double sampled_cpu_sec, enum report_fate fate)
{
    const struct wire_header *header = &recording->header;
    uint64_t end_ns = last_cpu_ns(header, sampled_cpu_sec);
    uint64_t before_ns = cpu_before_ns(report, header, end_ns, fate);
    uint32_t flags = atomic_load(&header->flags);
    struct report_process process = {
        .row =
            {
                .pid = header->pid > 0 ? header->pid : 0,
                .ppid = header->ppid > 0 ? header->ppid : 0,
                .count = 1,
                .python = version_text(&report->profile->strings, header->python_hex),
                .elapsed_sec = (double)atomic_load(&header->on_ns) / 1e9,
                .cpu_sec = since(before_ns, end_ns),
                .startup_sec = since(before_ns, header->start_cpu_ns),
                .sampled_cpu_sec = sampled_cpu_sec,
                .peak_rss_bytes = atomic_load(&header->peak_rss_bytes),
                .ended = atomic_load(&header->ended) == 1 && fate != REPORT_RUNNING,
                .forked = (flags & WIRE_PROCESS_FORKED) != 0,
                .running = fate == REPORT_RUNNING,
                .exit_status = -1,
            },
        .command = command_text(header),
        .start_mono_ns = header->start_mono_ns,
        .is_first = (flags & WIRE_PROCESS_FIRST) != 0,
    };
    if (process.row.ended && atomic_load(&header->has_status) == 1)
        process.row.exit_status = atomic_load(&header->exit_status) & 0xFF;
    report_memory_resident(report, header, &process.row);
    add_clocks(&report->clocks, header, &process.row);
    VEC_PUSH(report->processes, report->process_count, report->process_cap) = process;
    if (report->process_count == ROWS_HELD_MAX)
        thin_processes(report);
}

/* The pid's last image is the one that ended. */
void report_program_ended(struct report *report, pid_t pid, int status)
{
    struct report_process *last = NULL;
    for (size_t i = 0; i < report->process_count; i++) {
        struct report_process *process = &report->processes[i];
        if (process->row.pid == pid && (!last || last->start_mono_ns < process->start_mono_ns))
            last = process;
    }
    if (!last)
        return;
    last->row.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    last->row.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int by_start(const void *a, const void *b)
{
    const struct report_process *x = a, *y = b;
    if (x->start_mono_ns != y->start_mono_ns)
        return x->start_mono_ns < y->start_mono_ns ? -1 : 1;
    return (x->row.pid > y->row.pid) - (x->row.pid < y->row.pid);
}

static void finish_processes(struct report *report)
{
    struct profile *profile = report->profile;
    thin_processes(report);
    if (report->process_count)
        qsort(report->processes, report->process_count, sizeof *report->processes, by_start);
    struct report_process *more = &report->more_processes;
    if (more->row.count) { /* at the end: it is no process */
        more->command = mem_format("%" PRIu64 " more processes", more->row.count);
        VEC_PUSH(report->processes, report->process_count, report->process_cap) = *more;
        *more = (struct report_process){0};
    }
    profile->process_count = (uint32_t)report->process_count;
    profile->processes =
        pool_alloc(&profile->pool, report->process_count * sizeof *profile->processes);
    for (size_t i = 0; i < report->process_count; i++) {
        const struct report_process *process = &report->processes[i];
        struct profile_process *row = &profile->processes[i];
        *row = process->row;
        row->command = intern_cstr(&profile->strings, process->command);
        row->start_sec = since(report->first_mono_ns, process->start_mono_ns);
    }
}

/* ---- threads ---- */

/* Forked processes share the addresses that are Python's thread idents; in one timeline they must
 * differ, so their threads go by the kernel's ids. */
static uint64_t ident_for(struct report *report, const struct wire_header *header,
                          const struct wire_thread *thread)
{
    uint32_t flags = atomic_load(&header->flags);
    bool is_new = false;
    if (!(flags & WIRE_PROCESS_FORKED) && report->idents.count < IDENTS_MAX)
        map_put(&report->idents, thread->ident, &is_new);
    bool is_own = is_new || (flags & WIRE_PROCESS_FIRST);
    return is_own ? thread->ident : (uint64_t)(uint32_t)thread->tid;
}

static int by_cpu(const void *a, const void *b)
{
    const struct report_thread *x = a, *y = b;
    if (x->row.cpu_sec != y->row.cpu_sec)
        return x->row.cpu_sec > y->row.cpu_sec ? -1 : 1;
    return (x->start_mono_ns > y->start_mono_ns) - (x->start_mono_ns < y->start_mono_ns);
}

static void thin_threads(struct report *report)
{
    if (report->thread_count <= PROFILE_ROWS_MAX)
        return;
    struct profile_thread *more = &report->more_threads;
    qsort(report->threads, report->thread_count, sizeof *report->threads, by_cpu);
    for (size_t i = PROFILE_ROWS_MAX; i < report->thread_count; i++) {
        const struct profile_thread *row = &report->threads[i].row;
        more->count += row->count;
        more->cpu_sec += row->cpu_sec;
        more->wait_sec += row->wait_sec;
        more->is_python |= row->is_python;
    }
    report->thread_count = PROFILE_ROWS_MAX;
}

uint64_t *report_run_threads(struct report *report, const struct recording *recording)
{
    uint32_t count = recording_count(recording, WIRE_THREAD);
    uint64_t *ident_of = mem_zalloc((size_t)count + 1, sizeof *ident_of);
    for (uint32_t id = 1; id < count; id++) {
        const struct wire_thread *thread = recording_thread(recording, id);
        if (!thread->tid)
            continue;
        ident_of[id] = ident_for(report, &recording->header, thread);
        struct report_thread *made =
            &VEC_PUSH(report->threads, report->thread_count, report->thread_cap);
        *made = (struct report_thread){
            .row =
                {
                    .pid = recording->header.pid,
                    .tid = thread->tid,
                    .count = 1,
                    .ident = ident_of[id],
                    .is_python = atomic_load(&thread->python) == 1,
                    .cpu_sec = (double)atomic_load(&thread->cpu_ns) / 1e9,
                    .wait_sec = (double)atomic_load(&thread->waited_ns) / 1e9,
                },
            .start_mono_ns = recording->header.start_mono_ns,
            .id = id,
        };
        memcpy(made->name, thread->name, sizeof made->name);
        if (report->thread_count == ROWS_HELD_MAX)
            thin_threads(report);
    }
    return ident_of;
}

static int by_process(const void *a, const void *b)
{
    const struct report_thread *x = a, *y = b;
    if (x->start_mono_ns != y->start_mono_ns)
        return x->start_mono_ns < y->start_mono_ns ? -1 : 1;
    if (x->row.pid != y->row.pid)
        return x->row.pid < y->row.pid ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void finish_threads(struct report *report)
{
    struct profile *profile = report->profile;
    struct profile_thread *more = &report->more_threads;
    thin_threads(report);
    if (report->thread_count)
        qsort(report->threads, report->thread_count, sizeof *report->threads, by_process);
    profile->threads =
        pool_alloc(&profile->pool, (report->thread_count + 1) * sizeof *profile->threads);
    for (size_t i = 0; i < report->thread_count; i++) {
        const struct report_thread *thread = &report->threads[i];
        struct profile_thread *row = &profile->threads[profile->thread_count++];
        *row = thread->row;
        row->name =
            intern_add(&profile->strings, thread->name, strnlen(thread->name, sizeof thread->name));
    }
    if (more->count) {
        char *name = mem_format("%" PRIu64 " more threads", more->count);
        profile->threads[profile->thread_count] = *more;
        profile->threads[profile->thread_count++].name = intern_cstr(&profile->strings, name);
        free(name);
    }
}

/* ---- the whole ---- */

void report_run_finish(struct report *report)
{
    struct profile *profile = report->profile;
    const struct report_clocks *clocks = &report->clocks;
    profile->elapsed_sec = clocks->elapsed_sec;
    profile->cpu_sec = clocks->cpu_sec;
    profile->startup_sec = clocks->startup_sec;
    profile->unsampled_sec = clocks->unsampled_sec;
    profile->handler_sec = clocks->handler_sec;
    if (!report->has_fixed_rate && clocks->cpu_samples && clocks->sampled_sec > 0)
        profile->interval_sec = clocks->sampled_sec / (double)clocks->cpu_samples;
    profile->sampler_sec = clocks->sampler_sec;
    profile->memory_sec = clocks->memory_sec;
    if (report->has_first) {
        profile->start_absolute_sec = (double)report->first_real_ns / 1e9;
        profile->start_perf_sec = (double)report->first_mono_ns / 1e9;
        profile->main_ident = report->first_main_ident;
    }
    finish_processes(report);
    finish_threads(report);
}

void report_run_copy(struct report *to, const struct report *from)
{
    to->processes = mem_copy(from->processes, from->process_count * sizeof *from->processes);
    to->process_cap = from->process_count;
    for (size_t i = 0; i < to->process_count; i++)
        to->processes[i].command = mem_strdup(from->processes[i].command);
    to->threads = mem_copy(from->threads, from->thread_count * sizeof *from->threads);
    to->thread_cap = from->thread_count;
    map_copy(&to->cpu_end_ns, &from->cpu_end_ns);
    map_copy(&to->idents, &from->idents);
}

void report_run_release(struct report *report)
{
    for (size_t i = 0; i < report->process_count; i++)
        free(report->processes[i].command);
    free(report->processes);
    free(report->threads);
    map_release(&report->cpu_end_ns);
    map_release(&report->idents);
}
