#include "profile/json_line.h"

#include "profile/json_put.h"

#include <math.h>
#include <stddef.h>

struct subject {
    const struct profile *profile;
    const struct profile_line *line;
    bool is_function;
    struct buf *scratch;
};

typedef void put_value(struct json_out *out, const struct subject *subject);

/* ---- values that are no member of a line ---- */

/* The parts of a line's time together must not be over 100 %, also where a damaged profile has more
 * on one line than in all. */
static void put_percent(struct json_out *out, const struct subject *subject, double sec)
{
    double total = subject->profile->total_sec;
    double whole = fmax(total, profile_time_sum(&subject->line->time));
    json_put_real(out, total > 0 ? fmin(100 * sec / whole, 100) : 0);
}

static void put_python_percent(struct json_out *out, const struct subject *subject)
{
    put_percent(out, subject, subject->line->time.python_sec);
}

static void put_native_percent(struct json_out *out, const struct subject *subject)
{
    put_percent(out, subject, subject->line->time.native_sec);
}

static void put_system_percent(struct json_out *out, const struct subject *subject)
{
    put_percent(out, subject, subject->line->time.system_sec);
}

static void put_share(struct json_out *out, double part, double whole)
{
    json_put_real(out, whole > 0 && part > 0 ? fmin(part / whole, 1) : 0);
}

static void put_python_fraction(struct json_out *out, const struct subject *subject)
{
    const struct profile_memory *memory = &subject->line->memory;
    put_share(out, memory->python_mb, memory->allocated_mb);
}

static void put_usage_fraction(struct json_out *out, const struct subject *subject)
{
    put_share(out, subject->line->memory.allocated_mb, subject->profile->all_memory.allocated_mb);
}

static void put_copy_rate(struct json_out *out, const struct subject *subject)
{
    double elapsed_sec = subject->profile->elapsed_sec;
    json_put_real(out, elapsed_sec > 0 ? subject->line->memory.copied_mb / elapsed_sec : 0);
}

static void put_library(struct json_out *out, const struct subject *subject)
{
    if (subject->line->memory.library)
        json_put_text(out, subject->profile, subject->line->memory.library);
    else
        json_out_null(out);
}

static void put_stamps(struct json_out *out, const struct subject *subject)
{
    json_out_array(out);
    for (uint32_t i = 0; i < subject->line->stamp_count; i++)
        json_put_moment(out, subject->line->stamps[i]);
    json_out_end(out);
}

static void put_own_points(struct json_out *out, const struct subject *subject)
{
    json_put_points(out, subject->line->memory.own, subject->line->memory.point_count);
}

static void put_footprint_points(struct json_out *out, const struct subject *subject)
{
    json_put_points(out, subject->line->memory.points, subject->line->memory.point_count);
}

static void put_line_waits(struct json_out *out, const struct subject *subject)
{
    json_put_waits(out, &subject->line->time);
}

/* The page puts source text into markup and undoes this; the backslash is really in the text. */
static void put_source(struct json_out *out, const struct subject *subject)
{
    if (subject->is_function) { /* its name */
        json_put_text(out, subject->profile, subject->line->text);
        return;
    }
    const char *text = profile_str(subject->profile, subject->line->text);
    size_t length = intern_length(&subject->profile->strings, subject->line->text);
    struct buf *escaped = subject->scratch;
    buf_reset(escaped);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '&' || text[i] == '<' || text[i] == '>')
            buf_addf(escaped, "\\u%04x", (unsigned)text[i]);
        else
            buf_char(escaped, text[i]);
    }
    json_out_string(out, escaped->data ? escaped->data : "", escaped->len);
}

static void put_await_percent(struct json_out *out, const struct subject *subject)
{
    json_put_real(out, profile_await_percent(subject->profile, &subject->line->async));
}

static void put_concurrency(struct json_out *out, const struct subject *subject)
{
    json_put_real(out, profile_concurrency(&subject->line->async));
}

static void put_task_names(struct json_out *out, const struct subject *subject)
{
    const struct profile_async *async = &subject->line->async;
    json_put_texts(out, subject->profile, async->names, async->name_count);
}

static void put_is_coroutine(struct json_out *out, const struct subject *subject)
{
    json_out_bool(out, subject->line->is_coroutine);
}

/* What is not measured. */

static void put_nothing(struct json_out *out, const struct subject *subject)
{
    (void)subject;
    json_put_real(out, 0);
}

/* ---- the fields ---- */

enum where {
    ALWAYS,    /* the original's */
    OF_SOURCE, /* the original's, which functions do not have */
    IF_ACTIVE, /* ours: not of lines on which nothing happened, */
    IF_LOOPS,  /* nor of programs without an event loop */
};

struct line_field {
    const char *key;
    enum where where;
    enum { REAL, COUNT, LINENO, OTHER } kind;
    size_t offset;  /* of a double, uint64_t or uint32_t in struct profile_line */
    put_value *put; /* OTHER */
};

#define AT_REAL(member)   REAL, offsetof(struct profile_line, member), NULL
#define AT_COUNT(member)  COUNT, offsetof(struct profile_line, member), NULL
#define AT_LINENO(member) LINENO, offsetof(struct profile_line, member), NULL
#define BY(function)      OTHER, 0, function

