/*
 * The part of a report that is about memory: sites of all arenas become figures
 * of lines, functions and files; the footprint's course becomes timelines, peaks
 * and averages; blocks that live on become suspicions of leaks.
 *
 * Sites know their own live memory but not their line's, which several sites may
 * share.  The course tells each change of a site, so a line's own course is the
 * sum over its sites, replayed.
 */
#include "collect/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0

/* A leak grows steadily: in each part of the time between warm-up and tail. */
enum { LEAK_PARTS = 4, LEAK_LEAST = 5 /* samples that live on, in each part */ };
#define LEAK_FROM     0.1 /* of the run: what comes before is warm-up ... */
#define LEAK_TO       0.9 /* ... and what comes after may still be in use */
#define LEAK_SURVIVAL 0.7 /* how well the older half lives on, measured by the younger */
#define LEAK_LIKELY   0.95

/* What is known of a line or function besides its struct profile_memory. */
struct track {
    double live_mb, peak_mb;
    double area; /* MB seconds */
    double first_sec, last_sec;
    uint32_t events;
    double born[LEAK_PARTS];    /* samples, by when they were allocated */
    double survive[LEAK_PARTS]; /* of these: alive */
    double survive_mb;
};

struct target {
    struct track *track;
    struct profile_memory *memory;
};

struct tracks {
    struct track *lines, *functions; /* parallel to charge's */
};

/* One entry of a course. */
struct event {
    double at_sec;
    uint32_t recording;
    uint32_t id; /* in its arena */
};

struct course {
    struct event *items;
    size_t count, cap;
    double end_sec;
};

/* ---- sites ---- */

static uint32_t node_of(const struct recording *recording, const struct wire_site *site)
{
    return site->node && site->node < arena_count(&recording->arena, WIRE_NODE)
               ? recording->node_of[site->node]
               : CHARGE_NO_STACK;
}

/* The line and the function a site is charged to. */
static unsigned targets_of(struct report *report, const struct tracks *tracks,
                           const struct recording *recording, const struct wire_site *site,
                           struct target targets[2])
{
    struct charge *charge = &report->charge;
    uint32_t traced = charge->nodes[node_of(recording, site)].traced;
    if (traced == CHARGE_NO_STACK)
        return 0;
    uint32_t line = charge->nodes[traced].line - 1;
    targets[0] = (struct target){&tracks->lines[line], &charge->lines[line].memory};
    uint32_t function = charge->codes[charge->frames[charge->nodes[traced].frame].code].function;
    if (!function)
        return 1;
    targets[1] =
        (struct target){&tracks->functions[function - 1], &charge->functions[function - 1].memory};
    return 2;
}

static double at_peak_mb(const struct arena *arena, const struct wire_site *site)
{
    bool changed = atomic_load(&site->peak_epoch) == atomic_load(&arena->header.memory.peak_epoch);
    return (double)atomic_load(changed ? &site->at_peak_bytes : &site->live_bytes) / MB;
}

static str_id library_of(struct report *report, const struct arena *arena,
                         const struct wire_site *site)
{
    const struct wire_module *module = arena_module(arena, site->module);
    if (!module || !module->path.bytes)
        return 0;
    struct buf path = {0};
    arena_text(arena, module->path, 1, &path);
    const char *slash = path.data ? strrchr(path.data, '/') : NULL;
    const char *name = slash ? slash + 1 : path.data ? path.data : "";
    str_id id = intern_cstr(&report->profile->strings, name);
    buf_release(&path);
    return id;
}

static void add_site(struct profile_memory *to, const struct arena *arena,
                     const struct wire_site *site, str_id library)
{
    uint32_t kind = atomic_load(&site->kind);
    double mb = (double)atomic_load(&site->allocated_bytes) / MB;
    if (kind == WIRE_SITE_COPY) {
        to->copied_mb += mb;
        to->samples += atomic_load(&site->samples);
        return;
    }
    to->allocated_mb += mb;
    if (kind == WIRE_SITE_PYTHON)
        to->python_mb += mb;
    to->live_mb += (double)atomic_load(&site->live_bytes) / MB;
    to->at_peak_mb += at_peak_mb(arena, site);
    to->count += atomic_load(&site->count);
    to->samples += atomic_load(&site->samples);
    double most = (double)atomic_load(&site->most_bytes) / MB;
    if (to->peak_mb < most)
        to->peak_mb = most;
    if (library && mb > to->library_mb) {
        to->library = library;
        to->library_mb = mb;
    }
}

