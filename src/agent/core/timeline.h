/*
 * The timeline: what each thread did when, in the arena's log (struct wire_log).
 * Samples in a row with the same stack are one entry; when the log is nearly full,
 * every other entry goes and only every other sample is written from then on.
 */
#ifndef AGENT_CORE_TIMELINE_H
#define AGENT_CORE_TIMELINE_H

#include "wire/arena.h"

#include <stdbool.h>

/* Where a writer stands: its last entry may be continued. */
struct timeline_cursor {
    uint32_t id, epoch, skip;
};

/* One more sample of the thread with this record id.  From the handler, and from the sampler for
 * waits; each has its own cursor. */
void timeline_add(struct timeline_cursor *cursor, uint16_t thread, uint32_t node,
                  enum wire_kind kind, uint64_t at_mono_ns, uint64_t ns);

/* Make room if it is needed.  Sampler thread only. */
void timeline_compact(void);

void timeline_in_child(bool is_recorded); /* see forks.h */

#endif
