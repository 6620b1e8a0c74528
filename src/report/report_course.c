/*
 * The part of a report that is about memory over time: changes of live memory,
 * taken from the recordings as processes end (report_course_add), are replayed
 * at the end in the order of time, over all processes (report_course_finish).
 * That gives the footprint of the whole program with its peak, and for each line
 * and function its own highest and average.
 *
 * When a process ends, what it had is gone.  The process that lives longest is
 * the exception: its memory is what is live at the end.
 *
 * Bounded: if there are too many changes, those of the same line that follow each
 * other closely are folded into one.  Sums stay right; what gets coarse is time.
 */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0

enum {
    CHANGES_HELD_MAX = 1 << 17,
    FOLD_SHIFT_FIRST = 20, /* a millisecond */
    SORT_NEAR = 64,
};

/* If one process alone had so much of the peak, its own record of that moment is better. */
#define PEAK_ALONE 0.9

/* ---- what is kept ---- */

static int by_time(const void *a, const void *b)
{
    const struct report_change *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->line != y->line) /* the whole comes before the line that changed it */
        return x->line < y->line ? -1 : 1;
    return (x->function > y->function) - (x->function < y->function);
}

static int by_stretch(const void *a, const void *b, void *context)
{
    const struct report_change *x = a, *y = b;
    unsigned shift = *(const unsigned *)context;
    uint64_t at = x->at_ns >> shift, bt = y->at_ns >> shift;
    if (at != bt)
        return at < bt ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static bool belong_together(const struct report_change *a, const struct report_change *b,
                            unsigned shift)
{
    return a->at_ns >> shift == b->at_ns >> shift && a->line == b->line &&
           a->function == b->function;
}

static void fold_at(struct report_memory *memory, unsigned shift)
{
    struct report_change *changes = memory->changes;
    qsort_r(changes, memory->change_count, sizeof *changes, by_stretch, &shift);
    size_t kept = 0;
    for (size_t i = 1; i < memory->change_count; i++) {
        struct report_change *last = &changes[kept], *next = &changes[i];
        if (belong_together(last, next, shift)) {
            last->high_mb = fmax(last->high_mb, last->net_mb + next->high_mb);
            last->net_mb += next->net_mb;
        } else {
            changes[++kept] = *next;
        }
    }
    memory->change_count = kept + 1;
}

/* Longer and longer stretches, until half of the room is free.  A program with more lines than that
 * gets more room. */
static void fold(struct report_memory *memory)
{
    enum { KEPT_MAX = CHANGES_HELD_MAX / 2, SHIFT_MAX = 62 };
    if (memory->change_count > KEPT_MAX && memory->fold_shift)
        fold_at(memory, memory->fold_shift);
    while (memory->change_count > KEPT_MAX && memory->fold_shift < SHIFT_MAX) {
        memory->fold_shift = memory->fold_shift ? memory->fold_shift + 1 : FOLD_SHIFT_FIRST;
        fold_at(memory, memory->fold_shift);
    }
    memory->change_limit = CHANGES_HELD_MAX;
    if (memory->change_count > KEPT_MAX)
        memory->change_limit = 2 * memory->change_count;
}

static void keep(struct report *report, uint64_t at_ns, struct charge_place place, double mb)
{
    struct report_memory *memory = &report->memory;
    if (mb == 0)
        return;
    if (memory->change_count >= memory->change_limit)
        fold(memory);
    VEC_PUSH(memory->changes, memory->change_count, memory->change_cap) =
        (struct report_change){at_ns, place.line, place.function, mb, mb};
}

uint64_t report_course_end_ns(const struct recording *recording)
{
    uint64_t beat_ns = atomic_load(&recording->header.beat_mono_ns), end_ns = 0;
    if (beat_ns > recording->header.start_mono_ns)
        end_ns = beat_ns - recording->header.start_mono_ns;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_FOOT); id++) {
        const struct wire_foot *foot = recording_foot(recording, id);
        if (foot && foot->at_ns > end_ns)
            end_ns = foot->at_ns;
    }
    return end_ns;
}

