#include "py/tracked.h"

#include "os/guard.h"

enum {
    LINK_BYTES = 16, /* next, previous; their low bits are marks */
    LINK_PREVIOUS = 8,
    MARKS = 3,
    GENERATIONS = 3,
    GENERATION_BYTES = LINK_BYTES + 8,
};

static uintptr_t linked(uintptr_t at, unsigned *bad)
{
    return guard_ptr(at, bad) & ~(uintptr_t)MARKS;
}

void tracked_visit(uintptr_t newest, int (*visit)(void *object, void *data), void *data)
{
    unsigned bad = 0;
    uintptr_t youngest = linked(newest - LINK_BYTES, &bad); /* behind the last one is the head */
    for (int i = 0; i < GENERATIONS && youngest; i++) {
        uintptr_t head = youngest + (uintptr_t)i * GENERATION_BYTES, previous = head;
        for (uintptr_t link = linked(head, &bad); link != head; link = linked(link, &bad)) {
            if (bad || linked(link + LINK_PREVIOUS, &bad) != previous || bad ||
                !visit((void *)(link + LINK_BYTES), data))
                return;
            previous = link;
        }
    }
}
