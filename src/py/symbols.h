/*
 * Addresses and sizes of functions of a loaded module by name, also of those it
 * does not export (from the file's .symtab, when it was not stripped); and its sections.
 */
#ifndef PY_SYMBOLS_H
#define PY_SYMBOLS_H

#include "py/classify.h"

/*
 * Fill found[i] for each name that is known; the others stay as they are.
 * `inside` is any address in the module's code.  Reads the module's file: not
 * from a handler.
 */
void symbols_find(uintptr_t inside, const char *const *names, struct py_range *found, size_t count);

/* Where a section of the module is in memory, of at least one byte; NULL: it has none.  As above.
 */
const void *symbols_section(uintptr_t inside, const char *name, size_t *bytes);

#endif
