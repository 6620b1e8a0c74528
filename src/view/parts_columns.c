/* Columns of figures; see parts_columns.h.  The table is the list of them, sorted by key. */
#include "view/parts_columns.h"

#include "profile/json_put.h"

#include <math.h>

enum column_kind {
    COLUMN_REAL,   /* a double of the line */
    COLUMN_COUNT,  /* a uint64_t of it */
    COLUMN_LINENO, /* a uint32_t of it */
    COLUMN_SHARE,  /* what `value` makes of it */
    COLUMN_WAITS,
    COLUMN_LIBRARY,
    COLUMN_TASKS, /* their names */
    COLUMN_COROUTINE,
    COLUMN_POINTS, /* a profile_point * of it */
    COLUMN_ROW,    /* which line it is */
    COLUMN_START,  /* of functions: where it begins, */
    COLUMN_NAME,   /* and its name */
};

struct column {
    const char *key;
    enum column_kind kind;
    size_t offset;
    double (*value)(const struct profile *profile, const struct profile_line *line);
};

static double part_of(double part, double whole)
{
    return whole > 0 && part > 0 ? fmin(part / whole, 1) : 0;
}

/* A damaged profile may have more on one line than in all: its parts are then of the line. */
static double percent(const struct profile *profile, const struct profile_line *line, double sec)
{
    return 100 * part_of(sec, fmax(profile->total_sec, profile_time_sum(&line->time)));
}

static double python_percent(const struct profile *profile, const struct profile_line *line)
{
    return percent(profile, line, line->time.python_sec);
}

static double native_percent(const struct profile *profile, const struct profile_line *line)
{
    return percent(profile, line, line->time.native_sec);
}

static double system_percent(const struct profile *profile, const struct profile_line *line)
{
    return percent(profile, line, line->time.system_sec);
}

static double copy_rate(const struct profile *profile, const struct profile_line *line)
{
    return profile->elapsed_sec > 0 ? line->memory.copied_mb / profile->elapsed_sec : 0;
}

static double python_fraction(const struct profile *profile, const struct profile_line *line)
{
    return part_of(line->memory.python_mb, line->memory.allocated_mb);
}

static double usage_fraction(const struct profile *profile, const struct profile_line *line)
{
    return part_of(line->memory.allocated_mb, profile->all_memory.allocated_mb);
}

static double await_percent(const struct profile *profile, const struct profile_line *line)
{
    return profile_await_percent(profile, &line->async);
}

static double concurrency(const struct profile *profile, const struct profile_line *line)
{
    return profile_concurrency(&line->async);
}

#define REAL(member)   COLUMN_REAL, offsetof(struct profile_line, member), NULL
#define COUNT(member)  COLUMN_COUNT, offsetof(struct profile_line, member), NULL
#define LINENO(member) COLUMN_LINENO, offsetof(struct profile_line, member), NULL
#define POINTS(member) COLUMN_POINTS, offsetof(struct profile_line, member), NULL
#define SHARE(value)   COLUMN_SHARE, 0, value

static const struct column columns[] = {
    {"async_await_sec", REAL(async.await_sec)},
    {"async_blocked_count", COUNT(async.blocked_count)},
    {"async_blocked_longest_sec", REAL(async.blocked_longest_sec)},
    {"async_blocked_sec", REAL(async.blocked_sec)},
    {"async_half_width_sec", REAL(async.half_width_sec)},
    {"async_join_sec", REAL(async.join_sec)},
    {"async_ready_sec", REAL(async.ready_sec)},
    {"async_task_names", COLUMN_TASKS, 0, NULL},
    {"cpu_native_sec", REAL(time.native_sec)},
    {"cpu_python_sec", REAL(time.python_sec)},
    {"end_function_line", LINENO(end_function)},
    {"end_outermost_loop", LINENO(end_outermost_loop)},
    {"end_region_line", LINENO(end_region)},
    {"half_width_copy_mb", REAL(memory.half_width_mb.copied)},
    {"half_width_live_mb", REAL(memory.half_width_mb.live)},
    {"half_width_malloc_mb", REAL(memory.half_width_mb.allocated)},
    {"half_width_peak_mb", REAL(memory.half_width_mb.peak)},
    {"half_width_percent", REAL(half_width_percent)},
    {"is_coroutine", COLUMN_COROUTINE, 0, NULL},
    {"lineno", COLUMN_START, 0, NULL},
    {"live_samples", POINTS(memory.own)},
    {"memory_samples", POINTS(memory.points)},
    {"n_alloc_count", COUNT(memory.total_count)},
    {"n_alloc_samples", COUNT(memory.samples)},
    {"n_alloc_total_mb", REAL(memory.total_mb)},
    {"n_async_await_percent", SHARE(await_percent)},
    {"n_async_concurrency_mean", SHARE(concurrency)},
    {"n_async_concurrency_peak", REAL(async.peak)},
    {"n_avg_mb", REAL(memory.average_mb)},
    {"n_copy_mb", REAL(memory.copied_mb)},
    {"n_copy_mb_s", SHARE(copy_rate)},
    {"n_core_utilization", REAL(core_utilization)},
    {"n_cpu_percent_c", SHARE(native_percent)},
    {"n_cpu_percent_python", SHARE(python_percent)},
    {"n_live_at_peak_mb", REAL(memory.at_peak_mb)},
    {"n_live_mb", REAL(memory.live_mb)},
    {"n_malloc_mb", REAL(memory.allocated_mb)},
    {"n_mallocs", COUNT(memory.count)},
    {"n_peak_mb", REAL(memory.peak_mb)},
    {"n_python_fraction", SHARE(python_fraction)},
    {"n_samples", COUNT(time.samples)},
    {"n_sys_percent", SHARE(system_percent)},
    {"n_usage_fraction", SHARE(usage_fraction)},
    {"name", COLUMN_NAME, 0, NULL},
    {"native_library", COLUMN_LIBRARY, 0, NULL},
    {"row", COLUMN_ROW, 0, NULL},
    {"start_function_line", LINENO(start_function)},
    {"start_outermost_loop", LINENO(start_outermost_loop)},
    {"start_region_line", LINENO(start_region)},
    {"system_sec", REAL(time.system_sec)},
    {"waits", COLUMN_WAITS, 0, NULL},
};

