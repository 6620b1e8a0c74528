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

/* One more sample for the timeline.  From the handler, and from the sampler for waits; each has
 * its own cursor. */
void tick_log(const struct thread *thread, struct log_cursor *cursor, uint32_t node,
              enum wire_kind kind, uint64_t at_mono_ns, uint64_t ns);

/* Halve the timeline when it is nearly full.  Sampler thread only. */
void tick_compact_log(void);

#endif
