/* The summary in plain HTML, for readers without JavaScript; see html.h. */
#include "base/utf8.h"
#include "view/format.h"
#include "view/html.h"
#include "view/rank.h"
#include "view/width.h"

#include <string.h>

enum { LINES_MAX = 20 };

void html_escape(const char *text, size_t length, struct buf *out)
{
    for (size_t at = 0; at < length;) {
        uint32_t c = utf8_decode(text, length, &at);
        switch (c) {
        case '&':
            buf_str(out, "&amp;");
            break;
        case '<':
            buf_str(out, "&lt;");
            break;
        case '>':
            buf_str(out, "&gt;");
            break;
        case '"':
            buf_str(out, "&quot;");
            break;
        case '\'':
            buf_str(out, "&#39;");
            break;
        default:
            buf_utf8(out, c != '\t' && width_is_unsafe(c) ? 0xFFFD : c);
        }
    }
}

static void put_text(const struct profile *profile, str_id id, struct buf *out)
{
    html_escape(profile_str(profile, id), intern_length(&profile->strings, id), out);
}

static void put_row(const char *what, const char *value, struct buf *out)
{
    buf_addf(out, "<tr><th>%s<td>%s", what, value);
}

static void put_run(const struct profile *profile, struct buf *out)
{
    buf_str(out, "<table>");
    put_row("elapsed", format_time(profile->elapsed_sec).text, out);
    put_row("Python", format_time(profile->time.python_sec).text, out);
    put_row("native", format_time(profile->time.native_sec).text, out);
    put_row("waiting", format_time(profile->time.system_sec).text, out);
    if (profile->memory)
        put_row("highest memory", format_memory(profile->all_memory.peak_mb).text, out);
    put_row("samples", format_count(profile->time.samples).text, out);
    buf_str(out, "</table>");
}

/* Nothing is shown as nothing. */
static void put_cell(double value, struct format shown, struct buf *out)
{
    buf_addf(out, "<td>%s", value > 0 ? shown.text : "");
}

static void put_lines(const struct profile *profile, const char *title, rank_value *value,
                      struct buf *out)
{
    struct rank_line lines[LINES_MAX];
    size_t count = rank_lines(profile, value, lines, LINES_MAX);
    if (!count)
        return;
    buf_addf(out, "<h2>%s</h2><table><tr><th>%%<th>time<th>peak<th>place<th>line", title);
    for (size_t i = 0; i < count; i++) {
        const struct profile_file *file = &profile->files[lines[i].file];
        const struct profile_line *line = &file->lines[lines[i].row];
        double sec = profile_time_sum(&line->time), mb = line->memory.peak_mb;
        size_t length;
        const char *text = rank_text(profile, line, &length);
        buf_str(out, "<tr>");
        put_cell(sec, format_percent(profile_percent(profile, sec)), out);
        put_cell(sec, format_short_time(sec), out);
        put_cell(mb, format_short_memory(mb), out);
        buf_str(out, "<td>");
        put_text(profile, file->name, out);
        buf_addf(out, ":%u<td><code>", line->lineno);
        html_escape(text, length, out);
        buf_str(out, "</code>");
    }
    buf_str(out, "</table>");
}

void html_summary(const struct profile *profile, struct buf *out)
{
    buf_str(out, "<h1>Scalene: ");
    put_text(profile, profile->program, out);
    buf_str(out, "</h1>");
    if (profile->empty) {
        buf_str(out, "<p>There was nothing to report.</p>");
        return;
    }
    buf_str(out, "<noscript><p>All of it is shown with JavaScript.</p></noscript>");
    put_run(profile, out);
    for (uint32_t i = 0; i < profile->note_count; i++) {
        buf_str(out, "<p>");
        put_text(profile, profile->notes[i], out);
        buf_str(out, "</p>");
    }
    put_lines(profile, "Lines with most time", rank_by_time, out);
    put_lines(profile, "Lines with most memory", rank_by_peak, out);
}
