/*
 * Paragraphs of the summary about event loops: how busy they were, which lines
 * kept them from their tasks, and what those waited for; see summary_parts.h.
 */
#include "view/format.h"
#include "view/rank.h"
#include "view/summary_parts.h"

enum { LINES_SHOWN_MAX = 3 };

static double blocked_of(const struct profile_line *line)
{
    return line->async.blocked_sec;
}

static double awaited_of(const struct profile_line *line)
{
    return line->async.await_sec;
}

static void add_place(const struct profile *profile, const struct rank_line *at, struct buf *text)
{
    const struct profile_file *file = &profile->files[at->file];
    buf_addf(text, "%s:%u", summary_base_name(profile_str(profile, file->name)),
             file->lines[at->row].lineno);
}

/* "busy 12%, idle 88%, blocked 1.40s, longest 210ms at app.py:51; 120 tasks at most" */
static void loop(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct profile_loops *loops = &profile->loops;
    double all_sec = loops->busy_sec + loops->idle_sec;
    if (loops->count > 1)
        buf_addf(text, "%s loops: ", format_count(loops->count).text);
    if (all_sec > 0) {
        buf_addf(text, "busy %s", format_percent(100 * loops->busy_sec / all_sec).text);
        buf_addf(text, ", idle %s", format_percent(100 * loops->idle_sec / all_sec).text);
    }
    if (loops->blocked_sec > 0)
        buf_addf(text, ", blocked %s", format_short_time(loops->blocked_sec).text);
    if (loops->longest_sec > 0)
        buf_addf(text, ", longest %s", format_short_time(loops->longest_sec).text);
    if (loops->longest_sec > 0 && loops->longest_file && loops->longest_line)
        buf_addf(text, " at %s:%u", summary_base_name(profile_str(profile, loops->longest_file)),
                 loops->longest_line);
    if (loops->tasks_peak) {
        buf_str(text, text->len ? "; " : "");
        summary_add_plural(text, loops->tasks_peak, "task", "tasks");
        buf_str(text, " at most");
    }
    if (loops->ready_sec > 0)
        buf_addf(text, "; those that could run waited %s for their turn",
                 format_short_time(loops->ready_sec).text);
    if (text->len)
        summary_paragraph(screen, STYLE_BOLD, "Event loop", text);
}

static void blocked(struct screen *screen, const struct profile *profile, struct buf *text)
{
    struct rank_line lines[LINES_SHOWN_MAX];
    size_t count = rank_lines(profile, blocked_of, lines, LINES_SHOWN_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct profile_async *async =
            &profile->files[lines[i].file].lines[lines[i].row].async;
        buf_str(text, i ? "; " : "by ");
        add_place(profile, &lines[i], text);
        buf_addf(text, " %s", format_short_time(async->blocked_sec).text);
        if (async->blocked_count > 1)
            buf_addf(text, " in %s stretches, longest %s", format_count(async->blocked_count).text,
                     format_short_time(async->blocked_longest_sec).text);
    }
    if (count)
        summary_paragraph(screen, STYLE_WARNING, "Blocked", text);
}

/* "app.py:17 80% (12.0s, 40 tasks at once)" */
static void awaited(struct screen *screen, const struct profile *profile, struct buf *text)
{
    struct rank_line lines[LINES_SHOWN_MAX];
    size_t count = rank_lines(profile, awaited_of, lines, LINES_SHOWN_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct profile_async *async =
            &profile->files[lines[i].file].lines[lines[i].row].async;
        buf_str(text, i ? ", " : "mostly at ");
        add_place(profile, &lines[i], text);
        buf_addf(text, " %s (%s", format_percent(profile_await_percent(profile, async)).text,
                 format_short_time(async->await_sec).text);
        if (async->peak > 1)
            buf_addf(text, ", %.0f tasks at once", async->peak);
        buf_char(text, ')');
    }
    if (count)
        summary_paragraph(screen, STYLE_BOLD, "Awaited", text);
}

void summary_async(struct screen *screen, const struct profile *profile, struct buf *text)
{
    if (!profile->loops.count)
        return;
    loop(screen, profile, text);
    blocked(screen, profile, text);
    awaited(screen, profile, text);
}
