/* The summary above the tables; see summary.h. */
#include "view/summary.h"

#include "view/format.h"
#include "view/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL_COLUMNS = 13,
    BAR_COLUMNS_MAX = 100,
    PROCESSES_SHOWN_MAX = 10,
    PARENTS_FROM_COLUMNS = 100,
    HOTTEST_SHOWN_MAX = 5,
    ELSEWHERE_LARGE_PERCENT = 10,
    LOSS_NOUN_WITHIN = 12, /* characters from its beginning */
};

#define KIND_SHOWN_SEC_MIN 0.00005 /* "0.1ms" */
#define PEAK_PART_MIN      0.1     /* of the peak, for a line to be named */

static void label(struct screen *screen, enum style style, const char *text)
{
    screen_blank(screen, 2);
    screen_cstr(screen, style, text);
    screen_blank_to(screen, LABEL_COLUMNS);
}

static void paragraph(struct screen *screen, enum style style, const char *name, struct buf *text)
{
    label(screen, style, name);
    screen_wrapped(screen, STYLE_PLAIN, text->data ? text->data : "", LABEL_COLUMNS);
    screen_newline(screen);
    buf_reset(text);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void add_plural(struct buf *text, uint64_t count, const char *one, const char *many)
{
    buf_addf(text, "%s %s", format_count(count).text, count == 1 ? one : many);
}

static void command(struct screen *screen, const struct profile *profile, struct buf *text)
{
    buf_str(text, profile_str(profile, profile->program));
    /* args begins with the program as it was typed, or with -m and the module. */
    bool is_module = profile->arg_count && !strcmp(profile_str(profile, profile->args[0]), "-m");
    for (uint32_t i = is_module ? 0 : 1; i < profile->arg_count; i++)
        buf_addf(text, " %s", profile_str(profile, profile->args[i]));
    screen_cstr(screen, STYLE_BOLD, "Scalene profile of ");
    screen_wrapped(screen, STYLE_BOLD, text->data ? text->data : "", LABEL_COLUMNS);
    screen_newline(screen);
    buf_reset(text);
}

/* Some rows stand for many. */
static uint64_t count_processes(const struct profile *profile)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile->process_count; i++)
        count += profile->processes[i].count;
    return count;
}

static uint64_t count_threads(const struct profile *profile)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < profile->thread_count; i++)
        count += profile->threads[i].count;
    return count;
}

static void elapsed(struct screen *screen, const struct profile *profile, struct buf *text)
{
    buf_addf(text, "%s", format_time(profile->elapsed_sec).text);
    if (profile->cpu_sec > 0)
        buf_addf(text, ", CPU time %s", format_time(profile->cpu_sec).text);
    if (profile->startup_sec > 0)
        buf_addf(text, " (%s before the program began)",
                 format_short_time(profile->startup_sec).text);
    if (profile->process_count > 1 || profile->thread_count > 1) {
        buf_str(text, ", ");
        add_plural(text, count_processes(profile), "process", "processes");
        buf_str(text, ", ");
        add_plural(text, count_threads(profile), "thread", "threads");
    }
    double all = profile->total_sec + profile->idle_sec;
    if (profile->idle_sec > 0 && all > 0)
        buf_addf(text, "; idle %s, waiting for requests",
                 format_percent(100 * profile->idle_sec / all).text);
    paragraph(screen, STYLE_BOLD, "Elapsed", text);
}

struct kind {
    const char *name;
    enum glyph glyph;
    enum style style;
    double sec;
};

