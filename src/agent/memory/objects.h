/*
 * Small Python objects, which CPython's own allocator keeps from malloc().  How
 * they are seen on a build without GIL is in wrapped.h; on all others:
 *
 * Its MEM and OBJ domains get functions of ours in front that count bytes down
 * and, for the one object in many that is a sample, ask for more than the 512
 * bytes that allocator serves: it then calls malloc() itself, where the object is
 * recorded (memory_promotion in memory.h), and free() when the object dies.
 * `free` stays CPython's own.  Nothing of its insides is touched, any debug hook
 * may be above or below, and our functions can be taken out at any moment
 * (duty.h).
 *
 * A small block that grows is moved in the same way if its growth is a sample.
 */
#ifndef AGENT_MEMORY_OBJECTS_H
#define AGENT_MEMORY_OBJECTS_H

#include <stdbool.h>

/* Before Python is initialised, so that a tracemalloc that starts with it comes above us. */
void objects_prepare(void);

/* At the program's start, with the GIL.  False: this interpreter's objects cannot be followed. */
bool objects_install(void);

#endif
