#include "agent/async/lists.h"

#include "agent/async/registry.h"
#include "agent/core/agent.h"
#include "os/guard.h"
#include "os/os.h"

enum {
    PREVIOUS = 8, /* in a link, behind `next` */
    LINKS_A_CLOCK = 64,
    LINKS_MORE = 1 << 20, /* than were counted, when counted again, */
    MORE = 1000,          /* and when visited */
    HOPS_MAX = 65536,
    FAILURES_MAX = 16,
    STRIDE_MAX = 16,
    STRIDE_LINKS = 64, /* in a walk there are more visits than that */
    STRIDE_STEP = 5,   /* has no factor in common with a stride */
};

/* Is it still a link of a list? */
static bool is_linked(uintptr_t link)
{
    unsigned bad = 0;
    uintptr_t previous = link ? guard_ptr(link + PREVIOUS, &bad) : 0;
    return previous && !bad && guard_ptr(previous, &bad) == link && !bad;
}

void lists_resume(struct list_walk *walk)
{
    if (!walk->next || is_linked(walk->next))
        return;
    struct list_walk old = *walk;
    *walk = (struct list_walk){0};
    for (int i = 0; i < LIST_ANCHORS; i++)
        if (old.anchors[i].index >= walk->seen && is_linked(old.anchors[i].link)) {
            walk->next = old.anchors[i].link;
            walk->seen = old.anchors[i].index;
        }
    if (!walk->next)
        walk->skip = old.seen;
}

/* One link further; 0: there is none, or it cannot be told which. */
static uintptr_t step(struct list_walk *walk, uintptr_t head, bool *at_end)
{
    unsigned bad = 0;
    uintptr_t link = walk->next ? walk->next : guard_ptr(head, &bad);
    uintptr_t next = bad || !link ? 0 : guard_ptr(link, &bad);
    *at_end = !bad && link == head;
    if (*at_end || bad || !next || guard_ptr(next + PREVIOUS, &bad) != link || bad)
        return 0;
    if (walk->seen % LIST_ANCHOR_EVERY == 0) {
        walk->anchors[walk->seen / LIST_ANCHOR_EVERY % LIST_ANCHORS].link = link;
        walk->anchors[walk->seen / LIST_ANCHOR_EVERY % LIST_ANCHORS].index = walk->seen;
    }
    walk->seen++;
    walk->next = next;
    *at_end = next == head;
    return link;
}

uintptr_t lists_next(struct list_walk *walk, uintptr_t head, uint64_t most, bool *at_end)
{
    uintptr_t link = step(walk, head, at_end);
    while (walk->skip && link && !*at_end) {
        walk->skip--;
        link = step(walk, head, at_end);
    }
    if (walk->seen >= most)
        *at_end = true;
    if (*at_end)
        *walk = (struct list_walk){0};
    else if (!link)
        lists_resume(walk);
    return link;
}

/* ---- which there are ---- */

static struct task_list lists[LISTS_MAX];
static unsigned used;

/* The heads of all lists, one after the other. */
struct search {
    uintptr_t tstate; /* of the next one, */
    unsigned hops;    /* which is so far from the main thread's; */
    bool was_last;    /* the interpreter's own was told of */
};

static uintptr_t next_head(struct search *search)
{
    const struct py_layout *l = &agent.layout;
    unsigned bad = 0;
    uintptr_t tstate = search->tstate;
    if (tstate && search->hops++ < HOPS_MAX) {
        search->tstate = guard_ptr(tstate + (uintptr_t)l->ts_prev, &bad);
        search->tstate = bad ? 0 : search->tstate;
        return tstate + (uintptr_t)l->futures.ts_tasks;
    }
    uintptr_t head = search->was_last ? 0 : registry.tasks_left;
    search->was_last = true;
    return head;
}

/* The first link; 0: there is none. */
static uintptr_t first_link(uintptr_t head)
{
    unsigned bad = 0;
    uintptr_t link = guard_ptr(head, &bad);
    return bad || link == head ? 0 : link;
}

/* True: it is new. */
static bool found(uintptr_t head)
{
    unsigned i = 0;
    while (i < used && lists[i].head != head)
        i++;
    if (i == LISTS_MAX)
        return false;
    bool is_new = i == used;
    if (is_new)
        lists[used++] = (struct task_list){.head = head};
    lists[i].is_there = true;
    return is_new;
}

