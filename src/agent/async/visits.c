#include "agent/async/visits.h"

#include "agent/async/awaits.h"
#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "os/guard.h"
#include "os/os.h"

enum {
    SHARE = 160,         /* of a processor's time one part in so many, */
    LEAST_NS = 40000,    /* but as much in any pass, */
    MOST_NS = 2000000,   /* and no more at once */
    SLOTS_A_CLOCK = 16,  /* between two looks at the clock */
    COUNTS_A_CLOCK = 64, /* the same while tasks are only counted */
    LOOKS_LEAST = 32,    /* tasks that are looked at in any case, */
    SLOTS_LEAST = 1024,  /* unless there are so many slots without */
    MANY = 1000,         /* from so many on, peaks are estimated before a round ends */
    SOURCES_MAX = LOOPS_MAX + 1,
    LINK_PREV = 8,       /* of a list's links: next, prev */
    LINKS_MAX = 1 << 24, /* of a list whose length is not known */
    CROWD_PACE_NS = 100000000,
    CROWD_POINTS = 128, /* after which the pace doubles */
};

/* Where tasks are. */
struct source {
    struct loop *loop; /* whose they are; NULL: of all of asyncio's */
    uintptr_t set;     /* 0: they are in the list of the loop's thread */
    bool is_weak;
    uint64_t size, used; /* slots to visit; tasks in them, finished ones too */
};

/* Where we stand. */
static struct {
    struct source sources[SOURCES_MAX];
    unsigned count, current;
    uint64_t visited, cursor; /* slots, of all sources and of the current one */
    uint32_t factor, offset, random;
    uint64_t began_ns;
    uint64_t found, tasks; /* objects that are tasks; of them not finished */
} round_;

/* One pass.  It is exact if it is a round: each task was visited once. */
struct visit {
    uint64_t deadline_ns;
    uint64_t slots;       /* visited */
    uint64_t found, used; /* tasks that were found in them, and that there are */
    uint64_t tasks, ready, looks, rejected;
    bool is_exact;
};

static uint64_t unseen_ns; /* time of passes that found no task, though there are some */

static struct py_frame chain[PY_FRAMES_MAX];

/* ---- sources ---- */

/* A list is walked from its beginning again. */
static void rewind_list(struct loop *loop)
{
    loop->list_next = 0;
    loop->list_seen = 0;
    for (int i = 0; i < LOOP_ANCHORS; i++)
        loop->list_anchors[i] = 0;
}

static void measure(struct source *source)
{
    struct py_set set = {0};
    if (!source->set)
        source->size = source->used = source->loop->list_length;
    else if (tasks_set(&agent.layout, source->set, &set)) {
        source->size = set.mask + 1;
        source->used = set.used;
    } else {
        source->size = source->used = 0;
    }
}

static void add_source(struct loop *loop, uintptr_t set, bool is_weak)
{
    struct source source = {.loop = loop, .set = set, .is_weak = is_weak};
    measure(&source);
    if (source.size && round_.count < SOURCES_MAX)
        round_.sources[round_.count++] = source;
}

static uint32_t next_random(void)
{
    round_.random = round_.random * 1664525u + 1013904223u;
    return round_.random >> 8;
}

static void begin_source(void)
{
    struct source *source = &round_.sources[round_.current];
    round_.cursor = 0;
    round_.factor = next_random() << 1 | 1; /* odd: every slot comes once */
    round_.offset = next_random();
    measure(source);
    if (!source->set)
        rewind_list(source->loop);
}

static void begin_round(uint64_t now_ns)
{
    bool has_asyncio = false;
    round_.count = round_.current = 0;
    round_.visited = round_.found = round_.tasks = 0;
    round_.began_ns = now_ns;
    for (unsigned i = 0; i < loops_used(); i++) {
        struct loop *loop = loops_at(i);
        enum registry_kind kind = (enum registry_kind)atomic_load(&loop->kind);
        if (!loops_is_running(loop) || !registry_ready(kind))
            continue;
        if (kind == REGISTRY_TRIO)
            add_source(loop, atomic_load(&loop->tasks), false);
        else if (!registry.tasks)
            add_source(loop, 0, false);
        has_asyncio |= kind == REGISTRY_ASYNCIO;
    }
    if (has_asyncio && registry.tasks)
        add_source(NULL, registry.tasks, true);
    if (round_.count)
        begin_source();
}

