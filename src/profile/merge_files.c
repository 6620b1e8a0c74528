/*
 * The files of a merged profile: lines and functions of the same file in
 * several runs.  Called by merge.c when the totals are known.
 */
#include "profile/merge_parts.h"

#include "base/buf.h"
#include "profile/align.h"

#include <stdlib.h>
#include <string.h>

/* One file in one run. */
struct part {
    const struct profile *run;
    const struct profile_file *file;
    str_id *texts;    /* of its lines, in the merged profile */
    uint32_t *new_of; /* where its lines are among those of the merged file, + 1; 0: gone */
};

struct parts {
    str_id name;
    struct part *items; /* by start of the run */
    size_t count, cap;
};

/* ---- the source ---- */

/* Do the two agree wherever both know the text?  Then one is the other, or more of it: a profile
 * whose source could not be read, or one that holds only some lines. */
static bool is_same_source(const struct part *a, const struct part *b)
{
    uint32_t i = 0, k = 0;
    while (i < a->file->line_count && k < b->file->line_count) {
        uint32_t x = a->file->lines[i].lineno, y = b->file->lines[k].lineno;
        if (x == y && a->texts[i] && b->texts[k] && a->texts[i] != b->texts[k])
            return false;
        i += x <= y;
        k += y <= x;
    }
    return true;
}

/* What a line is, without what was measured on it. */
static struct profile_line blank_line(const struct part *part, uint32_t at)
{
    const struct profile_line *line = &part->file->lines[at];
    return (struct profile_line){
        .lineno = line->lineno,
        .text = part->texts[at],
        .start_region = line->start_region,
        .end_region = line->end_region,
        .start_outermost_loop = line->start_outermost_loop,
        .end_outermost_loop = line->end_outermost_loop,
        .start_function = line->start_function,
        .end_function = line->end_function,
        .is_coroutine = line->is_coroutine,
    };
}

/* Lines while they are being collected: by number, on the heap. */
struct lines {
    struct profile_line *items;
    size_t count, cap;
};

/* Has the part a line that is not there yet, or the text of one that has none? */
static bool knows_more(const struct part *part, const struct lines *lines)
{
    size_t at = 0;
    for (uint32_t k = 0; k < part->file->line_count; k++) {
        uint32_t lineno = part->file->lines[k].lineno;
        while (at < lines->count && lines->items[at].lineno < lineno)
            at++;
        if (at == lines->count || lines->items[at].lineno > lineno ||
            (!lines->items[at].text && part->texts[k]))
            return true;
    }
    return false;
}

static void add_known(struct lines *lines, const struct part *part)
{
    struct lines both = {0};
    size_t i = 0;
    uint32_t k = 0;
    while (i < lines->count || k < part->file->line_count) {
        const struct profile_line *old = i < lines->count ? &lines->items[i] : NULL;
        const struct profile_line *more = k < part->file->line_count ? &part->file->lines[k] : NULL;
        bool is_old = old && (!more || old->lineno <= more->lineno);
        bool is_more = more && (!old || more->lineno <= old->lineno);
        VEC_PUSH(both.items, both.count, both.cap) =
            is_old && (!is_more || old->text) ? *old : blank_line(part, k);
        i += is_old;
        k += is_more;
    }
    free(lines->items);
    *lines = both;
}

static uint32_t *same_lines(const struct part *part, const struct profile_file *file)
{
    uint32_t *new_of = mem_zalloc((size_t)part->file->line_count + 1, sizeof *new_of);
    for (uint32_t k = 0; k < part->file->line_count; k++)
        new_of[k] =
            (uint32_t)(profile_line_at(file, part->file->lines[k].lineno) - file->lines) + 1;
    return new_of;
}

/* The merged file's lines: the newest run's, and what others know more of the same source.  Parts
 * with another source get their lines found by text. */
static void settle_source(struct merge *merge, struct parts *parts, struct profile_file *file)
{
    const struct part *newest = &parts->items[parts->count - 1];
    struct lines lines = {0};
    for (size_t i = parts->count; i--;)
        if (is_same_source(&parts->items[i], newest) && knows_more(&parts->items[i], &lines))
            add_known(&lines, &parts->items[i]);
    file->line_count = (uint32_t)lines.count;
    file->lines = pool_alloc(&merge->out->pool, lines.count * sizeof *file->lines);
    if (lines.count)
        memcpy(file->lines, lines.items, lines.count * sizeof *file->lines);
    free(lines.items);
    str_id *texts = mem_zalloc((size_t)file->line_count + 1, sizeof *texts);
    for (uint32_t i = 0; i < file->line_count; i++)
        texts[i] = file->lines[i].text;
    bool differs = false;
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        bool is_same = is_same_source(part, newest);
        differs |= !is_same;
        part->new_of =
            is_same ? same_lines(part, file)
                    : align_lines(part->texts, part->file->line_count, texts, file->line_count);
    }
    free(texts);
    if (differs) {
        struct buf text = {0};
        buf_addf(&text, "%s changed between the runs: its newest source is shown",
                 profile_str(merge->out, file->name));
        merge_note(merge, text.data);
        buf_release(&text);
    }
}

