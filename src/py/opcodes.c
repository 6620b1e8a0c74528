#include "py/opcodes.h"

#include "py/layout.h"

#define ANY PY_CALL_ANY
#define C   PY_CALL_C
#define PY  PY_CALL_PYTHON

/* clang-format off */

/* 3.8 to 3.10: CALL_FUNCTION, CALL_FUNCTION_KW, CALL_FUNCTION_EX, CALL_METHOD. */
const uint8_t opcodes_3_8[256] = {
    [131] = ANY, [141] = ANY, [142] = ANY, [161] = ANY,
};

/*
 * 3.11 does the work of a C call inside PRECALL_*; PRECALL itself (166) and
 * PRECALL_ADAPTIVE (64) only prepare, CALL and CALL_ADAPTIVE call anything.
 */
const uint8_t opcodes_3_11[256] = {
    [22] = ANY,  [142] = ANY, [171] = ANY,             /* CALL_ADAPTIVE, _FUNCTION_EX, CALL */
    [23] = PY,   [24] = PY,   [65] = PY,   [143] = PY, /* CALL_PY_*, PRECALL_BOUND_METHOD, _PYFUNC */
    [66] = C,    [67] = C,    [72] = C,    [73] = C,   /* PRECALL_BUILTIN_CLASS ... */
    [76] = C,    [77] = C,    [78] = C,    [79] = C,   [80] = C,
    [81] = C,    [113] = C,   [121] = C,   [127] = C,  [141] = C,
};

const uint8_t opcodes_3_12[256] = {
    [142] = ANY, [171] = ANY, [241] = ANY, [244] = ANY, /* _FUNCTION_EX, CALL, INSTRUMENTED_* */
    [23] = PY,   [24] = PY,   [28] = PY,                /* CALL_PY_*, CALL_BOUND_METHOD_EXACT_ARGS */
    [29] = C,    [34] = C,    [38] = C,    [39] = C,    /* CALL_BUILTIN_CLASS ... */
    [40] = C,    [41] = C,    [42] = C,    [43] = C,    [44] = C,
    [45] = C,    [46] = C,    [47] = C,    [48] = C,    [56] = C,
};

const uint8_t opcodes_3_13[256] = {
    [53] = ANY,  [54] = ANY,  [57] = ANY,  [176] = ANY, [244] = ANY, [245] = ANY, [246] = ANY,
    [162] = PY,  [163] = PY,  [164] = PY,  [177] = PY,  [178] = PY,
    [165] = C,   [166] = C,   [167] = C,   [168] = C,   [169] = C,   [170] = C,
    [171] = C,   [172] = C,   [173] = C,   [174] = C,   [175] = C,
    [179] = C,   [180] = C,   [181] = C,
};

const uint8_t opcodes_3_14[256] = {
    [4] = ANY,   [52] = ANY,  [55] = ANY,  [152] = ANY, [160] = ANY, [250] = ANY, [251] = ANY,
    [252] = ANY,
    [143] = PY,  [144] = PY,  [145] = PY,  [151] = PY,  [153] = PY,  [161] = PY, [162] = PY,
    [146] = C,   [147] = C,   [148] = C,   [149] = C,   [150] = C,   [154] = C,
    [155] = C,   [156] = C,   [157] = C,   [158] = C,   [159] = C,   [163] = C,
    [164] = C,   [165] = C,
};

const uint8_t opcodes_3_15[256] = {
    [4] = ANY,   [50] = ANY,  [53] = ANY,  [151] = ANY, [155] = ANY, [163] = ANY, [249] = ANY,
    [250] = ANY, [251] = ANY,
    [144] = PY,  [145] = PY,  [146] = PY,  [152] = PY,  [154] = PY,  [156] = PY, [164] = PY,
    [165] = PY,
    [147] = C,   [148] = C,   [149] = C,   [150] = C,   [153] = C,
    [157] = C,   [158] = C,   [159] = C,   [160] = C,   [161] = C,  [162] = C,
    [166] = C,   [167] = C,   [168] = C,
};
