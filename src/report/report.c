/*
 * The report: takes arenas in, one after the other, and drives the parts that
 * make a profile of them (report_parts.h).  Called by harvest.c as processes
 * end, and by the commands that want a profile.
 */
#include "report/report_parts.h"

#include "wire/control.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The intervals the samples were taken with; a session without a readable control page (a copy of
 * the arenas alone) gets the defaults. */
static void read_control(struct report *report)
{
    enum { DEFAULT_INTERVAL_NS = 10000000 };
    struct wire_control control = {0};
    char *path = mem_format("%s/%s", report->config->session_directory, WIRE_CONTROL_NAME);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, &control, sizeof control);
    if (fd >= 0)
        close(fd);
    free(path);
    bool is_good = got == (ssize_t)sizeof control && control.magic == WIRE_CONTROL_MAGIC;
    report->harvested = is_good ? atomic_load(&control.harvested) : 0;
    uint64_t cpu_ns = is_good ? control.cpu_interval_ns : 0;
    uint64_t wait_ns = is_good ? control.wait_interval_ns : 0;
    report->has_fixed_rate = is_good && control.flags & WIRE_FLAG_FIXED_RATE;
    report->profile->interval_sec = (double)(cpu_ns ? cpu_ns : DEFAULT_INTERVAL_NS) / 1e9;
    report->profile->wait_interval_sec = (double)(wait_ns ? wait_ns : DEFAULT_INTERVAL_NS) / 1e9;
}

/* ---- the program ---- */

struct frame_text {
    struct buf file, name;
};

static bool read_frame(const struct recording *recording, const struct wire_node *node,
                       struct frame_text *text)
{
    buf_reset(&text->file);
    buf_reset(&text->name);
    const struct wire_code *code =
        node && node->frame == WIRE_FRAME_PYTHON ? recording_code(recording, node->ref) : NULL;
    if (!code)
        return false;
    recording_text(recording, code->file, code->file_width, &text->file);
    recording_text(recording, code->name, code->name_width, &text->name);
    return text->file.len && text->name.len;
}

static bool is_runpy(const char *file)
{
    const char *slash = strrchr(file, '/');
    return !strcmp(file, "<frozen runpy>") || (slash && !strcmp(slash, "/runpy.py"));
}

/* What runs as __main__: the first module body with nothing but runpy around it. */
static char *find_program(const struct recording *recording)
{
    enum { RUNPY_DEPTH_MAX = 8 };
    struct frame_text text = {0};
    char *found = NULL;
    for (uint32_t id = 1; !found && id < recording_count(recording, WIRE_NODE); id++) {
        const struct wire_node *node = recording_node(recording, id);
        if (!read_frame(recording, node, &text) || strcmp(text.name.data, "<module>") ||
            text.file.data[0] == '<' || is_runpy(text.file.data))
            continue;
        char *candidate = mem_strdup(text.file.data);
        uint32_t parent = node->parent;
        for (int i = 0; parent && i < RUNPY_DEPTH_MAX; i++) {
            const struct wire_node *outer = recording_node(recording, parent);
            if (!read_frame(recording, outer, &text) || !is_runpy(text.file.data))
                break;
            parent = outer->parent;
        }
        if (parent)
            free(candidate);
        else
            found = candidate;
    }
    buf_release(&text.file);
    buf_release(&text.name);
    return found ? found : mem_strdup("");
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return mem_strdup("");
    return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The earliest process is the program.  Children usually end, and are added, before it. */
static void see_first(struct report *report, const struct recording *recording)
{
    const struct report_config *config = report->config;
    const struct wire_header *header = &recording->header;
    if (report->has_first && report->first_mono_ns <= header->start_mono_ns)
        return;
    report->has_first = true;
    report->first_mono_ns = header->start_mono_ns;
    report->first_real_ns = header->start_real_ns;
    report->first_main_ident = header->main_ident;
    if (!config->program[0] && !config->program_text && !config->program_is_stdin) {
        free(report->program);
        report->program = find_program(recording);
    }
}

static void make_filter(struct wire_filter *filter, const struct report_config *config,
                        const char *directory)
{
    filter_init(filter, &(struct filter_config){
                            .directory = directory,
                            .work_directory = config->work_directory,
                            .script = config->script,
                            .script_is_command = config->script_is_command,
                            .tool = config->tool,
                            .profile_only = config->profile_only,
                            .profile_exclude = config->profile_exclude,
                            .profile_all = config->profile_all,
                            .profile_system_libraries = config->profile_system_libraries,
                            .program_is_stdin = config->program_is_stdin,
                            .program_is_code = config->program_text != NULL,
                        });
}

void report_filter(const struct report_config *config, struct wire_filter *filter)
{
    make_filter(filter, config, config->program_path);
}

/* The filter may not change once something was charged.  Its directory is known beforehand, but for
 * a report on recordings alone. */
static void settle_filter(struct report *report)
{
    const struct report_config *config = report->config;
    if (report->has_filter)
        return;
    report->has_filter = true;
    if (!report->directory)
        report->directory = config->program_path[0] ? mem_strdup(config->program_path)
                                                    : directory_of(report->program);
    make_filter(&report->filter, config, report->directory);
}

static void settle_program(struct report *report)
{
    struct profile *profile = report->profile;
    report->program_file = sources_name(&report->sources, report->program);
    profile->program = intern_cstr(&profile->strings, report->program);
    profile->directory = intern_cstr(&profile->strings, report->directory);
    char *entry = directory_of(report->program);
    profile->entrypoint_dir = report->config->is_module ? 0 : intern_cstr(&profile->strings, entry);
    free(entry);
}

static void copy_config(struct report *report)
{
    const struct report_config *config = report->config;
    struct profile *profile = report->profile;
    profile->async_profile = config->async_profile;
    profile->memory = config->memory;
    profile->gpu = config->gpu;
    if (!config->args)
        return;
    profile->has_args = true;
    while (config->args[profile->arg_count])
        profile->arg_count++;
    profile->args = pool_alloc(&profile->pool, profile->arg_count * sizeof *profile->args);
    for (uint32_t i = 0; i < profile->arg_count; i++)
        profile->args[i] = intern_cstr(&profile->strings, config->args[i]);
}

/* ---- the whole ---- */

/* Of an installed tool that reached no file of the user's, its own are shown. */
static void settle_tool(struct report *report)
{
    if (charge_settle_tool(&report->charge))
        report_note(report,
                    "no file of yours was reached: what is shown are the lines of '%s' itself",
                    report->config->tool);
}

static void settle_totals(struct report *report)
{
    struct profile *profile = report->profile;
    profile->time = report->charge.total;
    profile->untraced = report->charge.untraced;
    profile->idle_sec = report->charge.idle_sec;
    profile->native_threads_sec = report->charge.native_threads_sec;
    profile->total_sec = profile_time_sum(&profile->time);
    profile->empty =
        !(profile->total_sec > 0) && !report->memory.all.samples && !report->async.looks;
}

/* ---- life ---- */

struct report *report_begin(struct profile *profile, const struct report_config *config)
{
    struct report *report = mem_zalloc(1, sizeof *report);
    report->profile = profile;
    report->config = config;
    report->program = mem_strdup(config->program);
    sources_init(&report->sources, &profile->strings, config->program_text);
    charge_init(&report->charge, &profile->strings, &report->filter, &report->sources);
    copy_config(report);
    read_control(report);
    return report;
}

/* A process between fork and exec, of which no sample was taken, is no process of its own: what it
 * used is its successor's start-up. */
static bool is_stepping_stone(const struct recording *recording, enum report_fate fate)
{
    struct recording_cell cell;
    if (fate != REPORT_REPLACED || !(atomic_load(&recording->header.flags) & WIRE_PROCESS_FORKED))
        return false;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_CELL); id++)
        if (recording_cell(recording, id, &cell))
            return false;
    return true;
}

