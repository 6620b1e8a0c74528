/*
 * Event loops: which threads run one, and what it does.  A loop polls, is idle until
 * something happens, and is busy until it polls again.  The hooks in front of the poll
 * (hooks/polls.c) say when; that makes idle and busy time exact.  If it is busy for
 * WIRE_BLOCKED_LEAST_NS or more at a stretch, everybody else waits: it is blocked,
 * and the sampler finds out by which line.
 *
 * An entry belongs to one thread.  Fields marked (own) are written by that thread alone, those
 * under (sampler) by the sampler alone.
 */
#ifndef AGENT_ASYNC_LOOPS_H
#define AGENT_ASYNC_LOOPS_H

#include "agent/async/awaits.h"
#include "agent/async/registry.h"
#include "agent/core/threads.h"

enum { LOOPS_MAX = 128, LOOP_STRETCHES = 16 };

/* A time without poll that has ended. */
struct loop_stretch {
    uint64_t begin_ns, end_ns;
    uint32_t turn, node; /* node: where the thread was seen in it, 0: nowhere */
};

enum loop_state { LOOP_FREE, LOOP_TAKEN, LOOP_LIVE };

struct loop {
    _Atomic uint32_t state;      /* enum loop_state; not before it is LIVE the sampler's */
    const struct thread *thread; /* whose it is, */
    uint32_t serial;             /* and which of those that have the thread's entry */

    _Atomic uint32_t kind; /* (own) enum registry_kind; REGISTRY_NO_LOOP: it has ended */
    _Atomic uintptr_t object, tasks, tstate; /* (own) */
    _Atomic uint32_t base_code;              /* (own) this code on the stack means that it runs, */
    _Atomic int32_t base_at;                 /* (own) at this instruction; -1: at any */

    uint64_t began_ns;     /* (own) when it was first met */
    _Atomic uint32_t turn; /* (own) odd: in the poll.  Counts both its beginnings and its ends */
    _Atomic uint64_t moved_ns;         /* (own) when that was last changed; 0: never */
    _Atomic uint64_t idle_ns, busy_ns; /* (own) so far, without blocked and current time */
    _Atomic uint64_t seen;             /* (own) turn << 32 | node: where it was last seen at work */
    struct loop_stretch
        stretches[LOOP_STRETCHES];   /* (own) long ones, until the sampler took them */
    _Atomic uint32_t stretches_made; /* (own) */
    _Atomic uint64_t crowded_ns;     /* (own) of those that found no room there */

    /* (sampler) */
    _Atomic uint32_t stretches_taken;
    uint64_t blocked_ns;                                  /* so far */
    uint64_t told_idle_ns, told_busy_ns, told_blocked_ns; /* to the header, in microseconds */
    uint64_t told_crowded_ns;                             /* of crowded_ns, to blocked_ns */
    uint32_t open_turn; /* of the stretch that is being charged, */
    bool open_outside;  /* unless the loop did not run in it, */
    uint64_t open_ns;   /* up to this moment, */
    uint32_t open_node; /* last seen here; 0: nowhere yet */
    struct awaits_stretch open;
    uint64_t unplaced_ns, unplaced; /* of short stretches that nobody saw; how many of them */
    uint32_t suspended;             /* gevent's: greenlets when last looked at (visits.c), */
    bool was_polling;               /* none being left to run then */
};

void loops_init(void); /* in the constructor */

/* The calling thread is about to poll; NULL: it has no loop. */
struct loop *loops_enter(int epoll_fd);
void loops_leave(struct loop *loop); /* keeps errno */
void loops_made_epoll(void);         /* a loop may be new in the calling thread */

/* From the handler: the thread, which has a loop, is at this node now. */
void loops_see(struct thread *thread, uint32_t node);

/* (sampler) */
unsigned loops_used(void);     /* entries 0 .. used-1 may be taken; 0: there was never a loop */
uint64_t loops_first_ns(void); /* when the first of those there are was met */
struct loop *loops_at(unsigned index);
bool loops_is_running(const struct loop *loop);
void loops_pass(uint64_t now_ns);
void loops_skip(uint64_t now_ns); /* instead, while switched off */

void loops_in_child(bool is_recorded); /* see forks.h */

#endif
