/*
 * When small Python objects are looked at (objects.h).
 *
 * The functions in front of CPython's allocator cost a little on every call.  A
 * program that allocates very often and keeps little of it is therefore looked at
 * for a part of the time only, in short windows; what is seen there counts as often
 * more.  At its start, when it allocates less often, and when it
 * keeps what it allocates, a program is looked at all the time.
 */
#ifndef AGENT_MEMORY_DUTY_H
#define AGENT_MEMORY_DUTY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* How much more than itself what is seen now stands for. */
extern _Atomic uint32_t duty_factor;

/* So many small objects, of so many bytes, were allocated while we looked.  Any thread. */
void duty_count(uint64_t objects, uint64_t bytes);

enum { DUTY_FUNCTIONS = 3 /* of an allocator: malloc, calloc, realloc */ };

/* One of the functions: ours, whose place it takes, and where the interpreter keeps it. */
struct duty_word {
    uintptr_t ours, original;
    _Atomic uintptr_t *place;
};

/* Ours are in front.  `inside` is an address in the interpreter's code. */
void duty_init(uintptr_t inside, const struct duty_word *words, size_t count);

/* In a forked child. */
void duty_in_child(void);

/* The sampler thread's pause between two passes, in which windows are opened and closed. */
void duty_sleep(uint64_t sleep_ns);

#endif
