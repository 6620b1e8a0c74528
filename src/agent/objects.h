/*
 * Small Python objects, which CPython's own allocator keeps from malloc().
 *
 * Its MEM and OBJ domains get functions of ours in front that count bytes down
 * and, for the one object in many that is a sample, ask for more than the 512
 * bytes that allocator serves: it then calls malloc() itself, where the object is
 * recorded (memory_promotion in memory.h), and free() when the object dies.
 * `free` stays CPython's own.  Nothing of its insides is touched, any debug hook
 * may be above or below, and our functions can be taken out at any moment.
 *
 * They cost a little on every allocation, so a program that allocates very much
 * is looked at in one of several short windows of time only, chosen by chance;
 * what is seen there stands for the others.
 */
#ifndef AGENT_OBJECTS_H
#define AGENT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* With the GIL.  False: this interpreter's objects cannot be followed. */
bool objects_install(void);

/* The sampler thread's pause between two passes, in which windows are opened and closed. */
void objects_sleep(uint64_t sleep_ns);

#endif
