/*
 * When small Python objects are looked at (objects.h): always, or in windows.
 *
 * Our functions in front of CPython's allocator cost a little on every call.  In
 * a program that makes millions of objects a second and keeps few of them they
 * are therefore taken out, and put back for a few milliseconds at a time (a
 * window).  If windows are a third of the time, an object seen in one stands for
 * three.
 *
 * There are no windows at a program's start, while it allocates less often, and
 * while it keeps what it allocates: then everything is looked at.
 */
#ifndef AGENT_MEMORY_DUTY_H
#define AGENT_MEMORY_DUTY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* For how many an object that is seen now stands; 1: everything is looked at. */
extern _Atomic uint32_t duty_factor;

/* Which window this is, or will be next. */
extern _Atomic uint32_t duty_window;

/* While we looked, `objects` small ones of `bytes` together were allocated.  Any thread. */
void duty_count(uint64_t objects, uint64_t bytes);

enum { DUTY_FUNCTIONS = 3 /* of an allocator: malloc, calloc, realloc */ };

/* How much of small ones went by while we did not look, up to now, estimated.  Any thread. */
uint64_t duty_missed_bytes(uint64_t now_mono_ns);

/* One of these functions: ours, CPython's own, and the word of the interpreter that holds one of
 * the two: a window is opened and closed by storing there. */
struct duty_word {
    uintptr_t ours, original;
    _Atomic uintptr_t *place;
};

/* Our functions are in front now; `place` is looked for here.  `inside` is an address in the
 * interpreter's code. */
void duty_init(uintptr_t inside, const struct duty_word *words, size_t count);

/* In a forked child. */
void duty_in_child(void);

/* The sampler thread's pause between two passes, in which windows are opened and closed.  To wake
 * up for that costs more than most passes: a longer pause has not more of them, but longer ones. */
void duty_sleep(uint64_t sleep_ns);

#endif
