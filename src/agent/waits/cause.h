/*
 * What a blocked thread waits for: from its system call to a cause
 * (enum wire_kind from WIRE_WAIT_FIRST on).  Sampler thread only.
 */
#ifndef AGENT_WAITS_CAUSE_H
#define AGENT_WAITS_CAUSE_H

#include "os/os.h"
#include "wire/arena.h"

/* `tstate`: the thread's Python state, 0 if it has none. */
enum wire_kind cause_classify(const struct os_wait *wait, uintptr_t tstate);

/* Does the program wait for the outside world (I/O, sleep, child, event loop), rather than for
 * another of its own threads? */
bool cause_is_external(enum wire_kind kind);

#endif
