/*
 * The part of a report that says which lines may leak: those that run again and
 * again, each time leave something that lives on, and do so to the end of a run
 * that is long enough to tell.  Called by report_memory.c with one recording after
 * the other.
 *
 * The evidence are samples that are alive at the end, by when they were allocated.
 * "When" is the process's CPU time, which goes on as the program does: it stands
 * still while the program waits, and while the machine is busy with others.
 *
 * One list that is appended to for ever is a single block and a single record.
 * Its growth is read off the course of its site's live memory instead: what that
 * rose by and never fell below again has lived on.  Growth counts as many samples
 * as small objects of the same size would, but a single step never for more than
 * a few: a large list grows by much at once, and one step is no trend.
 *
 * What a single execution of a statement builds is no leak, however long it takes
 * (report_executions.c); nor is what an import keeps.
 */
#include "report/report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0

/* A leak grows steadily: in each part of the time between warm-up and tail. */
enum {
    LEAK_PARTS = 4,
    LEAK_LEAST = 5,             /* samples that live on, in each part */
    LEAK_EXECUTIONS_LEAST = 3,  /* that are seen in each half of that time, ... */
    LEAK_EXECUTIONS_ENOUGH = 10 /* ... and in both */
};
#define LEAK_RUN_SEC  3.0  /* a run that is shorter does not tell */
#define LEAK_FROM     0.1  /* of the process's CPU time: what comes before is warm-up ... */
#define LEAK_TO       0.9  /* ... and what comes after may still be in use */
#define LEAK_LATE     0.85 /* here it still grows (a list by an eighth at once), */
#define LEAK_WALL     0.75 /* and after so much of the time by the clock on the wall */
#define LEAK_SURVIVAL 0.7  /* how well the older half lives on, measured by the younger */
#define LEAK_GOES_ON  0.4  /* how much is added late, measured by the older parts */
#define LEAK_GROWTH   0.5  /* how much the whole grows, measured by what lives on */
#define LEAK_CHANCE   2.0  /* by how many standard deviations more than by chance */
#define LEAK_RISE_MAX 5.0  /* samples that one growth of a block counts for, at most */
#define LEAK_LIKELY   0.95

/* Samples of a line, by when they were allocated, and those of them that are alive. */
struct lives {
    double born[LEAK_PARTS];
    double survive[LEAK_PARTS], survive_mb[LEAK_PARTS];
    double early_mb;           /* alive and allocated before the parts that growth is seen in */
    double late_mb;            /* alive and allocated after LEAK_LATE */
    double last;               /* when the last one that lives was allocated */
    double live_mb;            /* as far as the course has been followed */
    double low_mb[LEAK_PARTS]; /* the least that was live in this part */
    bool has_low[LEAK_PARTS];
};

/* A rise of a site's live memory that has not been undone yet. */
struct rise {
    uint32_t before; /* the one below it */
    uint32_t level_kib;
    double share; /* of the process's CPU time, when it came */
};

/* What is known of a site. */
struct site {
    double grown_mb;   /* live in blocks that grew, less that in others */
    uint32_t top;      /* its last rise */
    uint32_t live_kib; /* as far as the course has been followed */
    bool is_import;    /* its stack goes through an import */
};

struct evidence {
    const struct recording *recording;
    const struct charge_place *places;
    double end_ms, end_sec; /* CPU time and time */
    double stride;          /* entries of the course that each one stands for */
    double interval_mb;     /* between two samples */
    struct lives *lines;    /* parallel to charge's */
    struct site *sites;
    struct rise *rises; /* the first is the ground below all others */
    size_t rise_count, rise_cap;
    struct report_executions *executions;
};

/* -1: neither warm-up nor tail counts. */
static int part_of(double share)
{
    if (!(share >= LEAK_FROM && share < LEAK_TO))
        return -1;
    int part = (int)((share - LEAK_FROM) / (LEAK_TO - LEAK_FROM) * LEAK_PARTS);
    return part < LEAK_PARTS ? part : LEAK_PARTS - 1;
}

static struct lives *lives_of(const struct evidence *evidence, uint32_t site)
{
    uint32_t line = evidence->sites[site].is_import ? 0 : evidence->places[site].line;
    return line ? &evidence->lines[line - 1] : NULL;
}

static void add_survivor(struct lives *lives, double share, double samples, double mb)
{
    int part = part_of(share);
    if (part >= 0) {
        lives->survive[part] += samples;
        lives->survive_mb[part] += mb;
    }
    if (share < LEAK_FROM || (part >= 0 && part < LEAK_PARTS / 2 - 1))
        lives->early_mb += mb;
    if (share >= LEAK_LATE)
        lives->late_mb += mb;
    lives->last = fmax(lives->last, share);
}