static void split(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct kind kinds[] = {
        {"Python", GLYPH_BAR_PYTHON, STYLE_PYTHON, profile->time.python_sec},
        {"native", GLYPH_BAR_NATIVE, STYLE_NATIVE, profile->time.native_sec},
        {"system", GLYPH_BAR_SYSTEM, STYLE_SYSTEM, profile->time.system_sec},
    };
    if (!(profile->total_sec > 0))
        return;
    struct format total = format_time(profile->total_sec);
    int room = screen->columns - LABEL_COLUMNS - (int)strlen(total.text) - 2;
    int bar = room < BAR_COLUMNS_MAX ? room : BAR_COLUMNS_MAX;
    label(screen, STYLE_BOLD, "Time");
    double sum = 0;
    int drawn = 0;
    for (int i = 0; i < 3; i++) { /* ends are rounded, not lengths: the bar is never too long */
        sum += kinds[i].sec;
        double share = sum < profile->total_sec ? sum / profile->total_sec : 1;
        int end = (int)(share * bar + 0.5);
        screen_glyph(screen, kinds[i].style, kinds[i].glyph, end - drawn);
        drawn = end;
    }
    screen_glyph(screen, STYLE_DIM, GLYPH_DOT, bar - drawn);
    screen_blank(screen, 2);
    screen_cstr(screen, STYLE_BOLD, total.text);
    screen_newline(screen);
    screen_blank(screen, LABEL_COLUMNS);
    for (int i = 0; i < 3; i++) {
        buf_addf(text, "%s %s (%s)", kinds[i].name,
                 format_percent(profile_percent(profile, kinds[i].sec)).text,
                 format_short_time(kinds[i].sec).text);
        int width = (int)text->len + 2;
        if (i && screen->at + 3 + width > screen->columns) {
            screen_newline(screen);
            screen_blank(screen, LABEL_COLUMNS);
        } else if (i) {
            screen_blank(screen, 3);
        }
        screen_glyph(screen, kinds[i].style, kinds[i].glyph, 1);
        screen_blank(screen, 1);
        screen_cstr(screen, STYLE_PLAIN, text->data);
        buf_reset(text);
    }
    screen_newline(screen);
}

/* "; hottest: numpy 40%, json 12% (run with --profile-all to see them)" */
static void add_hottest(const struct profile *profile, struct buf *text)
{
    uint32_t shown = 0;
    for (; shown < profile->elsewhere_count && shown < HOTTEST_SHOWN_MAX; shown++) {
        const struct profile_place *place = &profile->elsewhere[shown];
        double percent = profile_percent(profile, place->sec);
        if (percent < 1)
            break;
        buf_addf(text, "%s%s %s", shown ? ", " : "; hottest: ", profile_str(profile, place->name),
                 format_percent(percent).text);
    }
    if (shown)
        buf_str(text, " (run with --profile-all to see them)");
}

/* Time that no line of the tables below shows. */
static void elsewhere(struct screen *screen, const struct profile *profile, struct buf *text)
{
    double shown = 0;
    for (uint32_t i = 0; i < profile->file_count; i++)
        shown += profile_time_sum(&profile->files[i].time);
    double rest = profile->total_sec - shown;
    if (profile_percent(profile, rest) < 0.1)
        return;
    buf_addf(text, "%s (%s) is on no line below",
             format_percent(profile_percent(profile, rest)).text, format_short_time(rest).text);
    const struct kind kinds[] = {
        {.name = "Python", .sec = profile->untraced.python_sec},
        {.name = "native", .sec = profile->untraced.native_sec},
        {.name = "system", .sec = profile->untraced.system_sec},
    };
    const char *before = ": ";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].sec < KIND_SHOWN_SEC_MIN)
            continue;
        buf_addf(text, "%s%s %s", before, kinds[i].name, format_short_time(kinds[i].sec).text);
        before = ", ";
    }
    if (profile->native_threads_sec > 0)
        buf_addf(text, "; %s of it in threads without Python code",
                 format_short_time(profile->native_threads_sec).text);
    if (profile_percent(profile, rest) >= ELSEWHERE_LARGE_PERCENT)
        add_hottest(profile, text);
    paragraph(screen, STYLE_BOLD, "Elsewhere", text);
}

static void waits(struct screen *screen, const struct profile *profile, struct buf *text)
{
    bool done[WAIT_CAUSES] = {false};
    const char *before = count_threads(profile) > 1 ? "of all threads together: " : "";
    for (;;) {
        int most = -1;
        for (int cause = 0; cause < WAIT_CAUSES; cause++)
            if (!done[cause] && profile->time.wait_sec[cause] > 0 &&
                (most < 0 || profile->time.wait_sec[cause] > profile->time.wait_sec[most]))
                most = cause;
        if (most < 0)
            break;
        done[most] = true;
        buf_addf(text, "%s%s %s", before, wait_cause_label[most],
                 format_short_time(profile->time.wait_sec[most]).text);
        before = ", ";
    }
    if (text->len)
        paragraph(screen, STYLE_BOLD, "Waits", text);
}

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
        buf_addf(text, "by %s:%u", base_name(profile_str(profile, in->name)), largest->lineno);
}

/* "peak 162 MB (98% Python) at main.py:11, 120 MB of it by main.py:9; 254 MB allocated in 3,795,290
 * blocks, ...; 9.1 GB asked for in all, in 212,090,331 blocks" */
