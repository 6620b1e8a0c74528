/* How the agent comes to life: see start.c. */
#ifndef AGENT_CORE_START_H
#define AGENT_CORE_START_H

#include <stdbool.h>
#include <stdint.h>

/* A new arena for this process, from this moment on.  `flags`: of enum wire_header_flags.  Not from
 * a handler. */
bool start_arena(uint32_t flags);

#endif