/* ---- what was measured ---- */

static double later(double base_sec, double offset_sec)
{
    return base_sec + offset_sec > 0 ? base_sec + offset_sec : 0;
}

/* Moments count from the earliest run's clock; CLOCK_MONOTONIC may be another after a reboot. */
static void add_stamps(struct merge *merge, const struct profile *run,
                       const struct profile_line *from, struct profile_line *into)
{
    if (!from->stamp_count)
        return;
    double shift = merge->base_perf_sec - run->start_perf_sec + merge_offset_sec(merge, run);
    double *all = pool_alloc(&merge->out->pool,
                             ((size_t)into->stamp_count + from->stamp_count) * sizeof *all);
    if (into->stamp_count)
        memcpy(all, into->stamps, into->stamp_count * sizeof *all);
    for (uint32_t i = 0; i < from->stamp_count; i++)
        all[into->stamp_count + i] = later(from->stamps[i], shift);
    into->stamps = all;
    into->stamp_count += from->stamp_count;
}

/* core_utilization is CPU time by elapsed time and processor: its mean weighs by time.  Until
 * finish_line divides, it is the sum. */
static void add_line(struct merge *merge, const struct profile *run,
                     const struct profile_line *from, struct profile_line *into)
{
    profile_time_add(&into->time, &from->time);
    into->core_utilization += from->core_utilization * profile_time_sum(&from->time);
    add_stamps(merge, run, from, into);
    merge_memory_add(merge, run, &from->memory, &into->memory);
    merge_async_add(merge, run, &from->async, &into->async);
}

/* The number of a part's line in the merged file; 0: gone.  A line the part does not have is where
 * it was. */
static uint32_t new_lineno(const struct part *part, const struct profile_file *file,
                           uint32_t lineno)
{
    const struct profile_line *line = profile_line_at(part->file, lineno);
    if (!line)
        return lineno;
    uint32_t at = part->new_of[line - part->file->lines];
    return at ? file->lines[at - 1].lineno : 0;
}

/* The line that blocked an event loop longest is one of the newest source. */
static void place_longest(struct merge *merge, const struct part *part,
                          const struct profile_file *file)
{
    struct profile_loops *loops = &merge->out->loops;
    if (part->run != merge->blocked_run || loops->longest_file != file->name ||
        !loops->longest_line)
        return;
    loops->longest_line = new_lineno(part, file, loops->longest_line);
    if (!loops->longest_line)
        loops->longest_file = 0;
}

/* So is the one that made the peak. */
static void place_peak(struct merge *merge, const struct part *part,
                       const struct profile_file *file)
{
    struct profile *out = merge->out;
    if (part->run != merge->peak_run || out->peak_file != file->name || !out->peak_line)
        return;
    out->peak_line = new_lineno(part, file, out->peak_line);
    if (!out->peak_line)
        out->peak_file = 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void finish_line(const struct profile *out, struct profile_line *line)
{
    double sec = profile_time_sum(&line->time);
    line->core_utilization = sec > 0 ? line->core_utilization / sec : 0;
    if (line->core_utilization > 1)
        line->core_utilization = 1;
    line->half_width_percent = profile_half_width(out, &line->time);
    if (!line->stamp_count)
        return;
    qsort(line->stamps, line->stamp_count, sizeof *line->stamps, by_value);
    uint32_t kept = line->stamp_count < PROFILE_STAMPS_MAX ? line->stamp_count : PROFILE_STAMPS_MAX;
    for (uint32_t i = 0; i < kept; i++)
        line->stamps[i] = line->stamps[(uint64_t)i * line->stamp_count / kept];
    line->stamp_count = kept;
}

static void add_lines(struct merge *merge, const struct parts *parts, struct profile_file *file)
{
    struct profile *out = merge->out;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->items[i];
        for (uint32_t k = 0; k < part->file->line_count; k++) {
            const struct profile_line *line = &part->file->lines[k];
            if (part->new_of[k]) {
                add_line(merge, part->run, line, &file->lines[part->new_of[k] - 1]);
                merge_memory_add(merge, part->run, &line->memory, &file->memory);
            } else {
                profile_time_add(&out->untraced, &line->time);
                merge_memory_add(merge, part->run, &line->memory, &out->untraced_memory);
                out->loops.untraced_await_sec += line->async.await_sec;
            }
        }
        place_peak(merge, part, file);
        place_longest(merge, part, file);
    }
    for (uint32_t i = 0; i < file->line_count; i++) {
        finish_line(out, &file->lines[i]);
        profile_time_add(&file->time, &file->lines[i].time);
    }
}

