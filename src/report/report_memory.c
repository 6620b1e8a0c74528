/*
 * The part of a report that is about memory: sites of a recording are added to
 * the figures of lines, functions and files.  What happened when is
 * report_course.c's, what may leak report_leaks.c's.
 *
 * Everything is kept by ids of the merged tree, which do not change as recordings
 * are added, so the room it takes does not grow with the number of processes.
 */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0

/* ---- sites ---- */

static double at_peak_mb(const struct recording *recording, const struct wire_site *site)
{
    bool changed =
        atomic_load(&site->peak_epoch) == atomic_load(&recording->header.memory.peak_epoch);
    return (double)atomic_load(changed ? &site->at_peak_bytes : &site->live_bytes) / MB;
}

static str_id library_of(struct report *report, const struct recording *recording,
                         const struct wire_site *site)
{
    const struct wire_module *module = recording_module(recording, site->module);
    if (!module || !module->path.bytes)
        return 0;
    struct buf path = {0};
    recording_text(recording, module->path, 1, &path);
    const char *slash = path.data ? strrchr(path.data, '/') : NULL;
    const char *name = slash ? slash + 1 : path.data ? path.data : "";
    str_id id = intern_cstr(&report->profile->strings, name);
    buf_release(&path);
    return id;
}

/* What was not gone again at once: that moved the footprint. */

static uint64_t kept(const _Atomic uint64_t *all, const _Atomic uint64_t *churned)
{
    uint64_t of = atomic_load(all), less = atomic_load(churned);
    return of > less ? of - less : 0;
}

static double kept_mb(const struct wire_site *site)
{
    return (double)kept(&site->allocated_bytes, &site->churned_bytes) / MB;
}

static double in_mb2(const _Atomic double *square)
{
    return atomic_load(square) / (MB * MB);
}

/* What one site adds to whatever it belongs to. */
struct share {
    const struct wire_site *site;
    str_id library;
    double at_peak_mb; /* 0 unless its process is the one with the highest peak */
};

/* Windows are known by all that was allocated in them; of a part of it, that much. */
static void add_squares(struct profile_memory *to, const struct wire_site *site)
{
    struct profile_memory_parts *square = &to->square_mb2, *window = &to->window_mb2;
    square->allocated += fmax(in_mb2(&site->square) - in_mb2(&site->churned_square), 0);
    square->live += in_mb2(&site->live_square);
    square->peak += in_mb2(&site->most_square);
    double all = in_mb2(&site->window_square), bytes = (double)atomic_load(&site->allocated_bytes);
    if (!(all > 0) || !(bytes > 0))
        return;
    window->allocated += all * pow(fmin(kept_mb(site) * MB / bytes, 1), 2);
    window->live += all * pow(fmin((double)atomic_load(&site->live_bytes) / bytes, 1), 2);
    window->peak += all * pow(fmin((double)atomic_load(&site->most_bytes) / bytes, 1), 2);
}

static void add_share(struct profile_memory *to, const struct share *share)
{
    const struct wire_site *site = share->site;
    uint32_t kind = atomic_load(&site->kind);
    double total_mb = (double)atomic_load(&site->allocated_bytes) / MB, mb = kept_mb(site);
    to->samples += atomic_load(&site->samples);
    if (kind == WIRE_SITE_COPY) {
        to->copied_mb += total_mb;
        to->square_mb2.copied += in_mb2(&site->square);
        return;
    }
    to->total_mb += total_mb;
    to->total_count += atomic_load(&site->count);
    to->allocated_mb += mb;
    if (kind == WIRE_SITE_PYTHON)
        to->python_mb += mb;
    to->live_mb += (double)atomic_load(&site->live_bytes) / MB;
    to->at_peak_mb += share->at_peak_mb;
    to->count += kept(&site->count, &site->churned_count);
    add_squares(to, site);
    double most = (double)atomic_load(&site->most_bytes) / MB;
    to->most_mb += most;
    if (to->peak_mb < most)
        to->peak_mb = most;
    if (share->library && mb > to->library_mb) {
        to->library = share->library;
        to->library_mb = mb;
    }
}

static void add_to_stack(struct report_memory *memory, uint32_t node, double mb)
{
    if (node >= memory->stack_count) {
        size_t count = (size_t)node * 2 + 16;
        memory->stack_mb = mem_resize(memory->stack_mb, count, sizeof *memory->stack_mb);
        memset(memory->stack_mb + memory->stack_count, 0,
               (count - memory->stack_count) * sizeof *memory->stack_mb);
        memory->stack_count = count;
    }
    memory->stack_mb[node] += mb;
}