/* ---- lists, which can only be walked ---- */

static uintptr_t list_head(const struct loop *loop)
{
    return atomic_load(&loop->tstate) + (uintptr_t)agent.layout.futures.ts_tasks;
}

/* Is it still a link of the list? */
static bool is_linked(uintptr_t link)
{
    unsigned bad = 0;
    uintptr_t previous = link ? guard_ptr(link + LINK_PREV, &bad) : 0;
    return previous && !bad && guard_ptr(previous, &bad) == link && !bad;
}

/* Where to go on: at the next one, or if that is gone, a little before. */
static void find_link(struct loop *loop)
{
    if (!loop->list_next || is_linked(loop->list_next))
        return;
    loop->list_next = 0;
    for (int i = 0; i < LOOP_ANCHORS && !loop->list_next; i++)
        if (is_linked(loop->list_anchors[i]))
            loop->list_next = loop->list_anchors[i];
    if (!loop->list_next)
        rewind_list(loop);
}

/* A link that is used again may be of another list, which never comes to our list's head. */
static bool is_astray(const struct loop *loop)
{
    return loop->list_seen > (loop->list_length ? 2 * loop->list_length + MANY : LINKS_MAX);
}

/* The next link, 0: there is none, or the list changes just now.  After the last one, list_next is
 * 0. */
static uintptr_t next_link(struct loop *loop)
{
    unsigned bad = 0;
    uintptr_t head = list_head(loop);
    uintptr_t link = loop->list_next ? loop->list_next : guard_ptr(head, &bad);
    uintptr_t next = bad || !link ? 0 : guard_ptr(link, &bad);
    bool is_lost = link == head || is_astray(loop);
    if (bad || !next || guard_ptr(next + LINK_PREV, &bad) != link || bad || is_lost) {
        if (is_lost)
            loop->list_length = 0;
        rewind_list(loop);
        return 0;
    }
    loop->list_anchors[loop->list_seen / SLOTS_A_CLOCK % LOOP_ANCHORS] = link;
    loop->list_seen++;
    loop->list_next = next;
    if (next == head) {
        loop->list_length = loop->list_seen;
        rewind_list(loop);
    }
    return link;
}

/* How long a list is must be known before its tasks can be weighed. */
static void count_lists(const struct visit *visit)
{
    if (!registry_ready(REGISTRY_ASYNCIO) || registry.tasks)
        return;
    for (unsigned i = 0; i < loops_used(); i++) {
        struct loop *loop = loops_at(i);
        if (!loops_is_running(loop) || loop->list_length ||
            atomic_load(&loop->kind) != REGISTRY_ASYNCIO)
            continue;
        find_link(loop);
        for (unsigned n = 1; next_link(loop) && loop->list_next; n++)
            if (n % COUNTS_A_CLOCK == 0 && os_mono_ns() > visit->deadline_ns)
                return;
    }
}

/* ---- a task ---- */

static struct loop *loop_of(const struct source *source, const struct py_task *task)
{
    static unsigned last;
    if (source->loop)
        return source->loop;
    for (unsigned i = 0; i < loops_used(); i++, last++) {
        struct loop *loop = loops_at(last % loops_used());
        if (atomic_load(&loop->object) == task->loop &&
            atomic_load(&loop->kind) == REGISTRY_ASYNCIO)
            return loop;
    }
    return NULL;
}

static bool read_task(const struct source *source, uintptr_t address, struct py_task *task)
{
    return source->loop && atomic_load(&source->loop->kind) == REGISTRY_TRIO
               ? tasks_read_slots(&agent.layout, &registry.types, &registry.trio, address, task)
               : tasks_read(&agent.layout, &registry.types, address, task);
}

