/*
 * The part of a report that is about source: which files are shown, their lines
 * with text and regions, their functions, and which of their imports are native.
 */
#include "report/report_parts.h"
#include "source/native_module.h"
#include "wire/traced.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where modules live ---- */

struct places {
    char **items;
    size_t count, cap;
};

static void place_add(struct places *places, char *place)
{
    for (size_t i = 0; i < places->count; i++)
        if (!strcmp(places->items[i], place)) {
            free(place);
            return;
        }
    VEC_PUSH(places->items, places->count, places->cap) = place;
}

/* A directory of modules, with the two below it that a standard library has. */
static void place_add_root(struct places *places, const char *root, size_t length)
{
    place_add(places, mem_strndup(root, length));
    place_add(places, mem_format("%.*s/lib-dynload", (int)length, root));
    place_add(places, mem_format("%.*s/site-packages", (int)length, root));
}

/* Next to the interpreter, for programs none of whose samples is in a library. */
static void place_add_interpreter(struct places *places, const char *path, uint32_t python_hex)
{
    char *real = realpath(path, NULL);
    char *bin = real ? strrchr(real, '/') : NULL;
    if (bin) {
        *bin = '\0';
        char *root =
            mem_format("%s/../lib/python%u.%u", real, python_hex >> 24, python_hex >> 16 & 0xFF);
        if (!access(root, F_OK))
            place_add_root(places, root, strlen(root));
        free(root);
    }
    free(real);
}

static void find_places(const struct report *report, struct places *places)
{
    const struct charge *charge = &report->charge;
    for (size_t i = 0; i < charge->file_count; i++) {
        const char *name = intern_get(charge->strings, charge->files[i].name);
        size_t root = traced_library_root(name);
        if (root)
            place_add_root(places, name, root);
    }
    for (size_t i = 0; i < report->interpreter_count; i++)
        place_add_interpreter(places, intern_get(charge->strings, report->interpreters[i].path),
                              report->interpreters[i].python_hex);
}

void report_files_add(struct report *report, const struct recording *recording)
{
    enum { INTERPRETERS_MAX = 64 }; /* a program does not run more; what it calls itself may vary */
    const struct wire_header *header = &recording->header;
    if (!header->command_bytes || header->command[0] != '/' ||
        report->interpreter_count == INTERPRETERS_MAX)
        return;
    struct report_interpreter seen = {
        .path = intern_add(&report->profile->strings, header->command,
                           strnlen(header->command, header->command_bytes)),
        .python_hex = header->python_hex,
    };
    for (size_t i = 0; i < report->interpreter_count; i++)
        if (report->interpreters[i].path == seen.path &&
            report->interpreters[i].python_hex == seen.python_hex)
            return;
    VEC_PUSH(report->interpreters, report->interpreter_count, report->interpreter_cap) = seen;
}

static void release_places(struct places *places)
{
    for (size_t i = 0; i < places->count; i++)
        free(places->items[i]);
    free(places->items);
}

/* ---- one file ---- */

static double processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* What lines and functions have in common, once `time` is there. */
static void finish_line(const struct profile *profile, struct profile_line *line)
{
    double cpu = line->time.python_sec + line->time.native_sec, all = profile_time_sum(&line->time);
    double utilization = all > 0 ? cpu / all / processors() : 0;
    line->core_utilization = utilization > 1 ? 1 : utilization;
    line->half_width_percent = profile_half_width(profile, &line->time);
}

/* In an `async def`?  Functions are sorted by first line. */
static bool is_coroutine_at(const struct structure *structure, uint32_t start_function)
{
    size_t first = 0, end = structure->function_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (structure->functions[middle].first_line < start_function)
            first = middle + 1;
        else
            end = middle;
    }
    return start_function && first < structure->function_count &&
           structure->functions[first].first_line == start_function &&
           structure->functions[first].is_async;
}

/* Is the function that begins there, with its decorators, an `async def`? */
static bool is_coroutine_function(const struct structure *structure, uint32_t first_line)
{
    for (size_t i = 0; i < structure->function_count; i++)
        if (structure->functions[i].decorator_line == first_line)
            return structure->functions[i].is_async;
    return false;
}

