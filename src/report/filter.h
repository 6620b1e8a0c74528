/*
 * Which files are traced, i.e. may have time charged to their lines.  One rule
 * for CPU, waiting and everything else, asked by charge.c once a file name.
 *
 * In this order; the first that applies decides:
 *
 *   1. empty name                                          no
 *   2. inside an installed scalene package                 no
 *   3. a --profile-exclude pattern is in the name          no
 *   4. --profile-only given, none of its patterns in it    no
 *   5. `<stdin>` / `<string>` when that is the program     yes
 *   6. any other `<...>` name                              no
 *   7. --profile-all                                       yes
 *   8. library file      only with --profile-system-libraries, or named by --profile-only
 *   9. inside the program's directory, as given or with links resolved
 *
 * A library file has a path component `site-packages` or `dist-packages`, or
 * `pythonX.Y` below `lib`, `lib32` or `lib64`, or `pythonXY.zip`: told from the
 * path alone, so that it is right for every interpreter of a process tree.
 * Rule 8 decides for every library file, also for one inside the program's
 * directory (a venv there).  "Inside" in rule 9 compares whole components: /a/bc
 * is not inside /a/b.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include <stdbool.h>
#include <stddef.h>

struct filter_config {
    const char *directory;       /* absolute; "" = no file is inside */
    const char *profile_only;    /* comma-separated substrings; "" or NULL = not given */
    const char *profile_exclude; /* the same */
    bool profile_all;
    bool profile_system_libraries;
    bool program_is_stdin;
    bool program_is_code; /* -c */
};

struct filter {
    struct filter_config config; /* its strings stay the caller's */
    char *directory;             /* normalised */
    char *real_directory;        /* links resolved; NULL if that fails */
};

void filter_init(struct filter *filter, const struct filter_config *config);
void filter_release(struct filter *filter); /* idempotent */
bool filter_traces(const struct filter *filter, const char *file);

/* Standard library or installed package? */
bool filter_is_library(const char *file);

/* The length of the leading part of a library file's path that ends with its component
 * `site-packages`, `dist-packages` or `pythonX.Y` (where modules are looked up), else 0. */
size_t filter_library_root(const char *file);

/* Collapse `//`, `.` and `..` by text alone; the caller frees the result. */
char *filter_normalise(const char *path);

#endif
