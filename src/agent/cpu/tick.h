/* The CPU sample: what happens in a thread when its timer fires. */
#ifndef AGENT_CPU_TICK_H
#define AGENT_CPU_TICK_H

#include "agent/core/threads.h"
#include "wire/arena.h"

/* In the signal handler of the thread's own thread.  Leaves errno alone. */
void tick_sample(struct thread *thread, const void *ucontext);

/* Does what was read by the layout look like a stack?  Until it first does, nothing is believed;
 * when it does not, no stack is read any more. */
bool tick_layout_fits(uintptr_t tstate, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk);

/* A Python thread was seen in native code (or back in Python): CPU of threads without Python code
 * is charged to the line that is in native code at the moment. */
void tick_native_owner(const struct thread *thread, uint32_t node, bool in_native);

void tick_in_child(bool is_recorded); /* see forks.h */

#endif