static void add_sites(struct report *report, const struct tracks *tracks, double *stack_mb)
{
    struct profile *profile = report->profile;
    struct charge *charge = &report->charge;
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct recording *recording = &report->recordings[i];
        const struct arena *arena = &recording->arena;
        for (uint32_t id = 1; id < arena_count(arena, WIRE_SITE); id++) {
            const struct wire_site *site = arena_site(arena, id);
            if (!site)
                continue;
            uint32_t node = node_of(recording, site);
            str_id library = library_of(report, arena, site);
            double mb = (double)atomic_load(&site->allocated_bytes) / MB;
            bool is_copy = atomic_load(&site->kind) == WIRE_SITE_COPY;
            struct target targets[2];
            unsigned count = targets_of(report, tracks, recording, site, targets);
            for (unsigned k = 0; k < count; k++)
                add_site(targets[k].memory, arena, site, library);
            add_site(&profile->all_memory, arena, site, library);
            if (count)
                add_site(
                    &charge->files[charge->lines[targets[0].track - tracks->lines].file].memory,
                    arena, site, library);
            else
                add_site(&profile->untraced_memory, arena, site, library);
            if (!is_copy)
                stack_mb[node] += mb;
            if (node == CHARGE_NATIVE_THREAD && !is_copy)
                profile->native_threads_mb += mb;
        }
    }
}

/* ---- the course ---- */

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    if (x->recording != y->recording)
        return x->recording < y->recording ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void read_course(const struct report *report, struct course *course)
{
    uint64_t start_ns = report->recordings[0].arena.header.start_mono_ns;
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct arena *arena = &report->recordings[i].arena;
        double offset = (double)(int64_t)(arena->header.start_mono_ns - start_ns) / 1e9;
        double end =
            offset +
            (double)(atomic_load(&arena->header.beat_mono_ns) - arena->header.start_mono_ns) / 1e9;
        if (course->end_sec < end)
            course->end_sec = end;
        for (uint32_t id = 1; id < arena_count(arena, WIRE_FOOT); id++) {
            const struct wire_foot *foot = arena_foot(arena, id);
            if (foot)
                VEC_PUSH(course->items, course->count, course->cap) =
                    (struct event){offset + (double)foot->at_ns / 1e9, (uint32_t)i, id};
        }
    }
    if (course->count)
        qsort(course->items, course->count, sizeof *course->items, by_time);
    if (course->count && course->end_sec < course->items[course->count - 1].at_sec)
        course->end_sec = course->items[course->count - 1].at_sec;
}

/* A timeline has at most PROFILE_POINTS_MAX points; of those that fall together the highest. */

static uint32_t bucket_of(double at_sec, double end_sec)
{
    double share = end_sec > 0 ? at_sec / end_sec : 0;
    return share >= 1  ? PROFILE_POINTS_MAX - 1
           : share > 0 ? (uint32_t)(share * PROFILE_POINTS_MAX)
                       : 0;
}

static void add_point(struct profile_memory *memory, struct pool *pool, double end_sec,
                      double at_sec, double total_mb, double own_mb)
{
    if (!memory->points) {
        memory->points = pool_alloc(pool, PROFILE_POINTS_MAX * sizeof *memory->points);
        memory->own = pool_alloc(pool, PROFILE_POINTS_MAX * sizeof *memory->own);
    }
    uint32_t last = memory->point_count;
    bool is_same =
        last && bucket_of(memory->points[last - 1].at_sec, end_sec) == bucket_of(at_sec, end_sec);
    if (is_same && memory->points[last - 1].mb >= total_mb && memory->own[last - 1].mb >= own_mb)
        return;
    if (!is_same) {
        if (last == PROFILE_POINTS_MAX)
            return;
        memory->point_count = ++last;
        memory->points[last - 1] = memory->own[last - 1] = (struct profile_point){at_sec, 0};
    }
    if (memory->points[last - 1].mb < total_mb)
        memory->points[last - 1] = (struct profile_point){at_sec, total_mb};
    if (memory->own[last - 1].mb < own_mb)
        memory->own[last - 1] = (struct profile_point){at_sec, own_mb};
}

