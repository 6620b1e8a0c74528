/*
 * Reading tasks of event loops from another thread, without the GIL: what state a
 * task is in, and the chain of coroutines in which each awaits the next.
 *
 * Every load is guarded and every object's type is looked at, so garbage gives a task that is
 * rejected, never a fault.  What was read of a task that changed meanwhile may be
 * a mixture of before and after: the caller reads it again and compares.
 */
#ifndef PY_TASKS_H
#define PY_TASKS_H

#include "py/frames.h"

/* The types that tell what an object is; 0: there is none of that name in this Python. */
struct py_task_types {
    uintptr_t code, coroutine, generator, async_generator;
    uintptr_t integer, text, none;
    uintptr_t task, future, gathering; /* asyncio's; gathering: the future that gather() returns */
};

enum py_task_state {
    PY_TASK_ENDED,
    PY_TASK_READY,
    PY_TASK_WAITS,          /* for something that is no task */
    PY_TASK_WAITS_FOR_TASK, /* or several */
};

/* Tasks of trio are objects of Python's own, with these slots. */
struct py_slots {
    uintptr_t type;
    int32_t coroutine, abort,
        name; /* abort: how to end what it waits for; None: it does not wait */
};

struct py_task {
    enum py_task_state state;
    uintptr_t loop;
    uintptr_t waiter;    /* what it waits for, 0: nothing; of trio's: abort */
    uintptr_t coroutine; /* its outermost */
};

/* Is the object of this type, or of one derived from it? */
bool tasks_is_a(const struct py_layout *layout, uintptr_t object, uintptr_t type);
/* The size that a type gives its objects, and its name (an address of characters); 0: unreadable.
 */
uintptr_t tasks_type_bytes(const struct py_layout *layout, uintptr_t type);
uintptr_t tasks_type_name(const struct py_layout *layout, uintptr_t type);
/* Where a type has its functions that make an object and that end one. */
enum py_type_slot { PY_TYPE_DEALLOC = 24, PY_TYPE_NEW = 288 };
uintptr_t tasks_type_slot(const struct py_layout *layout, uintptr_t type, enum py_type_slot slot);
/* An address of the code that made the type. */
uintptr_t tasks_type_code(const struct py_layout *layout, uintptr_t type);

/*
 * Where futures keep what we read, by the description that asyncio carries from 3.14 on
 * (its section .AsyncioDebug, of which `description` is the address).  False: it makes no sense.
 */
bool tasks_describe(struct py_layout *layout, const uint64_t *description, size_t bytes);

/* False: it is no task, or changed while it was read. */
bool tasks_read(const struct py_layout *layout, const struct py_task_types *types, uintptr_t task,
                struct py_task *out);

bool tasks_read_slots(const struct py_layout *layout, const struct py_task_types *types,
                      const struct py_slots *slots, uintptr_t task, struct py_task *out);

/*
 * The chain that begins with a coroutine, innermost frame first as frames_walk() gives it, but 64
 * at most.  False: it cannot be read, or is no coroutine of Python's.  *runs: one of its frames is
 * being executed; *has_begun: not so before its first step.
 */
bool tasks_chain(const struct py_layout *layout, const struct py_task_types *types,
                 uintptr_t coroutine, struct py_frame *frames, struct py_walk *walk, bool *runs,
                 bool *has_begun);
/* What a suspended coroutine awaits, 0: nothing that can be read. */
uintptr_t tasks_awaited(const struct py_layout *layout, const struct py_task_types *types,
                        uintptr_t coroutine);

/* A task's name: the object if it is text, or the number of "Task-N".  False: neither. */
bool tasks_name(const struct py_layout *layout, const struct py_task_types *types, uintptr_t name,
                uintptr_t *text, uint64_t *number);

/* The table of a set object: entries of two words, of which the first is the key; their number less
 * one; how many are in use. */
struct py_set {
    uintptr_t table;
    uint64_t mask, used;
};
bool tasks_set(const struct py_layout *layout, uintptr_t set, struct py_set *out);
/* The key of an entry, or with `is_weak` what the key, a weak reference, refers to; 0: none. */
uintptr_t tasks_set_key(const struct py_layout *layout, const struct py_set *set, uint64_t index,
                        bool is_weak);

#endif
