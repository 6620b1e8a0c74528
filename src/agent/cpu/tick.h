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

/* The process ends: charge what the calling thread used since its last sample. */
void tick_last(void);

#endif
