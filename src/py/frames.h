/*
 * Walking the Python frames of a thread, from its thread state.
 *
 * Works in the thread's own signal handler (its frames do not change while the
 * handler runs) and from another thread (the sampler), which must check that
 * the thread did not run meanwhile.  Every load is guarded: garbage gives a
 * short or empty walk marked `bad`, never a fault.
 */
#ifndef PY_FRAMES_H
#define PY_FRAMES_H

#include "py/layout.h"
#include "wire/limits.h"

enum { PY_FRAMES_MAX = WIRE_FRAMES_MAX, PY_HOPS_MAX = 4096 };

struct py_frame {
    uintptr_t code; /* the code object */
    int32_t at;     /* byte offset of its current instruction, -1: at its start */
    bool direct;    /* entered by its caller's call instruction, not through C */
};

struct py_walk {
    uint32_t count;
    bool truncated; /* deeper than PY_FRAMES_MAX: the outermost frames are missing */
    bool bad;       /* the chain broke off: what was read up to there is kept */
    uint8_t leaf_opcode;
    uintptr_t root; /* address of the outermost frame, to recognise a chain that broke off */
};

/* Frames innermost first into `frames` (room for PY_FRAMES_MAX). */
void frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t tstate,
                 struct py_frame *frames, struct py_walk *walk);

/* Memory that was put elsewhere, such as the stack of a greenlet that another one has now; bytes 0:
 * none. */
struct py_moved {
    uintptr_t from, bytes, to;
};

/* The same from a frame object on, which is the innermost of a suspended stack. */
void frames_walk_suspended(const struct py_layout *layout, uintptr_t code_type,
                           uintptr_t frame_object, const struct py_moved *moved,
                           struct py_frame *frames, struct py_walk *walk);

/* One frame by its address; *now is its current instruction's, 0 if it has not begun.  False: it
 * cannot be read. */
bool frames_read(const struct py_layout *layout, uintptr_t code_type, uintptr_t frame,
                 struct py_frame *out, uintptr_t *now);

/* Is the thread in Python code at all?  In the thread itself. */
bool frames_any(const struct py_layout *layout, uintptr_t tstate);

/* The thread state of the thread `ident`, searched from `main_tstate`; 0 if there is none. */
uintptr_t frames_find_thread(const struct py_layout *layout, uintptr_t main_tstate,
                             uintptr_t ident);
bool frames_thread_is(const struct py_layout *layout, uintptr_t tstate, uintptr_t ident);

#endif
