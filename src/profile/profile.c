/* The profile model: life cycle and the arithmetic every writer and view shares. */
#include "profile/profile.h"

#include <math.h>

#define KEY(NAME, key, label, external, help) key,
const char *const wait_cause_key[WAIT_CAUSES] = {WIRE_WAITS(KEY)};

#define LABEL(NAME, key, label, external, help) label,
const char *const wait_cause_label[WAIT_CAUSES] = {WIRE_WAITS(LABEL)};

void profile_init(struct profile *profile)
{
    *profile = (struct profile){0};
}

void profile_release(struct profile *profile)
{
    intern_release(&profile->strings);
    pool_release(&profile->pool);
    *profile = (struct profile){0};
}

const char *profile_str(const struct profile *profile, str_id id)
{
    return intern_get(&profile->strings, id);
}

struct profile_line *profile_line_at(const struct profile_file *file, uint32_t lineno)
{
    uint32_t first = 0, end = file->line_count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (file->lines[middle].lineno < lineno)
            first = middle + 1;
        else
            end = middle;
    }
    bool is_there = first < file->line_count && file->lines[first].lineno == lineno;
    return is_there ? &file->lines[first] : NULL;
}

bool profile_line_is_active(const struct profile_line *line)
{
    const struct profile_time *time = &line->time;
    const struct profile_memory *memory = &line->memory;
    double sum = profile_time_sum(time) + memory->total_mb + memory->allocated_mb +
                 memory->live_mb + memory->peak_mb + memory->copied_mb;
    for (int cause = 0; cause < WAIT_CAUSES; cause++)
        sum += time->wait_sec[cause];
    return sum > 0 || time->samples || memory->samples || memory->point_count ||
           profile_async_is_active(&line->async);
}

bool profile_async_is_active(const struct profile_async *async)
{
    return async->await_sec + async->join_sec + async->ready_sec + async->blocked_sec > 0 ||
           async->peak > 0 || async->name_count;
}

bool profile_has_loops(const struct profile *profile)
{
    return profile->loops.count || profile->loops.await_sec > 0;
}

double profile_concurrency(const struct profile_async *async)
{
    if (!(async->present_sec > 0))
        return 0;
    double mean = (async->await_sec + async->join_sec) / async->present_sec;
    return async->peak > 0 ? fmin(mean, async->peak) : mean;
}

double profile_await_percent(const struct profile *profile, const struct profile_async *async)
{
    double all_sec = profile->loops.await_sec;
    return all_sec > 0 ? fmin(100 * async->await_sec / all_sec, 100) : 0;
}

void profile_async_add(struct profile_async *into, const struct profile_async *from)
{
    into->await_sec += from->await_sec;
    into->join_sec += from->join_sec;
    into->ready_sec += from->ready_sec;
    into->present_sec += from->present_sec;
    into->peak = fmax(into->peak, from->peak);
    into->half_width_sec = hypot(into->half_width_sec, from->half_width_sec);
    into->square_sec2 += from->square_sec2;
    into->blocked_sec += from->blocked_sec;
    into->blocked_longest_sec = fmax(into->blocked_longest_sec, from->blocked_longest_sec);
    into->blocked_count += from->blocked_count;
}

double profile_time_sum(const struct profile_time *time)
{
    return time->python_sec + time->native_sec + time->system_sec;
}

double profile_percent(const struct profile *profile, double sec)
{
    return profile->total_sec > 0 ? 100 * sec / profile->total_sec : 0;
}

void profile_time_add(struct profile_time *into, const struct profile_time *from)
{
    into->python_sec += from->python_sec;
    into->native_sec += from->native_sec;
    into->system_sec += from->system_sec;
    for (int i = 0; i < WAIT_CAUSES; i++)
        into->wait_sec[i] += from->wait_sec[i];
    into->samples += from->samples;
    into->square_sec2 += from->square_sec2;
}

double profile_overhead_sec(const struct profile *profile)
{
    return profile->handler_sec + profile->sampler_sec + profile->memory_sec;
}

/*
 * Samples come at intervals of w, drawn evenly from [w/2, 3w/2), which vary by w^2/12:
 * of all that was allocated that is known so much better than if each byte could be
 * a sample by itself.  A share p of it is those samples that hit it: p (1 - p) by chance, and
 * p^2 of the little by which the whole is off.
 */
double profile_memory_half_width(double square, double all, double window)
{
    double share = all > 0 ? fmin(square / all, 1) : 0;
    return square > 0 ? 1.96 * sqrt(square * (1 - share + share / 12) + fmax(window, 0)) : 0;
}

double profile_half_width(const struct profile *profile, const struct profile_time *time)
{
    double total = profile_time_sum(&profile->time), squares = profile->time.square_sec2;
    if (!(total > 0) || !(squares > 0))
        return 0;
    double share = profile_time_sum(time) / total;
    if (!(share > 0) || share >= 1)
        return 0;
    double effective_samples = total * total / squares;
    double percent = 196 * sqrt(share * (1 - share) / effective_samples);
    return percent < 100 ? percent : 100;
}
