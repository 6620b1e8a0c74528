/*
 * report_build: opens the arenas of a session and drives the parts that make a
 * profile of them (report_parts.h).  Called by the run command at the end, and
 * for interval profiles from session_wait's tick.
 */
#include "collect/report_parts.h"

#include "wire/control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_note(struct report *report, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_addv(&text, format, args);
    va_end(args);
    VEC_PUSH(report->notes, report->note_count, report->note_cap) =
        intern_add(&report->profile->strings, text.data, text.len);
    buf_release(&text);
}

void report_loss(struct report *report, const char *key, const char *text, uint64_t count)
{
    if (!count)
        return;
    VEC_PUSH(report->losses, report->loss_count, report->loss_cap) = (struct profile_loss){
        .key = intern_cstr(&report->profile->strings, key),
        .text = intern_cstr(&report->profile->strings, text),
        .count = count,
    };
}

/* ---- opening ---- */

static int by_start(const void *a, const void *b)
{
    const struct recording *x = a, *y = b;
    if (x->arena.header.start_mono_ns != y->arena.header.start_mono_ns)
        return x->arena.header.start_mono_ns < y->arena.header.start_mono_ns ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->image > y->image) - (x->image < y->image);
}

/* A pid's CPU clock runs on over exec: the earlier image's time is not the later one's start-up.
 * (A clock that is behind belongs to another process that got the same pid.) */
static void find_cpu_before(struct report *report)
{
    for (size_t i = 0; i < report->recording_count; i++)
        for (size_t k = 0; k < i; k++) {
            struct recording *later = &report->recordings[i], *earlier = &report->recordings[k];
            uint64_t end_ns = atomic_load(&earlier->arena.header.beat_cpu_ns);
            if (later->pid == earlier->pid && end_ns <= later->arena.header.start_cpu_ns &&
                end_ns > later->cpu_before_ns)
                later->cpu_before_ns = end_ns;
        }
}

/* PID-N.arena */
static bool parse_name(const char *name, struct recording *recording)
{
    char *end;
    if (!isdigit((unsigned char)name[0]))
        return false;
    unsigned long pid = strtoul(name, &end, 10);
    if (pid > INT32_MAX || end[0] != '-' || !isdigit((unsigned char)end[1]))
        return false;
    unsigned long image = strtoul(end + 1, &end, 10);
    recording->pid = (int32_t)pid;
    recording->image = (uint32_t)image;
    return image <= UINT32_MAX && !strcmp(end, WIRE_ARENA_SUFFIX);
}

static int open_recordings(struct report *report, struct err *err)
{
    const char *directory = report->config->session_directory;
    DIR *dir = opendir(directory);
    if (!dir)
        return err_set(err, "cannot open '%s': %s", directory, strerror(errno));
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        struct recording recording = {0};
        if (!parse_name(entry->d_name, &recording))
            continue;
        struct err why = {""};
        char *path = mem_format("%s/%s", directory, entry->d_name);
        int rc = arena_open(&recording.arena, path, &why);
        free(path);
        if (rc < 0)
            report_note(report, "nothing is known of process %d: %s", (int)recording.pid, why.text);
        if (rc)
            continue;
        VEC_PUSH(report->recordings, report->recording_count, report->recording_cap) = recording;
    }
    closedir(dir);
    if (report->recording_count)
        qsort(report->recordings, report->recording_count, sizeof *report->recordings, by_start);
    find_cpu_before(report);
    return 0;
}

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
    uint64_t cpu_ns = is_good ? control.cpu_interval_ns : 0;
    uint64_t wait_ns = is_good ? control.wait_interval_ns : 0;
    report->profile->interval_sec = (double)(cpu_ns ? cpu_ns : DEFAULT_INTERVAL_NS) / 1e9;
    report->profile->wait_interval_sec = (double)(wait_ns ? wait_ns : DEFAULT_INTERVAL_NS) / 1e9;
}

/* ---- the program ---- */

struct frame_text {
    struct buf file, name;
};

static bool read_frame(const struct arena *arena, const struct wire_node *node,
                       struct frame_text *text)
{
    buf_reset(&text->file);
    buf_reset(&text->name);
    const struct wire_code *code =
        node && node->frame == WIRE_FRAME_PYTHON ? arena_code(arena, node->ref) : NULL;
    if (!code)
        return false;
    arena_text(arena, code->file, code->file_width, &text->file);
    arena_text(arena, code->name, code->name_width, &text->name);
    return text->file.len && text->name.len;
}

static bool is_runpy(const char *file)
{
    const char *slash = strrchr(file, '/');
    return !strcmp(file, "<frozen runpy>") || (slash && !strcmp(slash, "/runpy.py"));
}

