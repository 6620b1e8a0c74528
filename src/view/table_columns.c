/* What the cells of the terminal's tables hold; see table_columns.h. */
#include "view/table_columns.h"

#include "view/format.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    HOT_PERCENT = 33,
    MEMORY_COLUMNS = 12,
    NEVER = INT_MAX,
};

static bool is_hot(const struct table_row *row)
{
    return row->percent >= HOT_PERCENT;
}

/* One kind of time: a number on active lines, a dot where there is something, but little. */
static void fill_share(const struct table_row *row, double sec, enum style style,
                       struct table_cell *cell)
{
    double percent = profile_percent(row->context->profile, sec);
    if (row->active && percent >= 0.05) {
        snprintf(cell->text, sizeof cell->text, "%s", format_percent(percent).text);
        cell->style = is_hot(row) ? STYLE_HOT : style;
    } else if (sec > 0) {
        snprintf(cell->text, sizeof cell->text, "%s",
                 screen_glyph_text(row->context->screen, GLYPH_DOT));
        cell->style = STYLE_DIM;
    }
}

static void fill_total(const struct table_row *row, struct table_cell *cell)
{
    fill_share(row, profile_time_sum(&row->line->time), STYLE_PYTHON, cell);
}

static void fill_python(const struct table_row *row, struct table_cell *cell)
{
    fill_share(row, row->line->time.python_sec, STYLE_PYTHON, cell);
}

static void fill_native(const struct table_row *row, struct table_cell *cell)
{
    fill_share(row, row->line->time.native_sec, STYLE_NATIVE, cell);
}

static void fill_system(const struct table_row *row, struct table_cell *cell)
{
    fill_share(row, row->line->time.system_sec, STYLE_SYSTEM, cell);
}

static void fill_seconds(const struct table_row *row, struct table_cell *cell)
{
    double sec = profile_time_sum(&row->line->time);
    if (!row->active || !(sec > 0))
        return;
    snprintf(cell->text, sizeof cell->text, "%s", format_short_time(sec).text);
    cell->style = is_hot(row) ? STYLE_HOT : STYLE_PLAIN;
}

static void fill_half_width(const struct table_row *row, struct table_cell *cell)
{
    if (!row->active || row->line->half_width_percent <= 0)
        return;
    snprintf(cell->text, sizeof cell->text, "%s%.1f",
             screen_glyph_text(row->context->screen, GLYPH_PLUS_MINUS),
             row->line->half_width_percent);
    cell->style = STYLE_DIM;
}

/* "sleep 1.00s" */
void table_fill_wait(const struct table_row *row, struct table_cell *cell)
{
    const struct terminal_options *options = row->context->options;
    const double *wait_sec = row->line->time.wait_sec;
    int most = 0;
    for (int cause = 1; cause < WAIT_CAUSES; cause++)
        if (wait_sec[cause] > wait_sec[most])
            most = cause;
    double percent = profile_percent(row->context->profile, wait_sec[most]);
    if (!row->active || wait_sec[most] <= 0 || percent < options->cpu_percent_threshold)
        return;
    snprintf(cell->text, sizeof cell->text, "%s %s", wait_cause_key[most],
             format_short_time(wait_sec[most]).text);
    cell->style = STYLE_WAIT;
}

/* When the line was sampled, over the whole run; each line is scaled to its own maximum. */
static void fill_timeline(const struct table_row *row, struct table_cell *cell)
{
    const struct table_context *context = row->context;
    const struct profile_line *line = row->line;
    double span = context->last_sec - context->first_sec;
    if (!row->active || !line->stamp_count || !(span > 0))
        return;
    double counts[TABLE_TIMELINE_COLUMNS] = {0};
    for (uint32_t i = 0; i < line->stamp_count; i++) {
        int at = (int)((line->stamps[i] - context->first_sec) / span * TABLE_TIMELINE_COLUMNS);
        at = at < 0 ? 0 : at < TABLE_TIMELINE_COLUMNS ? at : TABLE_TIMELINE_COLUMNS - 1;
        counts[at]++;
    }
    table_spark(context->screen, counts, TABLE_TIMELINE_COLUMNS, cell->text);
    cell->style = STYLE_TIMELINE;
}

/* ---- memory ---- */

/* Figures about an amount are shown where the amount itself is: from 0.1M on. */
static bool is_shown(const struct table_row *row, double mb)
{
    return row->active && mb >= 0.05;
}

static void fill_megabytes(const struct table_row *row, double mb, struct table_cell *cell)
{
    if (!is_shown(row, mb))
        return;
    snprintf(cell->text, sizeof cell->text, "%s", format_short_memory(mb).text);
    cell->style = row->usage_percent >= HOT_PERCENT ? STYLE_HOT : STYLE_MEMORY;
}

static void fill_peak(const struct table_row *row, struct table_cell *cell)
{
    fill_megabytes(row, row->line->memory.peak_mb, cell);
}

static void fill_allocated(const struct table_row *row, struct table_cell *cell)
{
    fill_megabytes(row, row->line->memory.allocated_mb, cell);
}

static void fill_allocated_half_width(const struct table_row *row, struct table_cell *cell)
{
    double half_width = row->line->memory.half_width_mb.allocated;
    if (!is_shown(row, half_width))
        return;
    snprintf(cell->text, sizeof cell->text, "%s%s",
             screen_glyph_text(row->context->screen, GLYPH_PLUS_MINUS),
             format_short_memory(half_width).text);
    cell->style = STYLE_DIM;
}

static void fill_total_memory(const struct table_row *row, struct table_cell *cell)
{
    if (table_tells_total(row->context->profile, row->line->memory.total_mb))
        fill_megabytes(row, row->line->memory.total_mb, cell);
}

