/* Paragraphs of the summary about memory; see summary_parts.h. */
#include "view/format.h"
#include "view/summary_parts.h"
#include "view/table.h"

#define PEAK_PART_MIN 0.1 /* of the peak, for a line to be named */

/* The line that the peak was reached on is rarely the one to look at: what matters is who holds the
 * memory at that moment. */
static void add_largest_at_peak(const struct profile *profile, struct buf *text)
{
    const struct profile_file *in = NULL;
    const struct profile_line *largest = NULL;
    for (uint32_t i = 0; i < profile->file_count; i++) {
        const struct profile_file *file = &profile->files[i];
        for (uint32_t n = 0; n < file->line_count; n++) {
            const struct profile_line *line = &file->lines[n];
            if (line->memory.at_peak_mb > (largest ? largest->memory.at_peak_mb : 0)) {
                largest = line;
                in = file;
            }
        }
    }
    if (!largest || largest->memory.at_peak_mb < PEAK_PART_MIN * profile->all_memory.peak_mb)
        return;
    buf_addf(text, ", %s of it ", format_memory(largest->memory.at_peak_mb).text);
    if (in->name == profile->peak_file && largest->lineno == profile->peak_line)
        buf_str(text, "there");
    else
        buf_addf(text, "by %s:%u", summary_base_name(profile_str(profile, in->name)),
                 largest->lineno);
}

/* "peak 162 MB (98% Python) at main.py:11, 120 MB of it by main.py:9; 254 MB allocated in 3,795,290
 * blocks, ...; 9.1 GB asked for in all, in 212,090,331 blocks" */
void summary_memory(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct profile_memory *all = &profile->all_memory;
    if (!(all->peak_mb > 0))
        return;
    buf_addf(text, "peak %s (%.0f%% Python)", format_memory(all->peak_mb).text,
             100 * profile->peak_python_fraction);
    if (profile->peak_file && profile->peak_line)
        buf_addf(text, " at %s:%u", summary_base_name(profile_str(profile, profile->peak_file)),
                 profile->peak_line);
    add_largest_at_peak(profile, text);
    if (all->allocated_mb > 0 && all->count) {
        buf_addf(text, "; %s allocated in %s blocks", format_memory(all->allocated_mb).text,
                 format_count(all->count).text);
        buf_addf(text, ", %s live at the end", format_memory(all->live_mb).text);
    }
    buf_addf(text, " (growth rate %.0f%%)", profile->growth_percent);
    if (table_tells_total(profile, all->total_mb))
        buf_addf(text, "; %s asked for in all, in %s blocks", format_memory(all->total_mb).text,
                 format_count(all->total_count).text);
    if (profile->native_threads_mb >= 0.05)
        buf_addf(text, "; %s by threads without Python code",
                 format_memory(profile->native_threads_mb).text);
    if (all->copied_mb >= 0.05)
        buf_addf(text, "; %s copied", format_memory(all->copied_mb).text);
    summary_paragraph(screen, STYLE_BOLD, "Memory", text);
}

/* The footprint over the run. */
void summary_footprint(struct screen *screen, const struct profile *profile)
{
    enum { COLUMNS = 60 };
    const struct profile_memory *all = &profile->all_memory;
    char bars[COLUMNS * 3 + 1];
    double values[COLUMNS] = {0}, now = 0;
    uint32_t next = 0;
    if (all->point_count < 2 || !(profile->elapsed_sec > 0))
        return;
    for (int i = 0; i < COLUMNS; i++) {
        values[i] = now;
        for (; next < all->point_count &&
               all->points[next].at_sec < profile->elapsed_sec * (i + 1) / COLUMNS;
             next++) {
            now = all->points[next].mb;
            values[i] = now > values[i] ? now : values[i];
        }
    }
    table_spark(screen, values, COLUMNS, bars);
    summary_label(screen, STYLE_BOLD, "Footprint");
    screen_cstr(screen, STYLE_MEMORY, bars);
    screen_newline(screen);
}

/* What resident memory is made of: of the first process, which is the program. */
void summary_resident(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct profile_process *process = profile->processes;
    if (!profile->process_count || !process->has_memory)
        return;
    const struct {
        double mb;
        const char *what;
    } parts[] = {
        {process->start_rss_mb, "from before the program began"},
        {process->python_live_mb, "Python"},
        {process->native_live_mb, "native"},
        {process->mapped_live_mb, "mapped"},
        {process->slack_mb, "allocator slack"},
        {process->other_mb, "files"},
    };
    const char *before = "";
    buf_addf(text, "%s at the end: ", format_memory(process->rss_mb).text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].mb < 0.05)
            continue;
        buf_addf(text, "%s%s %s", before, format_memory(parts[i].mb).text, parts[i].what);
        before = " + ";
    }
    if (process->untouched_mb >= 0.05)
        buf_addf(text, " - %s never written to", format_memory(process->untouched_mb).text);
    summary_paragraph(screen, STYLE_BOLD, "Resident", text);
}

/* How many lines may leak, and which of them loses most. */
void summary_leaks(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct profile_file *in = NULL;
    const struct profile_line *fastest = NULL;
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile->file_count; i++) {
        const struct profile_file *file = &profile->files[i];
        for (uint32_t n = 0; n < file->line_count; n++) {
            const struct profile_leak *leak = &file->lines[n].memory.leak;
            if (!(leak->likelihood > 0))
                continue;
            count++;
            if (!fastest || leak->velocity_mb_s > fastest->memory.leak.velocity_mb_s) {
                fastest = &file->lines[n];
                in = file;
            }
        }
    }
    if (!fastest)
        return;
    summary_add_plural(text, count, "line", "lines");
    buf_addf(text, " may leak, %s%s:%u with %.1f MB/s; see below", count > 1 ? "fastest " : "",
             summary_base_name(profile_str(profile, in->name)), fastest->lineno,
             fastest->memory.leak.velocity_mb_s);
    summary_paragraph(screen, STYLE_WARNING, "Leaks", text);
}
