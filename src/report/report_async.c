/*
 * The part of a report that is about event loops: what their tasks waited for, and
 * which lines kept them from running.  Time of a task is the line's that is its
 * chain's innermost traced frame, as other time is charged.
 *
 *   - A line with several places (instructions) at which tasks wait adds up the
 *     time in which each of them had any: its mean concurrency is that of its
 *     places, weighted by how long they had tasks, and its peak the highest of one.
 *     The same holds of functions, and of several processes.
 *   - Of names the first hundred are kept.
 */
#include "report/report_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sec_of(uint64_t us)
{
    return (double)us / 1e6;
}

static struct profile_async async_of(const struct recording_await *await)
{
    double sec = sec_of(await->us), square_sec2 = await->square_us2 / 1e12;
    switch (await->kind) {
    case WIRE_AWAIT_WAITS:
        return (struct profile_async){.await_sec = sec, .square_sec2 = square_sec2};
    case WIRE_AWAIT_TASKS:
        return (struct profile_async){.join_sec = sec, .square_sec2 = square_sec2};
    case WIRE_AWAIT_READY:
        return (struct profile_async){.ready_sec = sec, .square_sec2 = square_sec2};
    case WIRE_AWAIT_BLOCKS:
        return (struct profile_async){.blocked_sec = sec, .blocked_count = await->count};
    default:
        return (struct profile_async){0};
    }
}

static void add_at(struct charge *charge, struct charge_place place,
                   const struct profile_async *async)
{
    if (!place.line)
        return;
    struct charge_line *line = &charge->lines[place.line - 1];
    profile_async_add(&line->async, async);
    profile_async_add(&charge->files[line->file].async, async);
    if (place.function)
        profile_async_add(&charge->functions[place.function - 1].async, async);
}

/* ---- one recording ---- */

static void add_stack(struct report_async *async, const struct charge *charge, uint32_t node,
                      double sec)
{
    if (node < CHARGE_FIRST_NODE || !(sec > 0))
        return;
    if (async->stack_count < charge->node_count) {
        async->stack_sec =
            mem_resize(async->stack_sec, charge->node_count, sizeof *async->stack_sec);
        while (async->stack_count < charge->node_count)
            async->stack_sec[async->stack_count++] = 0;
    }
    async->stack_sec[node] += sec;
}

static void add_awaits(struct report *report, const struct recording *recording,
                       const uint32_t *node_of)
{
    struct charge *charge = &report->charge;
    struct profile_loops *loops = &report->async.loops;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_AWAIT); id++) {
        struct recording_await await;
        if (!recording_await(recording, id, &await))
            continue;
        struct profile_async async = async_of(&await);
        struct charge_place place = charge_place_of(charge, node_of[await.node]);
        add_at(charge, place, &async);
        add_stack(&report->async, charge, node_of[await.node], async.await_sec);
        loops->await_sec += async.await_sec;
        loops->join_sec += async.join_sec;
        loops->ready_sec += async.ready_sec;
        if (!place.line)
            loops->untraced_await_sec += async.await_sec;
        report->async.looks += await.count;
    }
}

static void see_longest(struct profile_async *async, uint64_t us)
{
    profile_async_add(async, &(struct profile_async){.blocked_longest_sec = sec_of(us)});
}

/* The longest stretch that a place led: what each line, and function, had of it. */
static void add_stretch(struct charge *charge, const struct wire_place *led,
                        const struct charge_place *place_of)
{
    for (int i = 0; i < WIRE_PARTS_MAX; i++) {
        struct charge_place at = place_of[led->parts[i].place];
        uint64_t line_us = 0, function_us = 0;
        for (int k = 0; k < WIRE_PARTS_MAX; k++) {
            struct charge_place other = place_of[led->parts[k].place];
            line_us += other.line == at.line ? led->parts[k].us : 0;
            function_us += other.function == at.function ? led->parts[k].us : 0;
        }
        if (!at.line)
            continue;
        see_longest(&charge->lines[at.line - 1].async, line_us);
        see_longest(&charge->files[charge->lines[at.line - 1].file].async, line_us);
        if (at.function)
            see_longest(&charge->functions[at.function - 1].async, function_us);
    }
}

static void add_places(struct report *report, const struct recording *recording,
                       const struct charge_place *place_of)
{
    for (uint32_t id = 1; id < recording_count(recording, WIRE_PLACE); id++) {
        const struct wire_place *place = recording_place(recording, id);
        if (!place)
            continue;
        const struct profile_async async = {
            .present_sec = sec_of(atomic_load(&place->present_us)),
            .peak = (double)atomic_load(&place->peak),
        };
        add_at(&report->charge, place_of[id], &async);
        add_stretch(&report->charge, place, place_of);
    }
}

static void name_add(struct charge_names *names, struct intern *strings, const struct buf *text)
{
    if (names->count == PROFILE_TASK_NAMES_MAX)
        return;
    str_id id = intern_add(strings, text->data, text->len);
    for (uint32_t i = 0; i < names->count; i++)
        if (names->items[i] == id)
            return;
    VEC_PUSH(names->items, names->count, names->cap) = id;
}

