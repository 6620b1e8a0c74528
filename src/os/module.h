/*
 * Which loaded module (the program, a library) an address belongs to: its place,
 * its name, its table of call frame information (.eh_frame_hdr).
 *
 * glibc 2.35 and newer answer by _dl_find_object(), made for unwinders: it
 * takes no lock and may interrupt dlopen() and dlclose() themselves.  Never
 * dl_iterate_phdr(): its lock deadlocks a handler, and one held across a fork
 * hangs the child.  Older libcs: the list debuggers use is walked, guarded.
 *
 * Callable from a signal handler and from any thread, but for module_init().
 */
#ifndef OS_MODULE_H
#define OS_MODULE_H

#include <stdbool.h>
#include <stdint.h>

struct module {
    uintptr_t start, end;   /* of all its segments */
    uintptr_t unwind_table; /* 0: it has none */
    const char *name;       /* its path, as the loader knows it; "": the program, or unknown.  Its
                               owner is the loader: gone with the module */
};

void module_init(void); /* not from a handler; again is harmless */

bool module_find(uintptr_t address, struct module *found);

/* The same by the debugger's list, whatever the libc: what module_find() falls back to. */
bool module_find_by_list(uintptr_t address, struct module *found);

#endif
