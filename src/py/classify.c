#include "py/classify.h"

#include "os/guard.h"
#include "os/module.h"
#include "os/unwind.h"
#include "py/symbols.h"

#include <dlfcn.h>

enum { CALL_DEPTH_MAX = 64 };

static struct py_range module_text(const void *address)
{
    struct module module = {0};
    if (!address || !module_find((uintptr_t)address, &module))
        return (struct py_range){0};
    return (struct py_range){module.start, module.end};
}

void classify_init(struct py_regions *regions, const struct py_layout *layout)
{
    /* The eval loop, the part of it that calls, and what builds and clears frames. */
    static const char *const names[] = {
        "_PyEval_EvalFrameDefault",
        "call_function",
        "_PyFunction_Vectorcall",
        "_PyEval_EvalCodeWithName",
        "_PyFunction_FastCallDict",
        "_PyEval_EvalCode",
        "PyFrame_New",
        "_PyFrame_New_NoTrack",
        "_PyEval_Vector",
        "PyEval_EvalFrameEx",
        "_PyEval_MakeFrameVector",
        "function_code_fastcall",
        "frame_dealloc",
        "_PyEval_EvalFrame",
        "_Py_CheckFunctionResult",
    };
    _Static_assert(sizeof names / sizeof *names <= CLASSIFY_HELPERS_MAX, "room for all");
    void *eval = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    void *linker = dlsym(RTLD_DEFAULT, "__tls_get_addr");
    *regions = (struct py_regions){0};
    module_init();
    regions->interpreter = module_text(eval ? eval : dlsym(RTLD_DEFAULT, "Py_GetVersion"));
    regions->linker = module_text(linker);
    regions->agent = module_text((const void *)(uintptr_t)classify_init);
    unwind_init();
    enum { HELPERS = sizeof names / sizeof *names - 2 };
    struct py_range found[HELPERS + 2] = {{0}};
    symbols_find(regions->interpreter.start, names, found, HELPERS + 2);
    regions->eval = found[0];
    regions->eval_call = found[1];
    for (size_t i = 0; layout->calls_need_stack && i < HELPERS; i++)
        if (found[i + 2].start)
            regions->helpers[regions->helper_count++] = found[i + 2];
}

static bool in_helper(const struct py_regions *regions, uintptr_t address)
{
    for (unsigned i = 0; i < regions->helper_count; i++)
        if (py_range_has(&regions->helpers[i], address))
            return true;
    return false;
}

static bool is_interpreter(const struct py_regions *regions, uintptr_t pc)
{
    return py_range_has(&regions->interpreter, pc) || py_range_has(&regions->linker, pc) ||
           py_range_has(&regions->agent, pc);
}

/*
 * An interrupted call, by what stands between the processor and the eval loop on the machine
 * stack.  Nothing, or a Python function being called or left: Python.  Code of another module:
 * native, whatever it does in the interpreter.  Only the interpreter's own: that alone does not
 * tell.  Where the eval loop is not found there is nothing that stands before it either.
 */
static enum classify_result classify_call(const struct py_regions *regions, bool in_interpreter,
                                          const void *ucontext)
{
    struct unwind_cursor cursor;
    enum classify_result result = CLASSIFY_CALL;
    unwind_begin(&cursor, ucontext);
    for (unsigned i = 0; i < CALL_DEPTH_MAX; i++) {
        if (py_range_has(&regions->eval, cursor.pc) || py_range_has(&regions->eval_call, cursor.pc))
            return i ? result : CLASSIFY_PYTHON;
        if (in_helper(regions, cursor.pc))
            return CLASSIFY_PYTHON;
        if (!is_interpreter(regions, cursor.pc))
            result = CLASSIFY_NATIVE;
        if (!unwind_step(&cursor))
            return cursor.root && in_interpreter ? CLASSIFY_CALL : result;
    }
    return result;
}

enum classify_result classify(const struct py_regions *regions, const struct py_layout *layout,
                              uint8_t opcode, const void *ucontext)
{
    uintptr_t pc = guard_context_pc(ucontext);
    bool in_interpreter = is_interpreter(regions, pc);
    switch ((enum py_call)layout->calls[opcode]) {
    case PY_CALL_C:
        return CLASSIFY_NATIVE;
    case PY_CALL_ANY:
        return classify_call(regions, in_interpreter, ucontext);
    case PY_CALL_NONE:
    case PY_CALL_PYTHON:
        break;
    }
    if (in_interpreter)
        return CLASSIFY_PYTHON;
    if (!regions->jit)
        return CLASSIFY_NATIVE;
    /* With CPython's JIT, code in no module is compiled Python. */
    struct module module;
    return module_find(pc, &module) ? CLASSIFY_NATIVE : CLASSIFY_PYTHON;
}
