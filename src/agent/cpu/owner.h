/*
 * On whose behalf does a thread run that has no line of the user's on its stack:
 * the threads of a BLAS or of polars, the Python threads of a library's pool?
 *
 *   1. For the line of its starter (the thread that created it, or for which it was
 *      created) if that waits now: most likely for this.
 *   2. A thread without Python code: for a line that is inside a native call now, its
 *      starter's first.  Never for one that waits on a Python lock: it waits for
 *      Python code.
 *   3. For the line that started it.
 *
 * Where a thread is now, is known from its last sample or from the sampler's last
 * look, and true until the next one.
 */
#ifndef AGENT_CPU_OWNER_H
#define AGENT_CPU_OWNER_H

#include "agent/core/threads.h"

/* What a thread does, as seen a moment ago. */
enum owner_state {
    OWNER_RUNS,         /* Python code, or would if it had the interpreter: nobody works for it */
    OWNER_IN_NATIVE,    /* a native call: native threads may work for it */
    OWNER_NATIVE_WAITS, /* in a native call, for something in there: all may */
    OWNER_WAITS,        /* for anything else: Python threads may */
};

/* `thread` was seen with this stack.  From the thread's own handler, or from the sampler. */
void owner_see(struct thread *thread, uint32_t node, enum owner_state state);

/* Of a thread with Python code but no traced frame: the traced node it works for; 0: nobody's. */
uint32_t owner_of_python(const struct thread *thread);

/* Of a thread without Python code: the stack to charge. */
uint32_t owner_of_native(const struct thread *thread);

/*
 * As owner_of_python(), for an allocation, which may be large and over in a moment: where the
 * starter is, is looked at now if it ran since this thread last did so.  Adds to `frames` what
 * that cost, as if it were frames of a stack.  By the thread itself, outside of its handler;
 * `thread->memory_frames` is overwritten.
 */
uint32_t owner_of_allocation(struct thread *thread, uint32_t *frames);

/* Where frames hang that work for `owner`; 0 for 0. */
uint32_t owner_root(uint32_t owner);

/* In the thread that creates `thread`: remember who it is and where it does so. */
void owner_begin(struct thread *thread);

void owner_in_child(bool is_recorded); /* see forks.h */

#endif
