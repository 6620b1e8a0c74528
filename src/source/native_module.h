/*
 * Is a Python module native code?  Answered by looking at the files, for the
 * `imports` field of the profile; the original imported the module to find out,
 * with all that importing does.
 *
 * Native is: a module built into the interpreter, an extension module, or a
 * package with an extension module anywhere inside it (numpy).  A module that is
 * not found, or named relatively (".x"), is not native.
 */
#ifndef SOURCE_NATIVE_MODULE_H
#define SOURCE_NATIVE_MODULE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * `module` is a dotted name; `dirs` is what the program's sys.path held, in its
 * order.  A package is looked through breadth first, at most 6 levels deep and
 * 2000 entries, and symbolic links to directories are not followed.
 */
bool native_module(const char *module, const char *const *dirs, size_t dir_count);

#endif
