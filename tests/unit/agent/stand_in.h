/*
 * A program that looks like a Python to the preloaded agent: what the agent asks
 * of one is defined here.  Include it once; link with -rdynamic.
 */
#ifndef TESTS_STAND_IN_H
#define TESTS_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>

typedef int (*audit_hook)(const char *, void *, void *);
struct entry {
    struct entry *next;
    audit_hook hook;
    void *data;
};
struct runtime {
    struct entry *hooks;
    char rest[1024];
};
struct runtime _PyRuntime;
char PyCode_Type[512], PyUnicode_Type[512];
int PySys_AddAuditHook(audit_hook hook, void *data);
const char *Py_GetVersion(void);
void *PyGILState_GetThisThreadState(void);

int PySys_AddAuditHook(audit_hook hook, void *data)
{
    static struct entry entry;
    entry = (struct entry){NULL, hook, data};
    _PyRuntime.hooks = &entry;
    return 0;
}

const char *Py_GetVersion(void)
{
    return "3.0.0"; /* of no known layout */
}

void *PyGILState_GetThisThreadState(void)
{
    return NULL;
}

/* The program begins.  False: nobody is there to follow it. */
static bool stand_in_begin(void)
{
    bool is_followed = _PyRuntime.hooks != NULL;
    if (is_followed)
        _PyRuntime.hooks->hook("cpython.run_file", NULL, NULL);
    return is_followed;
}

#endif
