#include "py/greenlet.h"

#include "os/guard.h"

#include <string.h>

enum {
    WORD = sizeof(uintptr_t),
    STATE_BEHIND = 2 * WORD, /* the head and these: weak references, a dictionary */
    STATE_WORDS = 48,        /* more than a state has */
    /* In front of the frame: where the stack begins and ends, its copy and how much of it, the next
     * one's; a context. */
    STACK_BEFORE = 6 * WORD,
    STACK_END = WORD,
    STACK_COPY = 2 * WORD,
    STACK_SAVED = 3 * WORD,
    PARENT_BEHIND = 2 * WORD, /* the main greenlet, what it is to run, its parent */
    SAVED_MAX = 1 << 30,
};

static uintptr_t word(uintptr_t at, int32_t offset, unsigned *bad)
{
    return guard_ptr(at + (uintptr_t)offset, bad);
}

bool greenlet_read(const struct py_layout *l, const struct py_greenlets *at, uintptr_t greenlet,
                   struct py_greenlet *out)
{
    unsigned bad = 0;
    uintptr_t state = word(greenlet, at->state, &bad);
    if (bad || !state)
        return false;
    *out = (struct py_greenlet){.frame = word(state, at->frame, &bad)};
    if (bad || !out->frame)
        return !bad;
    out->main_object = word(state, at->main_object, &bad);
    out->stack = (struct py_moved){
        .from = word(state, at->stack, &bad),
        .to = word(state, at->stack + STACK_COPY, &bad),
        .bytes = word(state, at->stack + STACK_SAVED, &bad),
    };
    if (!out->stack.to || out->stack.bytes > SAVED_MAX)
        out->stack.bytes = 0;
    return word(out->frame, l->ob_type, &bad) == at->frame_type && !bad;
}

/* The only frame object in a state, and in front of it a stack that has no end: that is how a main
 * greenlet has it. */
static bool find_frame(const struct py_layout *l, uintptr_t state, struct py_greenlets *at)
{
    for (int32_t offset = STACK_BEFORE; offset < STATE_WORDS * WORD; offset += WORD) {
        unsigned bad = 0, is_no_object = 0;
        uintptr_t frame = word(state, offset, &bad);
        if (bad)
            return false;
        if (!frame || word(frame, l->ob_type, &is_no_object) != at->frame_type || is_no_object)
            continue;
        at->frame = offset;
        at->stack = offset - STACK_BEFORE;
        uintptr_t saved = word(state, at->stack + STACK_SAVED, &bad);
        uintptr_t copy = word(state, at->stack + STACK_COPY, &bad);
        return word(state, at->stack, &bad) &&
               word(state, at->stack + STACK_END, &bad) == UINTPTR_MAX && saved < SAVED_MAX &&
               !copy == !saved && !bad;
    }
    return false;
}

static bool find_main(uintptr_t state, uintptr_t main_object, uintptr_t parent,
                      struct py_greenlets *at)
{
    unsigned bad = 0;
    uintptr_t begin = word(state, at->stack, &bad), end = word(state, at->stack + STACK_END, &bad);
    if (bad || (begin && begin >= end))
        return false;
    for (int32_t offset = at->frame + WORD; offset < STATE_WORDS * WORD; offset += WORD)
        if (word(state, offset, &bad) == main_object &&
            word(state, offset + PARENT_BEHIND, &bad) == parent && !bad) {
            at->main_object = offset;
            return true;
        }
    return false;
}

bool greenlet_fit(const struct py_layout *l, uintptr_t main_object, uintptr_t hub, uintptr_t parent,
                  struct py_greenlets *at)
{
    unsigned bad = 0;
    at->state = l->head_bytes + STATE_BEHIND;
    uintptr_t main_state = word(main_object, at->state, &bad);
    uintptr_t hub_state = word(hub, at->state, &bad);
    return !bad && main_state && hub_state && at->frame_type && find_frame(l, main_state, at) &&
           find_main(hub_state, main_object, parent, at);
}
