/*
 * Looks at which pages of the followed mappings are resident, and what follows from it
 * for the table of pieces (mapped.h) and the records.  For resident.c alone.
 *
 * A look goes through the table in steps.  The system is asked without the lock; its
 * answer counts for pieces that the program has left alone meanwhile.
 */
#ifndef AGENT_MEMORY_LOOKS_H
#define AGENT_MEMORY_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is to be looked at. */
enum looks_which {
    LOOKS_STALE, /* what may have become less */
    LOOKS_GROWN, /* what may have become more */
    LOOKS_FULL,  /* what is resident in full: if some went, we were not told */
};

struct looks {
    enum looks_which which;
    bool is_brief;         /* of what was untouched so far, as long as something is found in it */
    bool is_baseline;      /* what is found is nobody's */
    bool has_lock;         /* and keeps it; else it is taken for each step */
    uint64_t until_cpu_ns; /* by the calling thread's clock; 0: as long as it takes */
    unsigned char *pages;  /* for the system's answer: at least MAPPED_STEP_BYTES' worth */
    size_t page_count;
};

extern size_t looks_page_bytes;      /* to be set before anything is mapped */
extern _Atomic uint64_t looks_clock; /* mapped_clock when the last complete look began */

/* From *at on, which is moved, up to `to`, in so many steps at most.  False: it is not done,
 * because time is up or the lock was not to be had. */
bool looks_through(const struct looks *look, uintptr_t *at, uintptr_t to, unsigned steps);
/* Is there anything to look at?  Under the lock. */
bool looks_any(const struct looks *look, uintptr_t from, uintptr_t to);

#endif