static void memory(struct screen *screen, const struct profile *profile, struct buf *text)
{
    const struct profile_memory *all = &profile->all_memory;
    if (!(all->peak_mb > 0))
        return;
    buf_addf(text, "peak %s (%.0f%% Python)", format_memory(all->peak_mb).text,
             100 * profile->peak_python_fraction);
    if (profile->peak_file && profile->peak_line)
        buf_addf(text, " at %s:%u", base_name(profile_str(profile, profile->peak_file)),
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
    paragraph(screen, STYLE_BOLD, "Memory", text);
}

/* The footprint over the run. */
static void footprint(struct screen *screen, const struct profile *profile)
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
    label(screen, STYLE_BOLD, "Footprint");
    screen_cstr(screen, STYLE_MEMORY, bars);
    screen_newline(screen);
}

/* What resident memory is made of: of the first process, which is the program. */
static void resident(struct screen *screen, const struct profile *profile, struct buf *text)
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
    paragraph(screen, STYLE_BOLD, "Resident", text);
}

/* How many lines may leak, and which of them loses most. */
static void leaks(struct screen *screen, const struct profile *profile, struct buf *text)
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
    add_plural(text, count, "line", "lines");
    buf_addf(text, " may leak, %s%s:%u with %.1f MB/s; see below", count > 1 ? "fastest " : "",
             base_name(profile_str(profile, in->name)), fastest->lineno,
             fastest->memory.leak.velocity_mb_s);
    paragraph(screen, STYLE_WARNING, "Leaks", text);
}

static void samples(struct screen *screen, const struct profile *profile, struct buf *text)
{
    if (!profile->time.samples)
        return;
    add_plural(text, profile->time.samples, "sample", "samples");
    if (profile->interval_sec > 0)
        buf_addf(text, ", one every %s of CPU time", format_short_time(profile->interval_sec).text);
    if (profile->wait_interval_sec > 0)
        buf_addf(text, " and %s of waiting", format_short_time(profile->wait_interval_sec).text);
    if (profile->all_memory.samples)
        buf_addf(text, "; %s of memory", format_count(profile->all_memory.samples).text);
    if (profile->unsampled_sec > 0)
        buf_addf(text, "; %s of CPU time went unsampled",
                 format_short_time(profile->unsampled_sec).text);
    paragraph(screen, STYLE_BOLD, "Samples", text);
}

static void overhead(struct screen *screen, const struct profile *profile, struct buf *text)
{
    double cost = profile_overhead_sec(profile);
    if (cost <= 0)
        return;
    buf_addf(text, "profiling took %s", format_short_time(cost).text);
    if (profile->cpu_sec > 0)
        buf_addf(text, ", %.2f%% of the CPU time", 100 * cost / profile->cpu_sec);
    if (profile->memory_sec > 0)
        buf_addf(text, "; of it about %s to follow memory",
                 format_short_time(profile->memory_sec).text);
    else if (profile->memory)
        buf_str(text, ", without following memory");
    paragraph(screen, STYLE_BOLD, "Overhead", text);
}