static void add_names(struct report *report, const struct recording *recording,
                      const struct charge_place *place_of)
{
    struct charge *charge = &report->charge;
    struct buf text = {0};
    for (uint32_t id = 1; id < recording_count(recording, WIRE_NAME); id++) {
        const struct wire_name *name = recording_name(recording, id);
        struct charge_place place =
            name ? place_of[atomic_load(&name->place)] : (struct charge_place){0};
        if (!place.line)
            continue;
        buf_reset(&text);
        if (name->text.bytes)
            recording_text(recording, name->text, name->width, &text);
        else
            buf_addf(&text, "Task-%" PRIu64, name->number);
        name_add(&charge->lines[place.line - 1].names, charge->strings, &text);
        if (place.function)
            name_add(&charge->functions[place.function - 1].names, charge->strings, &text);
    }
    buf_release(&text);
}

void report_async_add(struct report *report, const struct recording *recording,
                      const struct charge_ids *ids)
{
    const struct wire_async *header = &recording->header.async;
    struct profile_loops *loops = &report->async.loops;
    add_awaits(report, recording, ids->node_of);
    add_places(report, recording, ids->place_of);
    add_names(report, recording, ids->place_of);
    report_crowd_add(&report->async.crowd, recording);
    loops->count += atomic_load(&header->loops);
    loops->looks += atomic_load(&header->passes);
    loops->busy_sec += sec_of(atomic_load(&header->busy_us));
    loops->idle_sec += sec_of(atomic_load(&header->idle_us));
    loops->blocked_sec += sec_of(atomic_load(&header->blocked_us));
    if (loops->tasks_peak < atomic_load(&header->tasks_peak))
        loops->tasks_peak = atomic_load(&header->tasks_peak);
    double longest_sec = sec_of(atomic_load(&header->longest_us));
    if (longest_sec > loops->longest_sec) {
        loops->longest_sec = longest_sec;
        report->async.longest =
            charge_place_of(&report->charge, ids->node_of[atomic_load(&header->longest_node)]);
    }
}

/* ---- the whole ---- */

/*
 * Wilson's interval, its upper half, for a sum of looks that weigh `each_sec`: with few of them
 * more is missing, possibly, than the root of their number says.  One look alone may be all that
 * was seen of five.
 */
static void set_half_width(struct profile_async *async)
{
    const double z = 1.96;
    double sec = async->await_sec + async->join_sec + async->ready_sec;
    double each_sec = sec > 0 ? async->square_sec2 / sec : 0;
    async->half_width_sec =
        z * z / 2 * each_sec + z * sqrt(async->square_sec2 + z * z / 4 * each_sec * each_sec);
}

void report_async_finish(struct report *report)
{
    struct charge *charge = &report->charge;
    struct profile *profile = report->profile;
    for (size_t i = 0; i < charge->line_count; i++)
        set_half_width(&charge->lines[i].async);
    for (size_t i = 0; i < charge->function_count; i++)
        set_half_width(&charge->functions[i].async);
    profile->loops = report->async.loops;
    uint64_t peak = report_crowd_peak(&report->async.crowd);
    if (profile->loops.tasks_peak < peak)
        profile->loops.tasks_peak = peak;
    if (report->async.longest.line) {
        const struct charge_line *line = &charge->lines[report->async.longest.line - 1];
        profile->loops.longest_file = charge->files[line->file].name;
        profile->loops.longest_line = line->line;
    }
    report_crowd_finish(&report->async.crowd, report->first_mono_ns, profile);
}

struct by_text {
    const char *text;
    str_id id;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(((const struct by_text *)a)->text, ((const struct by_text *)b)->text);
}

void report_async_names(struct profile *profile, const struct charge_names *from,
                        struct profile_async *async)
{
    struct by_text names[PROFILE_TASK_NAMES_MAX] = {{0}};
    if (!from->count)
        return;
    async->name_count = from->count;
    async->names = pool_alloc(&profile->pool, from->count * sizeof *async->names);
    for (uint32_t i = 0; i < from->count; i++)
        names[i] = (struct by_text){profile_str(profile, from->items[i]), from->items[i]};
    qsort(names, from->count, sizeof *names, compare_texts);
    for (uint32_t i = 0; i < from->count; i++)
        async->names[i] = names[i].id;
}

void report_async_copy(struct report *to, const struct report *from)
{
    struct report_async *async = &to->async;
    *async = from->async;
    async->stack_sec = mem_copy(async->stack_sec, async->stack_count * sizeof *async->stack_sec);
    async->crowd.tasks =
        mem_copy(async->crowd.tasks, async->crowd.count * sizeof *async->crowd.tasks);
}

void report_async_release(struct report *report)
{
    free(report->async.stack_sec);
    free(report->async.crowd.tasks);
    report->async = (struct report_async){0};
}
