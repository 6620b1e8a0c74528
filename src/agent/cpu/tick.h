/* The CPU sample: what happens in a thread when its timer fires. */
#ifndef AGENT_CPU_TICK_H
#define AGENT_CPU_TICK_H

#include "agent/core/threads.h"
#include "wire/arena.h"

/* In that thread's own signal handler.  Leaves errno alone. */
void tick_sample(struct thread *thread, const void *ucontext);

/* Does what was read by the layout look like a stack?  Until it first does, nothing is believed;
 * when it does not, no stack is read any more. */
bool tick_layout_fits(uintptr_t tstate, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk);

/* A Python thread was seen in native code (or back in Python): CPU of threads without Python code
 * is charged to the line that is in native code at the moment. */
void tick_native_owner(const struct thread *thread, uint32_t node, bool in_native);

/* One more sample for the timeline.  From the handler, and from the sampler for waits; each has
 * its own cursor. */
void tick_log(const struct thread *thread, struct log_cursor *cursor, uint32_t node,
              enum wire_kind kind, uint64_t at_mono_ns, uint64_t ns);

/* Halve the timeline when it is nearly full.  Sampler thread only. */
void tick_compact_log(void);

#endif