/* What runs as __main__: the first module body with nothing but runpy around it. */
static char *find_program(const struct report *report)
{
    enum { RUNPY_DEPTH_MAX = 8 };
    struct frame_text text = {0};
    char *found = NULL;
    const struct arena *arena = report->recording_count ? &report->recordings[0].arena : NULL;
    for (uint32_t id = 1; arena && !found && id < arena_count(arena, WIRE_NODE); id++) {
        const struct wire_node *node = arena_node(arena, id);
        if (!read_frame(arena, node, &text) || strcmp(text.name.data, "<module>") ||
            text.file.data[0] == '<' || is_runpy(text.file.data))
            continue;
        char *candidate = mem_strdup(text.file.data);
        uint32_t parent = node->parent;
        for (int i = 0; parent && i < RUNPY_DEPTH_MAX; i++) {
            const struct wire_node *outer = arena_node(arena, parent);
            if (!read_frame(arena, outer, &text) || !is_runpy(text.file.data))
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

static void settle_program(struct report *report)
{
    const struct report_config *config = report->config;
    struct profile *profile = report->profile;
    bool has_file = !config->program_text && !config->program_is_stdin;
    report->program =
        config->program[0] || !has_file ? mem_strdup(config->program) : find_program(report);
    report->directory =
        config->program_path[0] ? mem_strdup(config->program_path) : directory_of(report->program);
    report->program_file = sources_name(&report->sources, report->program);
    profile->program = intern_cstr(&profile->strings, report->program);
    profile->directory = intern_cstr(&profile->strings, report->directory);
    char *entry = directory_of(report->program);
    profile->entrypoint_dir = config->is_module ? 0 : intern_cstr(&profile->strings, entry);
    free(entry);

    filter_init(&report->filter, &(struct filter_config){
                                     .directory = report->directory,
                                     .profile_only = config->profile_only,
                                     .profile_exclude = config->profile_exclude,
                                     .profile_all = config->profile_all,
                                     .profile_system_libraries = config->profile_system_libraries,
                                     .program_is_stdin = config->program_is_stdin,
                                     .program_is_code = config->program_text != NULL,
                                 });
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

static double cpu_of(const struct profile_time *time)
{
    return time->python_sec + time->native_sec;
}

/*
 * A profile with little on its lines must say why, instead of looking empty.
 * Measured in CPU time: helper processes that wait for work (a spawn pool's
 * resource tracker) would otherwise look like something to be traced.
 */
static void note_untraced(struct report *report)
{
    enum { WORTH_A_NOTE_PERCENT = 50 };
    const struct report_config *config = report->config;
    const struct charge *charge = &report->charge;
    double all = cpu_of(&charge->total), outside = cpu_of(&charge->untraced);
    for (int i = 0; i < CHARGE_FIRST_NODE; i++)
        outside -= cpu_of(&charge->nodes[i].time);
    double percent = all > 0 ? 100 * outside / all : 0;
    bool has_patterns = config->profile_only[0] || config->profile_exclude[0];
    if (percent < WORTH_A_NOTE_PERCENT || config->profile_all)
        return;
    if (has_patterns)
        report_note(report,
                    "%.0f %% of the CPU time was in files that --profile-only, --profile-exclude "
                    "or the program's directory leave out",
                    percent);
    else if (report->directory[0])
        report_note(report, "%.0f %% of the CPU time was in files outside %s: see --profile-all",
                    percent, report->directory);
    else
        report_note(report, "%.0f %% of the CPU time was in library files: see --profile-all",
                    percent);
}

static void settle_totals(struct report *report)
{
    struct profile *profile = report->profile;
    profile->time = report->charge.total;
    profile->untraced = report->charge.untraced;
    profile->native_threads_sec = report->charge.native_threads_sec;
    profile->total_sec = profile_time_sum(&profile->time);
    profile->empty = !(profile->total_sec > 0);
}

static void hand_over_lists(struct report *report)
{
    struct profile *profile = report->profile;
    profile->note_count = (uint32_t)report->note_count;
    profile->notes = pool_alloc(&profile->pool, report->note_count * sizeof *profile->notes);
    for (size_t i = 0; i < report->note_count; i++)
        profile->notes[i] = report->notes[i];
    profile->loss_count = (uint32_t)report->loss_count;
    profile->losses = pool_alloc(&profile->pool, report->loss_count * sizeof *profile->losses);
    for (size_t i = 0; i < report->loss_count; i++)
        profile->losses[i] = report->losses[i];
}

static void release(struct report *report)
{
    for (size_t i = 0; i < report->recording_count; i++) {
        arena_release(&report->recordings[i].arena);
        free(report->recordings[i].node_of);
        free(report->recordings[i].ident_of);
    }
    free(report->recordings);
    free(report->notes);
    free(report->losses);
    charge_release(&report->charge);
    sources_release(&report->sources);
    filter_release(&report->filter);
    free(report->program);
    free(report->directory);
}

int report_build(struct profile *profile, const struct report_config *config, struct err *err)
{
    struct report report = {.profile = profile, .config = config};
    int rc = open_recordings(&report, err);
    if (rc)
        goto out;
    sources_init(&report.sources, &profile->strings, config->program_text);
    settle_program(&report);
    copy_config(&report);
    read_control(&report);
    charge_init(&report.charge, &profile->strings, &report.filter, &report.sources);
    for (size_t i = 0; i < report.recording_count; i++)
        report.recordings[i].node_of = charge_arena(&report.charge, &report.recordings[i].arena,
                                                    &report.recordings[i].sampled_cpu_sec);
    report_run(&report);
    settle_totals(&report);
    note_untraced(&report);
    report_stacks(&report);
    report_memory(&report);
    report_files(&report);
    hand_over_lists(&report);
out:
    release(&report);
    return rc;
}
