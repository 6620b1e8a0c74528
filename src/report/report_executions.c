/*
 * The part of a report that tells a statement which runs again and again from one
 * that runs once and long, however many samples it leaves: `rows = json.load(f)`,
 * a comprehension over a million rows.  Called by report_leaks.c.
 *
 * A sighting is a stack at a moment: a CPU sample, a look at a waiting thread, an
 * allocation that was a sample.  While a statement runs, all stacks of its thread
 * go through it: the same callers, the same function, one of the statement's
 * lines.  So two sightings in it with one outside in between are two executions.
 * Which of several threads a sighting is of is not known where it is an
 * allocation; those that began with the same function are taken for one.
 *
 * Whose executions?  Those of the line's own statement; but what a recursive
 * function builds is what its outermost call builds, and what is made below a
 * comprehension is made by the statement that it stands in.
 */
#include "report/report_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    OUTSIDE = 1, /* in the statement's thread, but not in it */
    ELSEWHERE,   /* in another thread */
    WITHIN,      /* and more: in an execution of statement so many */
    RUN_POINTS_MAX = 1000,
};

struct sighting {
    uint64_t at_ns;
    uint32_t node; /* of the merged tree */
};

struct report_executions {
    struct report *report;
    const struct recording *recording;
    const uint32_t *node_of;
    struct sighting *sightings; /* by time */
    size_t count, cap;
    uint32_t *side_of;     /* of each node: 0 unknown, OUTSIDE, ELSEWHERE or WITHIN + n */
    struct map statements; /* key_of -> n */
    struct map roots;      /* codes that the statements' threads begin with */
    bool is_loop;          /* each sighting is an execution */
};

static const struct charge_code *code_of(const struct charge *charge, uint32_t node)
{
    return &charge->codes[charge->frames[charge->nodes[node].frame].code];
}

static int by_time(const void *a, const void *b)
{
    const struct sighting *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static void add_sighting(struct report_executions *executions, uint64_t at_ns, uint32_t node)
{
    if (node >= CHARGE_FIRST_NODE)
        VEC_PUSH(executions->sightings, executions->count, executions->cap) =
            (struct sighting){at_ns, node};
}

static void add_run(struct report_executions *executions, const struct recording_run *run)
{
    uint64_t count = run->count < RUN_POINTS_MAX ? run->count : RUN_POINTS_MAX;
    for (uint64_t i = 0; i < count; i++)
        add_sighting(executions, run->at_ns + run->us * 1000 / count * i,
                     executions->node_of[run->node]);
}

struct report_executions *report_executions_new(struct report *report,
                                                const struct recording *recording,
                                                const uint32_t *node_of)
{
    struct report_executions *executions = mem_zalloc(1, sizeof *executions);
    *executions =
        (struct report_executions){.report = report, .recording = recording, .node_of = node_of};
    for (uint32_t i = 1; i < recording_count(recording, WIRE_LOG); i++) {
        struct recording_run run;
        if (recording_run(recording, i, &run))
            add_run(executions, &run);
    }
    for (uint32_t i = 1; i < recording_count(recording, WIRE_FOOT); i++) {
        const struct wire_foot *foot = recording_foot(recording, i);
        const struct wire_site *site = foot ? recording_site(recording, foot->site) : NULL;
        if (site && atomic_load(&foot->published) == WIRE_FOOT_ALLOCATED)
            add_sighting(executions, foot->at_ns, node_of[site->node]);
    }
    if (executions->count)
        qsort(executions->sightings, executions->count, sizeof *executions->sightings, by_time);
    executions->side_of = mem_alloc(report->charge.node_count * sizeof *executions->side_of);
    return executions;
}

void report_executions_free(struct report_executions *executions)
{
    if (!executions)
        return;
    map_release(&executions->statements);
    map_release(&executions->roots);
    free(executions->sightings);
    free(executions->side_of);
    free(executions);
}

/* ---- statements ---- */

static struct statement statement_of(struct report *report, uint32_t node)
{
    const struct charge *charge = &report->charge;
    const struct charge_frame *frame = &charge->frames[charge->nodes[node].frame];
    str_id file = charge->files[charge->codes[frame->code].file].name;
    return statements_at(&sources_get(&report->sources, file)->statements, frame->line);
}

/* Of a traced node. */
static uint64_t key_of(struct report *report, uint32_t node)
{
    const struct charge_node *at = &report->charge.nodes[node];
    uint64_t place = (uint64_t)report->charge.frames[at->frame].code << 32 |
                     statement_of(report, node).first_line;
    return hash_mix(at->parent, place);
}

static bool is_comprehension(const struct charge *charge, uint32_t node)
{
    static const char *const names[] = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"};
    const char *name = intern_get(charge->strings, code_of(charge, node)->name);
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(dot ? dot + 1 : name, names[i]))
            return true;
    return false;
}