static void change_track(struct track *track, double at_sec, double change_mb)
{
    if (!track->events++)
        track->first_sec = track->last_sec = at_sec;
    track->area += track->live_mb * (at_sec - track->last_sec);
    track->last_sec = at_sec;
    track->live_mb += change_mb;
    if (track->live_mb > track->peak_mb)
        track->peak_mb = track->live_mb;
}

static void count_birth(struct track *track, double at_sec, double end_sec, double samples)
{
    double share = end_sec > 0 ? at_sec / end_sec : 0;
    if (share < LEAK_FROM || share >= LEAK_TO)
        return;
    track->born[(int)((share - LEAK_FROM) / (LEAK_TO - LEAK_FROM) * LEAK_PARTS)] += samples;
}

static void replay(struct report *report, const struct tracks *tracks, const struct course *course)
{
    struct pool *pool = &report->profile->pool;
    struct profile_memory *all = &report->profile->all_memory;
    double **site_mb = mem_zalloc(report->recording_count, sizeof *site_mb);
    double *live_mb = mem_zalloc(report->recording_count, sizeof *live_mb);
    for (size_t i = 0; i < report->recording_count; i++)
        site_mb[i] =
            mem_zalloc(arena_count(&report->recordings[i].arena, WIRE_SITE) + 1, sizeof **site_mb);
    double total_mb = 0;
    for (size_t i = 0; i < course->count; i++) {
        const struct event *event = &course->items[i];
        const struct recording *recording = &report->recordings[event->recording];
        const struct wire_foot *foot = arena_foot(&recording->arena, event->id);
        double now_mb = (double)foot->live_kib / 1024;
        total_mb += now_mb - live_mb[event->recording];
        live_mb[event->recording] = now_mb;
        add_point(all, pool, course->end_sec, event->at_sec, total_mb, total_mb);
        if (all->peak_mb < total_mb)
            all->peak_mb = total_mb;
        if (!foot->site)
            continue;
        double own_mb = (double)foot->site_live_kib / 1024;
        double change_mb = own_mb - site_mb[event->recording][foot->site];
        site_mb[event->recording][foot->site] = own_mb;
        struct target targets[2];
        unsigned count = targets_of(report, tracks, recording,
                                    arena_site(&recording->arena, foot->site), targets);
        bool is_birth = atomic_load(&foot->published) == WIRE_FOOT_ALLOCATED;
        uint64_t stride = atomic_load(&recording->arena.header.memory.foot_stride);
        for (unsigned k = 0; k < count; k++) {
            change_track(targets[k].track, event->at_sec, change_mb);
            if (is_birth)
                count_birth(targets[k].track, event->at_sec, course->end_sec, (double)stride);
            add_point(targets[k].memory, pool, course->end_sec, event->at_sec, total_mb,
                      targets[k].track->live_mb);
        }
    }
    for (size_t i = 0; i < report->recording_count; i++)
        free(site_mb[i]);
    free(site_mb);
    free(live_mb);
}

static void finish(const struct track *track, double end_sec, struct profile_memory *memory)
{
    if (memory->peak_mb < track->peak_mb)
        memory->peak_mb = track->peak_mb;
    if (memory->peak_mb < memory->at_peak_mb)
        memory->peak_mb = memory->at_peak_mb;
    double area = track->area + track->live_mb * (end_sec - track->last_sec);
    double span = end_sec - track->first_sec;
    memory->average_mb = track->events && span > 0 ? area / span : memory->live_mb;
    if (memory->average_mb > memory->peak_mb)
        memory->average_mb = memory->peak_mb;
    if (memory->average_mb < 0)
        memory->average_mb = 0;
}

