/* The part of a report that tells about the run itself: processes, threads, losses, notes. */
#include "collect/report_parts.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *key, *text;
} loss_texts[WIRE_LOSSES] = {
    [WIRE_LOST_TABLE_FULL] = {"table_full", "samples lost: a table of the recording was full"},
    [WIRE_LOST_BAD_FRAME] = {"bad_frame", "samples without a stack: its frames could not be read"},
    [WIRE_LOST_TORN_WAIT] = {"torn_wait", "looks at a waiting thread that moved meanwhile"},
    [WIRE_LOST_LOG_FULL] = {"log_full",
                            "timeline entries lost: the log was full (totals are right)"},
    [WIRE_LOST_TIMER] = {"timer", "threads without a timer: their CPU time was not sampled"},
    [WIRE_LOST_SLOT] = {"slot", "threads beyond the thread limit: their CPU time was not sampled"},
    [WIRE_LOST_TRUNCATED] = {"truncated", "stacks deeper than the limit: outermost frames cut"},
    [WIRE_LOST_FOLDED] = {"folded",
                          "stacks stored with recursion folded: the tables were nearly full"},
    [WIRE_LOST_TEXT] = {"text", "names or line tables too long or unreadable"},
    [WIRE_LOST_GROW] = {"grow", "times the recording could not grow: the disk was full"},
    [WIRE_LOST_ALLOCATION] = {"allocation",
                              "memory samples lost: a table of the recording was full"},
    [WIRE_LOST_SAMPLER] = {"sampler",
                           "processes without wait sampling: its thread could not start"},
};

static const struct {
    const char *key, *text;
} section_texts[WIRE_SECTIONS] = {
    [WIRE_BLOB] = {"dropped_text", "names and line tables that found no room"},
    [WIRE_CODE] = {"dropped_code", "code objects that found no room"},
    [WIRE_NODE] = {"dropped_node", "stack frames that found no room"},
    [WIRE_CELL] = {"dropped_cell", "stacks that found no room"},
    [WIRE_LOG] = {"dropped_log", "timeline entries that found no room (totals are right)"},
    [WIRE_THREAD] = {"dropped_thread", "threads that found no room in the thread table"},
    [WIRE_MODULE] = {"dropped_module", "libraries that found no room"},
    [WIRE_SITE] = {"dropped_site", "allocating stacks that found no room"},
    [WIRE_BLOCK] = {"dropped_block", "sampled blocks that found no room"},
    [WIRE_FOOT] = {"dropped_foot", "points of the footprint that found no room"},
};

static void add_losses(struct report *report)
{
    uint64_t lost[WIRE_LOSSES] = {0}, dropped[WIRE_SECTIONS] = {0};
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct arena *arena = &report->recordings[i].arena;
        for (int k = 0; k < WIRE_LOSSES; k++)
            lost[k] += atomic_load(&arena->header.lost[k]);
        for (int k = 0; k < WIRE_SECTIONS; k++)
            dropped[k] += arena->sections[k].dropped;
    }
    for (int k = 0; k < WIRE_LOSSES; k++)
        report_loss(report, loss_texts[k].key, loss_texts[k].text, lost[k]);
    for (int k = 0; k < WIRE_SECTIONS; k++)
        report_loss(report, section_texts[k].key, section_texts[k].text, dropped[k]);
}

static void version_text(uint32_t python_hex, char *out, size_t size)
{
    snprintf(out, size, "%u.%u.%u", python_hex >> 24, python_hex >> 16 & 0xFF,
             python_hex >> 8 & 0xFF);
}

/* One note a kind and version, not one a process. */
static void add_notes(struct report *report)
{
    bool has_jit = false;
    uint32_t noted_unknown = 0, noted_unfit = 0;
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct wire_header *header = &report->recordings[i].arena.header;
        uint32_t state = atomic_load(&header->stacks_state);
        uint32_t minor = header->python_hex >> 16;
        if (state == WIRE_STACKS_UNKNOWN_PYTHON && noted_unknown != minor) {
            noted_unknown = minor;
            report_note(report, "CPython %u.%u is not known to this scalene: CPU totals only",
                        minor >> 8, minor & 0xFF);
        }
        if (state == WIRE_STACKS_SELFCHECK && noted_unfit != minor) {
            noted_unfit = minor;
            report_note(report,
                        "this build of CPython %u.%u is laid out differently than expected: "
                        "CPU totals only",
                        minor >> 8, minor & 0xFF);
        }
        has_jit |= (atomic_load(&header->flags) & WIRE_PROCESS_JIT) != 0;
        if (report->recordings[i].arena.is_cut)
            report_note(report,
                        "the recording of process %d is cut off: what is missing is unknown",
                        (int)report->recordings[i].pid);
    }
    if (has_jit)
        report_note(report, "CPython's JIT is on: lines inside hot loops are approximate");
}

static str_id command_text(struct intern *strings, const struct wire_header *header)
{
    struct buf text = {0};
    buf_add(&text, header->command, header->command_bytes);
    while (text.len && !text.data[text.len - 1])
        text.len--;
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i])
            text.data[i] = ' ';
    str_id id = intern_add(strings, text.data, text.len);
    buf_release(&text);
    return id;
}

