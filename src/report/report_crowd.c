/*
 * How many tasks there were over time.  A process tells it at some moments, and it
 * stays so until the next; of several processes it adds up.  Time is cut into equal
 * stretches, of which each has the most there were: of one process the most at
 * once, of several the sum of that.  When there are too many stretches they are made
 * twice as long, so the room taken does not grow with the run or its processes.
 */
#include "report/report_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    STRETCHES_MAX = 1024,
    FINEST_SHIFT = 24, /* 17 ms: points are 100 ms apart */
};

/* Twice as long, once. */
static void coarsen(struct report_crowd *crowd)
{
    uint64_t first = crowd->first >> 1;
    size_t count = 0;
    for (size_t i = 0; i < crowd->count; i++) {
        size_t at = (size_t)(((crowd->first + i) >> 1) - first);
        if (at == count)
            crowd->tasks[count++] = crowd->tasks[i];
        else if (crowd->tasks[at] < crowd->tasks[i])
            crowd->tasks[at] = crowd->tasks[i];
    }
    crowd->first = first;
    crowd->count = count;
    crowd->shift++;
}

/* Room from one moment to another, both included. */
static void cover(struct report_crowd *crowd, uint64_t from_ns, uint64_t to_ns)
{
    if (!crowd->shift)
        crowd->shift = FINEST_SHIFT;
    for (;;) {
        uint64_t first = from_ns >> crowd->shift, last = to_ns >> crowd->shift;
        if (crowd->count) {
            uint64_t end = crowd->first + crowd->count - 1;
            first = first < crowd->first ? first : crowd->first;
            last = last > end ? last : end;
        }
        size_t count = (size_t)(last - first + 1);
        if (count > STRETCHES_MAX) {
            coarsen(crowd);
            continue;
        }
        uint64_t *tasks = mem_zalloc(count, sizeof *tasks);
        if (crowd->count)
            memcpy(tasks + (crowd->first - first), crowd->tasks, crowd->count * sizeof *tasks);
        free(crowd->tasks);
        crowd->tasks = tasks;
        crowd->first = first;
        crowd->count = count;
        return;
    }
}

static void raise_to(struct report_crowd *crowd, uint64_t from_ns, uint64_t until_ns,
                     uint64_t tasks)
{
    uint64_t at = from_ns >> crowd->shift, end = until_ns >> crowd->shift;
    do {
        uint64_t *stretch = &crowd->tasks[at - crowd->first];
        if (*stretch < tasks)
            *stretch = tasks;
    } while (++at < end);
}

static void add_up(struct report_crowd *into, struct report_crowd *from)
{
    uint64_t first_ns = from->first << from->shift, last_ns = (from->first + from->count - 1)
                                                              << from->shift;
    cover(into, first_ns, last_ns);
    while (from->shift < into->shift)
        coarsen(from);
    while (into->shift < from->shift)
        coarsen(into);
    for (size_t i = 0; i < from->count; i++)
        into->tasks[from->first + i - into->first] += from->tasks[i];
}

void report_crowd_add(struct report_crowd *crowd, const struct recording *recording)
{
    uint64_t start_ns = recording->header.start_mono_ns;
    struct report_crowd own = {0};
    const struct wire_crowd *last = NULL;
    uint64_t from_ns = UINT64_MAX, to_ns = 0;
    uint32_t count = recording_count(recording, WIRE_CROWD);
    for (uint32_t id = 1; id < count; id++) {
        const struct wire_crowd *point = recording_crowd(recording, id);
        if (!point)
            continue;
        from_ns = point->at_ns < from_ns ? point->at_ns : from_ns;
        to_ns = point->at_ns > to_ns ? point->at_ns : to_ns;
    }
    if (from_ns > to_ns)
        return;
    cover(&own, start_ns + from_ns, start_ns + to_ns);
    for (uint32_t id = 1; id < count; id++) {
        const struct wire_crowd *point = recording_crowd(recording, id);
        if (!point)
            continue;
        if (last)
            raise_to(&own, start_ns + last->at_ns, start_ns + point->at_ns, last->tasks);
        last = point;
    }
    if (last)
        raise_to(&own, start_ns + last->at_ns, 0, last->tasks);
    add_up(crowd, &own);
    free(own.tasks);
}

uint64_t report_crowd_peak(const struct report_crowd *crowd)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < crowd->count; i++)
        peak = peak > crowd->tasks[i] ? peak : crowd->tasks[i];
    return peak;
}

void report_crowd_finish(const struct report_crowd *crowd, uint64_t start_ns,
                         struct profile *profile)
{
    size_t each = (crowd->count + PROFILE_POINTS_MAX - 1) / PROFILE_POINTS_MAX;
    struct profile_loops *loops = &profile->loops;
    size_t room = crowd->count < PROFILE_POINTS_MAX ? crowd->count : PROFILE_POINTS_MAX;
    loops->crowd = pool_alloc(&profile->pool, room * sizeof *loops->crowd);
    for (size_t i = 0; i < crowd->count; i += each) {
        uint64_t at_ns = (crowd->first + i) << crowd->shift, most = 0;
        for (size_t k = i; k < i + each && k < crowd->count; k++)
            most = most > crowd->tasks[k] ? most : crowd->tasks[k];
        bool is_last = i + each >= crowd->count;
        if (loops->crowd_count && loops->crowd[loops->crowd_count - 1].tasks == most && !is_last)
            continue;
        loops->crowd[loops->crowd_count++] = (struct profile_crowd){
            .at_sec = at_ns > start_ns ? (double)(at_ns - start_ns) / 1e9 : 0, .tasks = most};
    }
}