bool lists_find(void)
{
    struct search search = {.tstate = agent.main_tstate};
    bool is_changed = false;
    for (uintptr_t head; (head = next_head(&search));)
        if (first_link(head))
            is_changed |= found(head);
    unsigned kept = 0;
    for (unsigned i = 0; i < used; i++) {
        if (!lists[i].is_there)
            continue;
        lists[i].is_there = false;
        lists[kept++] = lists[i];
    }
    is_changed |= kept < used;
    used = kept;
    return is_changed;
}

void lists_forget(void)
{
    used = 0;
}

unsigned lists_used(void)
{
    return used;
}

struct task_list *lists_at(unsigned index)
{
    return &lists[index];
}

uintptr_t lists_first(void)
{
    bool is_alone = agent.layout.free_threaded;
    struct search search = {.tstate = is_alone ? 0 : agent.main_tstate, .was_last = is_alone};
    uintptr_t head = (uintptr_t)agent.current_tstate() + (uintptr_t)agent.layout.futures.ts_tasks;
    uintptr_t link = first_link(head);
    while (!link && (head = next_head(&search)))
        link = first_link(head);
    return link ? link - (uintptr_t)agent.layout.futures.node : 0;
}

/* ---- one of them ---- */

void lists_begin(struct task_list *list, uint32_t number)
{
    unsigned stride = 1;
    while (stride < STRIDE_MAX && list->length / stride > STRIDE_LINKS)
        stride *= 2;
    list->visiting = (struct list_walk){0};
    list->stride = stride;
    list->offset = number % stride;
    list->walks = list->failures = 0;
    list->is_split = false;
}

void lists_go_on(struct task_list *list)
{
    list->is_split = list->visiting.seen || list->visiting.skip;
    lists_resume(&list->visiting);
}

/* The walk has come to its end, after so many links: another one, of other links? */
static bool begin_walk(struct task_list *list, uint64_t links)
{
    if (!list->is_split)
        list->length = links;
    list->is_split = false;
    list->offset = (list->offset + STRIDE_STEP) % list->stride;
    return ++list->walks < list->stride;
}

/* Is it the turn of the link with this index, in this walk?  In a stretch of so many links that of
 * one is, in the next one that of another: tasks may have been made by turns, too. */
static bool is_due(const struct task_list *list, uint64_t index)
{
    uint32_t scattered = (uint32_t)(index / list->stride) * 2654435761u >> 16;
    return index % list->stride == (list->offset + scattered) % list->stride;
}

uintptr_t lists_visit(struct task_list *list, bool *at_end, bool *is_torn)
{
    uintptr_t link;
    bool is_wanted;
    do {
        const uint64_t most = 2 * list->length + MORE, before = list->visiting.seen;
        bool at_end_of_walk;
        is_wanted = is_due(list, before);
        link = lists_next(&list->visiting, list->head, most, &at_end_of_walk);
        *is_torn = !link && !at_end_of_walk;
        list->is_split |= *is_torn || before + 1 >= most;
        *at_end = at_end_of_walk && !begin_walk(list, before + (link != 0));
        list->failures = *is_torn ? list->failures + 1 : 0;
    } while (!is_wanted && !*at_end && !*is_torn);
    if (list->failures == FAILURES_MAX)
        *at_end = true;
    return is_wanted ? link : 0;
}

bool lists_count(struct task_list *list, uint64_t deadline_ns, uint64_t new_deadline_ns)
{
    struct list_walk *walk = &list->counting;
    const uint64_t most = LINKS_MORE + 4 * list->length;
    bool at_end;
    lists_resume(walk);
    for (;;) {
        uint64_t before = walk->seen;
        uintptr_t link = lists_next(walk, list->head, most, &at_end);
        if (at_end && before + 1 < most) {
            list->length = before + (link != 0);
            return true;
        }
        bool is_new = walk->seen > list->length;
        if (!link || at_end ||
            (walk->seen % LINKS_A_CLOCK == 0 &&
             os_mono_ns() > (is_new ? new_deadline_ns : deadline_ns)))
            return false;
    }
}
