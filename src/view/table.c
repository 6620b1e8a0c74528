/*
 * Tables of lines and functions: which of the columns (table_columns.h) appear, and
 * the rows.  See table.h.
 */
#include "view/table.h"

#include "base/mem.h"
#include "view/format.h"
#include "view/highlight.h"
#include "view/table_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACTIVE_USAGE_PERCENT = 1, /* of all that was allocated */
    ACTIVE_AWAIT_PERCENT = 1, /* of all awaiting */
    LINE_COLUMNS_MIN = 40,    /* of the code; two fifths of wide terminals */
    CODE_COLUMNS_MIN = 26,    /* of the code beside the label of a wait */
    COLUMNS_MAX = 18,
};

void table_spark(const struct screen *screen, const double *values, int count, char *text)
{
    static const char *const utf8[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, values[i]);
    for (int i = 0; i < count; i++) {
        int level = most > 0 && values[i] > 0 ? (int)ceil(values[i] / most * 8) : 0;
        text = stpcpy(text, screen->ascii ? ascii[level] : utf8[level]);
    }
}

bool table_tells_total(const struct profile *profile, double total_mb)
{
    return total_mb > 0 && total_mb >= TABLE_TOTAL_MB * profile->elapsed_sec;
}

struct layout {
    const struct table_column *shown[COLUMNS_MAX];
    int count;
    int number_width; /* of the line numbers */
    bool has_wait;
};

/* Columns of the terminal that are left for code or names. */
static int room_left(const struct layout *layout, int width)
{
    width -= layout->number_width + 3;
    for (int i = 0; i < layout->count; i++)
        width -= layout->shown[i]->width + (layout->shown[i]->group ? 3 : 1);
    return width;
}

/* The one that is missed least; whole groups keep their first column longest. */
static bool drop_column(struct layout *layout)
{
    int last = -1;
    for (int i = 0; i < layout->count; i++)
        if (layout->shown[i]->rank &&
            (last < 0 || layout->shown[i]->rank > layout->shown[last]->rank))
            last = i;
    if (last < 0)
        return false;
    layout->count--;
    for (int i = last; i < layout->count; i++)
        layout->shown[i] = layout->shown[i + 1];
    return true;
}

static void layout_init(struct layout *layout, const struct table_context *context,
                        bool is_functions, uint32_t last_line)
{
    int width = context->screen->columns;
    *layout = (struct layout){.number_width = 4};
    for (uint32_t rest = last_line / 10000; rest; rest /= 10)
        layout->number_width++;
    for (size_t i = 0; i < table_column_count; i++) {
        int from = is_functions ? table_columns[i].functions_from : table_columns[i].lines_from;
        if (width >= from && width <= table_columns[i].until &&
            !(table_columns[i].needs & ~context->data))
            layout->shown[layout->count++] = &table_columns[i];
    }
    int least = is_functions ? width / 4 : width * 2 / 5;
    if (!is_functions && least < LINE_COLUMNS_MIN)
        least = LINE_COLUMNS_MIN;
    while (room_left(layout, width) < least && drop_column(layout))
        continue;
    for (int i = 0; i < layout->count; i++)
        layout->has_wait |= layout->shown[i]->fill == table_fill_wait;
}

/* What stands before column `i`: a line before a new group and before the code, else a blank. */
static void separator(struct screen *screen, const struct layout *layout, int i, enum glyph glyph)
{
    bool is_rule = glyph == GLYPH_CROSS;
    int around = i == layout->count || layout->shown[i]->group ? 1 : 0;
    if (is_rule)
        screen_glyph(screen, STYLE_DIM, GLYPH_HORIZONTAL, 1);
    else
        screen_blank(screen, 1);
    if (!around)
        return;
    screen_glyph(screen, STYLE_DIM, glyph, 1);
    if (is_rule)
        screen_glyph(screen, STYLE_DIM, GLYPH_HORIZONTAL, 1);
    else
        screen_blank(screen, 1);
}

