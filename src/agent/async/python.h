/*
 * Functions of CPython's, by which it is asked about event loops with the GIL, in a thread of
 * its own.  Nothing here runs Python code.
 */
#ifndef AGENT_ASYNC_PYTHON_H
#define AGENT_ASYNC_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/* What CPython calls PyObject *. */
typedef void *object;

struct python {
    int (*ensure)(void);
    void (*release)(int state);
    int (*is_initialized)(void);
    int (*is_finalizing)(void); /* NULL: this Python does not tell */
    void *(*interpreter_of)(void *tstate);
    void *(*main_interpreter)(void);
    object (*text)(const char *);
    object (*module)(object name);
    object (*attribute)(object, const char *name);
    object (*call)(object, object arguments);
    void (*forget)(object); /* a reference */
    void (*fetch)(object *, object *, object *);
    void (*restore)(object, object, object);
    void (*clear)(void);
    object (*new_list)(intptr_t length);
    intptr_t (*length)(object sequence);
    object (*item)(object sequence, intptr_t index);
    void (*visit_objects)(int (*visit)(object, void *data), void *data); /* NULL: not before 3.12 */
};
extern struct python python;

/* Look them up, in the constructor.  False: one of them is missing. */
bool python_init(void);

/* With the GIL; no error is left behind.  NULL: there is none. */
object python_attribute(object from, const char *name); /* of NULL there is none */
void python_forget(object reference);                   /* may be NULL */
object python_module(const char *name); /* one that was imported; it is not imported for us */

/* An attribute of a module.  The reference is kept for ever: what is read without the GIL must not
 * go away. */
uintptr_t python_kept(const char *module_name, const char *name);

#endif