/* ---- leaks ---- */

static void count_survivors(struct report *report, const struct tracks *tracks,
                            const struct course *course)
{
    uint64_t start_ns = report->recordings[0].arena.header.start_mono_ns;
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct recording *recording = &report->recordings[i];
        const struct arena *arena = &recording->arena;
        double offset = (double)(int64_t)(arena->header.start_mono_ns - start_ns) / 1e9;
        for (uint32_t id = 1; id < arena_count(arena, WIRE_BLOCK); id++) {
            const struct wire_block *block = arena_block(arena, id);
            if (!block)
                continue;
            double at_sec = offset + (double)block->at_ms / 1000;
            double share = course->end_sec > 0 ? at_sec / course->end_sec : 0;
            if (share < LEAK_FROM || share >= LEAK_TO)
                continue;
            int part = (int)((share - LEAK_FROM) / (LEAK_TO - LEAK_FROM) * LEAK_PARTS);
            struct target targets[2];
            unsigned count = targets_of(report, tracks, recording,
                                        arena_site(arena, atomic_load(&block->site)), targets);
            for (unsigned k = 0; k < count; k++) {
                targets[k].track->survive[part]++;
                targets[k].track->survive_mb += (double)block->bytes / MB;
            }
        }
    }
}

/*
 * Blocks of a leak live on however old they are, and there are more of them all
 * the time.  Of a cache with a bound only the young ones live (or only the old
 * ones, where it is never renewed); of what is cleared now and then, none.
 */
static struct profile_leak judge(const struct track *track, double end_sec)
{
    double least = INFINITY, born[2] = {0}, survive[2] = {0};
    for (int part = 0; part < LEAK_PARTS; part++) {
        least = fmin(least, track->survive[part]);
        born[part * 2 / LEAK_PARTS] += fmax(track->born[part], track->survive[part]);
        survive[part * 2 / LEAK_PARTS] += track->survive[part];
    }
    if (least < LEAK_LEAST || survive[0] * born[1] < LEAK_SURVIVAL * survive[1] * born[0])
        return (struct profile_leak){0};
    return (struct profile_leak){
        .likelihood = 1 - 1 / (least * LEAK_PARTS + 2),
        .velocity_mb_s = track->survive_mb / ((LEAK_TO - LEAK_FROM) * end_sec),
    };
}

static void find_leaks(struct report *report, const struct tracks *tracks,
                       const struct course *course)
{
    struct charge *charge = &report->charge;
    count_survivors(report, tracks, course);
    for (size_t i = 0; i < charge->line_count; i++) {
        struct profile_leak leak = judge(&tracks->lines[i], course->end_sec);
        if (leak.likelihood >= LEAK_LIKELY)
            charge->lines[i].memory.leak = leak;
    }
}

/* ---- the run ---- */

static void settle_peak(struct report *report, struct profile *profile)
{
    struct charge *charge = &report->charge;
    uint64_t most = 0;
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct recording *recording = &report->recordings[i];
        const struct wire_memory *memory = &recording->arena.header.memory;
        uint64_t peak = atomic_load(&memory->peak_bytes);
        if (peak <= most)
            continue;
        most = peak;
        profile->peak_python_fraction =
            (double)atomic_load(&memory->peak_python_bytes) / (double)peak;
        profile->peak_file = profile->peak_line = 0;
        const struct wire_site *site =
            arena_site(&recording->arena, atomic_load(&memory->peak_site));
        uint32_t traced = site ? charge->nodes[node_of(recording, site)].traced : CHARGE_NO_STACK;
        if (traced != CHARGE_NO_STACK) {
            const struct charge_line *line = &charge->lines[charge->nodes[traced].line - 1];
            profile->peak_file = charge->files[line->file].name;
            profile->peak_line = line->line;
        }
    }
    struct profile_memory *all = &profile->all_memory;
    if (all->peak_mb < (double)most / MB)
        all->peak_mb = (double)most / MB;
    if (profile->peak_python_fraction > 1)
        profile->peak_python_fraction = 1;
    profile->growth_percent = all->allocated_mb > 0 ? 100 * all->live_mb / all->allocated_mb : 0;
}