void report_course_add(struct report *report, const struct recording *recording,
                       const struct charge_place *places, enum report_fate fate)
{
    const struct charge_place whole = {0};
    uint64_t start_ns = recording->header.start_mono_ns;
    uint64_t end_ns = start_ns + report_course_end_ns(recording) + 1; /* after its last change */
    uint32_t sites = recording_count(recording, WIRE_SITE);
    double *site_mb = mem_zalloc((size_t)sites + 1, sizeof *site_mb), live_mb = 0;
    if (report->memory.end_ns < end_ns)
        report->memory.end_ns = end_ns;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_FOOT); id++) {
        const struct wire_foot *foot = recording_foot(recording, id);
        if (!foot)
            continue;
        double now_mb = (double)foot->live_kib / 1024;
        keep(report, start_ns + foot->at_ns, whole, now_mb - live_mb);
        live_mb = now_mb;
        if (!foot->site || !places[foot->site].line)
            continue;
        now_mb = (double)foot->site_live_kib / 1024;
        keep(report, start_ns + foot->at_ns, places[foot->site], now_mb - site_mb[foot->site]);
        site_mb[foot->site] = now_mb;
    }
    if (fate != REPORT_RUNNING) {
        keep(report, end_ns, whole, -live_mb);
        for (uint32_t id = 1; id < sites; id++)
            if (site_mb[id] != 0)
                keep(report, end_ns, places[id], -site_mb[id]);
    }
    free(site_mb);
}

/* ---- replay ---- */

/* What is known of a line or function besides its struct profile_memory. */
struct track {
    double live_mb, peak_mb;
    double area; /* MB seconds */
    double first_sec, last_sec;
    double at_peak_mb;
    bool is_seen;
};

struct replay {
    struct report *report;
    struct track *lines, *functions; /* parallel to charge's */
    double end_sec;
    size_t count;     /* of changes: those before the end */
    size_t peak;      /* which of them led to the highest footprint */
    double peak_mb;   /* 0: none did */
    double whole_mb;  /* footprint after the last change that was replayed, */
    double whole_top; /* and how high it got with that */
};

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

/* The answer is how high it got. */
static double change_track(struct track *track, double at_sec, const struct report_change *change)
{
    if (!track->is_seen)
        track->first_sec = track->last_sec = at_sec;
    track->is_seen = true;
    track->area += track->live_mb * (at_sec - track->last_sec);
    track->last_sec = at_sec;
    double high_mb = track->live_mb + change->high_mb;
    track->live_mb += change->net_mb;
    if (high_mb > track->peak_mb)
        track->peak_mb = high_mb;
    return high_mb;
}

static void keep_live(struct track *tracks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tracks[i].at_peak_mb = tracks[i].live_mb > 0 ? tracks[i].live_mb : 0;
}

static void find_peak(struct replay *replay)
{
    const struct report_memory *memory = &replay->report->memory;
    double whole_mb = 0;
    while (replay->count < memory->change_count &&
           memory->changes[replay->count].at_ns < memory->end_ns)
        replay->count++;
    for (size_t i = 0; i < replay->count; i++) {
        const struct report_change *change = &memory->changes[i];
        if (change->line)
            continue;
        if (whole_mb + change->high_mb > replay->peak_mb) {
            replay->peak_mb = whole_mb + change->high_mb;
            replay->peak = i;
        }
        whole_mb += change->net_mb;
    }
}

static void replay_one(struct replay *replay, const struct report_change *change)
{
    struct report *report = replay->report;
    struct charge *charge = &report->charge;
    struct pool *pool = &report->profile->pool;
    double at_sec = (double)(int64_t)(change->at_ns - report->first_mono_ns) / 1e9;
    if (!change->line) {
        replay->whole_top = replay->whole_mb + change->high_mb;
        replay->whole_mb += change->net_mb;
        add_point(&report->memory.all, pool, replay->end_sec, at_sec, replay->whole_top,
                  replay->whole_top);
        return;
    }
    double own_mb = change_track(&replay->lines[change->line - 1], at_sec, change);
    add_point(&charge->lines[change->line - 1].memory, pool, replay->end_sec, at_sec,
              replay->whole_top, own_mb);
    if (!change->function)
        return;
    own_mb = change_track(&replay->functions[change->function - 1], at_sec, change);
    add_point(&charge->functions[change->function - 1].memory, pool, replay->end_sec, at_sec,
              replay->whole_top, own_mb);
}