static void add_site(struct report *report, uint32_t node, struct charge_place place,
                     const struct share *share)
{
    struct charge *charge = &report->charge;
    struct report_memory *memory = &report->memory;
    add_share(&memory->all, share);
    if (place.line) {
        add_share(&charge->lines[place.line - 1].memory, share);
        add_share(&charge->files[charge->lines[place.line - 1].file].memory, share);
    } else {
        add_share(&memory->untraced, share);
    }
    if (place.function)
        add_share(&charge->functions[place.function - 1].memory, share);
    if (atomic_load(&share->site->kind) == WIRE_SITE_COPY)
        return;
    double mb = kept_mb(share->site);
    memory->all_square_mb2 += in_mb2(&share->site->square);
    add_to_stack(memory, node, mb);
    if (node == CHARGE_NATIVE_THREAD)
        memory->native_threads_mb += mb;
}

/* ---- the peak ---- */

static void forget_at_peak(struct report *report)
{
    struct charge *charge = &report->charge;
    report->memory.all.at_peak_mb = report->memory.untraced.at_peak_mb = 0;
    for (size_t i = 0; i < charge->line_count; i++)
        charge->lines[i].memory.at_peak_mb = 0;
    for (size_t i = 0; i < charge->function_count; i++)
        charge->functions[i].memory.at_peak_mb = 0;
    for (size_t i = 0; i < charge->file_count; i++)
        charge->files[i].memory.at_peak_mb = 0;
}

/* The line whose allocation made the peak; if it was on none, the last that allocated before. */
static uint32_t line_at_peak(const struct recording *recording, const struct charge_place *places)
{
    const struct wire_memory *memory = &recording->header.memory;
    uint32_t site = atomic_load(&memory->peak_site), line = 0;
    if (recording_site(recording, site) && places[site].line)
        return places[site].line;
    uint64_t peak_at_ns = atomic_load(&memory->peak_at_ns), last_ns = 0;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_FOOT); id++) {
        const struct wire_foot *foot = recording_foot(recording, id);
        if (!foot || foot->at_ns > peak_at_ns || foot->at_ns < last_ns || !foot->site ||
            !places[foot->site].line || atomic_load(&foot->published) != WIRE_FOOT_ALLOCATED)
            continue;
        last_ns = foot->at_ns;
        line = places[foot->site].line;
    }
    return line;
}

/* Is this the process with the highest footprint so far?  Then what is known of the peak is its. */
static bool take_peak(struct report *report, const struct recording *recording,
                      const struct charge_place *places)
{
    struct report_memory *memory = &report->memory;
    const struct wire_memory *from = &recording->header.memory;
    double bytes = (double)atomic_load(&from->peak_bytes);
    if (memory->has_peak && bytes / MB <= memory->peak_mb)
        return false;
    forget_at_peak(report);
    double python_bytes = (double)atomic_load(&from->peak_python_bytes);
    memory->has_peak = true;
    memory->peak_mb = bytes / MB;
    memory->peak_python_fraction = bytes > 0 ? fmin(python_bytes / bytes, 1) : 0;
    memory->peak_line = line_at_peak(recording, places);
    return true;
}

/* ---- one recording ---- */

void report_memory_add(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, enum report_fate fate)
{
    const struct wire_header *header = &recording->header;
    bool is_followed = (atomic_load(&header->flags) & WIRE_PROCESS_MEMORY) != 0;
    if (header->start_mono_ns == report->first_mono_ns)
        report->memory.is_missing = !is_followed;
    if (!report->config->memory || !is_followed)
        return;
    uint32_t sites = recording_count(recording, WIRE_SITE);
    struct charge_place *places = mem_zalloc((size_t)sites + 1, sizeof *places);
    for (uint32_t id = 1; id < sites; id++) {
        const struct wire_site *site = recording_site(recording, id);
        if (site)
            places[id] = charge_place_of(&report->charge, node_of[site->node]);
    }
    bool is_highest = take_peak(report, recording, places);
    for (uint32_t id = 1; id < sites; id++) {
        const struct wire_site *site = recording_site(recording, id);
        if (!site)
            continue;
        struct share share = {.site = site, .library = library_of(report, recording, site)};
        if (is_highest)
            share.at_peak_mb = at_peak_mb(recording, site);
        add_site(report, node_of[site->node], places[id], &share);
    }
    report_course_add(report, recording, places, fate);
    if (report->config->leaks)
        report_leaks_find(report, recording, node_of, places);
    double interval_mb = (double)atomic_load(&header->memory.interval_bytes) / MB;
    if (report->memory.interval_mb < interval_mb)
        report->memory.interval_mb = interval_mb;
    if (atomic_load(&header->flags) & WIRE_PROCESS_NO_OBJECTS)
        report_note(report, "this Python's allocator does not show its small objects: memory "
                            "figures are of larger blocks and of libraries only");
    if (atomic_load(&header->flags) & WIRE_PROCESS_HIDDEN_OBJECTS)
        report_note(report, "small Python objects were not seen for a part of the run: something "
                            "else hooked Python's allocator (tracemalloc?)");
    free(places);
}