static bool has_waits(const struct profile_line *line)
{
    for (int cause = 0; cause < WAIT_CAUSES; cause++)
        if (line->time.wait_sec[cause] > 0)
            return true;
    return false;
}

bool parts_is_active(const struct profile_line *line)
{
    const struct profile_memory *memory = &line->memory;
    return profile_time_sum(&line->time) > 0 || line->time.samples || has_waits(line) ||
           memory->allocated_mb > 0 || memory->total_mb > 0 || memory->live_mb > 0 ||
           memory->peak_mb > 0 || memory->at_peak_mb > 0 || memory->copied_mb > 0 ||
           memory->count || memory->point_count || profile_async_is_active(&line->async);
}

static bool is_blank(const struct parts_rows *rows, const struct column *column,
                     const struct profile_line *line)
{
    const void *at = (const char *)line + column->offset;
    switch (column->kind) {
    case COLUMN_REAL:
        return *(const double *)at == 0;
    case COLUMN_COUNT:
        return !*(const uint64_t *)at;
    case COLUMN_LINENO:
        return !*(const uint32_t *)at;
    case COLUMN_SHARE:
        return column->value(rows->profile, line) == 0;
    case COLUMN_WAITS:
        return !has_waits(line);
    case COLUMN_LIBRARY:
        return !line->memory.library;
    case COLUMN_TASKS:
        return !line->async.name_count;
    case COLUMN_COROUTINE:
        return !line->is_coroutine;
    case COLUMN_POINTS:
        return !line->memory.point_count;
    default:
        return false;
    }
}

/* What a row is must be there, also if there are none; any other column only if it says something.
 */
static bool is_wanted(const struct parts_rows *rows, const struct column *column)
{
    if (column->kind == COLUMN_ROW)
        return !rows->are_functions;
    if (column->kind == COLUMN_START || column->kind == COLUMN_NAME)
        return rows->are_functions;
    for (uint32_t i = 0; i < rows->count; i++)
        if (!is_blank(rows, column, &rows->lines[rows->rows[i]]))
            return true;
    return false;
}

static void put_cell(const struct parts_rows *rows, const struct column *column, uint32_t row,
                     struct json_out *out)
{
    const struct profile_line *line = &rows->lines[row];
    const void *at = (const char *)line + column->offset;
    switch (column->kind) {
    case COLUMN_REAL:
        json_out_short(out, *(const double *)at);
        break;
    case COLUMN_COUNT:
        json_out_int(out, (int64_t) * (const uint64_t *)at);
        break;
    case COLUMN_LINENO:
        json_out_int(out, *(const uint32_t *)at);
        break;
    case COLUMN_SHARE:
        json_out_short(out, column->value(rows->profile, line));
        break;
    case COLUMN_WAITS:
        json_put_waits(out, &line->time);
        break;
    case COLUMN_LIBRARY:
        if (line->memory.library)
            json_put_text(out, rows->profile, line->memory.library);
        else
            json_out_null(out);
        break;
    case COLUMN_TASKS:
        json_put_texts(out, rows->profile, line->async.names, line->async.name_count);
        break;
    case COLUMN_COROUTINE:
        json_out_bool(out, line->is_coroutine);
        break;
    case COLUMN_POINTS:
        json_put_points(out, *(struct profile_point *const *)at, line->memory.point_count);
        break;
    case COLUMN_ROW:
        json_out_int(out, row);
        break;
    case COLUMN_START:
        json_out_int(out, line->lineno);
        break;
    case COLUMN_NAME:
        json_put_text(out, rows->profile, line->text);
        break;
    }
}

void parts_columns(const struct parts_rows *rows, struct json_out *out)
{
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        if (!is_wanted(rows, &columns[c]))
            continue;
        json_out_key(out, columns[c].key);
        json_out_array(out);
        for (uint32_t i = 0; i < rows->count; i++)
            put_cell(rows, &columns[c], rows->rows[i], out);
        json_out_end(out);
    }
}