static void run_replay(struct replay *replay)
{
    const struct report_memory *memory = &replay->report->memory;
    bool is_over = !(replay->peak_mb > 0);
    for (size_t i = 0; i < replay->count; i++) {
        replay_one(replay, &memory->changes[i]);
        /* The line whose change made the peak comes right after it. */
        bool is_last = i + 1 == replay->count || !memory->changes[i + 1].line;
        if (!is_over && i >= replay->peak && is_last) {
            keep_live(replay->lines, replay->report->charge.line_count);
            keep_live(replay->functions, replay->report->charge.function_count);
            is_over = true;
        }
    }
}

/* ---- results ---- */

static void finish(const struct track *track, double end_sec, struct profile_memory *memory)
{
    if (memory->peak_mb < track->peak_mb)
        memory->peak_mb = track->peak_mb;
    if (memory->peak_mb < memory->at_peak_mb)
        memory->peak_mb = memory->at_peak_mb;
    double area = track->area + track->live_mb * (end_sec - track->last_sec);
    double span = end_sec - track->first_sec;
    memory->average_mb = track->is_seen && span > 0 ? area / span : memory->live_mb;
    if (memory->average_mb > memory->peak_mb)
        memory->average_mb = memory->peak_mb;
    if (memory->average_mb < 0)
        memory->average_mb = 0;
}

/* Several processes made the peak together: what was live then is what the replay found. */
static void take_at_peak(struct report *report, const struct replay *replay)
{
    struct charge *charge = &report->charge;
    struct report_memory *memory = &report->memory;
    double traced_mb = 0;
    for (size_t i = 0; i < charge->file_count; i++)
        charge->files[i].memory.at_peak_mb = 0;
    for (size_t i = 0; i < charge->line_count; i++) {
        double mb = replay->lines[i].at_peak_mb;
        charge->lines[i].memory.at_peak_mb = mb;
        charge->files[charge->lines[i].file].memory.at_peak_mb += mb;
        traced_mb += mb;
    }
    for (size_t i = 0; i < charge->function_count; i++)
        charge->functions[i].memory.at_peak_mb = replay->functions[i].at_peak_mb;
    memory->all.at_peak_mb = fmax(replay->peak_mb, traced_mb);
    memory->untraced.at_peak_mb = memory->all.at_peak_mb - traced_mb;
}

/* One process writes them in order, or nearly: each is put to its place, if that is near.  False:
 * some are far from it. */
static bool sort_by_little(struct report_change *changes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct report_change moving = changes[i];
        size_t at = i;
        while (at && by_time(&changes[at - 1], &moving) > 0) {
            if (i - at == SORT_NEAR)
                return false;
            changes[at] = changes[at - 1];
            changes[--at] = moving;
        }
    }
    return true;
}

void report_course_finish(struct report *report)
{
    struct charge *charge = &report->charge;
    struct report_memory *memory = &report->memory;
    struct replay replay = {
        .report = report,
        .lines = mem_zalloc(charge->line_count + 1, sizeof *replay.lines),
        .functions = mem_zalloc(charge->function_count + 1, sizeof *replay.functions),
    };
    if (memory->end_ns > report->first_mono_ns)
        replay.end_sec = (double)(memory->end_ns - report->first_mono_ns - 1) / 1e9;
    if (!sort_by_little(memory->changes, memory->change_count))
        qsort(memory->changes, memory->change_count, sizeof *memory->changes, by_time);
    find_peak(&replay);
    run_replay(&replay);
    if (memory->all.peak_mb < replay.peak_mb)
        memory->all.peak_mb = replay.peak_mb;
    if (memory->peak_mb < PEAK_ALONE * replay.peak_mb)
        take_at_peak(report, &replay);
    for (size_t i = 0; i < charge->line_count; i++)
        finish(&replay.lines[i], replay.end_sec, &charge->lines[i].memory);
    for (size_t i = 0; i < charge->function_count; i++)
        finish(&replay.functions[i], replay.end_sec, &charge->functions[i].memory);
    free(replay.lines);
    free(replay.functions);
}