/* A line that got something, by its file. */
struct charged {
    uint32_t file, line;
};

static int by_place(const void *a, const void *b)
{
    const struct charged *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* All of them, by file and number; the caller frees it. */
static struct charged *sort_charged(const struct charge *charge)
{
    struct charged *all = mem_alloc((charge->line_count + 1) * sizeof *all);
    for (size_t i = 0; i < charge->line_count; i++)
        all[i] = (struct charged){charge->lines[i].file, charge->lines[i].line};
    qsort(all, charge->line_count, sizeof *all, by_place);
    return all;
}

/* Those of one file. */
static const struct charged *charged_in(const struct charged *all, size_t all_count, uint32_t file,
                                        size_t *count)
{
    size_t first = 0, end = all_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (all[middle].file < file)
            first = middle + 1;
        else
            end = middle;
    }
    *count = 0;
    while (first + *count < all_count && all[first + *count].file == file)
        ++*count;
    return all + first;
}

/* Every line end becomes a newline, as Python's readlines gives it. */
static str_id line_text(struct intern *strings, const struct source *source, size_t lineno)
{
    size_t length = 0;
    const char *at = source_line(source, lineno, &length);
    size_t body = length;
    while (body && (at[body - 1] == '\n' || at[body - 1] == '\r'))
        body--;
    if (body == length || (body + 1 == length && at[body] == '\n'))
        return intern_add(strings, at, length);
    struct buf text = {0};
    buf_add(&text, at, body);
    buf_char(&text, '\n');
    str_id id = intern_add(strings, text.data, text.len);
    buf_release(&text);
    return id;
}

static struct profile_line source_line_of(struct report *report, const struct source_file *source,
                                          uint32_t n)
{
    const struct structure_lines *at = &source->structure.lines[n];
    return (struct profile_line){
        .lineno = n,
        .text = line_text(&report->profile->strings, &source->source, n),
        .start_region = at->start_region,
        .end_region = at->end_region,
        .start_outermost_loop = at->start_outermost_loop,
        .end_outermost_loop = at->end_outermost_loop,
        .start_function = at->start_function,
        .end_function = at->end_function,
        .is_coroutine = is_coroutine_at(&source->structure, at->start_function),
    };
}

/*
 * `charged` are the numbers of lines that got something, ascending.  They may be
 * beyond the source: it cannot be read, it shrank since it ran, or a damaged line
 * table made them up.  Whatever they are, no other lines are put in between.
 */