/* A function of the same name, at the same line if it is known there; names may come twice. */
static struct profile_line *find_function(struct profile_file *file, str_id name, uint32_t lineno)
{
    struct profile_line *found = NULL;
    for (uint32_t i = 0; i < file->function_count; i++) {
        struct profile_line *function = &file->functions[i];
        if (function->text != name)
            continue;
        if (function->lineno == lineno)
            return function;
        if (!lineno)
            found = function;
    }
    return found;
}

static int by_line(const void *a, const void *b)
{
    const struct profile_line *x = a, *y = b;
    if (x->lineno != y->lineno)
        return x->lineno < y->lineno ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

/* The newest first, so that a function whose first line was edited is found by its name. */
static void add_functions(struct merge *merge, const struct parts *parts, struct profile_file *file)
{
    struct profile *out = merge->out;
    size_t most = 0;
    for (size_t i = 0; i < parts->count; i++)
        most += parts->items[i].file->function_count;
    file->functions = pool_alloc(&out->pool, most * sizeof *file->functions);
    for (size_t i = parts->count; i--;) {
        const struct part *part = &parts->items[i];
        for (uint32_t k = 0; k < part->file->function_count; k++) {
            const struct profile_line *function = &part->file->functions[k];
            str_id name = merge_text(merge, part->run, function->text);
            uint32_t lineno = new_lineno(part, file, function->lineno);
            struct profile_line *into = find_function(file, name, lineno);
            if (!into) {
                into = &file->functions[file->function_count++];
                *into = (struct profile_line){.lineno = lineno ? lineno : function->lineno,
                                              .text = name};
            }
            into->is_coroutine |= function->is_coroutine;
            add_line(merge, part->run, function, into);
        }
    }
    for (uint32_t i = 0; i < file->function_count; i++)
        finish_line(out, &file->functions[i]);
    if (file->function_count)
        qsort(file->functions, file->function_count, sizeof *file->functions, by_line);
}

static void add_imports(struct merge *merge, const struct parts *parts, struct profile_file *file)
{
    size_t most = 0;
    for (size_t i = 0; i < parts->count; i++)
        most += parts->items[i].file->import_count;
    file->imports = pool_alloc(&merge->out->pool, most * sizeof *file->imports);
    for (size_t i = 0; i < parts->count; i++)
        for (uint32_t k = 0; k < parts->items[i].file->import_count; k++) {
            str_id id = merge_text(merge, parts->items[i].run, parts->items[i].file->imports[k]);
            uint32_t at = 0;
            while (at < file->import_count && file->imports[at] != id)
                at++;
            if (at == file->import_count)
                file->imports[file->import_count++] = id;
        }
}

/* ---- all files ---- */

static void add_part(struct merge *merge, struct parts *parts, const struct profile *run,
                     const struct profile_file *file)
{
    struct part part = {.run = run, .file = file};
    part.texts = mem_zalloc((size_t)file->line_count + 1, sizeof *part.texts);
    for (uint32_t i = 0; i < file->line_count; i++)
        part.texts[i] = merge_text(merge, run, file->lines[i].text);
    VEC_PUSH(parts->items, parts->count, parts->cap) = part;
}

static void release_parts(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        free(parts->items[i].texts);
        free(parts->items[i].new_of);
    }
    free(parts->items);
}

static int by_name(const void *a, const void *b, void *context)
{
    const struct profile *profile = context;
    const struct profile_file *x = a, *y = b;
    return strcmp(profile_str(profile, x->name), profile_str(profile, y->name));
}

void merge_files(struct merge *merge)
{
    struct profile *out = merge->out;
    size_t count = 0, most = 1;
    struct map places = {0};
    for (size_t i = 0; i < merge->count; i++)
        most += merge->runs[i]->file_count;
    struct parts *all = mem_zalloc(most, sizeof *all);
    for (size_t i = 0; i < merge->count; i++)
        for (uint32_t k = 0; k < merge->runs[i]->file_count; k++) {
            const struct profile_file *file = &merge->runs[i]->files[k];
            str_id name = merge_text(merge, merge->runs[i], file->name);
            uint64_t *place = map_put(&places, name, NULL);
            if (!*place) {
                all[count++].name = name;
                *place = count;
            }
            add_part(merge, &all[*place - 1], merge->runs[i], file);
        }
    out->files = pool_alloc(&out->pool, count * sizeof *out->files);
    out->file_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct profile_file *file = &out->files[i];
        file->name = all[i].name;
        settle_source(merge, &all[i], file);
        add_lines(merge, &all[i], file);
        add_functions(merge, &all[i], file);
        add_imports(merge, &all[i], file);
        release_parts(&all[i]);
    }
    if (count)
        qsort_r(out->files, count, sizeof *out->files, by_name, out);
    free(all);
    map_release(&places);
}
