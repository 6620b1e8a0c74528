#include "agent/async/lists.h"

#include "os/guard.h"
#include "os/os.h"

enum { PREVIOUS = 8 /* in a link, behind `next` */, LINKS_A_CLOCK = 64, LINKS_MAX = 1 << 24 };

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

bool lists_count(struct list_walk *walk, uintptr_t head, uint64_t deadline_ns, uint64_t *length)
{
    bool at_end;
    lists_resume(walk);
    for (;;) {
        uint64_t before = walk->seen;
        uintptr_t link = lists_next(walk, head, LINKS_MAX, &at_end);
        if (at_end) {
            *length = before + (link != 0);
            return true;
        }
        if (!link || (walk->seen % LINKS_A_CLOCK == 0 && os_mono_ns() > deadline_ns))
            return false;
    }
}