static const struct line_field fields[] = {
    {"async_await_sec", IF_LOOPS, AT_REAL(async.await_sec)},
    {"async_blocked_count", IF_LOOPS, AT_COUNT(async.blocked_count)},
    {"async_blocked_longest_sec", IF_LOOPS, AT_REAL(async.blocked_longest_sec)},
    {"async_blocked_sec", IF_LOOPS, AT_REAL(async.blocked_sec)},
    {"async_half_width_sec", IF_LOOPS, AT_REAL(async.half_width_sec)},
    {"async_join_sec", IF_LOOPS, AT_REAL(async.join_sec)},
    {"async_ready_sec", IF_LOOPS, AT_REAL(async.ready_sec)},
    {"async_task_names", ALWAYS, BY(put_task_names)},
    {"cpu_native_sec", IF_ACTIVE, AT_REAL(time.native_sec)},
    {"cpu_python_sec", IF_ACTIVE, AT_REAL(time.python_sec)},
    {"cpu_samples_list", ALWAYS, BY(put_stamps)},
    {"end_function_line", OF_SOURCE, AT_LINENO(end_function)},
    {"end_outermost_loop", OF_SOURCE, AT_LINENO(end_outermost_loop)},
    {"end_region_line", OF_SOURCE, AT_LINENO(end_region)},
    {"half_width_copy_mb", IF_ACTIVE, AT_REAL(memory.half_width_mb.copied)},
    {"half_width_live_mb", IF_ACTIVE, AT_REAL(memory.half_width_mb.live)},
    {"half_width_malloc_mb", IF_ACTIVE, AT_REAL(memory.half_width_mb.allocated)},
    {"half_width_peak_mb", IF_ACTIVE, AT_REAL(memory.half_width_mb.peak)},
    {"half_width_percent", IF_ACTIVE, AT_REAL(half_width_percent)},
    {"is_coroutine", ALWAYS, BY(put_is_coroutine)},
    {"line", ALWAYS, BY(put_source)},
    {"lineno", ALWAYS, AT_LINENO(lineno)},
    {"live_samples", IF_ACTIVE, BY(put_own_points)},
    {"memory_samples", ALWAYS, BY(put_footprint_points)},
    {"n_alloc_count", IF_ACTIVE, AT_COUNT(memory.total_count)},
    {"n_alloc_samples", IF_ACTIVE, AT_COUNT(memory.samples)},
    {"n_alloc_total_mb", IF_ACTIVE, AT_REAL(memory.total_mb)},
    {"n_async_await_percent", ALWAYS, BY(put_await_percent)},
    {"n_async_concurrency_mean", ALWAYS, BY(put_concurrency)},
    {"n_async_concurrency_peak", ALWAYS, AT_REAL(async.peak)},
    {"n_avg_mb", ALWAYS, AT_REAL(memory.average_mb)},
    {"n_copy_mb", IF_ACTIVE, AT_REAL(memory.copied_mb)},
    {"n_copy_mb_s", ALWAYS, BY(put_copy_rate)},
    {"n_core_utilization", ALWAYS, AT_REAL(core_utilization)},
    {"n_cpu_percent_c", ALWAYS, BY(put_native_percent)},
    {"n_cpu_percent_python", ALWAYS, BY(put_python_percent)},
    {"n_gpu_avg_memory_mb", ALWAYS, BY(put_nothing)},
    {"n_gpu_peak_memory_mb", ALWAYS, BY(put_nothing)},
    {"n_gpu_percent", ALWAYS, BY(put_nothing)},
    {"n_growth_mb", ALWAYS, AT_REAL(memory.peak_mb)},
    {"n_live_at_peak_mb", IF_ACTIVE, AT_REAL(memory.at_peak_mb)},
    {"n_live_mb", IF_ACTIVE, AT_REAL(memory.live_mb)},
    {"n_malloc_mb", ALWAYS, AT_REAL(memory.allocated_mb)},
    {"n_mallocs", ALWAYS, AT_COUNT(memory.count)},
    {"n_peak_mb", ALWAYS, AT_REAL(memory.peak_mb)},
    {"n_python_fraction", ALWAYS, BY(put_python_fraction)},
    {"n_samples", IF_ACTIVE, AT_COUNT(time.samples)},
    {"n_sys_percent", ALWAYS, BY(put_system_percent)},
    {"n_usage_fraction", ALWAYS, BY(put_usage_fraction)},
    {"native_library", IF_ACTIVE, BY(put_library)},
    {"start_function_line", OF_SOURCE, AT_LINENO(start_function)},
    {"start_outermost_loop", OF_SOURCE, AT_LINENO(start_outermost_loop)},
    {"start_region_line", OF_SOURCE, AT_LINENO(start_region)},
    {"system_sec", IF_ACTIVE, AT_REAL(time.system_sec)},
    {"waits", IF_ACTIVE, BY(put_line_waits)},
};

static void put_field(struct json_out *out, const struct line_field *field,
                      const struct subject *subject)
{
    const void *at = (const char *)subject->line + field->offset;
    json_out_key(out, field->key);
    switch (field->kind) {
    case REAL:
        json_put_real(out, *(const double *)at);
        break;
    case COUNT:
        json_put_count(out, *(const uint64_t *)at);
        break;
    case LINENO:
        json_put_count(out, *(const uint32_t *)at);
        break;
    case OTHER:
        field->put(out, subject);
        break;
    }
}

void json_line_put(struct json_out *out, const struct profile *profile,
                   const struct profile_line *line, bool is_function, struct buf *scratch)
{
    const struct subject subject = {profile, line, is_function, scratch};
    bool is_active = is_function || profile_line_is_active(line);
    const bool has[] = {
        [ALWAYS] = true,
        [OF_SOURCE] = !is_function,
        [IF_ACTIVE] = is_active,
        [IF_LOOPS] = is_active && profile_has_loops(profile),
    };
    json_out_object(out);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (has[fields[i].where])
            put_field(out, &fields[i], &subject);
    json_out_end(out);
}
