#include "agent/async/visits.h"

#include "agent/async/awaits.h"
#include "agent/async/greenlets.h"
#include "agent/async/lists.h"
#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "os/guard.h"
#include "os/os.h"

enum {
    SHARE = 160,        /* of a processor's time one part in so many, */
    LEAST_NS = 40000,   /* but as much in any pass, */
    MOST_NS = 2000000,  /* and no more at once */
    SLOTS_A_CLOCK = 16, /* between two looks at the clock */
    LOOKS_LEAST = 48,   /* tasks that are looked at in any case, */
    SLOTS_LEAST = 512,  /* or so many slots, if they are empty */
    MANY = 1000,        /* from so many on, peaks are estimated before a round ends */
    SOURCES_MAX = LOOPS_MAX + LISTS_MAX,
    COUNT_PACE_NS = 50000000,
    COUNT_PART = 4, /* of the time that a pass has */
    CROWD_PACE_NS = 100000000,
    CROWD_POINTS = 128, /* after which the pace doubles */
};

/* Where tasks are. */
struct source {
    struct loop *loop; /* whose they are; NULL: of all of asyncio's, or gevent's */
    uintptr_t set;
    struct task_list *list; /* or they are here, */
    bool is_greenlets;      /* or in our own table */
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
    uint64_t found; /* tasks, finished ones too */
} round_;

/* One pass. */
struct visit {
    uint64_t deadline_ns;
    uint64_t slots; /* visited */
    uint64_t found; /* tasks in them, finished ones too */
    uint64_t tasks, ready, looks, rejected;
    bool is_torn; /* what was visited changed meanwhile */
};

static uint64_t unseen_ns; /* time of passes that found no task, though there are some */
static struct py_frame chain[PY_FRAMES_MAX];

/* ---- sources ---- */

static void measure(struct source *source)
{
    struct py_set set = {0};
    if (source->is_greenlets)
        greenlets_measure(&source->size, &source->used);
    else if (source->list)
        source->size = source->used = source->list->length;
    else if (tasks_set(&agent.layout, source->set, &set)) {
        source->size = set.mask + 1;
        source->used = set.used;
    } else {
        source->size = source->used = 0;
    }
}

static void add_source(struct source source)
{
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
    measure(source);
    if (source->list)
        lists_begin(source->list, next_random());
    round_.cursor = 0;
    round_.factor = next_random() << 1 | 1; /* odd: every slot comes once */
    round_.offset = next_random();
}

static void begin_round(uint64_t now_ns)
{
    bool has_asyncio = false, has_gevent = false;
    round_.count = round_.current = 0;
    round_.visited = round_.found = 0;
    round_.began_ns = now_ns;
    for (unsigned i = 0; i < loops_used(); i++) {
        struct loop *loop = loops_at(i);
        enum registry_kind kind = (enum registry_kind)atomic_load(&loop->kind);
        if (!loops_is_running(loop) || !registry_ready(kind))
            continue;
        if (kind == REGISTRY_TRIO)
            add_source((struct source){.loop = loop, .set = atomic_load(&loop->tasks)});
        has_asyncio |= kind == REGISTRY_ASYNCIO;
        has_gevent |= kind == REGISTRY_GEVENT;
    }
    if (has_asyncio && registry.tasks)
        add_source((struct source){.set = registry.tasks, .is_weak = true});
    for (unsigned i = 0; has_asyncio && !registry.tasks && i < lists_used(); i++)
        add_source((struct source){.list = lists_at(i)});
    if (has_gevent)
        add_source((struct source){.is_greenlets = true});
    if (round_.count)
        begin_source();
}

/* ---- lists ---- */

/* What was seen up to now is what it saw. */
static void give_up_round(uint64_t now_ns)
{
    if (round_.count && round_.visited)
        awaits_end_round((now_ns - round_.began_ns) / 1000, 1);
    round_.count = 0;
}

static bool has_lists(void)
{
    for (unsigned i = 0; !registry.tasks && i < loops_used(); i++)
        if (atomic_load(&loops_at(i)->kind) == REGISTRY_ASYNCIO && loops_is_running(loops_at(i)))
            return registry_ready(REGISTRY_ASYNCIO);
    return false;
}

/* How long a list is must be known before its tasks can be weighed, and is counted now and then:
 * that is much quicker than to look at the tasks.  New ones are counted at once: to make them was
 * more work. */
