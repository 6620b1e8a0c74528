/*
 * Python or native?  A sample is native when the line called a C function that
 * is now running, or when the processor is in code outside the interpreter:
 *
 *   - the leaf frame's opcode is a call that is not known to be one of a Python
 *     function, or
 *   - the program counter is in a module other than the interpreter (libpython
 *     or the executable), the dynamic linker, whose __tls_get_addr belongs to
 *     the interpreter's own work, and ourselves, in whose hooks it allocates.
 *
 * Code that lies in no module at all is native (numba and the like) unless
 * CPython's own JIT is on.
 *
 * A call that is not specialised may be one of a Python function whose frame is
 * just being built.  The machine stack is unwound to the eval loop: if that itself
 * runs it is Python, if code of another module stands in between it is native, also
 * while that works in the interpreter (an extension that makes objects).  Else it
 * is marked CLASSIFY_CALL and judged later, by what the same call site is seen to
 * enter (report/judge.h).
 *
 * Before specialised opcodes every call of a Python function goes through C.
 * There (calls_need_stack) the sample also counts as Python when one of the
 * functions that set up Python calls stands between it and the eval loop.
 *
 * What this calls Python although C code runs: operators on big integers, list
 * comparison, freeing large structures; they are the interpreter at work.
 */
#ifndef PY_CLASSIFY_H
#define PY_CLASSIFY_H

#include "py/layout.h"

enum { CLASSIFY_HELPERS_MAX = 16 };

struct py_range {
    uintptr_t start, end;
};

static inline bool py_range_has(const struct py_range *range, uintptr_t address)
{
    return address - range->start < range->end - range->start;
}

struct py_regions {
    struct py_range interpreter, linker, agent;
    struct py_range eval, eval_call; /* the eval loop, and its call_function where it has one */
    struct py_range helpers[CLASSIFY_HELPERS_MAX]; /* functions that set up Python calls */
    unsigned helper_count;
    bool jit;
};

/* Find the regions of this process.  Not from a handler: takes the loader's lock. */
void classify_init(struct py_regions *regions, const struct py_layout *layout);

enum classify_result {
    CLASSIFY_PYTHON,
    CLASSIFY_NATIVE,
    CLASSIFY_CALL, /* a call into the interpreter's own code: native unless the call site is seen to
                      call Python functions */
};

/* Of an interrupted thread whose leaf frame stands at `opcode`. */
enum classify_result classify(const struct py_regions *regions, const struct py_layout *layout,
                              uint8_t opcode, const void *ucontext);

#endif
