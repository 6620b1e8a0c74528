/*
 * Objects that the garbage collector of CPython follows, where that has no function to visit them:
 * before 3.12.  They are in three lists, one a generation, and a link stands in front of each.
 */
#ifndef PY_TRACKED_H
#define PY_TRACKED_H

#include <stdint.h>

/* With the GIL, which `visit` keeps, making and ending no object.  `newest` was made just now. Ends
 * when visit gives 0. */
void tracked_visit(uintptr_t newest, int (*visit)(void *object, void *data), void *data);

#endif
