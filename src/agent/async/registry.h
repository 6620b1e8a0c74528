/*
 * What the interpreter itself has to tell of event loops: which one runs in a thread,
 * where its tasks are, which types they have.  Asked once a loop, in the loop's own thread, just
 * before it waits for the first time: there it has given the GIL up and may have it back
 * for some microseconds, as it would a moment later anyway.  Nothing here runs Python code.
 *
 * Afterwards tasks are read without the GIL (py/tasks.h).
 */
#ifndef AGENT_ASYNC_REGISTRY_H
#define AGENT_ASYNC_REGISTRY_H

#include "py/greenlet.h"
#include "py/tasks.h"

#include <stdatomic.h>

enum registry_kind { REGISTRY_NO_LOOP, REGISTRY_ASYNCIO, REGISTRY_TRIO, REGISTRY_GEVENT };

struct registry_loop {
    enum registry_kind kind;
    uintptr_t object; /* asyncio's loop, or gevent's main greenlet, to which its tasks point */
    uintptr_t tasks;  /* trio's: the set of its tasks; gevent's: the hub, which is no task */
};

/* Valid once registry_ready(). */
struct registry {
    struct py_task_types types;
    uintptr_t tasks;      /* asyncio: a set of weak references; 0: a list for each thread, */
    uintptr_t tasks_left; /* and this one of threads that have ended */
    struct py_slots trio;
    struct py_greenlets greenlets;
};
extern struct registry registry;

/* Look up the functions to ask with.  In the constructor. */
void registry_init(void);

/* Of the calling thread, which has no GIL or has it.  Also makes the registry ready as soon as
 * there is a task to check it with. */
struct registry_loop registry_ask(void);

/* May tasks of this kind be read? */
bool registry_ready(enum registry_kind kind);

void registry_in_child(void); /* with loops_in_child() */

#endif