/* By CPU time, sums of many last. */
static int compare_processes(const void *a, const void *b)
{
    const struct profile_process *x = *(const struct profile_process *const *)a;
    const struct profile_process *y = *(const struct profile_process *const *)b;
    if ((x->count > 1) != (y->count > 1))
        return x->count > 1 ? 1 : -1;
    if (x->cpu_sec != y->cpu_sec)
        return x->cpu_sec < y->cpu_sec ? 1 : -1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void add_status(struct buf *text, const struct profile_process *process)
{
    if (process->running)
        buf_addf(text, "%-10s", "running");
    else if (process->signal)
        buf_addf(text, "signal %-3d", process->signal);
    else if (process->exit_status >= 0)
        buf_addf(text, "exit %-5d", process->exit_status);
    else
        buf_addf(text, "%-10s", process->ended ? "ended" : "unknown");
}

/* The program and its arguments: what the interpreter is called, its own options, and where the
 * program lies tell processes least apart. */
static const char *what_runs(const char *command)
{
    const char *at = command + strcspn(command, " ");
    while (*at == ' ') {
        const char *word = at + strspn(at, " ");
        size_t length = strcspn(word, " ");
        const char *slash = memrchr(word, '/', length);
        if (!length)
            return command;
        if (word[0] != '-' || length == 1)
            return slash && slash + 1 < word + length ? slash + 1 : word;
        if (word[1] == 'm' || word[1] == 'c')
            return word;
        at = word + length;
        if (length == 2 && (word[1] == 'X' || word[1] == 'W'))
            at += strspn(at, " ") + strcspn(at + strspn(at, " "), " ");
    }
    return command;
}

/* In narrow terminals the command needs the room more. */
static bool shows_parents(const struct screen *screen)
{
    return screen->columns >= PARENTS_FROM_COLUMNS;
}

static void process_row(struct screen *screen, const struct profile *profile,
                        const struct profile_process *process, struct buf *text)
{
    buf_addf(text, "%7" PRId32, process->pid);
    if (shows_parents(screen))
        buf_addf(text, " %7" PRId32, process->ppid);
    buf_addf(text, " %7s", format_short_time(process->cpu_sec).text);
    buf_addf(text, " %9s  ", format_memory((double)process->peak_rss_bytes / 1048576).text);
    add_status(text, process);
    screen_cstr(screen, STYLE_PLAIN, text->data);
    buf_reset(text);
    screen_blank(screen, 2);
    const char *command = what_runs(profile_str(profile, process->command));
    const char *origin = process->forked ? " (forked)" : "";
    screen_text(screen, STYLE_DIM, command, strlen(command),
                screen->columns - screen->at - (int)strlen(origin));
    screen_cstr(screen, STYLE_DIM, origin);
    screen_newline(screen);
}

static void processes(struct screen *screen, const struct profile *profile, struct buf *text)
{
    uint32_t count = profile->process_count, shown = 0;
    if (count < 2)
        return;
    const struct profile_process **order = mem_zalloc(count, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = &profile->processes[i];
    qsort(order, count, sizeof *order, compare_processes);
    label(screen, STYLE_BOLD, "Processes");
    buf_addf(text, "%7s%s %7s %9s  %-10s  command", "pid", shows_parents(screen) ? "  parent" : "",
             "CPU", "memory", "status");
    screen_cstr(screen, STYLE_DIM, text->data);
    screen_newline(screen);
    buf_reset(text);
    for (; shown < count && shown < PROCESSES_SHOWN_MAX && order[shown]->count == 1; shown++) {
        label(screen, STYLE_BOLD, "");
        process_row(screen, profile, order[shown], text);
    }
    uint64_t more = count_processes(profile) - shown;
    if (more) {
        buf_addf(text, "%s ", screen_glyph_text(screen, GLYPH_ELLIPSIS));
        add_plural(text, more, "more process", "more processes");
        paragraph(screen, STYLE_BOLD, "", text);
    }
    free(order);
}

/* Texts of losses are worded for several: "looks at a waiting thread that moved". */
static void add_loss(struct buf *text, const char *several, bool is_one)
{
    static const struct {
        const char *several, *one;
    } words[] = {
        {"processes ", "process "}, {"entries ", "entry "},  {"tables ", "table "},
        {"libraries ", "library "}, {"names ", "name "},     {"looks ", "look "},
        {"samples ", "sample "},    {"threads ", "thread "}, {"stacks ", "stack "},
        {"times ", "time "},        {"objects ", "object "}, {"frames ", "frame "},
        {"blocks ", "block "},      {"points ", "point "},   {"places ", "place "},
    };
    for (size_t i = 0; is_one && i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(several, words[i].several);
        if (at && at - several < LOSS_NOUN_WITHIN) {
            buf_add(text, several, (size_t)(at - several));
            buf_str(text, words[i].one);
            several = at + strlen(words[i].several);
            break;
        }
    }
    buf_str(text, several);
}

static void losses_and_notes(struct screen *screen, const struct profile *profile, struct buf *text)
{
    for (uint32_t i = 0; i < profile->loss_count; i++) {
        const struct profile_loss *loss = &profile->losses[i];
        if (!loss->count)
            continue;
        buf_addf(text, "%s ", format_count(loss->count).text);
        add_loss(text, profile_str(profile, loss->text), loss->count == 1);
        paragraph(screen, STYLE_WARNING, "Lost", text);
    }
    for (uint32_t i = 0; i < profile->note_count; i++) {
        buf_str(text, profile_str(profile, profile->notes[i]));
        paragraph(screen, STYLE_WARNING, "Note", text);
    }
}

void summary_render(struct screen *screen, const struct profile *profile)
{
    struct buf text = {0};
    command(screen, profile, &text);
    screen_newline(screen);
    elapsed(screen, profile, &text);
    split(screen, profile, &text);
    elsewhere(screen, profile, &text);
    waits(screen, profile, &text);
    memory(screen, profile, &text);
    footprint(screen, profile);
    resident(screen, profile, &text);
    leaks(screen, profile, &text);
    samples(screen, profile, &text);
    overhead(screen, profile, &text);
    processes(screen, profile, &text);
    losses_and_notes(screen, profile, &text);
    buf_release(&text);
}
