/*
 * Which loaded module holds an instruction, and where its table of call frame
 * information (.eh_frame_hdr) is.  For unwind.c, in the signal handler.
 *
 * glibc 2.35 and newer answer by _dl_find_object(), made for unwinders: it
 * takes no lock and may interrupt dlopen() and dlclose() themselves.  Never
 * dl_iterate_phdr(): its lock deadlocks a handler, and one held across a fork
 * hangs the child.  Older libcs: the list debuggers use is walked, guarded.
 */
#ifndef OS_UNWIND_MODULE_H
#define OS_UNWIND_MODULE_H

#include <stdint.h>

void unwind_module_init(void); /* not from a handler */

/* 0: in no module, or its module has no table. */
uintptr_t unwind_module_table(uintptr_t pc);

/* The same by the debugger's list, whatever the libc: what unwind_module_table() falls back to. */
uintptr_t unwind_module_table_by_list(uintptr_t pc);

#endif