/* ---- resident memory ---- */

static double in_mb(const _Atomic uint64_t *bytes)
{
    return (double)atomic_load(bytes) / MB;
}

/*
 * Anonymous memory that came since the start and is in no live block is what
 * allocators keep; the rest of the growth is pages of files.  Either may have
 * shrunk instead: then something that is counted is not resident.
 */
void report_memory_resident(struct report *report, const struct wire_header *header,
                            struct profile_process *row)
{
    const struct wire_memory *memory = &header->memory;
    const struct wire_look *look = &memory->look;
    if (!report->config->memory || !(atomic_load(&header->flags) & WIRE_PROCESS_MEMORY))
        return;
    row->has_memory = true;
    row->rss_mb = in_mb(&look->rss_bytes);
    row->start_rss_mb = in_mb(&memory->start_rss_bytes);
    row->python_live_mb = in_mb(&look->live_python_bytes);
    row->mapped_live_mb = in_mb(&look->live_mapped_bytes);
    row->mapped_reserved_mb = in_mb(&memory->reserved_bytes);
    double blocks = row->python_live_mb + row->mapped_live_mb;
    row->native_live_mb = fmax(in_mb(&look->live_bytes) - blocks, 0);
    blocks += row->native_live_mb;
    double file = in_mb(&look->file_bytes) - in_mb(&memory->start_file_bytes);
    double anonymous = row->rss_mb - row->start_rss_mb - file - blocks;
    /* What a library mapped may be memory to share, which the kernel counts with the files. */
    double shared = fmin(fmin(file, -anonymous), row->mapped_live_mb);
    if (shared > 0) {
        file -= shared;
        anonymous += shared;
    }
    row->slack_mb = fmax(anonymous, 0);
    row->other_mb = fmax(file, 0);
    row->untouched_mb = fmax(-anonymous, 0) + fmax(-file, 0);
}

/* What a call pays for passing our functions: some ten instructions and a jump. */
#define CALL_SEC 2e-9

double report_memory_cost_sec(const struct wire_header *header)
{
    const struct wire_memory *memory = &header->memory;
    return (double)atomic_load(&memory->sample_ns) / 1e9 +
           CALL_SEC * (double)atomic_load(&memory->calls);
}

/* ---- half-widths ---- */

/* Of a peak it is known of what its sites' own peaks were made. */
static void set_half_widths(const struct report_memory *of, struct profile_memory *memory)
{
    const struct profile_memory_parts *square = &memory->square_mb2, *window = &memory->window_mb2;
    double all = of->all_square_mb2;
    double part = memory->most_mb > 0 ? memory->peak_mb / memory->most_mb : 0;
    memory->half_width_mb = (struct profile_memory_parts){
        .allocated = profile_memory_half_width(square->allocated, all, window->allocated),
        .live = profile_memory_half_width(square->live, all, window->live),
        .peak = profile_memory_half_width(square->peak * part, all, window->peak * part),
        .copied = profile_memory_half_width(square->copied, of->all.square_mb2.copied, 0),
    };
}

static void settle_half_widths(struct report *report)
{
    struct charge *charge = &report->charge;
    struct report_memory *memory = &report->memory;
    set_half_widths(memory, &memory->all);
    set_half_widths(memory, &memory->untraced);
    for (size_t i = 0; i < charge->line_count; i++)
        set_half_widths(memory, &charge->lines[i].memory);
    for (size_t i = 0; i < charge->function_count; i++)
        set_half_widths(memory, &charge->functions[i].memory);
    for (size_t i = 0; i < charge->file_count; i++)
        set_half_widths(memory, &charge->files[i].memory);
}