static void name_task(const struct source *source, uintptr_t address, uint32_t place)
{
    bool is_trio = source->loop && atomic_load(&source->loop->kind) == REGISTRY_TRIO;
    unsigned bad = 0;
    uintptr_t text;
    uint64_t number;
    uintptr_t name = guard_ptr(
        address + (uintptr_t)(is_trio ? registry.trio.name : agent.layout.futures.name), &bad);
    if (!bad && tasks_name(&agent.layout, &registry.types, name, &text, &number))
        awaits_name(place, text, number);
}

static enum wire_await_kind kind_of(const struct py_task *task, uint32_t node)
{
    if (task->state == PY_TASK_READY)
        return WIRE_AWAIT_READY;
    return task->state == PY_TASK_WAITS_FOR_TASK || awaits_judge(node) == AWAITS_FOR_TASKS
               ? WIRE_AWAIT_TASKS
               : WIRE_AWAIT_WAITS;
}

/* What was read is true if it is the same when read again. */
static void visit_task(struct visit *visit, const struct source *source, uintptr_t address)
{
    struct py_task task, again;
    struct py_walk walk;
    bool runs, has_begun;
    if (!read_task(source, address, &task))
        return;
    visit->found++;
    if (task.state == PY_TASK_ENDED)
        return;
    const struct loop *loop = loop_of(source, &task);
    if (!loop || !loops_is_running(loop))
        return;
    visit->looks++;
    if (!tasks_chain(&agent.layout, &registry.types, task.coroutine, chain, &walk, &runs,
                     &has_begun)) {
        visit->rejected++;
        return;
    }
    visit->tasks++;
    if (runs)
        return;
    if (!read_task(source, address, &again) || again.state != task.state ||
        again.waiter != task.waiter || again.coroutine != task.coroutine) {
        visit->rejected++;
        return;
    }
    uint32_t node = tables_stack(&agent.tables, &agent.layout, 0, chain, &walk);
    if (!node) {
        arena_lost(&agent.arena, WIRE_LOST_TABLE_FULL);
        return;
    }
    if (awaits_judge(node) == AWAITS_HIDDEN) {
        visit->tasks--;
        return;
    }
    enum wire_await_kind kind = kind_of(&task, node);
    visit->ready += kind == WIRE_AWAIT_READY;
    uint32_t place = awaits_see(node, kind, !(atomic_load(&loop->turn) & 1));
    if (kind != WIRE_AWAIT_READY && awaits_wants_name(place))
        name_task(source, address, place);
}

/* ---- a pass ---- */

/* One slot of the current source; false: that was its last. */
static bool visit_slot(struct visit *visit, const struct source *source)
{
    struct py_set set;
    if (!source->set) {
        uintptr_t link = next_link(source->loop);
        if (link)
            visit_task(visit, source, link - (uintptr_t)agent.layout.futures.node);
        else if (source->loop->list_length) /* it is not empty, but changes just now */
            visit->is_exact = false;
        return source->loop->list_next != 0;
    }
    if (!tasks_set(&agent.layout, source->set, &set) || set.mask + 1 != source->size) {
        visit->is_exact = false;
        return false; /* it has another table now */
    }
    uint64_t index = (round_.cursor++ * round_.factor + round_.offset) & set.mask;
    uintptr_t task = tasks_set_key(&agent.layout, &set, index, source->is_weak);
    if (task)
        visit_task(visit, source, task);
    return round_.cursor < source->size;
}

static void count_tasks(struct visit *visit)
{
    for (unsigned i = 0; i < round_.count; i++) {
        struct source now = round_.sources[i];
        measure(&now);
        visit->used += now.used;
    }
}

/* So many there are for each one that was found; less than one, if some were found twice. */
static double scale_of(uint64_t used, uint64_t found)
{
    return used ? (double)used / (double)found : 1;
}

static void raise_peak(double tasks)
{
    struct wire_async *header = &agent.arena.header->async;
    if (tasks > atomic_load(&header->tasks_peak))
        atomic_store(&header->tasks_peak, (uint32_t)tasks);
}

