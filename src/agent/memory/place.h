/*
 * Who allocates: the calling thread's stack as a node, the library by the
 * return address, and the site made of both.  For memory.c alone.
 */
#ifndef AGENT_MEMORY_PLACE_H
#define AGENT_MEMORY_PLACE_H

#include "wire/arena.h"

#include <stdbool.h>

bool place_init(void);
void place_reset(void);  /* in a forked child: empty, over the new arena */
void place_expire(void); /* stacks remembered are looked up anew from now on */

/* The calling thread's stack, and what that cost: as many frames as it has, more if others' were
 * looked at.  Without the lock; 0: no room. */
uint32_t place_node(uint32_t *frames);

/* Has the program ended, so that the interpreter frees what was left? */
bool place_has_ended(void);

/* Under the lock.  A kind other than WIRE_SITE_NATIVE is kept; NATIVE becomes PYTHON when the
 * caller is the interpreter.  0: no room. */
uint32_t place_site(uint32_t node, enum wire_site_kind kind, const void *caller);
void place_forget_modules(void);

#endif
