/*
 * Reading code objects: what identifies one, and the parts that are copied into
 * the arena when it is first seen.  Guarded loads only; callable from a signal
 * handler.
 */
#ifndef PY_CODE_H
#define PY_CODE_H

#include "py/layout.h"

struct py_code {
    uintptr_t file, name, line_table; /* objects */
    int32_t first_line;
    uint32_t line_table_bytes;
    uint64_t fingerprint; /* of all of the above and the line table's first bytes */
};

/* Read what identifies the code object; false if it cannot be read. */
bool code_read(const struct py_layout *layout, uintptr_t code, struct py_code *out);

/* Length in bytes and bytes per character of a str object's text; its address in *data. */
bool code_text(const struct py_layout *layout, uintptr_t text, uintptr_t *data, uint32_t *bytes,
               uint8_t *width);

/* Does the object have this type? */
bool code_is_a(const struct py_layout *layout, uintptr_t object, uintptr_t type);

#endif
