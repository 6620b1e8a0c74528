/*
 * Who touches memory: the stacks that ran since the last look at what is resident
 * (resident.h), by CPU samples.  A library's allocator gets its pages one by one, and
 * the system tells nobody; what became resident between two looks is shared among
 * those who ran native code meanwhile, or else Python code, by how long they did.
 */
#ifndef AGENT_MEMORY_RUNNERS_H
#define AGENT_MEMORY_RUNNERS_H

#include <stdbool.h>
#include <stdint.h>

/* A CPU sample: this stack ran for so long.  From any context. */
void runners_ran(uint32_t node, bool is_native, uint64_t ns);
/* Has there been one since the last look? */
bool runners_are_new(void);

/* The rest under the recorder's lock.  A look begins: who ran since the last one?  If nobody did,
 * those of the last one stay. */
void runners_find(void);
/* Whose are so many bytes that were found?  A node, 0: nobody ran yet. */
uint32_t runners_choose(uint64_t bytes);
/* In a forked child: nodes are of another arena. */
void runners_forget(void);

#endif
