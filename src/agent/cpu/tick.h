/* The CPU sample: what happens in a thread when its timer fires. */
#ifndef AGENT_CPU_TICK_H
#define AGENT_CPU_TICK_H

#include "agent/core/threads.h"
#include "wire/arena.h"

/* In that thread's own signal handler.  Leaves errno alone. */
void tick_sample(struct thread *thread, const void *ucontext);

/* The self-check of the layout, at the first stack that is read: does it look like one?  If it does
 * not, no stack is read any more in this process. */
bool tick_layout_fits(uintptr_t tstate, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk);

/* Remembers that a Python thread is in native code, or not any more.  CPU of threads without Python
 * code (BLAS pools) is charged to the line of the thread that is. */
void tick_native_owner(const struct thread *thread, uint32_t node, bool in_native);

void tick_in_child(bool is_recorded); /* see forks.h */

#endif
