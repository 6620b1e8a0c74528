/*
 * Which files are traced, i.e. may have time and memory charged to their lines:
 * the part of the rule that the name alone tells, without allocation or system
 * calls, so that agents can ask in a signal handler.  The launcher has the last
 * word (report/filter.h).
 *
 * In this order; the first that applies decides:
 *
 *   1. empty name                                          no
 *   2. inside an installed scalene package                 no
 *   3. a --profile-exclude pattern is in the name          no
 *   4. --profile-only given, none of its patterns in it    no
 *   5. `<stdin>` / `<string>` when that is the program     yes
 *   6. any other `<...>` name                              no
 *   7. --profile-all, or the script itself                 yes
 *      unless the script is what pip wrote to start an installed command: no
 *   8. library file      only with --profile-system-libraries, or named by --profile-only
 *   9. below the program's directory or, if the program lies below it, the working directory;
 *      directly in the parent of the program's directory   yes
 *  10. anything else may still be one of these otherwise written: TRACED_ASK
 *
 * A library file has a path component `site-packages` or `dist-packages`, or
 * `pythonX.Y` below `lib`, `lib32` or `lib64`, or `pythonXY.zip`: told from the
 * path alone, so that it is right for every interpreter of a process tree.
 * Rule 8 decides for every library file, also for one inside the program's
 * directory (a venv there), but where a directory of rule 9 is itself part of an installed
 * package, what lies below it is not taken for a library: somebody works there.
 * "Below" compares whole components: /a/bc is not below /a/b.
 */
#ifndef WIRE_TRACED_H
#define WIRE_TRACED_H

#include "wire/control.h"

#include <stdbool.h>
#include <stddef.h>

enum traced { TRACED_NO, TRACED_YES, TRACED_ASK };

enum traced traced_file(const struct wire_filter *filter, const char *file);

/* Rule 9, and the script. */
bool traced_is_own(const struct wire_filter *filter, const char *file);

/* Is it the script of an installed command? */
bool traced_is_command(const struct wire_filter *filter, const char *file);

/* Is the file below the directory, by text alone?  "" has nothing below it. */
bool traced_is_inside(const char *file, const char *directory);

/* The length of the leading part of a library file's path that ends with its component
 * `site-packages`, `dist-packages` or `pythonX.Y` (where modules are looked up), else 0. */
size_t traced_library_root(const char *file);

/* The component of the path that starts at or after *rest, which is moved behind it; false at the
 * end. */
struct traced_component {
    const char *at;
    size_t length;
};
bool traced_next(const char **rest, struct traced_component *out);
bool traced_is(const struct traced_component *component, const char *text);

#endif