static void header(struct screen *screen, const struct layout *layout, const char *title)
{
    screen_blank(screen, layout->number_width);
    for (int i = 0; i < layout->count; i++) {
        const struct table_column *column = layout->shown[i];
        separator(screen, layout, i, GLYPH_VERTICAL);
        int end = screen->at + column->width;
        if (column->group)
            screen_text(screen, STYLE_BOLD, column->group, strlen(column->group), column->width);
        screen_blank_to(screen, end);
    }
    separator(screen, layout, layout->count, GLYPH_VERTICAL);
    screen_newline(screen);

    screen_right(screen, STYLE_BOLD, "Line", layout->number_width);
    for (int i = 0; i < layout->count; i++) {
        separator(screen, layout, i, GLYPH_VERTICAL);
        screen_right(screen, STYLE_PLAIN, layout->shown[i]->name, layout->shown[i]->width);
    }
    separator(screen, layout, layout->count, GLYPH_VERTICAL);
    screen_cstr(screen, STYLE_BOLD, title);
    screen_newline(screen);

    screen_glyph(screen, STYLE_DIM, GLYPH_HORIZONTAL, layout->number_width);
    for (int i = 0; i < layout->count; i++) {
        separator(screen, layout, i, GLYPH_CROSS);
        screen_glyph(screen, STYLE_DIM, GLYPH_HORIZONTAL, layout->shown[i]->width);
    }
    separator(screen, layout, layout->count, GLYPH_CROSS);
    screen_glyph(screen, STYLE_DIM, GLYPH_HORIZONTAL, screen->columns - screen->at);
    screen_newline(screen);
}

/* Line number and figures; the cursor is then where the code begins. */
static void figures(const struct layout *layout, const struct table_row *row)
{
    struct screen *screen = row->context->screen;
    char number[16];
    snprintf(number, sizeof number, "%u", row->line->lineno);
    screen_right(screen, STYLE_DIM, number, layout->number_width);
    for (int i = 0; i < layout->count; i++) {
        struct table_cell cell = {0};
        layout->shown[i]->fill(row, &cell);
        separator(screen, layout, i, GLYPH_VERTICAL);
        screen_right(screen, cell.style, cell.text, layout->shown[i]->width);
    }
    separator(screen, layout, layout->count, GLYPH_VERTICAL);
}

/* All waits count, charged or not: a worker's sleep is worth seeing while others work. */
static bool has_waits(const struct table_context *context, const struct profile_line *line)
{
    double most_sec = 0;
    for (int cause = 0; cause < WAIT_CAUSES; cause++)
        most_sec = fmax(most_sec, line->time.wait_sec[cause]);
    double percent = profile_percent(context->profile, most_sec);
    return percent > 0 && percent >= context->options->cpu_percent_threshold;
}

/* A moment of blocking is worth seeing: the line keeps all tasks waiting. */
static bool has_tasks(const struct table_context *context, const struct profile_line *line)
{
    return profile_await_percent(context->profile, &line->async) >= ACTIVE_AWAIT_PERCENT ||
           line->async.blocked_sec > 0;
}

/* `file` is NULL for functions. */
static struct table_row row_of(const struct table_context *context, const struct profile_file *file,
                               const struct profile_line *line)
{
    double percent = profile_percent(context->profile, profile_time_sum(&line->time));
    double all_mb = context->profile->all_memory.allocated_mb;
    double usage = all_mb > 0 ? 100 * line->memory.allocated_mb / all_mb : 0;
    bool has_time = percent > 0 && percent >= context->options->cpu_percent_threshold;
    bool is_peak = file && context->profile->peak_line == line->lineno &&
                   context->profile->peak_file == file->name; /* the summary names it */
    return (struct table_row){
        .context = context,
        .line = line,
        .percent = percent,
        .usage_percent = usage,
        .active = has_time || has_waits(context, line) || has_tasks(context, line) ||
                  usage >= ACTIVE_USAGE_PERCENT || is_peak || line->memory.leak.likelihood > 0 ||
                  table_tells_total(context->profile, line->memory.total_mb),
    };
}

/* That others took the processor says nothing of the line. */
static bool is_mostly_waiting(const struct table_row *row)
{
    const struct profile_time *time = &row->line->time;
    return (time->system_sec - time->wait_sec[WAIT_STARVED]) * 2 >= profile_time_sum(time);
}

/* The code, and at the right margin the wait when it has no column of its own.  Code gives way to
 * it only where waiting is what the line does. */
static void code(const struct layout *layout, const struct table_row *row,
                 const struct highlight_line *source)
{
    struct screen *screen = row->context->screen;
    struct table_cell wait = {0};
    if (!layout->has_wait)
        table_fill_wait(row, &wait);
    int room = screen->columns - screen->at;
    int label = (int)strlen(wait.text);
    int code_room = label ? room - label - 2 : room;
    bool fits = screen_width(screen, source->text, source->length) <= code_room;
    bool has_label = label && (fits || (is_mostly_waiting(row) && code_room >= CODE_COLUMNS_MIN));
    if (!has_label)
        code_room = room;
    if (source->styles)
        screen_styled(screen, source->styles, source->text, source->length, code_room);
    else
        screen_text(screen, STYLE_PLAIN, source->text, source->length, code_room);
    if (has_label) {
        screen_blank_to(screen, screen->columns - label);
        screen_cstr(screen, wait.style, wait.text);
    }
}

