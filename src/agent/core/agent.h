/*
 * What the parts of the agent share: one struct, filled at the program's start
 * (start.c) and read everywhere.  `agent.active` is false in every process that
 * is not a Python under our profiler; all hooks then pass straight through.
 */
#ifndef AGENT_CORE_AGENT_H
#define AGENT_CORE_AGENT_H

#include "agent/core/arena.h"
#include "agent/core/tables.h"
#include "py/classify.h"
#include "py/layout.h"
#include "wire/control.h"

#include <stdbool.h>
#include <stdint.h>

struct agent {
    _Atomic bool active;
    _Atomic bool has_sampler; /* the wait sampler runs */
    const char *session;      /* directory */
    struct wire_control *control;
    bool with_memory; /* it is followed, if there is room for that */
    struct arena arena;
    struct tables tables;

    struct py_layout layout;
    bool has_layout; /* false: an unknown Python, CPU totals only */
    struct py_regions regions;
    uintptr_t code_type, str_type, runtime; /* &PyCode_Type, &PyUnicode_Type, &_PyRuntime */
    size_t runtime_bytes;
    uint32_t python_hex;
    uintptr_t main_tstate;
    bool is_first;                 /* the process the launcher started */
    void *(*current_tstate)(void); /* PyGILState_GetThisThreadState */
};

extern struct agent agent;

#define AGENT_EXPORT __attribute__((visibility("default")))

#endif
