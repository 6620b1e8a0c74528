/* The name that somebody meant who mistyped it, for "did you mean". */
#ifndef CMD_NEAREST_H
#define CMD_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *typed; /* not NUL-terminated */
    size_t length;
    const char *best; /* NULL: nothing is near enough */
    size_t distance;
};

/* Changes (a letter more, less or other) up to which a name is near: one in three letters. */
void nearest_init(struct nearest *nearest, const char *typed, size_t length);
void nearest_offer(struct nearest *nearest, const char *name); /* kept by reference */

#endif