/* For timelines: the run as it was timed, and whatever stamps lie outside of it. */
static void widen_span(struct table_context *context, const struct profile_line *line)
{
    bool is_known = context->data & TABLE_STAMPS || context->profile->start_perf_sec > 0;
    double first = line->stamps[0], last = line->stamps[line->stamp_count - 1];
    if (!is_known || first < context->first_sec)
        context->first_sec = first;
    if (!is_known || last > context->last_sec)
        context->last_sec = last;
}

static void look_at_line(struct table_context *context, const struct profile_line *line)
{
    if (line->stamp_count) {
        widen_span(context, line);
        context->data |= TABLE_STAMPS;
    }
    if (line->half_width_percent > 0)
        context->data |= TABLE_HALF_WIDTHS;
    if (line->async.await_sec > 0)
        context->data |= TABLE_AWAITS;
    if (line->async.blocked_sec > 0)
        context->data |= TABLE_BLOCKS;
    if (line->memory.allocated_mb > 0 || line->memory.total_mb > 0)
        context->data |= TABLE_MEMORY;
    if (table_tells_total(context->profile, line->memory.total_mb))
        context->data |= TABLE_TOTALS;
    if (line->memory.half_width_mb.allocated > 0)
        context->data |= TABLE_MEMORY_WIDTHS;
    if (line->memory.copied_mb >= 0.5 * context->profile->elapsed_sec && line->memory.copied_mb > 0)
        context->data |= TABLE_COPIES;
    for (int cause = 0; cause < WAIT_CAUSES; cause++)
        if (line->time.wait_sec[cause] > 0)
            context->data |= TABLE_WAITS;
}

void table_init(struct table_context *context, struct screen *screen, const struct profile *profile,
                const struct terminal_options *options)
{
    *context = (struct table_context){.screen = screen, .profile = profile, .options = options};
    context->first_sec = profile->start_perf_sec;
    context->last_sec = profile->start_perf_sec + profile->elapsed_sec;
    for (uint32_t i = 0; i < profile->file_count; i++)
        for (uint32_t n = 0; n < profile->files[i].line_count; n++)
            look_at_line(context, &profile->files[i].lines[n]);
}

static bool shows(const struct layout *layout, const struct table_column *column)
{
    for (int i = 0; i < layout->count; i++)
        if (layout->shown[i] == column)
            return true;
    return false;
}

void table_legend(const struct table_context *context)
{
    struct screen *screen = context->screen;
    struct layout lines, functions;
    struct buf text = {0};
    layout_init(&lines, context, false, 0);
    layout_init(&functions, context, true, 0);
    buf_addf(&text, "Percents are of the total time; %s is something below %.3g%%",
             screen_glyph_text(screen, GLYPH_DOT), context->options->cpu_percent_threshold);
    for (size_t i = 0; i < table_column_count; i++) {
        const struct table_column *column = &table_columns[i];
        if (column->legend && (shows(&lines, column) || shows(&functions, column)))
            buf_addf(&text, "%s%s", column->group ? ". " : "; ", column->legend);
    }
    buf_char(&text, '.');
    screen_wrapped(screen, STYLE_DIM, text.data, 0);
    screen_newline(screen);
    buf_release(&text);
}

/* Where lines are missing, or are not to be shown. */
static void ellipsis(struct screen *screen, const struct layout *layout)
{
    screen_right(screen, STYLE_DIM, "...", layout->number_width);
    screen_newline(screen);
}

static bool has_active_line(const struct table_context *context, const struct profile_file *file)
{
    for (uint32_t i = 0; i < file->line_count; i++)
        if (row_of(context, file, &file->lines[i]).active)
            return true;
    return false;
}

