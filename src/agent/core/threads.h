/*
 * The threads of the process: an entry (struct thread) for each, with its CPU
 * timer and what the handler and the sampler remember of it.
 *
 * While `state` is THREAD_LIVE the entry belongs to a running thread.  Fields
 * marked (own) are touched by that thread alone (mostly in its handler), those
 * under (sampler) by the sampler thread alone; the rest is set before the entry
 * goes live.  Entries of ended threads are used again.
 *
 * Threads are found by interposing pthread_create; the program's first thread
 * is registered by start.c.  A thread's end is seen by a key destructor.
 */
#ifndef AGENT_CORE_THREADS_H
#define AGENT_CORE_THREADS_H

#include "agent/core/timeline.h"
#include "py/frames.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A stack of an allocation that was looked up a moment ago (place.c). */
struct known_stack {
    uint64_t hash;
    uint32_t node, epoch;
};

enum { THREADS_MAX = 4096, KNOWN_STACKS = 64 };
enum thread_state { THREAD_FREE, THREAD_TAKEN, THREAD_LIVE, THREAD_ENDED };

struct thread {
    _Atomic uint32_t state;  /* enum thread_state */
    _Atomic uint32_t serial; /* another one for each thread that has the entry */
    pid_t tid;
    pthread_t ident;
    int timer;
    _Atomic bool has_timer;
    bool is_main;
    bool blocks_signal; /* inherited: the timers' signal is to look blocked (signals.h) */
    uint16_t record;    /* id in the arena's thread section, 0: none */
    void *(*start)(void *);
    void *start_argument;
    uint32_t birth_node;          /* owner.h: the traced line that started it, 0: none */
    const struct thread *starter; /* the thread it was started for, NULL: none */
    uint32_t starter_serial;
    uint16_t family; /* kin.h */

    uint64_t begin_cpu_ns, begin_wall_ns;
    uint64_t end_cpu_ns, end_wall_ns; /* set before it is THREAD_ENDED */
    uint64_t last_cpu_ns;             /* (own) clock at the last sample */
    uint32_t random;                  /* (own) */
    struct timeline_cursor log;       /* (own) */
    _Atomic uintptr_t tstate;         /* last seen Python thread state */
    uint8_t last_kind;                /* (own) enum wire_kind of the last CPU sample */
    _Atomic uint32_t last_node;       /* last CPU sample */
    bool has_no_line;                 /* (own) at its last sample no frame was traced */
    _Atomic uint64_t place;           /* owner.h: what it does now */
    struct loop *loop;                /* (own) async/loops.h: its event loop, NULL: none */
    int poll_fd;                      /* (own) what it polled last, -1: nothing yet */
    uint32_t polls;                   /* (own) how often it polled */
    bool is_asked_again;              /* (own) its loop had nothing yet to check the layout with */
    uint32_t epolls_made, epolls_met; /* (own) loops that may have begun, that were asked for */
    uint64_t asked_ns;                /* (own) when it was */

    /* (sampler) */
    uint32_t seen_serial;
    uint64_t pass_cpu_ns, pass_wall_ns; /* clocks at the last pass */
    uint64_t valid_cpu_ns;              /* clock when wait_node was read: still true if unchanged */
    uint32_t wait_node, wait_kind;
    uint32_t seen_joined;                    /* claims_joined() when that was read */
    uint64_t starved_ns;                     /* the kernel's total at the last pass, */
    uint64_t ahead_ns;                       /* and what is on the books, but not in it */
    uint64_t switches;                       /* os_thread_switches() when last looked at */
    uint64_t pending_ns, pending_charged_ns; /* waits not yet placed */
    uint64_t wait_ns, starve_ns, charge_ns;  /* of this pass */
    bool runnable;                           /* of this pass: ready to run, or running */
    bool placed;                             /* of this pass: wait_node and wait_kind are true */
    bool stood;                              /* of this pass: it has not run since the last look */
    uint8_t rank;                            /* of this pass: enum wire_rank */
    bool is_outside;                         /* what wait_node waits for */
    uint32_t before_node, before_kind;       /* where it waited at the last pass, 0: it ran */
    uint64_t waited_ns;                      /* in all */
    struct timeline_cursor wait_log;
    int syscall_fd, delay_fd;

    struct py_frame frames[PY_FRAMES_MAX]; /* (own) */

    /* (own) of calls that we stand in front of, which the handler may interrupt */
    struct known_stack known_stacks[KNOWN_STACKS];
    struct py_frame memory_frames[PY_FRAMES_MAX];
    bool allocates_for_others; /* at its last allocation no frame was traced */
    uint32_t starter_line;     /* owner.h: that its starter waited for when last seen, 0: none */
    uint64_t starter_cpu_ns;   /* the starter's clock then */

    unsigned index; /* of the entry, for threads_at() */
};

/* The calling thread's entry; NULL in threads we do not know. */
struct thread *threads_self(void);
struct thread *threads_at(unsigned index);
unsigned threads_used(void); /* entries 0 .. used-1 have ever been taken */

bool threads_init(void);
void threads_add_main(void);              /* register the calling thread as the program's first */
void threads_free(struct thread *thread); /* the entry of an ended one */
void threads_stop(void);                  /* no thread is sampled any more; from any thread */
/* In a forked child (forks.h): forget all; the calling thread is the main one now. */
void threads_in_child(bool is_recorded);
uint64_t threads_next_interval_ns(struct thread *thread);

#endif
