/*
 * Reading a greenlet (of the package of that name, from 2.0 on) from another thread, without the
 * GIL.  The object points to its state, which is private to the package: where things are in it is
 * found out from two greenlets whose contents are known (greenlet_fit).
 *
 * A suspended greenlet keeps its innermost frame, and the part of the C stack that others have
 * overwritten is in a copy: some frames of the interpreter's may stand there.
 */
#ifndef PY_GREENLET_H
#define PY_GREENLET_H

#include "py/frames.h"

struct py_greenlets {
    uintptr_t frame_type;
    int32_t state;       /* in the object: where its state is; in that: */
    int32_t frame;       /* the frame object, 0 unless it is suspended */
    int32_t stack;       /* what of the stack is in a copy */
    int32_t main_object; /* the main greenlet of its thread; the main one itself does not have it */
};

struct py_greenlet {
    uintptr_t frame;       /* 0: it runs, has ended or has not begun */
    uintptr_t main_object; /* of no meaning if it has no frame, or is a main one itself */
    struct py_moved stack;
};

/* Find out where things are.  `main_object` is a suspended main greenlet; `hub` is another one of
 * its thread that has begun, with this parent.  False: they are not as they were known to be. */
bool greenlet_fit(const struct py_layout *layout, uintptr_t main_object, uintptr_t hub,
                  uintptr_t parent, struct py_greenlets *at);

/* False: it is no greenlet. */
bool greenlet_read(const struct py_layout *layout, const struct py_greenlets *at,
                   uintptr_t greenlet, struct py_greenlet *out);

#endif
