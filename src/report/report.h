/*
 * From recordings to a profile: decode lines, charge each cell to a line by the
 * rules of ARCHITECTURE.md "Charging", and fill a struct profile.
 *
 *   report_begin -> report_add, one recording after the other -> report_finish
 *
 * A recording is not needed any more once it was added.  How much memory a report
 * takes depends on how many different stacks and lines there are, not on how many
 * processes: rows of processes and threads beyond PROFILE_ROWS_MAX are summed up,
 * the timeline is thinned out.  So processes can be added as they end (harvest.h);
 * for a profile in the middle of a run, those that still run are added to a copy.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/err.h"
#include "profile/profile.h"
#include "report/recording.h"
#include "wire/control.h"

#include <stdbool.h>
#include <sys/types.h>

/* Which files are traced, i.e. may be charged (filter.h has the rules). */
struct report_config {
    const char *session_directory;
    const char *program;      /* absolute path of the script or module file; "" if unknown: then
                                 taken from the outermost frames seen (below runpy for -m) */
    bool is_module;           /* started by -m: entrypoint_dir is "" */
    const char *program_path; /* --program-path, absolute; "" = directory of `program` */
    const char
        *work_directory;      /* absolute: its files count if the program lies below it; "": none */
    const char *script;       /* absolute path of the script that is run; "": none */
    bool script_is_command;   /* it only starts the installed program `tool` */
    const char *tool;         /* top-level package of an installed program; "": none */
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
    const char *program_text;  /* of -c: the code, shown as the source of `<string>`; else NULL */
    bool reduced;              /* leave lines without activity out */
    bool program_is_stdin;     /* then `<stdin>` is the program's file, without source */
};

/* What became of a process image whose recording is added. */
enum report_fate {
    REPORT_ENDED,
    REPORT_REPLACED, /* its process exec'd another Python, which has a recording of its own */
    REPORT_RUNNING,
};

struct report;

/* What the report will trace, for the agents to know beforehand. */
void report_filter(const struct report_config *config, struct wire_filter *filter);

/* An empty report that will fill `profile`, which is initialised and the caller's.  Both arguments
 * must outlive the report. */
struct report *report_begin(struct profile *profile, const struct report_config *config);

/* Images of one pid in the order in which they ran; otherwise any order does. */
void report_add(struct report *report, const struct recording *recording, enum report_fate fate);

/* A recording that could not be opened, and why. */
void report_unreadable(struct report *report, pid_t pid, const char *why);

/* Processes that could not make a recording: the disk was full, or a limit was met. */
void report_unrecorded(struct report *report, uint64_t processes);

/* The session's launcher has taken some recordings away already: a note says so. */
void report_harvested(struct report *report);

/* The launcher's word on the process it started: `status` as waitpid gives it. */
void report_program_ended(struct report *report, pid_t pid, int status);

/* The same again, to go on with another profile.  The original is not changed. */
struct report *report_copy(const struct report *from, struct profile *profile);

/* Fills the profile from what was added, and frees the report. */
void report_finish(struct report *report);
void report_free(struct report *report); /* without a profile; NULL is fine */

#endif