static void prepare_lists(uint64_t now_ns, uint64_t before_ns, uint64_t budget_ns)
{
    const uint64_t deadline_ns = before_ns + budget_ns / COUNT_PART;
    const uint64_t new_deadline_ns = before_ns + MOST_NS / COUNT_PART;
    if (!has_lists())
        return;
    if (lists_find()) /* what a round has left to visit is not where it was */
        give_up_round(now_ns);
    for (unsigned i = 0; i < lists_used(); i++) {
        struct task_list *list = lists_at(i);
        lists_go_on(list);
        if (list->length && now_ns - list->counted_ns < COUNT_PACE_NS)
            continue;
        if (lists_count(list, deadline_ns, new_deadline_ns))
            list->counted_ns = now_ns;
    }
}

/* ---- a task ---- */

static struct loop *find_loop(enum registry_kind kind, uintptr_t object)
{
    static unsigned last;
    for (unsigned i = 0; i < loops_used(); i++, last++) {
        struct loop *loop = loops_at(last % loops_used());
        if (atomic_load(&loop->object) == object && atomic_load(&loop->kind) == (uint32_t)kind)
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

static enum wire_await_kind kind_of(enum py_task_state state, uint32_t node)
{
    if (state == PY_TASK_READY)
        return WIRE_AWAIT_READY;
    return state == PY_TASK_WAITS_FOR_TASK || awaits_judge(node) == AWAITS_FOR_TASKS
               ? WIRE_AWAIT_TASKS
               : WIRE_AWAIT_WAITS;
}

/* A task of this loop, with the chain that was read.  Returns its place, 0: it does not wait. */
static uint32_t see(struct visit *visit, const struct loop *loop, enum py_task_state state,
                    const struct py_walk *walk)
{
    uint32_t node = tables_stack(&agent.tables, &agent.layout, 0, chain, walk);
    if (!node) {
        arena_lost(&agent.arena, WIRE_LOST_TABLE_FULL);
        return 0;
    }
    if (awaits_judge(node) == AWAITS_HIDDEN) {
        visit->tasks--;
        return 0;
    }
    enum wire_await_kind kind = kind_of(state, node);
    visit->ready += kind == WIRE_AWAIT_READY;
    uint32_t place = awaits_see(node, kind, !(atomic_load(&loop->turn) & 1));
    return kind == WIRE_AWAIT_READY ? 0 : place;
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
    const struct loop *loop = source->loop ? source->loop : find_loop(REGISTRY_ASYNCIO, task.loop);
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
    uint32_t place = see(visit, loop, task.state, &walk);
    if (place && awaits_wants_name(place))
        name_task(source, address, place);
}

/* Of greenlets it is not known whether what they wait for has happened: those that are ready count
 * as waiting. */
static void visit_greenlet(struct visit *visit, uintptr_t address)
{
    struct py_greenlet greenlet, again;
    struct py_walk walk;
    visit->looks++;
    if (!greenlet_read(&agent.layout, &registry.greenlets, address, &greenlet)) {
        visit->rejected++;
        return;
    }
    visit->found++;
    if (!greenlet.frame)
        return;
    struct loop *loop = find_loop(REGISTRY_GEVENT, address);
    if (!loop)
        loop = find_loop(REGISTRY_GEVENT, greenlet.main_object);
    if (!loop || atomic_load(&loop->tasks) == address || !loops_is_running(loop))
        return;
    frames_walk_suspended(&agent.layout, agent.code_type, greenlet.frame, &greenlet.stack, chain,
                          &walk);
    if (!walk.count || !greenlet_read(&agent.layout, &registry.greenlets, address, &again) ||
        again.frame != greenlet.frame || again.stack.bytes != greenlet.stack.bytes ||
        again.stack.to != greenlet.stack.to) {
        visit->rejected++;
        return;
    }
    visit->tasks++;
    loop->suspended++;
    loop->was_polling = atomic_load(&loop->turn) & 1;
    see(visit, loop, PY_TASK_WAITS, &walk);
}

/* ---- a pass ---- */

/* One slot of the current source; false: that was its last. */
static bool visit_slot(struct visit *visit, const struct source *source)
{
    struct py_set set;
    uint64_t slot = round_.cursor++;
    if (source->list) {
        bool at_end, is_torn;
        uintptr_t link = lists_visit(source->list, &at_end, &is_torn);
        if (link)
            visit_task(visit, source, link - (uintptr_t)agent.layout.futures.node);
        visit->is_torn |= is_torn;
        return !at_end;
    }
    uint64_t index = (slot * round_.factor + round_.offset) & (source->size - 1);
    if (source->is_greenlets) {
        uint64_t size, used;
        greenlets_measure(&size, &used);
        visit->is_torn |= size != source->size;
        uintptr_t greenlet = size == source->size ? greenlets_at(index) : 0;
        if (greenlet)
            visit_greenlet(visit, greenlet);
        return size == source->size && round_.cursor < source->size;
    }
    if (!tasks_set(&agent.layout, source->set, &set) || set.mask + 1 != source->size) {
        visit->is_torn = true; /* it has another table now */
        return false;
    }
    uintptr_t task = tasks_set_key(&agent.layout, &set, index, source->is_weak);
    if (task)
        visit_task(visit, source, task);
    return round_.cursor < source->size;
}

static uint64_t count_tasks(void)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < round_.count; i++) {
        struct source now = round_.sources[i]; /* whose size stays until it is visited again */
        measure(&now);
        used += now.used;
    }
    return used;
}

