/* Call opcodes of each CPython: which byte codes call something, and what. */
#ifndef PY_OPCODES_H
#define PY_OPCODES_H

#include <stdint.h>

/* 256 entries of enum py_call (layout.h). */
extern const uint8_t opcodes_3_8[256], opcodes_3_11[256], opcodes_3_12[256], opcodes_3_13[256],
    opcodes_3_14[256], opcodes_3_15[256];

#endif