/* ---- the whole ---- */

enum { STACKS_LIGHT = 100 };
#define STACKS_PART  0.99  /* of what was allocated is told by stack, */
#define STACKS_HEAVY 0.001 /* beyond so many only where one has as much */

struct heavy {
    uint32_t node;
    double mb;
};

static int by_falling_mb(const void *a, const void *b)
{
    const struct heavy *x = a, *y = b;
    if (x->mb != y->mb)
        return x->mb < y->mb ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* How many of them, sorted, say something.  Importing alone leaves a thousand, deep and light. */
static size_t count_told(const struct charge *charge, const struct heavy *heavies, size_t count,
                         double all_mb)
{
    double told_mb = 0;
    size_t told = 0, frames = 0;
    while (told < count && told < PROFILE_MEMORY_STACKS_MAX && told_mb < STACKS_PART * all_mb &&
           (told < STACKS_LIGHT || heavies[told].mb >= STACKS_HEAVY * all_mb)) {
        frames += charge->nodes[heavies[told].node].depth;
        if (told && frames > PROFILE_MEMORY_FRAMES_MAX)
            break;
        told_mb += heavies[told++].mb;
    }
    return told;
}

static void add_stacks(struct report *report)
{
    struct profile *profile = report->profile;
    const struct charge *charge = &report->charge;
    struct heavy *heavies = NULL;
    const double *stack_mb = report->memory.stack_mb;
    size_t count = 0, cap = 0;
    double all_mb = 0;
    for (uint32_t i = CHARGE_FIRST_NODE; i < report->memory.stack_count; i++)
        if (stack_mb[i] > 0) {
            VEC_PUSH(heavies, count, cap) = (struct heavy){i, stack_mb[i]};
            all_mb += stack_mb[i];
        }
    if (!count)
        return;
    qsort(heavies, count, sizeof *heavies, by_falling_mb);
    count = count_told(charge, heavies, count, all_mb);
    profile->memory_stacks = pool_alloc(&profile->pool, count * sizeof *profile->memory_stacks);
    profile->memory_stack_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        uint32_t depth = charge->nodes[heavies[i].node].depth;
        struct profile_memory_stack *stack = &profile->memory_stacks[i];
        stack->frames = pool_alloc(&profile->pool, depth * sizeof *stack->frames);
        stack->frame_count = depth;
        stack->mb = heavies[i].mb;
        report_frames(charge, heavies[i].node, stack->frames);
    }
    free(heavies);
}

static void settle_whole(struct report *report)
{
    struct profile *profile = report->profile;
    const struct report_memory *memory = &report->memory;
    profile->all_memory = memory->all;
    profile->untraced_memory = memory->untraced;
    if (profile->all_memory.peak_mb < memory->peak_mb)
        profile->all_memory.peak_mb = memory->peak_mb;
    profile->native_threads_mb = memory->native_threads_mb;
    profile->memory_interval_mb = memory->interval_mb;
    profile->peak_python_fraction = memory->peak_python_fraction;
    if (memory->peak_line) {
        const struct charge_line *line = &report->charge.lines[memory->peak_line - 1];
        profile->peak_file = report->charge.files[line->file].name;
        profile->peak_line = line->line;
    }
    if (memory->all.allocated_mb > 0)
        profile->growth_percent = 100 * memory->all.live_mb / memory->all.allocated_mb;
}

void report_memory_finish(struct report *report)
{
    if (!report->config->memory)
        return;
    report_course_finish(report);
    settle_half_widths(report);
    settle_whole(report);
    add_stacks(report);
    if (report->memory.is_missing)
        report_note(report, "memory could not be followed: the process has no room for it (a limit "
                            "of its address space?)");
}

void report_memory_copy(struct report *to, const struct report *from)
{
    struct report_memory *memory = &to->memory;
    *memory = from->memory;
    memory->stack_mb = mem_copy(memory->stack_mb, memory->stack_count * sizeof *memory->stack_mb);
    memory->changes = mem_copy(memory->changes, memory->change_count * sizeof *memory->changes);
    memory->change_cap = memory->change_count;
}

void report_memory_release(struct report *report)
{
    free(report->memory.stack_mb);
    free(report->memory.changes);
    report->memory = (struct report_memory){0};
}