void table_lines(const struct table_context *context, const struct profile_file *file)
{
    struct screen *screen = context->screen;
    if (context->options->reduced && !has_active_line(context, file)) {
        screen_cstr(screen, STYLE_DIM, "  no single line stands out");
        screen_newline(screen);
        return;
    }
    struct layout layout;
    struct highlight highlight;
    const char *name = profile_str(context->profile, file->name);
    const char *slash = strrchr(name, '/');
    uint32_t last_line = file->line_count ? file->lines[file->line_count - 1].lineno : 0;
    layout_init(&layout, context, false, last_line);
    highlight_init(&highlight, context->profile, file, screen->color);
    header(screen, &layout, slash ? slash + 1 : name);
    uint32_t shown = 0; /* the last line that was */
    for (uint32_t i = 0; i < file->line_count; i++) {
        struct table_row row = row_of(context, file, &file->lines[i]);
        if (context->options->reduced && !row.active)
            continue;
        if (file->lines[i].lineno > shown + 1)
            ellipsis(screen, &layout);
        shown = file->lines[i].lineno;
        struct highlight_line source = highlight_line(&highlight, i);
        figures(&layout, &row);
        code(&layout, &row, &source);
        screen_newline(screen);
    }
    if (shown < last_line)
        ellipsis(screen, &layout);
    highlight_release(&highlight);
}

static int compare_rows(const void *a, const void *b)
{
    const struct table_row *x = a, *y = b;
    if (x->percent != y->percent)
        return x->percent < y->percent ? 1 : -1;
    return (x->line->lineno > y->line->lineno) - (x->line->lineno < y->line->lineno);
}

void table_functions(const struct table_context *context, const struct profile_file *file)
{
    struct screen *screen = context->screen;
    struct table_row *rows = mem_zalloc(file->function_count, sizeof *rows);
    uint32_t count = 0, last_line = 0;
    for (uint32_t i = 0; i < file->function_count; i++) {
        struct table_row row = row_of(context, NULL, &file->functions[i]);
        if (!row.active)
            continue;
        rows[count++] = row;
        if (row.line->lineno > last_line)
            last_line = row.line->lineno;
    }
    struct layout layout;
    layout_init(&layout, context, true, last_line);
    if (count) {
        qsort(rows, count, sizeof *rows, compare_rows);
        screen_newline(screen);
        screen_cstr(screen, STYLE_BOLD, "Function summaries:");
        screen_newline(screen);
        header(screen, &layout, "Function");
    }
    for (uint32_t i = 0; i < count; i++) {
        figures(&layout, &rows[i]);
        screen_cstr(screen, STYLE_PLAIN, profile_str(context->profile, rows[i].line->text));
        screen_newline(screen);
    }
    free(rows);
}

static int compare_leaks(const void *a, const void *b)
{
    const struct profile_line *x = *(const struct profile_line *const *)a;
    const struct profile_line *y = *(const struct profile_line *const *)b;
    if (x->memory.leak.velocity_mb_s != y->memory.leak.velocity_mb_s)
        return x->memory.leak.velocity_mb_s < y->memory.leak.velocity_mb_s ? 1 : -1;
    return (x->lineno > y->lineno) - (x->lineno < y->lineno);
}

/* "  line 27: 32.5 MB/s, 60 MB live at the end, likelihood 97%   large.append(...)" */
static void leak(const struct table_context *context, const struct profile_line *line)
{
    struct screen *screen = context->screen;
    struct buf text = {0};
    buf_addf(&text, "line %u: %.1f MB/s, %s live at the end, likelihood %.0f%%", line->lineno,
             line->memory.leak.velocity_mb_s, format_memory(line->memory.live_mb).text,
             floor(100 * line->memory.leak.likelihood));
    screen_blank(screen, 2);
    screen_wrapped(screen, STYLE_WARNING, text.data, 4);
    buf_release(&text);
    const char *code = profile_str(context->profile, line->text);
    code += strspn(code, " \t");
    size_t length = strcspn(code, "\r\n");
    if (screen->columns - screen->at >= CODE_COLUMNS_MIN / 2) {
        screen_blank(screen, 2);
        screen_text(screen, STYLE_DIM, code, length, screen->columns - screen->at);
    }
    screen_newline(screen);
}

void table_leaks(const struct table_context *context, const struct profile_file *file)
{
    struct screen *screen = context->screen;
    const struct profile_line **leaks = mem_zalloc(file->line_count + 1, sizeof *leaks);
    uint32_t count = 0;
    for (uint32_t i = 0; i < file->line_count; i++)
        if (file->lines[i].memory.leak.likelihood > 0)
            leaks[count++] = &file->lines[i];
    if (count) {
        qsort(leaks, count, sizeof *leaks, compare_leaks);
        screen_newline(screen);
        screen_cstr(screen, STYLE_BOLD, "Possible memory leaks:");
        screen_newline(screen);
    }
    for (uint32_t i = 0; i < count; i++)
        leak(context, leaks[i]);
    free(leaks);
}