static double since(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

/* The program's CPU time by its own last sign of life, or by what the kernel says of it when it is
 * gone (which counts children it waited for, so only when there were none of ours). */
static uint64_t cpu_clock_ns(const struct report *report, const struct recording *recording)
{
    uint64_t beat_ns = atomic_load(&recording->arena.header.beat_cpu_ns);
    bool is_alone = report->recording_count == 1;
    return is_alone && report->config->child_cpu_ns > beat_ns ? report->config->child_cpu_ns
                                                              : beat_ns;
}

static void add_process(struct report *report, struct recording *recording,
                        struct profile_process *process)
{
    struct profile *profile = report->profile;
    const struct wire_header *header = &recording->arena.header;
    char python[32];
    version_text(header->python_hex, python, sizeof python);
    uint64_t cpu_ns = cpu_clock_ns(report, recording);
    *process = (struct profile_process){
        .pid = recording->pid,
        .ppid = header->ppid > 0 ? header->ppid : 0,
        .command = command_text(&profile->strings, header),
        .python = intern_cstr(&profile->strings, python),
        .start_sec = since(report->recordings[0].arena.header.start_mono_ns, header->start_mono_ns),
        .elapsed_sec = (double)atomic_load(&header->on_ns) / 1e9,
        .cpu_sec = since(recording->cpu_before_ns, cpu_ns),
        .startup_sec = since(recording->cpu_before_ns, header->start_cpu_ns),
        .sampled_cpu_sec = recording->sampled_cpu_sec,
        .peak_rss_bytes = atomic_load(&header->peak_rss_bytes),
        .ended = atomic_load(&header->ended) == 1,
        .forked = (atomic_load(&header->flags) & WIRE_PROCESS_FORKED) != 0,
    };
    double off_sec = (double)atomic_load(&header->off_cpu_ns) / 1e9;
    double sampler_sec = (double)atomic_load(&header->sampler_cpu_ns) / 1e9; /* ours, not missing */
    double unsampled =
        since(header->start_cpu_ns, cpu_ns) - off_sec - sampler_sec - recording->sampled_cpu_sec;
    if (unsampled > 0)
        profile->unsampled_sec += unsampled;
    profile->cpu_sec += process->cpu_sec;
    profile->startup_sec += process->startup_sec;
    profile->handler_sec += (double)atomic_load(&header->handler_ns) / 1e9;
    profile->sampler_sec += sampler_sec;
    if (profile->elapsed_sec < process->elapsed_sec)
        profile->elapsed_sec = process->elapsed_sec;
}

/* Forked processes share the addresses that are Python's thread idents; in one timeline they must
 * differ, so a later process's thread goes by its kernel id when the ident is taken. */
static void add_threads(struct report *report)
{
    struct profile *profile = report->profile;
    size_t most = 0;
    for (size_t i = 0; i < report->recording_count; i++)
        most += arena_count(&report->recordings[i].arena, WIRE_THREAD);
    profile->threads = pool_alloc(&profile->pool, most * sizeof *profile->threads);
    struct map taken = {0};
    for (size_t i = 0; i < report->recording_count; i++) {
        struct recording *recording = &report->recordings[i];
        uint32_t count = arena_count(&recording->arena, WIRE_THREAD);
        recording->ident_of = mem_zalloc(count + 1, sizeof *recording->ident_of);
        for (uint32_t id = 1; id < count; id++) {
            const struct wire_thread *thread = arena_thread(&recording->arena, id);
            if (!thread->tid)
                continue;
            bool is_new;
            map_put(&taken, thread->ident, &is_new);
            uint64_t ident = is_new ? thread->ident : (uint64_t)(uint32_t)thread->tid;
            recording->ident_of[id] = ident;
            profile->threads[profile->thread_count++] = (struct profile_thread){
                .pid = recording->pid,
                .tid = thread->tid,
                .ident = ident,
                .name = intern_add(&profile->strings, thread->name,
                                   strnlen(thread->name, sizeof thread->name)),
                .is_python = atomic_load(&thread->python) == 1,
                .cpu_sec = (double)atomic_load(&thread->cpu_ns) / 1e9,
                .wait_sec = (double)atomic_load(&thread->waited_ns) / 1e9,
            };
        }
    }
    map_release(&taken);
}

void report_run(struct report *report)
{
    struct profile *profile = report->profile;
    profile->processes =
        pool_alloc(&profile->pool, report->recording_count * sizeof *profile->processes);
    profile->process_count = (uint32_t)report->recording_count;
    for (size_t i = 0; i < report->recording_count; i++)
        add_process(report, &report->recordings[i], &profile->processes[i]);
    if (report->recording_count) {
        const struct wire_header *first = &report->recordings[0].arena.header;
        profile->start_absolute_sec = (double)first->start_real_ns / 1e9;
        profile->start_perf_sec = (double)first->start_mono_ns / 1e9;
        profile->main_ident = first->main_ident;
    }
    add_threads(report);
    add_losses(report);
    add_notes(report);
}