static void add_lines(struct report *report, const struct source_file *source,
                      const struct charged *charged, size_t charged_count, struct profile_file *out)
{
    uint32_t count = (uint32_t)source->source.line_count;
    while (charged_count && charged->line <= count) {
        charged++;
        charged_count--;
    }
    out->lines = pool_alloc(&report->profile->pool, (count + charged_count) * sizeof *out->lines);
    for (uint32_t n = 1; n <= count; n++)
        out->lines[out->line_count++] = source_line_of(report, source, n);
    for (size_t i = 0; i < charged_count; i++) {
        uint32_t n = charged[i].line;
        out->lines[out->line_count++] = (struct profile_line){.lineno = n,
                                                              .start_region = n,
                                                              .end_region = n,
                                                              .start_outermost_loop = n,
                                                              .end_outermost_loop = n};
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill_times(struct report *report, const uint32_t *out_of)
{
    struct profile *profile = report->profile;
    for (size_t i = 0; i < report->charge.line_count; i++) {
        struct charge_line *from = &report->charge.lines[i];
        if (!out_of[from->file])
            continue;
        struct profile_line *line =
            profile_line_at(&profile->files[out_of[from->file] - 1], from->line);
        line->time = from->time;
        line->memory = from->memory;
        line->async = from->async;
        report_async_names(profile, &from->names, &line->async);
        finish_line(profile, line);
        line->stamp_count = from->stamps.count;
        line->stamps = pool_alloc(&profile->pool, from->stamps.count * sizeof *line->stamps);
        for (uint32_t k = 0; k < from->stamps.count; k++)
            line->stamps[k] = from->stamps.at_sec[k];
        qsort(line->stamps, line->stamp_count, sizeof *line->stamps, by_value);
    }
}

static bool has_time(const struct profile_time *time)
{
    double sec = profile_time_sum(time);
    for (int i = 0; i < WAIT_CAUSES; i++)
        sec += time->wait_sec[i];
    return sec > 0;
}

static bool is_sampled(const struct charge_function *function)
{
    return has_time(&function->time) || function->memory.samples ||
           profile_async_is_active(&function->async);
}

static int by_first_line(const void *a, const void *b)
{
    const struct profile_line *x = a, *y = b;
    if (x->lineno != y->lineno)
        return x->lineno < y->lineno ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

static void fill_functions(struct report *report, const uint32_t *out_of)
{
    struct profile *profile = report->profile;
    const struct charge *charge = &report->charge;
    uint32_t *counts = mem_zalloc(profile->file_count, sizeof *counts);
    for (size_t i = 0; i < charge->function_count; i++)
        if (out_of[charge->functions[i].file] && is_sampled(&charge->functions[i]))
            counts[out_of[charge->functions[i].file] - 1]++;
    for (uint32_t i = 0; i < profile->file_count; i++)
        profile->files[i].functions =
            pool_alloc(&profile->pool, counts[i] * sizeof *profile->files[i].functions);
    for (size_t i = 0; i < charge->function_count; i++) {
        const struct charge_function *from = &charge->functions[i];
        if (!out_of[from->file] || !is_sampled(from))
            continue;
        struct profile_file *file = &profile->files[out_of[from->file] - 1];
        struct profile_line *function = &file->functions[file->function_count++];
        *function = (struct profile_line){
            .lineno = from->first_line,
            .text = from->name,
            .time = from->time,
            .memory = from->memory,
            .async = from->async,
            .is_coroutine = is_coroutine_function(
                &sources_get(&report->sources, file->name)->structure, from->first_line),
        };
        report_async_names(profile, &from->names, &function->async);
        finish_line(profile, function);
    }
    for (uint32_t i = 0; i < profile->file_count; i++)
        qsort(profile->files[i].functions, profile->files[i].function_count,
              sizeof *profile->files[i].functions, by_first_line);
    free(counts);
}

static void add_imports(struct profile *profile, const struct structure *structure,
                        const struct places *places, struct profile_file *out)
{
    out->imports = pool_alloc(&profile->pool, structure->import_count * sizeof *out->imports);
    for (size_t i = 0; i < structure->import_count; i++) {
        const struct structure_import *import = &structure->imports[i];
        if (import->module[0] != '.' &&
            native_module(import->module, (const char *const *)places->items, places->count))
            out->imports[out->import_count++] = intern_cstr(&profile->strings, import->text);
    }
}

/* Why a file's text may not be what ran. */
static void note_source(struct report *report, const char *name, const struct source_file *source)
{
    if (!source->is_loaded && name[0] != '<')
        report_note(report, "no source text: %s", source->why.text);
    if (source->is_loaded && source->modified_ns > report->first_real_ns)
        report_note(report, "'%s' was changed after the program started: its lines may not match",
                    name);
}

/* ---- which files ---- */

static bool is_program(const struct report *report, str_id name)
{
    const char *text = profile_str(report->profile, name);
    return name == report->program_file || !strcmp(text, "<string>") || !strcmp(text, "<stdin>");
}

enum { WORTH_A_FILE_MB = 1 };
#define WORTH_A_FILE_SHARE 0.01 /* of all that was allocated, however few blocks that was */

static bool has_memory(const struct report *report, const struct profile_memory *memory)
{
    return memory->allocated_mb >= WORTH_A_FILE_MB &&
           (memory->count >= report->config->malloc_threshold ||
            memory->allocated_mb >= WORTH_A_FILE_SHARE * report->memory.all.allocated_mb);
}

static bool is_share(const struct report *report, double part, double whole)
{
    return part > 0 && 100 * part >= report->config->cpu_percent_threshold * whole;
}

/* A file of coroutines uses next to no processor, and is what the program waits in. */
static bool has_tasks(const struct report *report, const struct profile_async *async)
{
    const struct profile_loops *loops = &report->profile->loops;
    return is_share(report, async->await_sec, loops->await_sec) ||
           is_share(report, async->join_sec, loops->join_sec) ||
           is_share(report, async->ready_sec, loops->ready_sec) ||
           is_share(report, async->blocked_sec, loops->blocked_sec);
}

static bool is_reported(const struct report *report, const struct charge_file *file)
{
    if (!file->traced ||
        (!has_time(&file->time) && !file->memory.samples && !profile_async_is_active(&file->async)))
        return false;
    return is_program(report, file->name) || has_memory(report, &file->memory) ||
           has_tasks(report, &file->async) ||
           profile_percent(report->profile, profile_time_sum(&file->time)) >=
               report->config->cpu_percent_threshold;
}

struct choice {
    const char *name;
    uint32_t file;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct choice *)a)->name, ((const struct choice *)b)->name);
}