void report_add(struct report *report, const struct recording *recording, enum report_fate fate)
{
    struct charge_ids ids;
    if (is_stepping_stone(recording, fate))
        return;
    see_first(report, recording);
    settle_filter(report);
    double sampled_cpu_sec = charge_recording(&report->charge, recording, &ids);
    uint64_t *ident_of = report_run_threads(report, recording);
    report_run_add(report, recording, sampled_cpu_sec, fate);
    report_notes_add(report, recording);
    report_stacks_add(report, recording, ids.node_of, ident_of);
    report_async_add(report, recording, &ids);
    report_memory_add(report, recording, ids.node_of, fate);
    report_files_add(report, recording);
    charge_ids_release(&ids);
    free(ident_of);
}

/* Strings are added in the order of their ids, so each gets the same id again. */
static void copy_strings(struct intern *to, const struct intern *from)
{
    for (str_id id = 1; id < from->count; id++)
        intern_add(to, intern_get(from, id), intern_length(from, id));
}

struct report *report_copy(const struct report *from, struct profile *profile)
{
    struct report *to = report_begin(profile, from->config);
    copy_strings(&profile->strings, &from->profile->strings);
    struct report fresh = *to;
    *to = *from;
    to->profile = profile;
    to->filter = (struct wire_filter){0};
    to->sources = fresh.sources; /* files are loaded anew: they may have changed */
    to->charge = fresh.charge;
    charge_copy(&to->charge, &from->charge);
    free(fresh.program);
    to->program = mem_strdup(from->program);
    to->directory = from->directory ? mem_strdup(from->directory) : NULL;
    to->has_filter = false;
    if (from->has_filter)
        settle_filter(to);
    report_run_copy(to, from);
    to->runs = mem_copy(from->runs, from->run_count * sizeof *from->runs);
    to->run_cap = from->run_count;
    report_memory_copy(to, from);
    report_async_copy(to, from);
    to->interpreters =
        mem_copy(from->interpreters, from->interpreter_count * sizeof *from->interpreters);
    to->interpreter_cap = from->interpreter_count;
    to->notes = mem_copy(from->notes, from->note_count * sizeof *from->notes);
    to->note_cap = from->note_count;
    to->losses = mem_copy(from->losses, from->loss_count * sizeof *from->losses);
    to->loss_cap = from->loss_count;
    return to;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    report_run_release(report);
    report_memory_release(report);
    report_async_release(report);
    free(report->runs);
    free(report->interpreters);
    free(report->notes);
    free(report->losses);
    charge_release(&report->charge);
    sources_release(&report->sources);
    free(report->program);
    free(report->directory);
    free(report);
}

void report_finish(struct report *report)
{
    settle_filter(report);
    settle_program(report);
    settle_tool(report);
    settle_totals(report);
    report_notes_finish(report);
    report_run_finish(report);
    report_async_finish(report);
    report_stacks_finish(report);
    report_memory_finish(report);
    report_files_finish(report);
    report_elsewhere_finish(report);
    report_notes_hand_over(report);
    report_free(report);
}

void report_harvested(struct report *report)
{
    if (report->harvested)
        report_note(report,
                    "%llu processes that ended earlier are not in here: the launcher has them for "
                    "its own profile",
                    (unsigned long long)report->harvested);
}