/* So many there are for each one that was found; fewer than one where some were found twice, by the
 * end of a round and the beginning of the next, or came and went meanwhile. */
static double scale_of(uint64_t used, uint64_t found)
{
    return found ? (double)used / (double)found : 1;
}

static void raise_peak(double tasks)
{
    struct wire_async *header = &agent.arena.header->async;
    if (tasks > atomic_load(&header->tasks_peak))
        atomic_store(&header->tasks_peak, (uint32_t)tasks);
}

static void end_round(uint64_t now_ns)
{
    double scale = scale_of(count_tasks(), round_.found);
    awaits_end_round((now_ns - round_.began_ns) / 1000, scale < 1 ? scale : 1);
    begin_round(now_ns);
}

/* To the end of the time, or of the round that this pass began: no task is worth two looks at once.
 * True if it is that and the round has been made in this pass alone. */
static bool visit_slots(struct visit *visit, uint64_t now_ns)
{
    bool is_own_round = !round_.visited;
    bool has_begun = is_own_round;
    while (round_.count) {
        uint64_t found = visit->found;
        bool has_more = visit_slot(visit, &round_.sources[round_.current]);
        round_.visited++;
        round_.found += visit->found - found;
        if (!has_more && ++round_.current < round_.count) {
            begin_source();
        } else if (!has_more) {
            end_round(now_ns);
            if (has_begun)
                return is_own_round && !visit->is_torn;
            has_begun = true;
        }
        if (++visit->slots % SLOTS_A_CLOCK == 0 &&
            (visit->looks >= LOOKS_LEAST || visit->slots >= SLOTS_LEAST) &&
            os_mono_ns() > visit->deadline_ns)
            return false;
    }
    return false;
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
    for (unsigned i = 0; i < loops_used(); i++)
        loops_at(i)->suspended = 0;
    prepare_lists(now_ns, before_ns, budget_ns);
    if (!round_.count)
        begin_round(now_ns - since_ns);
    else if (!round_.visited)
        begin_round(round_.began_ns); /* loops and tasks may have come since */
    bool is_exact = visit_slots(&visit, now_ns);
    uint64_t used = count_tasks();
    if (!visit.found) {
        unseen_ns = used ? unseen_ns + since_ns : 0;
    } else {
        double scale = is_exact ? 1 : scale_of(used, visit.found);
        awaits_weigh((double)(since_ns + unseen_ns) / 1000, scale);
        atomic_fetch_add(&header->passes, 1);
        unseen_ns = 0;
        raise_peak((double)visit.tasks * scale);
        note_crowd(&visit, scale, now_ns);
    }
    if (round_.found >= MANY)
        awaits_raise(scale_of(used, round_.found));
    atomic_fetch_add(&header->looks, visit.looks);
    atomic_fetch_add(&header->rejected, visit.rejected);
    atomic_fetch_add(&header->look_ns, os_mono_ns() - before_ns);
}

void visits_reset(void)
{
    round_.count = 0;
    lists_forget();
    unseen_ns = 0;
    awaits_end_round(0, 1);
}