static bool is_import(const struct charge *charge, uint32_t node)
{
    static const char importer[] = "<frozen importlib._bootstrap";
    for (; node >= CHARGE_FIRST_NODE; node = charge->nodes[node].parent) {
        uint32_t file = charge->codes[charge->frames[charge->nodes[node].frame].code].file;
        const char *name = intern_get(charge->strings, charge->files[file].name);
        if (!strncmp(name, importer, sizeof importer - 1))
            return true;
    }
    return false;
}

static void find_imports(struct evidence *evidence, const struct charge *charge,
                         const uint32_t *node_of)
{
    for (uint32_t id = 1; id < recording_count(evidence->recording, WIRE_SITE); id++) {
        const struct wire_site *site = recording_site(evidence->recording, id);
        evidence->sites[id].is_import = site && is_import(charge, node_of[site->node]);
    }
}

static void find_grown(struct evidence *evidence)
{
    for (uint32_t id = 1; id < recording_count(evidence->recording, WIRE_BLOCK); id++) {
        const struct wire_block *block = recording_block(evidence->recording, id);
        if (!block)
            continue;
        double mb = (double)block->bytes / MB;
        evidence->sites[atomic_load(&block->site)].grown_mb +=
            block->flags & WIRE_BLOCK_GREW ? mb : -mb;
    }
}

static void count_blocks(struct evidence *evidence)
{
    for (uint32_t id = 1; id < recording_count(evidence->recording, WIRE_BLOCK); id++) {
        const struct wire_block *block = recording_block(evidence->recording, id);
        uint32_t site = block ? atomic_load(&block->site) : 0;
        struct lives *lives = block ? lives_of(evidence, site) : NULL;
        if (lives && evidence->sites[site].grown_mb <= 0)
            add_survivor(lives, block->at_cpu_ms / evidence->end_ms, 1, (double)block->bytes / MB);
    }
}

static void follow_rises(struct evidence *evidence, struct site *site, double share)
{
    while (evidence->rises[site->top].level_kib > site->live_kib)
        site->top = evidence->rises[site->top].before;
    if (evidence->rises[site->top].level_kib == site->live_kib)
        return;
    VEC_PUSH(evidence->rises, evidence->rise_count, evidence->rise_cap) =
        (struct rise){site->top, site->live_kib, share};
    site->top = (uint32_t)evidence->rise_count - 1;
}

static void count_course(struct evidence *evidence)
{
    for (uint32_t id = 1; id < recording_count(evidence->recording, WIRE_FOOT); id++) {
        const struct wire_foot *foot = recording_foot(evidence->recording, id);
        struct lives *lives = foot && foot->site ? lives_of(evidence, foot->site) : NULL;
        if (!lives)
            continue;
        struct site *site = &evidence->sites[foot->site];
        double share = foot->at_cpu_ms / evidence->end_ms;
        int part = part_of(share);
        lives->live_mb += ((double)foot->site_live_kib - site->live_kib) / 1024;
        site->live_kib = foot->site_live_kib;
        if (site->grown_mb > 0)
            follow_rises(evidence, site, share);
        if (part < 0)
            continue;
        if (atomic_load(&foot->published) == WIRE_FOOT_ALLOCATED)
            lives->born[part] += evidence->stride;
        if (!lives->has_low[part] || lives->live_mb < lives->low_mb[part])
            lives->low_mb[part] = lives->live_mb;
        lives->has_low[part] = true;
    }
}

static void count_rises(struct evidence *evidence)
{
    for (uint32_t id = 1; id < recording_count(evidence->recording, WIRE_SITE); id++) {
        struct lives *lives = lives_of(evidence, id);
        for (uint32_t at = lives ? evidence->sites[id].top : 0; at;) {
            const struct rise *rise = &evidence->rises[at];
            at = rise->before;
            double mb = (double)(rise->level_kib - evidence->rises[at].level_kib) / 1024;
            add_survivor(lives, rise->share, fmin(mb / evidence->interval_mb, LEAK_RISE_MAX), mb);
        }
    }
}

/*
 * How much the live memory of a line may seem to grow when every block that came
 * replaced one that went: those were samples, or not, by chance.
 */
static double growth_by_chance_mb(const struct evidence *evidence, const struct lives *lives)
{
    double gone_mb = fmax(lives->low_mb[LEAK_PARTS / 2 - 1] - lives->early_mb, 0);
    return LEAK_CHANCE * sqrt(2 * gone_mb * evidence->interval_mb);
}

/*
 * Of a cache with a bound only the young blocks live (or only the old ones, where
 * it is never renewed); of what is cleared now and then, none.  What fills up adds
 * less and less, and then nothing.  And where blocks live on by chance or merit (the best so
 * many of all), there is not more and more of them.
 */
