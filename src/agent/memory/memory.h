/*
 * The recorder of memory: which allocations are samples, and what becomes of
 * them.  The hooks (heap.c, objects.c, wrapped.c, copies.c, mappings.c) count bytes down
 * and come here when a count runs out (gaps.h); sampled blocks are followed until they
 * are freed, so that live memory is known by stack at any time.
 *
 * Contexts.  All hooks run in the program's threads, anywhere a malloc can be:
 * nothing here allocates, waits for anything of the program's, or changes errno.
 * One spin lock protects the records; it is held for less than a microsecond.
 * While a thread is in here it is `busy`.  A signal handler that interrupts it and
 * allocates takes no sample, and what it frees is set aside until the lock is next
 * taken (deferred.h).
 */
#ifndef AGENT_MEMORY_MEMORY_H
#define AGENT_MEMORY_MEMORY_H

#include "wire/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes until the next sample, and what that will weigh. */
struct memory_gap {
    int64_t left_bytes; /* < 0: now */
    uint64_t weight_bytes;
    uint64_t given_bytes; /* all that ever was put into `left_bytes`: less that, it is what was
                             asked for (clock.h) */
    uint32_t factor;      /* duty_factor when it was drawn; 0: it always counts for itself */
};

/* A thread's clock (clock.h). */
struct memory_clock {
    uint64_t told_bytes;
    uint16_t id;
    bool is_known;
};

/*
 * A note from objects.c to our malloc().  A small Python object was chosen as a
 * sample and is asked for as a larger one, so that CPython's allocator passes the
 * request on to malloc(), which is to record it as this says.  So that malloc()
 * looks here at all, the heap's gap is set below zero for the time of the call.
 */
struct memory_promotion {
    bool is_due;
    bool is_growth;                     /* of a block that is being copied into this one */
    size_t size_bytes;                  /* what it is really for */
    uint64_t weight_bytes, from, count; /* weight 0: only a question whether it arrives */
    uint32_t hits, factor;
    int64_t heap_left_bytes;   /* to be put back */
    int64_t copies_left_bytes; /* as well */
    void *block;               /* where it is now; NULL: in no slot */
    const void *source;        /* growth: where it was, if copies from there tell */
    size_t copied_bytes;       /* growth: what was copied */
};
/* What is asked for, and with what CPython's debug hooks add to it, in front or at all. */
enum {
    MEMORY_HEAD_MAX = 64,
    MEMORY_PROMOTED_LEAST = 513,
    MEMORY_PROMOTED_MOST = MEMORY_PROMOTED_LEAST + MEMORY_HEAD_MAX,
};

struct memory_thread {
    struct memory_gap heap, objects, growth, copies;
    uint64_t random;
    struct memory_promotion promotion;
    struct memory_clock clock;
    uint32_t events; /* some of them are timed */
    bool busy;
    bool forking;
};

/* The calling thread's; constant-initialised, so that any malloc() of any thread may use it. */
extern __thread struct memory_thread memory_self __attribute__((tls_model("initial-exec")));

/* A block, or the part by which one grew, that is to be recorded. */
struct memory_sample {
    enum wire_site_kind kind;
    const void *caller;  /* return address of the allocating call */
    uint64_t bytes;      /* what it stands for */
    uint64_t from;       /* offset in the block */
    uint64_t count;      /* allocations it stands for */
    uint64_t size_bytes; /* of the whole block; 0: it ends where this does */
    uint32_t hits;       /* how often a gap ran out in it: `bytes` is so many equal weights */
    uint32_t factor;     /* it was seen in a window that stands for so many (duty.h); 0: always */
    bool exact;
};

/* Before Python is initialised / at the program's start, with the GIL. */
void memory_prepare(void);
void memory_start(void);
void memory_before_fork(void); /* see forks.h */
void memory_in_parent(void);
void memory_in_child(bool is_recorded);
/* Nothing is recorded from now on; sampled blocks are still recognised. */
void memory_stop(void);
/* The process is about to end, in whatever context. */
void memory_end(void);
/* Each pass of the sampler thread, which is marked by memory_disown() so that nothing it does is
 * recorded. */
void memory_disown(void);
void memory_pass(void);

/* May the calling thread record now? */
bool memory_is_ready(void);

/* A slot (blocks.h) for a small sample; NULL: none left. */
void *memory_take_slot(size_t size_bytes, size_t align_bytes);
void memory_give_slot(void *slot);

/* Records `sample` for the block, in addition to what it has.  After exact records the new one
 * begins exactly where they end. */
void memory_record(const void *block, struct memory_sample *sample);
/* A copy of so many bytes: nothing stays of it but the count. */
void memory_record_copy(const struct memory_sample *sample);
void memory_lost(void);

/* The block is about to be freed: forget it.  False: the caller must not free it now, that will be
 * done later (in signal handlers, or while the process forks). */
bool memory_forget(void *block);
/* The same of a block that is not malloc()'s: it may be given back whatever becomes of its records.
 */
void memory_forget_foreign(void *block);

/* Around a realloc: take the block's records / put them to where it is now, `size_bytes` large.
 * False: they cannot be taken now, the block must stay where it is until it is forgotten. */
bool memory_detach(const void *block, uint32_t *records);
void memory_attach(const void *block, uint32_t records, uint64_t size_bytes);

/* A library was unloaded: its addresses may soon be another's. */
void memory_forget_modules(void);

/* The recorder's lock, for resident.c.  False: not now, or nothing is recorded any more.  The
 * caller is not `busy`, or says that it is anyway. */
bool memory_lock(void);
void memory_unlock(void);
/* For checks: does the calling thread have the lock? */
bool memory_is_locked(void);

#endif