/* From a traced node outwards: is the same function among the callers up to this one? */
static bool is_entered_again(const struct charge *charge, uint32_t inner, uint32_t node)
{
    for (; inner != node; inner = charge->nodes[inner].parent)
        if (code_of(charge, inner) == code_of(charge, node))
            return true;
    return false;
}

/* The node of the statement whose executions count. */
static uint32_t responsible(struct report *report, uint32_t traced)
{
    enum { DEPTH_MAX = 200 }; /* of traced frames that are looked at */
    const struct charge *charge = &report->charge;
    uint32_t found = traced, inner = traced;
    bool was_comprehension = false;
    for (int depth = 0; depth < DEPTH_MAX && traced != CHARGE_NO_STACK; depth++) {
        if (was_comprehension ||
            (traced != inner && (statement_of(report, traced).has_comprehension ||
                                 is_entered_again(charge, inner, traced))))
            found = traced;
        was_comprehension = is_comprehension(charge, traced);
        traced = charge->nodes[charge->nodes[traced].parent].traced;
    }
    return found;
}

static uint32_t root_code(const struct charge *charge, uint32_t node)
{
    while (charge->nodes[node].parent >= CHARGE_FIRST_NODE)
        node = charge->nodes[node].parent;
    return charge->frames[charge->nodes[node].frame].code;
}

static void find_statements(struct report_executions *executions, uint32_t line,
                            const struct charge_place *places)
{
    struct report *report = executions->report;
    map_release(&executions->statements);
    map_release(&executions->roots);
    executions->is_loop = false;
    for (uint32_t id = 1; id < recording_count(executions->recording, WIRE_SITE); id++) {
        const struct wire_site *site = recording_site(executions->recording, id);
        if (!site || places[id].line != line)
            continue;
        uint32_t traced = report->charge.nodes[executions->node_of[site->node]].traced;
        uint32_t node = responsible(report, traced);
        uint64_t *number = map_put(&executions->statements, key_of(report, node), NULL);
        if (!*number)
            *number = executions->statements.count;
        map_put(&executions->roots, root_code(&report->charge, node), NULL);
        executions->is_loop |= node == traced && statement_of(report, node).is_loop;
    }
}

static uint32_t side_of(struct report_executions *executions, uint32_t node)
{
    if (executions->side_of[node])
        return executions->side_of[node];
    struct report *report = executions->report;
    const struct charge *charge = &report->charge;
    bool is_traced = charge->nodes[node].traced == node;
    const uint64_t *number =
        is_traced ? map_get(&executions->statements, key_of(report, node)) : NULL;
    uint32_t parent = charge->nodes[node].parent, side;
    if (parent >= CHARGE_FIRST_NODE)
        side = side_of(executions, parent);
    else
        side = map_get(&executions->roots, root_code(charge, node)) ? OUTSIDE : ELSEWHERE;
    if (number && side == OUTSIDE)
        side = WITHIN + (uint32_t)*number;
    return executions->side_of[node] = side;
}

void report_executions_count(struct report_executions *executions, uint32_t line,
                             const struct charge_place *places, const uint64_t *bounds_ns,
                             unsigned parts, uint32_t *counts)
{
    memset(executions->side_of, 0,
           executions->report->charge.node_count * sizeof *executions->side_of);
    memset(counts, 0, parts * sizeof *counts);
    find_statements(executions, line, places);
    uint32_t last = OUTSIDE;
    unsigned part = 0;
    for (size_t i = 0; i < executions->count; i++) {
        const struct sighting *sighting = &executions->sightings[i];
        uint32_t side = side_of(executions, sighting->node);
        if (side == ELSEWHERE)
            continue;
        bool is_new = side >= WITHIN && (side != last || executions->is_loop);
        last = side;
        while (part < parts && sighting->at_ns >= bounds_ns[part + 1])
            part++;
        if (is_new && part < parts && sighting->at_ns >= bounds_ns[part])
            counts[part]++;
    }
}
