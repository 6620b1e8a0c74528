/*
 * The part of a report that is about memory: sites of all arenas become figures
 * of lines, functions and files; the footprint's course becomes timelines, peaks
 * and averages; blocks that live on become suspicions of leaks.
 *
 * Sites know their own live memory but not their line's, which several sites may
 * share.  The course tells each change of a site, so a line's own course is the
 * sum over its sites, replayed at the end, when all processes have been added.
 */
#include "collect/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0

enum { CHANGES_HELD_MAX = 1 << 19 };

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

struct tracks {
    struct track *lines, *functions; /* parallel to charge's */
};

struct target {
    struct track *track;
    struct profile_memory *memory;
};

/* ---- adding a process ---- */

/* The line and the function a site is charged to, + 1; 0: none. */
struct place {
    uint32_t node, line, function;
};

static struct place place_of(const struct charge *charge, const struct arena *arena,
                             const uint32_t *node_of, const struct wire_site *site)
{
    struct place place = {.node = CHARGE_NO_STACK};
    if (site->node && site->node < arena_count(arena, WIRE_NODE))
        place.node = node_of[site->node];
    uint32_t traced = charge->nodes[place.node].traced;
    if (traced != CHARGE_NO_STACK) {
        place.line = charge->nodes[traced].line;
        place.function = charge->codes[charge->frames[charge->nodes[traced].frame].code].function;
    }
    return place;
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

static void count_site(struct report *report, const struct arena *arena,
                       const struct wire_site *site, const struct place *place)
{
    struct charge *charge = &report->charge;
    str_id library = library_of(report, arena, site);
    add_site(&report->memory.all, arena, site, library);
    if (place->line) {
        struct charge_line *line = &charge->lines[place->line - 1];
        add_site(&line->memory, arena, site, library);
        add_site(&charge->files[line->file].memory, arena, site, library);
    } else {
        add_site(&report->memory.untraced, arena, site, library);
    }
    if (place->function)
        add_site(&charge->functions[place->function - 1].memory, arena, site, library);
    if (atomic_load(&site->kind) == WIRE_SITE_COPY)
        return;
    double mb = (double)atomic_load(&site->allocated_bytes) / MB;
    charge->nodes[place->node].allocated_mb += mb;
    if (place->node == CHARGE_NATIVE_THREAD)
        report->memory.native_threads_mb += mb;
}

static void hold(struct report_memory *memory, struct report_change change)
{
    if (memory->change_count < CHANGES_HELD_MAX)
        VEC_PUSH(memory->changes, memory->change_count, memory->change_cap) = change;
    else
        memory->left_out++;
}

static void add_course(struct report_memory *memory, const struct arena *arena,
                       const struct place *places)
{
    float *site_mb = mem_zalloc(arena_count(arena, WIRE_SITE) + 1, sizeof *site_mb);
    for (uint32_t id = 1; id < arena_count(arena, WIRE_FOOT); id++) {
        const struct wire_foot *foot = arena_foot(arena, id);
        if (!foot)
            continue;
        bool is_birth = atomic_load(&foot->published) == WIRE_FOOT_ALLOCATED;
        struct report_change change = {
            .at_ns = arena->header.start_mono_ns + foot->at_ns,
            .process = memory->processes,
            .process_mb = (float)foot->live_kib / 1024,
            .births = is_birth ? (float)atomic_load(&arena->header.memory.foot_stride) : 0,
        };
        if (foot->site) {
            float own_mb = (float)foot->site_live_kib / 1024;
            change.line = places[foot->site].line;
            change.function = places[foot->site].function;
            change.mb = own_mb - site_mb[foot->site];
            site_mb[foot->site] = own_mb;
        }
        hold(memory, change);
    }
    free(site_mb);
}

static void add_survivors(struct report_memory *memory, const struct arena *arena,
                          const struct place *places)
{
    for (uint32_t id = 1; id < arena_count(arena, WIRE_BLOCK); id++) {
        const struct wire_block *block = arena_block(arena, id);
        const struct place *place = block ? &places[atomic_load(&block->site)] : NULL;
        if (place && place->line)
            hold(memory,
                 (struct report_change){
                     .at_ns = arena->header.start_mono_ns + block->at_ms * UINT64_C(1000000),
                     .process = memory->processes,
                     .line = place->line,
                     .function = place->function,
                     .mb = (float)((double)block->bytes / MB),
                     .is_survivor = true,
                 });
    }
}

static void see_header(struct report_memory *memory, const struct arena *arena,
                       const struct place *places)
{
    const struct wire_memory *wire = &arena->header.memory;
    uint32_t flags = atomic_load(&arena->header.flags);
    uint64_t end_ns = atomic_load(&arena->header.beat_mono_ns);
    if (memory->end_mono_ns < end_ns)
        memory->end_mono_ns = end_ns;
    memory->lacks_objects |= (flags & WIRE_PROCESS_NO_OBJECTS) != 0;
    memory->is_unfollowed |= !(flags & WIRE_PROCESS_MEMORY);
    memory->interval_mb =
        fmax(memory->interval_mb, (double)atomic_load(&wire->interval_bytes) / MB);
    if (atomic_load(&wire->peak_bytes) <= memory->peak_bytes)
        return;
    uint32_t site = atomic_load(&wire->peak_site);
    memory->peak_bytes = atomic_load(&wire->peak_bytes);
    memory->peak_python_bytes = atomic_load(&wire->peak_python_bytes);
    memory->peak_node = arena_site(arena, site) ? places[site].node : CHARGE_NO_STACK;
}

void report_memory_add(struct report *report, const struct arena *arena, const uint32_t *node_of)
{
    struct report_memory *memory = &report->memory;
    if (!report->config->memory)
        return;
    uint32_t count = arena_count(arena, WIRE_SITE);
    struct place *places = mem_zalloc(count + 1, sizeof *places);
    for (uint32_t id = 1; id < count; id++) {
        const struct wire_site *site = arena_site(arena, id);
        if (!site)
            continue;
        places[id] = place_of(&report->charge, arena, node_of, site);
        count_site(report, arena, site, &places[id]);
    }
    add_course(memory, arena, places);
    add_survivors(memory, arena, places);
    see_header(memory, arena, places);
    memory->processes++;
    free(places);
}

void report_memory_row(const struct wire_header *header, struct profile_process *row)
{
    const struct wire_memory *memory = &header->memory;
    if (!(atomic_load(&header->flags) & WIRE_PROCESS_MEMORY))
        return;
    double live = (double)atomic_load(&memory->live_bytes) / MB;
    row->has_memory = true;
    row->rss_mb = (double)atomic_load(&memory->rss_bytes) / MB;
    row->start_rss_mb = (double)atomic_load(&memory->start_rss_bytes) / MB;
    row->python_live_mb = (double)atomic_load(&memory->live_python_bytes) / MB;
    row->mapped_live_mb = (double)atomic_load(&memory->live_mapped_bytes) / MB;
    row->native_live_mb = fmax(live - row->python_live_mb - row->mapped_live_mb, 0);
    double rest = row->rss_mb - row->start_rss_mb - live;
    row->other_mb = fmax(rest, 0);
    row->untouched_mb = fmax(-rest, 0);
}

/* ---- the course ---- */

static int by_time(const void *a, const void *b)
{
    const struct report_change *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

static unsigned targets_of(struct report *report, const struct tracks *tracks,
                           const struct report_change *change, struct target targets[2])
{
    struct charge *charge = &report->charge;
    unsigned count = 0;
    if (change->line)
        targets[count++] = (struct target){&tracks->lines[change->line - 1],
                                           &charge->lines[change->line - 1].memory};
    if (change->function)
        targets[count++] = (struct target){&tracks->functions[change->function - 1],
                                           &charge->functions[change->function - 1].memory};
    return count;
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

static void count_survivor(struct track *track, const struct report_change *change, double at_sec,
                           double end_sec)
{
    double share = end_sec > 0 ? at_sec / end_sec : 0;
    if (share < LEAK_FROM || share >= LEAK_TO)
        return;
    track->survive[(int)((share - LEAK_FROM) / (LEAK_TO - LEAK_FROM) * LEAK_PARTS)]++;
    track->survive_mb += change->mb;
}

static void replay(struct report *report, const struct tracks *tracks, double end_sec)
{
    struct pool *pool = &report->profile->pool;
    struct report_memory *memory = &report->memory;
    double *live_mb = mem_zalloc(memory->processes + 1, sizeof *live_mb);
    double total_mb = 0;
    for (size_t i = 0; i < memory->change_count; i++) {
        const struct report_change *change = &memory->changes[i];
        double at_sec = (double)(int64_t)(change->at_ns - report->first_mono_ns) / 1e9;
        struct target targets[2];
        unsigned count = targets_of(report, tracks, change, targets);
        if (change->is_survivor) {
            for (unsigned k = 0; k < count; k++)
                count_survivor(targets[k].track, change, at_sec, end_sec);
            continue;
        }
        total_mb += change->process_mb - live_mb[change->process];
        live_mb[change->process] = change->process_mb;
        add_point(&memory->all, pool, end_sec, at_sec, total_mb, total_mb);
        if (memory->all.peak_mb < total_mb)
            memory->all.peak_mb = total_mb;
        for (unsigned k = 0; k < count; k++) {
            change_track(targets[k].track, at_sec, change->mb);
            if (change->births > 0)
                count_birth(targets[k].track, at_sec, end_sec, change->births);
            add_point(targets[k].memory, pool, end_sec, at_sec, total_mb,
                      targets[k].track->live_mb);
        }
    }
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

/* ---- the run ---- */

static void settle_peak(struct report *report)
{
    struct profile *profile = report->profile;
    const struct report_memory *memory = &report->memory;
    const struct charge *charge = &report->charge;
    struct profile_memory *all = &profile->all_memory;
    double peak_mb = (double)memory->peak_bytes / MB;
    all->peak_mb = fmax(all->peak_mb, peak_mb);
    if (memory->peak_bytes)
        profile->peak_python_fraction =
            fmin((double)memory->peak_python_bytes / (double)memory->peak_bytes, 1);
    uint32_t traced = charge->nodes[memory->peak_node].traced;
    if (traced != CHARGE_NO_STACK) {
        const struct charge_line *line = &charge->lines[charge->nodes[traced].line - 1];
        profile->peak_file = charge->files[line->file].name;
        profile->peak_line = line->line;
    }
    profile->growth_percent = all->allocated_mb > 0 ? 100 * all->live_mb / all->allocated_mb : 0;
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

static void add_stacks(struct report *report)
{
    struct profile *profile = report->profile;
    const struct charge *charge = &report->charge;
    struct heavy *heavies = NULL;
    size_t count = 0, cap = 0;
    for (uint32_t i = CHARGE_FIRST_NODE; i < charge->node_count; i++)
        if (charge->nodes[i].allocated_mb > 0)
            VEC_PUSH(heavies, count, cap) = (struct heavy){i, charge->nodes[i].allocated_mb};
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
    const struct report_memory *memory = &report->memory;
    if (memory->is_unfollowed)
        report_note(report, "memory of some processes could not be followed: they had no room for "
                            "it (a limit of the address space?)");
    if (memory->lacks_objects)
        report_note(report, "this Python's allocator does not show its small objects: memory "
                            "figures are of larger blocks and of libraries only");
    report_loss(report, "changes_left_out",
                "changes of the footprint left out of the timelines, there were too many (totals "
                "are right)",
                memory->left_out);
}

void report_memory_finish(struct report *report)
{
    struct charge *charge = &report->charge;
    struct profile *profile = report->profile;
    struct report_memory *memory = &report->memory;
    if (!report->config->memory || !memory->processes)
        return;
    struct tracks tracks = {
        .lines = mem_zalloc(charge->line_count + 1, sizeof *tracks.lines),
        .functions = mem_zalloc(charge->function_count + 1, sizeof *tracks.functions),
    };
    double end_sec = (double)(int64_t)(memory->end_mono_ns - report->first_mono_ns) / 1e9;
    if (memory->change_count)
        qsort(memory->changes, memory->change_count, sizeof *memory->changes, by_time);
    replay(report, &tracks, end_sec);
    for (size_t i = 0; i < charge->line_count; i++) {
        finish(&tracks.lines[i], end_sec, &charge->lines[i].memory);
        struct profile_leak leak = judge(&tracks.lines[i], end_sec);
        if (report->config->leaks && leak.likelihood >= LEAK_LIKELY)
            charge->lines[i].memory.leak = leak;
    }
    for (size_t i = 0; i < charge->function_count; i++)
        finish(&tracks.functions[i], end_sec, &charge->functions[i].memory);
    profile->all_memory = memory->all;
    profile->untraced_memory = memory->untraced;
    profile->native_threads_mb = memory->native_threads_mb;
    profile->memory_interval_mb = memory->interval_mb;
    settle_peak(report);
    add_stacks(report);
    add_notes(report);
    free(tracks.lines);
    free(tracks.functions);
}
