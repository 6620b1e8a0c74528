/*
 * The part of a report that tells what is on no line of it: which packages and
 * files took that time, and how to see them.
 */
#include "report/report_parts.h"
#include "wire/traced.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct place {
    str_id name;
    double sec;
    double foreign_cpu_sec; /* of it, CPU time in files that are not traced */
};

struct places {
    struct intern *strings;
    struct map index; /* name -> position + 1 */
    struct place *items;
    size_t count, cap;
};

/* "/usr/lib/python3/dist-packages/numpy/core.py" is numpy's, "<frozen importlib._bootstrap>"
 * importlib's; a file of no package is itself. */
static str_id name_of(struct intern *strings, const char *file)
{
    static const char frozen[] = "<frozen ";
    size_t root = traced_library_root(file);
    const char *rest = file + root;
    struct traced_component c = {file, strlen(file)};
    if (!strncmp(file, frozen, sizeof frozen - 1)) {
        c.at = file + sizeof frozen - 1;
        c.length = strcspn(c.at, ".>");
    } else if (root && traced_next(&rest, &c) && c.length > 3 &&
               !memcmp(c.at + c.length - 3, ".py", 3)) {
        c.length -= 3;
    }
    return intern_add(strings, c.at, c.length);
}

static struct place *place_of(struct places *places, str_id name)
{
    uint64_t *at = map_put(&places->index, name, NULL);
    if (!*at) {
        VEC_PUSH(places->items, places->count, places->cap) = (struct place){.name = name};
        *at = places->count;
    }
    return &places->items[*at - 1];
}

/* Files of the user's that are too small to be shown are elsewhere too, but need no note. */
static void collect(struct places *places, const struct charge *charge)
{
    for (uint32_t id = CHARGE_FIRST_NODE; id < charge->node_count; id++) {
        const struct charge_node *node = &charge->nodes[id];
        const struct charge_file *charged =
            node->traced == CHARGE_NO_STACK ? NULL : charge_file_at(charge, node->traced);
        if (!(profile_time_sum(&node->time) > 0) || (charged && charged->reported))
            continue;
        const char *file = intern_get(places->strings, charge_file_at(charge, id)->name);
        struct place *place = place_of(places, name_of(places->strings, file));
        place->sec += profile_time_sum(&node->time);
        if (!charged || !charged->traced)
            place->foreign_cpu_sec += node->time.python_sec + node->time.native_sec;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->sec != y->sec)
        return x->sec < y->sec ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

/* "numpy 40 %, json 12 %": those that matter. */
static void list_hottest(const struct places *places, double whole_sec, struct buf *out)
{
    enum { NAMED_MAX = 4, WORTH_NAMING_PERCENT = 2 };
    for (size_t i = 0; i < places->count && i < NAMED_MAX; i++) {
        double percent = 100 * places->items[i].sec / whole_sec;
        if (percent < WORTH_NAMING_PERCENT)
            break;
        buf_addf(out, "%s%s %.0f %%", out->len ? ", " : "",
                 intern_get(places->strings, places->items[i].name), percent);
    }
}

/*
 * A profile with little on its lines must say why, instead of looking empty.
 * Measured in CPU time: helper processes that wait for work (a spawn pool's
 * resource tracker) would otherwise look like something to be traced.
 */
static void note_elsewhere(struct report *report, const struct places *places)
{
    enum { WORTH_A_NOTE_PERCENT = 50 };
    const struct report_config *config = report->config;
    const struct profile *profile = report->profile;
    double all_sec = profile->time.python_sec + profile->time.native_sec, outside_sec = 0;
    for (size_t i = 0; i < places->count; i++)
        outside_sec += places->items[i].foreign_cpu_sec;
    double percent = all_sec > 0 ? 100 * outside_sec / all_sec : 0;
    if (percent < WORTH_A_NOTE_PERCENT || config->profile_all)
        return;
    struct buf hottest = {0};
    list_hottest(places, profile->total_sec, &hottest);
    const char *list = hottest.len ? hottest.data : "", *open = hottest.len ? " (" : "",
               *close = hottest.len ? ")" : "";
    if (config->profile_only[0] || config->profile_exclude[0])
        report_note(report,
                    "%.0f %% of the CPU time was in files that --profile-only, --profile-exclude "
                    "or the program's directory leave out%s%s%s",
                    percent, open, list, close);
    else if (!profile->file_count)
        report_note(report,
                    "no line of your own files was reached; the time went elsewhere%s%s%s: "
                    "--profile-all shows it",
                    open, list, close);
    else
        report_note(report,
                    "%.0f %% of the CPU time was in files that are not yours%s%s%s: --profile-all "
                    "shows them",
                    percent, open, list, close);
    buf_release(&hottest);
}

void report_elsewhere_finish(struct report *report)
{
    struct profile *profile = report->profile;
    struct places places = {.strings = &profile->strings};
    collect(&places, &report->charge);
    if (places.count)
        qsort(places.items, places.count, sizeof *places.items, by_time);
    size_t count = places.count < PROFILE_ELSEWHERE_MAX ? places.count : PROFILE_ELSEWHERE_MAX;
    profile->elsewhere = pool_alloc(&profile->pool, count * sizeof *profile->elsewhere);
    profile->elsewhere_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        profile->elsewhere[i] =
            (struct profile_place){.name = places.items[i].name, .sec = places.items[i].sec};
    note_elsewhere(report, &places);
    map_release(&places.index);
    free(places.items);
}