/* Sums only: what tells of a moment of its own stays the remainder's. */
static void add_memory(struct profile_memory *into, const struct profile_memory *from)
{
    into->total_mb += from->total_mb;
    into->total_count += from->total_count;
    into->allocated_mb += from->allocated_mb;
    into->python_mb += from->python_mb;
    into->live_mb += from->live_mb;
    into->at_peak_mb += from->at_peak_mb;
    into->copied_mb += from->copied_mb;
    into->count += from->count;
    into->samples += from->samples;
    into->half_width_mb.allocated =
        hypot(into->half_width_mb.allocated, from->half_width_mb.allocated);
    into->half_width_mb.live = hypot(into->half_width_mb.live, from->half_width_mb.live);
    into->half_width_mb.copied = hypot(into->half_width_mb.copied, from->half_width_mb.copied);
}

static struct choice *choose_files(struct report *report, size_t *count)
{
    const struct charge *charge = &report->charge;
    struct choice *chosen = mem_alloc((charge->file_count + 1) * sizeof *chosen);
    *count = 0;
    for (uint32_t i = 0; i < charge->file_count; i++) {
        struct charge_file *file = &charge->files[i];
        file->reported = is_reported(report, file);
        if (file->reported) {
            chosen[(*count)++] = (struct choice){profile_str(report->profile, file->name), i};
        } else {
            profile_time_add(&report->profile->untraced, &file->time);
            add_memory(&report->profile->untraced_memory, &file->memory);
            report->profile->loops.untraced_await_sec += file->async.await_sec;
        }
    }
    qsort(chosen, *count, sizeof *chosen, by_name);
    return chosen;
}

static void leave_out_idle_lines(struct profile_file *file)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < file->line_count; i++)
        if (has_time(&file->lines[i].time) || file->lines[i].memory.samples ||
            profile_async_is_active(&file->lines[i].async))
            file->lines[kept++] = file->lines[i];
    file->line_count = kept;
}

void report_files_finish(struct report *report)
{
    struct profile *profile = report->profile;
    struct charge *charge = &report->charge;
    size_t count;
    struct choice *chosen = choose_files(report, &count);
    struct charged *charged = sort_charged(charge);
    struct places places = {0};
    find_places(report, &places);
    /* charge's file -> the profile's file + 1 */
    uint32_t *out_of = mem_zalloc(charge->file_count, sizeof *out_of);
    profile->files = pool_alloc(&profile->pool, count * sizeof *profile->files);
    profile->file_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const struct charge_file *file = &charge->files[chosen[i].file];
        const struct source_file *source = sources_get(&report->sources, file->name);
        struct profile_file *out = &profile->files[i];
        out->name = file->name;
        out->time = file->time;
        out->memory = file->memory;
        out_of[chosen[i].file] = (uint32_t)i + 1;
        note_source(report, chosen[i].name, source);
        size_t charged_count;
        const struct charged *own =
            charged_in(charged, charge->line_count, chosen[i].file, &charged_count);
        add_lines(report, source, own, charged_count, out);
        add_imports(profile, &source->structure, &places, out);
    }
    fill_times(report, out_of);
    fill_functions(report, out_of);
    for (uint32_t i = 0; report->config->reduced && i < profile->file_count; i++)
        leave_out_idle_lines(&profile->files[i]);
    free(out_of);
    free(charged);
    free(chosen);
    release_places(&places);
}
