#include "agent/async/python.h"

#include <dlfcn.h>
#include <stddef.h>

struct python python;

static const struct {
    const char *name;
    void *function;
    bool is_optional;
} imports[] = {
    {"PyGILState_Ensure", &python.ensure, false},
    {"PyGILState_Release", &python.release, false},
    {"Py_IsInitialized", &python.is_initialized, false},
    {"_Py_IsFinalizing", &python.is_finalizing, true},
    {"Py_IsFinalizing", &python.is_finalizing, true},
    {"PyThreadState_GetInterpreter", &python.interpreter_of, true},
    {"PyInterpreterState_Main", &python.main_interpreter, true},
    {"PyUnicode_FromString", &python.text, false},
    {"PyImport_GetModule", &python.module, false},
    {"PyObject_GetAttrString", &python.attribute, false},
    {"PyObject_CallObject", &python.call, false},
    {"Py_DecRef", &python.forget, false},
    {"PyErr_Fetch", &python.fetch, false},
    {"PyErr_Restore", &python.restore, false},
    {"PyErr_Clear", &python.clear, false},
    {"PyList_New", &python.new_list, false},
    {"PySequence_Size", &python.length, false},
    {"PySequence_GetItem", &python.item, false},
    {"PyUnstable_GC_VisitObjects", &python.visit_objects, true},
};

bool python_init(void)
{
    bool is_complete = true;
    for (size_t i = 0; i < sizeof imports / sizeof *imports; i++) {
        void *found = dlsym(RTLD_DEFAULT, imports[i].name);
        if (found)
            *(void **)imports[i].function = found;
        else if (!imports[i].is_optional)
            is_complete = false;
    }
    return is_complete;
}

object python_attribute(object from, const char *name)
{
    object found = from ? python.attribute(from, name) : NULL;
    if (!found)
        python.clear();
    return found;
}

void python_forget(object reference)
{
    if (reference)
        python.forget(reference);
}

object python_module(const char *name)
{
    object text = python.text(name);
    object module = text ? python.module(text) : NULL;
    if (!module)
        python.clear();
    python_forget(text);
    return module;
}

uintptr_t python_kept(const char *module_name, const char *name)
{
    object module = python_module(module_name);
    object found = python_attribute(module, name);
    python_forget(module);
    return (uintptr_t)found;
}
