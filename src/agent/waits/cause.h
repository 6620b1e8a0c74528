/*
 * What a blocked thread waits for: from its system call to a cause
 * (enum wire_kind from WIRE_WAIT_FIRST on).  Sampler thread only, unless it says so.
 */
#ifndef AGENT_WAITS_CAUSE_H
#define AGENT_WAITS_CAUSE_H

#include "os/os.h"
#include "wire/arena.h"

struct cause {
    enum wire_kind kind;
    bool
        is_outside; /* it waits for the outside world: not for a thread or process of the session */
};

/* `tstate`: the thread's Python state, 0 if it has none. */
struct cause cause_find(const struct os_wait *wait, uintptr_t tstate, uint64_t now_ns);

/* Does the program wait for the outside world (I/O, sleep, child, event loop), rather than for
 * another of its own threads?  By the kind alone. */
bool cause_is_external(enum wire_kind kind);

/* Of a thread that waits for a lock: was it the interpreter that asked for it (a lock, event or
 * queue of Python's), and not a native library? */
bool cause_is_python_lock(const struct os_wait *wait);

/* Does it wait for its turn to run Python code?  From any thread. */
bool cause_is_turn(const struct os_wait *wait, uintptr_t tstate);

#endif