static bool is_leak(const struct evidence *evidence, const struct lives *lives, double least)
{
    double born[2] = {0}, survive[2] = {0}, mb[2] = {0};
    for (int part = 0; part < LEAK_PARTS; part++) {
        int half = part * 2 / LEAK_PARTS;
        born[half] += fmax(lives->born[part], lives->survive[part]);
        survive[half] += lives->survive[part];
        mb[half] += lives->survive_mb[part];
    }
    double growth_mb = lives->low_mb[LEAK_PARTS - 1] - lives->low_mb[LEAK_PARTS / 2 - 1];
    /* So many may be there by chance: the younger half stands on fewer samples where intervals
     * grew. */
    double surely = fmax(survive[1] - LEAK_CHANCE * sqrt(survive[1]), 0);
    return least >= LEAK_LEAST && survive[0] * born[1] >= LEAK_SURVIVAL * surely * born[0] &&
           lives->late_mb >= LEAK_GOES_ON * mb[0] * (1 - LEAK_LATE) / ((LEAK_TO - LEAK_FROM) / 2) &&
           growth_mb >= LEAK_GROWTH * mb[1] + growth_by_chance_mb(evidence, lives);
}

/* The moment at which the process had used this share of its CPU time. */
static uint64_t moment_of(const struct evidence *evidence, double share)
{
    uint32_t low = 1, high = recording_count(evidence->recording, WIRE_FOOT);
    uint64_t at_ns = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct wire_foot *foot = recording_foot(evidence->recording, middle);
        if (foot && foot->at_cpu_ms <= share * evidence->end_ms) {
            at_ns = foot->at_ns;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return at_ns;
}

static bool runs_again_and_again(const struct evidence *evidence, uint32_t line)
{
    enum { HALVES = 2 };
    uint64_t bounds_ns[HALVES + 1];
    uint32_t seen[HALVES];
    for (int i = 0; i <= HALVES; i++)
        bounds_ns[i] = moment_of(evidence, LEAK_FROM + (LEAK_TO - LEAK_FROM) * i / HALVES);
    report_executions_count(evidence->executions, line, evidence->places, bounds_ns, HALVES, seen);
    return seen[0] >= LEAK_EXECUTIONS_LEAST && seen[1] >= LEAK_EXECUTIONS_LEAST &&
           seen[0] + seen[1] >= LEAK_EXECUTIONS_ENOUGH;
}

static struct profile_leak judge(const struct evidence *evidence, uint32_t line)
{
    const struct lives *lives = &evidence->lines[line - 1];
    double least = INFINITY, mb = 0;
    for (int part = 0; part < LEAK_PARTS; part++) {
        least = fmin(least, lives->survive[part]);
        mb += lives->survive_mb[part];
    }
    if (!is_leak(evidence, lives, least) ||
        (double)moment_of(evidence, lives->last) < LEAK_WALL * evidence->end_sec * 1e9 ||
        !runs_again_and_again(evidence, line))
        return (struct profile_leak){0};
    return (struct profile_leak){
        .likelihood = 1 - 1 / (least * LEAK_PARTS + 2),
        .velocity_mb_s = mb / ((LEAK_TO - LEAK_FROM) * evidence->end_sec),
    };
}

/* Each process is judged by itself: what a process that has ended left alive is no leak of those
 * that go on. */
void report_leaks_find(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, const struct charge_place *places)
{
    struct charge *charge = &report->charge;
    double end_sec = (double)report_course_end_ns(recording) / 1e9;
    if (end_sec < LEAK_RUN_SEC || recording_count(recording, WIRE_FOOT) <= LEAK_PARTS * LEAK_LEAST)
        return;
    struct evidence evidence = {
        .recording = recording,
        .places = places,
        .end_ms = fmax((double)atomic_load(&recording->header.memory.look.at_cpu_ms), 1),
        .end_sec = end_sec,
        .stride = (double)atomic_load(&recording->header.memory.foot_stride),
        .interval_mb = fmax((double)atomic_load(&recording->header.memory.interval_bytes), 1) / MB,
        .lines = mem_zalloc(charge->line_count + 1, sizeof *evidence.lines),
        .rises = mem_zalloc(1, sizeof *evidence.rises),
        .rise_count = 1,
        .rise_cap = 1,
        .sites =
            mem_zalloc((size_t)recording_count(recording, WIRE_SITE) + 1, sizeof *evidence.sites),
        .executions = report_executions_new(report, recording, node_of),
    };
    find_imports(&evidence, charge, node_of);
    find_grown(&evidence);
    count_blocks(&evidence);
    count_course(&evidence);
    count_rises(&evidence);
    for (uint32_t line = 1; line <= charge->line_count; line++) {
        struct profile_leak leak = judge(&evidence, line);
        struct profile_leak *known = &charge->lines[line - 1].memory.leak;
        if (leak.likelihood >= LEAK_LIKELY && leak.likelihood > known->likelihood)
            *known = leak;
    }
    report_executions_free(evidence.executions);
    free(evidence.lines);
    free(evidence.sites);
    free(evidence.rises);
}
