/* The summary above the tables; see summary.h. */
#include "view/summary.h"

#include "view/format.h"
#include "view/summary_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAR_COLUMNS_MAX = 100,
    PROCESSES_SHOWN_MAX = 10,
    PARENTS_FROM_COLUMNS = 100,
    HOTTEST_SHOWN_MAX = 5,
    ELSEWHERE_LARGE_PERCENT = 10,
    LOSS_NOUN_WITHIN = 12, /* characters from its beginning */
};

#define KIND_SHOWN_SEC_MIN 0.00005 /* "0.1ms" */

void summary_label(struct screen *screen, enum style style, const char *text)
{
    screen_blank(screen, 2);
    screen_cstr(screen, style, text);
    screen_blank_to(screen, SUMMARY_LABEL_COLUMNS);
}

void summary_paragraph(struct screen *screen, enum style style, const char *name, struct buf *text)
{
    summary_label(screen, style, name);
    screen_wrapped(screen, STYLE_PLAIN, text->data ? text->data : "", SUMMARY_LABEL_COLUMNS);
    screen_newline(screen);
    buf_reset(text);
}

const char *summary_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void summary_add_plural(struct buf *text, uint64_t count, const char *one, const char *many)
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
    screen_wrapped(screen, STYLE_BOLD, text->data ? text->data : "", SUMMARY_LABEL_COLUMNS);
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
        summary_add_plural(text, count_processes(profile), "process", "processes");
        buf_str(text, ", ");
        summary_add_plural(text, count_threads(profile), "thread", "threads");
    }
    double all = profile->total_sec + profile->idle_sec;
    if (profile->idle_sec > 0 && all > 0)
        buf_addf(text, "; idle %s, waiting for requests",
                 format_percent(100 * profile->idle_sec / all).text);
    summary_paragraph(screen, STYLE_BOLD, "Elapsed", text);
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
    int room = screen->columns - SUMMARY_LABEL_COLUMNS - (int)strlen(total.text) - 2;
    int bar = room < BAR_COLUMNS_MAX ? room : BAR_COLUMNS_MAX;
    summary_label(screen, STYLE_BOLD, "Time");
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
    screen_blank(screen, SUMMARY_LABEL_COLUMNS);
    for (int i = 0; i < 3; i++) {
        buf_addf(text, "%s %s (%s)", kinds[i].name,
                 format_percent(profile_percent(profile, kinds[i].sec)).text,
                 format_short_time(kinds[i].sec).text);
        int width = (int)text->len + 2;
        if (i && screen->at + 3 + width > screen->columns) {
            screen_newline(screen);
            screen_blank(screen, SUMMARY_LABEL_COLUMNS);
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
    summary_paragraph(screen, STYLE_BOLD, "Elsewhere", text);
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
        summary_paragraph(screen, STYLE_BOLD, "Waits", text);
}

static void samples(struct screen *screen, const struct profile *profile, struct buf *text)
{
    if (!profile->time.samples)
        return;
    summary_add_plural(text, profile->time.samples, "sample", "samples");
    if (profile->interval_sec > 0)
        buf_addf(text, ", one every %s of CPU time", format_short_time(profile->interval_sec).text);
    if (profile->wait_interval_sec > 0)
        buf_addf(text, " and %s of waiting", format_short_time(profile->wait_interval_sec).text);
    if (profile->all_memory.samples)
        buf_addf(text, "; %s of memory", format_count(profile->all_memory.samples).text);
    if (profile->unsampled_sec > 0)
        buf_addf(text, "; %s of CPU time went unsampled",
                 format_short_time(profile->unsampled_sec).text);
    summary_paragraph(screen, STYLE_BOLD, "Samples", text);
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
    summary_paragraph(screen, STYLE_BOLD, "Overhead", text);
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
    summary_label(screen, STYLE_BOLD, "Processes");
    buf_addf(text, "%7s%s %7s %9s  %-10s  command", "pid", shows_parents(screen) ? "  parent" : "",
             "CPU", "memory", "status");
    screen_cstr(screen, STYLE_DIM, text->data);
    screen_newline(screen);
    buf_reset(text);
    for (; shown < count && shown < PROCESSES_SHOWN_MAX && order[shown]->count == 1; shown++) {
        summary_label(screen, STYLE_BOLD, "");
        process_row(screen, profile, order[shown], text);
    }
    uint64_t more = count_processes(profile) - shown;
    if (more) {
        buf_addf(text, "%s ", screen_glyph_text(screen, GLYPH_ELLIPSIS));
        summary_add_plural(text, more, "more process", "more processes");
        summary_paragraph(screen, STYLE_BOLD, "", text);
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
        summary_paragraph(screen, STYLE_WARNING, "Lost", text);
    }
    for (uint32_t i = 0; i < profile->note_count; i++) {
        buf_str(text, profile_str(profile, profile->notes[i]));
        summary_paragraph(screen, STYLE_WARNING, "Note", text);
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
    summary_async(screen, profile, &text);
    summary_memory(screen, profile, &text);
    summary_footprint(screen, profile);
    summary_resident(screen, profile, &text);
    summary_leaks(screen, profile, &text);
    samples(screen, profile, &text);
    overhead(screen, profile, &text);
    processes(screen, profile, &text);
    losses_and_notes(screen, profile, &text);
    buf_release(&text);
}
