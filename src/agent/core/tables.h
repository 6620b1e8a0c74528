/*
 * The agent's lookup tables over the arena: code objects, call-tree nodes and
 * time cells, each found by content or added.  Lock-free, callable from signal
 * handlers of all threads at once: a record is written first and then published
 * by one compare-and-swap in a private index (not in the file: readers do not
 * need it).  Two threads may add the same thing at the same time; one of the
 * copies is then never found again, which costs a record and nothing else.
 */
#ifndef AGENT_CORE_TABLES_H
#define AGENT_CORE_TABLES_H

#include "agent/core/arena.h"
#include "py/code.h"
#include "py/frames.h"
#include "wire/control.h"

struct tables {
    struct arena *arena;
    const struct wire_filter *filter;        /* which files are traced; NULL: none */
    _Atomic uint32_t *codes, *nodes, *cells; /* open addressing; entries are record ids */
    void *memory;
};

bool tables_init(struct tables *tables, struct arena *arena);
void tables_reset(struct tables *tables); /* empty, over a new arena */

/* Ids, or 0 when there is no room. */
uint32_t tables_code(struct tables *tables, const struct py_layout *layout, uintptr_t code);
/* Is it the function, or method, of this name in a file whose name ends so? */
bool tables_code_is(const struct tables *tables, const struct wire_code *code, const char *name,
                    const char *file_end);
uint32_t tables_node(struct tables *tables, uint32_t parent, enum wire_frame frame, uint32_t ref,
                     int32_t at, uint16_t flags);

/*
 * A whole stack (frames innermost first) below the node `root`, 0: none.  When the node table is
 * nearly full, recursion is folded: a frame that is already on the path ends the loop there; when
 * even that fills it, only the innermost frames are kept.  0: no room.
 */
uint32_t tables_stack(struct tables *tables, const struct py_layout *layout, uint32_t root,
                      const struct py_frame *frames, const struct py_walk *walk);

/* The node itself, or the innermost one above it, that is of a traced file; 0: none. */
uint32_t tables_traced(const struct tables *tables, uint32_t node);

bool tables_add(struct tables *tables, uint32_t node, enum wire_kind kind, uint64_t ns,
                uint64_t charged_ns);

#endif
