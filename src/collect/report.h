/*
 * From arenas to a profile: open every PID-N.arena of a session directory, decode
 * lines, charge each cell to a line by the rules of ARCHITECTURE.md "Charging",
 * and fill a struct profile.  Works on a finished session and on a running one
 * (interval profiles).  A damaged arena is skipped with a note, never fatal.
 */
#ifndef COLLECT_REPORT_H
#define COLLECT_REPORT_H

#include "base/err.h"
#include "profile/profile.h"

#include <stdbool.h>

/* Which files are traced, i.e. may be charged (filter.h has the rules). */
struct report_config {
    const char *session_directory;
    const char *program;      /* absolute path of the script or module file; "" if unknown: then
                                 taken from the outermost frames seen (below runpy for -m) */
    bool is_module;           /* started by -m: entrypoint_dir is "" */
    const char *program_path; /* --program-path, absolute; "" = directory of `program` */
    const char *profile_only; /* comma-separated substrings */
    const char *profile_exclude;
    bool profile_all;
    bool profile_system_libraries;
    double cpu_percent_threshold; /* a file is reported from this percent of total time on */
    bool stacks;                  /* fill stacks and runs */
    bool async_profile, memory, gpu;
    bool leaks;                /* look for lines that leak */
    uint64_t malloc_threshold; /* a file is reported for its memory from so many allocations on */
    char *const *args;         /* as typed; NULL-terminated */
    uint64_t child_cpu_ns;     /* from the session, 0 if unknown */
    const char *program_text;  /* of -c: the code, shown as the source of `<string>`; else NULL */
    bool program_is_stdin;     /* then `<stdin>` is the program's file, without source */
};

int report_build(struct profile *profile, const struct report_config *config, struct err *err);

#endif