static void end_round(uint64_t now_ns)
{
    raise_peak((double)round_.tasks);
    awaits_end_round((now_ns - round_.began_ns) / 1000);
    begin_round(now_ns);
}

/* Up to the end of a round that began in this pass. */
static void visit_slots(struct visit *visit, uint64_t now_ns)
{
    bool is_whole = !round_.visited;
    visit->is_exact = is_whole;
    while (round_.count) {
        uint64_t found = visit->found, tasks = visit->tasks;
        bool has_more = visit_slot(visit, &round_.sources[round_.current]);
        visit->slots++;
        round_.visited++;
        round_.found += visit->found - found;
        round_.tasks += visit->tasks - tasks;
        if (!has_more && ++round_.current == round_.count) {
            end_round(now_ns);
            if (is_whole)
                return;
            is_whole = true;
        } else if (!has_more) {
            begin_source();
        }
        if (visit->slots % SLOTS_A_CLOCK == 0 &&
            (visit->looks >= LOOKS_LEAST || visit->slots >= SLOTS_LEAST) &&
            os_mono_ns() > visit->deadline_ns)
            break;
    }
    visit->is_exact = false;
}

static void note_crowd(const struct visit *visit, double scale, uint64_t now_ns)
{
    struct wire_header *header = agent.arena.header;
    uint32_t made = atomic_load(&header->sections[WIRE_CROWD].used) - 1;
    uint64_t pace_ns = (uint64_t)CROWD_PACE_NS
                       << (made / CROWD_POINTS < 32 ? made / CROWD_POINTS : 32);
    const struct wire_crowd *last = made ? arena_record(&agent.arena, WIRE_CROWD, made) : NULL;
    uint64_t at_ns = now_ns - header->start_mono_ns;
    if (last && at_ns < last->at_ns + pace_ns)
        return;
    uint32_t id = arena_append(&agent.arena, WIRE_CROWD, 1);
    if (!id)
        return;
    struct wire_crowd *point = arena_record(&agent.arena, WIRE_CROWD, id);
    point->at_ns = at_ns;
    point->tasks = (uint32_t)((double)visit->tasks * scale);
    point->ready = (uint32_t)((double)visit->ready * scale);
    atomic_store_explicit(&point->published, 1, memory_order_release);
}

void visits_pass(uint64_t now_ns, uint64_t since_ns)
{
    struct wire_async *header = &agent.arena.header->async;
    uint64_t budget_ns = since_ns / SHARE, before_ns = os_mono_ns();
    budget_ns = budget_ns < LEAST_NS ? LEAST_NS : budget_ns > MOST_NS ? MOST_NS : budget_ns;
    struct visit visit = {.deadline_ns = before_ns + budget_ns};
    if (!awaits_begin())
        return;
    count_lists(&visit);
    for (unsigned i = 0; i < loops_used(); i++)
        find_link(loops_at(i));
    if (!round_.count)
        begin_round(now_ns - since_ns);
    else if (!round_.visited)
        begin_round(round_.began_ns); /* loops may have come or gone */
    count_tasks(&visit);
    visit_slots(&visit, now_ns);
    if (visit.found) {
        double scale = visit.is_exact ? 1 : scale_of(visit.used, visit.found);
        awaits_weigh((double)(since_ns + unseen_ns) / 1000 * scale, visit.is_exact);
        note_crowd(&visit, scale, now_ns);
        unseen_ns = 0;
    } else if (visit.used && !visit.is_exact) {
        unseen_ns += since_ns;
    }
    if (round_.found >= MANY) {
        awaits_raise(scale_of(visit.used, round_.found));
        raise_peak((double)round_.tasks * scale_of(visit.used, round_.found));
    }
    atomic_fetch_add(&header->looks, visit.looks);
    atomic_fetch_add(&header->rejected, visit.rejected);
    atomic_fetch_add(&header->look_ns, os_mono_ns() - before_ns);
}

void visits_reset(void)
{
    round_.count = 0;
    unseen_ns = 0;
    awaits_end_round(0);
}