static void explain_resident(struct report *report, struct profile *profile)
{
    for (size_t i = 0; i < report->recording_count; i++) {
        const struct wire_header *header = &report->recordings[i].arena.header;
        const struct wire_memory *memory = &header->memory;
        struct profile_process *process = &profile->processes[i];
        if (!(atomic_load(&header->flags) & WIRE_PROCESS_MEMORY))
            continue;
        double live = (double)atomic_load(&memory->live_bytes) / MB;
        process->has_memory = true;
        process->rss_mb = (double)atomic_load(&memory->rss_bytes) / MB;
        process->start_rss_mb = (double)atomic_load(&memory->start_rss_bytes) / MB;
        process->python_live_mb = (double)atomic_load(&memory->live_python_bytes) / MB;
        process->mapped_live_mb = (double)atomic_load(&memory->live_mapped_bytes) / MB;
        process->native_live_mb = live - process->python_live_mb - process->mapped_live_mb;
        if (process->native_live_mb < 0)
            process->native_live_mb = 0;
        double rest = process->rss_mb - process->start_rss_mb - live;
        process->other_mb = rest > 0 ? rest : 0;
        process->untouched_mb = rest < 0 ? -rest : 0;
        double interval = (double)atomic_load(&memory->interval_bytes) / MB;
        if (profile->memory_interval_mb < interval)
            profile->memory_interval_mb = interval;
    }
}

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

static void add_stacks(struct report *report, const double *stack_mb)
{
    struct profile *profile = report->profile;
    const struct charge *charge = &report->charge;
    struct heavy *heavies = NULL;
    size_t count = 0, cap = 0;
    for (uint32_t i = CHARGE_FIRST_NODE; i < charge->node_count; i++)
        if (stack_mb[i] > 0)
            VEC_PUSH(heavies, count, cap) = (struct heavy){i, stack_mb[i]};
    if (count)
        qsort(heavies, count, sizeof *heavies, by_falling_mb);
    if (count > PROFILE_MEMORY_STACKS_MAX)
        count = PROFILE_MEMORY_STACKS_MAX;
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

static void add_notes(struct report *report)
{
    if (!(atomic_load(&report->recordings[0].arena.header.flags) & WIRE_PROCESS_MEMORY))
        report_note(report, "memory could not be followed: the process has no room for it (a "
                            "limit of its address space?)");
    for (size_t i = 0; i < report->recording_count; i++)
        if (atomic_load(&report->recordings[i].arena.header.flags) & WIRE_PROCESS_NO_OBJECTS) {
            report_note(report, "this Python's allocator does not show its small objects: memory "
                                "figures are of larger blocks and of libraries only");
            return;
        }
}

void report_memory(struct report *report)
{
    struct charge *charge = &report->charge;
    struct profile *profile = report->profile;
    if (!report->config->memory || !report->recording_count)
        return;
    struct tracks tracks = {
        .lines = mem_zalloc(charge->line_count + 1, sizeof *tracks.lines),
        .functions = mem_zalloc(charge->function_count + 1, sizeof *tracks.functions),
    };
    double *stack_mb = mem_zalloc(charge->node_count, sizeof *stack_mb);
    struct course course = {0};
    add_sites(report, &tracks, stack_mb);
    read_course(report, &course);
    replay(report, &tracks, &course);
    for (size_t i = 0; i < charge->line_count; i++)
        finish(&tracks.lines[i], course.end_sec, &charge->lines[i].memory);
    for (size_t i = 0; i < charge->function_count; i++)
        finish(&tracks.functions[i], course.end_sec, &charge->functions[i].memory);
    if (report->config->leaks)
        find_leaks(report, &tracks, &course);
    settle_peak(report, profile);
    explain_resident(report, profile);
    add_stacks(report, stack_mb);
    add_notes(report);
    free(course.items);
    free(stack_mb);
    free(tracks.lines);
    free(tracks.functions);
}
