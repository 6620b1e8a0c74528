/*
 * The terminal view from top to bottom; see terminal.h.  Called by the view
 * command; summary.c and table.c do the parts.
 */
#include "view/terminal.h"

#include "base/mem.h"
#include "view/format.h"
#include "view/screen.h"
#include "view/summary.h"
#include "view/table.h"

#include <stdlib.h>
#include <string.h>

static int compare_files(const void *a, const void *b)
{
    const struct profile_file *x = *(const struct profile_file *const *)a;
    const struct profile_file *y = *(const struct profile_file *const *)b;
    double x_sec = profile_time_sum(&x->time), y_sec = profile_time_sum(&y->time);
    if (x_sec != y_sec)
        return x_sec < y_sec ? 1 : -1;
    return x < y ? -1 : x > y; /* by name, as they are stored */
}

/* "<file>: % of time =  98.20% (1.335s) out of 1.360s.", on two lines where one is too narrow. */
static void title(struct screen *screen, const struct profile *profile,
                  const struct profile_file *file)
{
    double sec = profile_time_sum(&file->time);
    const char *name = profile_str(profile, file->name);
    struct buf text = {0};
    buf_addf(&text, "%% of time = %6.2f%% (%s) out of %s.", profile_percent(profile, sec),
             format_time(sec).text, format_time(profile->total_sec).text);
    int width = (int)text.len;
    if (screen_width(screen, name, strlen(name)) + 2 + width <= screen->columns) {
        screen_cstr(screen, STYLE_BOLD, name);
        screen_cstr(screen, STYLE_BOLD, ": ");
    } else {
        screen_tail(screen, STYLE_BOLD, name, screen->columns - 1);
        screen_cstr(screen, STYLE_BOLD, ":");
        screen_newline(screen);
    }
    if (screen->at + width <= screen->columns)
        screen_cstr(screen, STYLE_PLAIN, text.data);
    else
        screen_wrapped(screen, STYLE_PLAIN, text.data, 0);
    screen_newline(screen);
    buf_release(&text);
}

static void files(const struct table_context *table)
{
    struct screen *screen = table->screen;
    const struct profile *profile = table->profile;
    const struct profile_file **order = mem_zalloc(profile->file_count, sizeof *order);
    for (uint32_t i = 0; i < profile->file_count; i++)
        order[i] = &profile->files[i];
    qsort(order, profile->file_count, sizeof *order, compare_files);
    for (uint32_t i = 0; i < profile->file_count; i++) {
        screen_newline(screen);
        title(screen, profile, order[i]);
        screen_newline(screen);
        table_lines(table, order[i]);
        table_functions(table, order[i]);
        table_leaks(table, order[i]);
    }
    free(order);
}

void terminal_render(const struct profile *profile, const struct terminal_options *options,
                     struct buf *out)
{
    struct screen screen = {
        .out = out,
        .columns = options->columns < TERMINAL_COLUMNS_MIN   ? TERMINAL_COLUMNS_MIN
                   : options->columns > TERMINAL_COLUMNS_MAX ? TERMINAL_COLUMNS_MAX
                                                             : options->columns,
        .color = options->color,
        .ascii = options->ascii,
    };
    if (profile->empty) {
        screen_cstr(&screen, STYLE_WARNING, "No profile data found in the file.");
        screen_newline(&screen);
        return;
    }
    struct table_context table;
    table_init(&table, &screen, profile, options);
    summary_render(&screen, profile);
    screen_newline(&screen);
    table_legend(&table);
    files(&table);
}