static void fill_live(const struct table_row *row, struct table_cell *cell)
{
    fill_megabytes(row, row->line->memory.live_mb, cell);
}

static void fill_python_memory(const struct table_row *row, struct table_cell *cell)
{
    const struct profile_memory *memory = &row->line->memory;
    if (!is_shown(row, memory->allocated_mb))
        return;
    snprintf(cell->text, sizeof cell->text, "%.0f%%",
             100 * memory->python_mb / memory->allocated_mb);
    cell->style = STYLE_MEMORY;
}

/* The line's live memory over the run; between two points it stays what it was. */
static void fill_memory_timeline(const struct table_row *row, struct table_cell *cell)
{
    const struct profile_memory *memory = &row->line->memory;
    double span = row->context->profile->elapsed_sec;
    if (!is_shown(row, memory->peak_mb) || !memory->point_count || !(span > 0))
        return;
    double values[MEMORY_COLUMNS] = {0}, now = 0;
    uint32_t next = 0;
    for (int i = 0; i < MEMORY_COLUMNS; i++) {
        values[i] = now;
        while (next < memory->point_count &&
               memory->own[next].at_sec < span * (i + 1) / MEMORY_COLUMNS) {
            now = memory->own[next++].mb;
            values[i] = fmax(values[i], now);
        }
    }
    table_spark(row->context->screen, values, MEMORY_COLUMNS, cell->text);
    cell->style = STYLE_MEMORY;
}

static void fill_copies(const struct table_row *row, struct table_cell *cell)
{
    double elapsed = row->context->profile->elapsed_sec;
    double rate = elapsed > 0 ? row->line->memory.copied_mb / elapsed : 0;
    if (rate < 0.5)
        return;
    snprintf(cell->text, sizeof cell->text, "%.0f", rate);
    cell->style = STYLE_COPY;
}

/* ---- tasks ---- */

/* Of all awaiting, which is no part of the total time. */
static void fill_await(const struct table_row *row, struct table_cell *cell)
{
    double percent = profile_await_percent(row->context->profile, &row->line->async);
    if (row->active && percent >= 0.05) {
        snprintf(cell->text, sizeof cell->text, "%s", format_percent(percent).text);
        cell->style = STYLE_WAIT;
    } else if (percent > 0) {
        snprintf(cell->text, sizeof cell->text, "%s",
                 screen_glyph_text(row->context->screen, GLYPH_DOT));
        cell->style = STYLE_DIM;
    }
}

static void fill_blocked(const struct table_row *row, struct table_cell *cell)
{
    if (!row->active || !(row->line->async.blocked_sec > 0))
        return;
    snprintf(cell->text, sizeof cell->text, "%s",
             format_short_time(row->line->async.blocked_sec).text);
    cell->style = STYLE_HOT;
}

const struct table_column table_columns[] = {
    {"Time", "total", 6, 0, 0, 59, 0, 0, fill_total, NULL},
    {"Time", "Python", 6, 60, 60, NEVER, 0, 0, fill_python, NULL},
    {NULL, "native", 6, 60, 60, NEVER, 0, 0, fill_native, NULL},
    {NULL, "system", 6, 60, 60, NEVER, 0, 0, fill_system, NULL},
    {NULL, "seconds", 7, 100, 60, NEVER, 1, 0, fill_seconds, NULL},
    {NULL, "+/-", 5, 140, 100, NEVER, 8, TABLE_HALF_WIDTHS, fill_half_width,
     "+/- is how far off Python, native and system together may be by chance (95%)"},
    {"Await", "%", 6, 70, 60, NEVER, 0, TABLE_AWAITS, fill_await,
     "Await is what tasks waited for here, as a part of what all of them waited for"},
    {NULL, "blocked", 7, 100, 80, NEVER, 1, TABLE_BLOCKS, fill_blocked,
     "blocked how long the line kept an event loop from all of its tasks"},
    {"Memory", "peak", 6, 80, 60, NEVER, 0, TABLE_MEMORY, fill_peak,
     "Memory (in MiB) is that which the line allocated: peak is the most of it that was live at "
     "once"},
    {NULL, "alloc", 6, 100, 80, NEVER, 2, TABLE_MEMORY, fill_allocated,
     "alloc what was not gone again before the thread had allocated another megabyte "
     "(--allocation-sampling-window)"},
    {NULL, "+/-", 6, 150, 120, NEVER, 9, TABLE_MEMORY_WIDTHS, fill_allocated_half_width, NULL},
    {NULL, "live", 6, 110, 100, NEVER, 4, TABLE_MEMORY, fill_live, "live what was left at the end"},
    {NULL, "Python", 6, 110, 100, NEVER, 5, TABLE_MEMORY, fill_python_memory,
     "Python the part of alloc that Python allocated"},
    {NULL, "over time", MEMORY_COLUMNS, 130, 120, NEVER, 6, TABLE_MEMORY, fill_memory_timeline,
     NULL},
    {NULL, "total", 6, 100, 80, NEVER, 3, TABLE_TOTALS, fill_total_memory,
     "total all that was asked for, shown where it is 100 MB or more for each second of the run"},
    {"Copy", "MB/s", 5, 120, 100, NEVER, 7, TABLE_COPIES, fill_copies, NULL},
    {"Waits", "longest", 14, 120, 80, NEVER, 10, TABLE_WAITS, table_fill_wait, NULL},
    {"Samples", "over time", TABLE_TIMELINE_COLUMNS, 140, NEVER, NEVER, 11, TABLE_STAMPS,
     fill_timeline, NULL},
};

_Static_assert(TABLE_TOTAL_MB == 100, "the legend of `total` says so");

const size_t table_column_count = sizeof table_columns / sizeof table_columns[0];
