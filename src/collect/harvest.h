/*
 * The recordings of a session, taken into its report.  A process leaves one file
 * for each image of it (wire/arena.h); most sessions have a few, and those are
 * read at the end.  A program that starts thousands of short processes must not
 * fill the disk: when much lies there, recordings of processes that have ended
 * are added to the report and removed, while the program runs.
 *
 *   harvest_tick, while waiting for the program
 *   harvest_running, while waiting for the others
 *   harvest_all, at the end, or on a copy of the report for a profile in between
 *
 * What is removed is known to the launcher alone.  The control page counts it, so
 * that who reads the directory from outside (snapshot, recover) can say so.
 *
 * A process has ended when its pid is gone, waits to be waited for, or belongs
 * to a process that was started later; not when it says so itself, because exit
 * handlers may still run then.  An image has ended when its pid has a later one.
 */
#ifndef COLLECT_HARVEST_H
#define COLLECT_HARVEST_H

#include "report/report.h"
#include "wire/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Recordings of ended processes that may lie there. */
enum { HARVEST_FILES_MAX = 64, HARVEST_BYTES_MAX = 64 << 20 };

struct harvest {
    const char *directory;        /* the session's */
    struct wire_control *control; /* the session's */
    struct report *report;        /* what is removed goes here */
    struct timespec changed;      /* of the directory, when last looked at */
    uint64_t looked_ns;
};

/* To be called often, every 100 ms or so: costs one stat() when no process came, but for a look
 * each second. */
void harvest_tick(struct harvest *harvest);

/* Do some of the processes with a recording still run? */
bool harvest_running(const char *directory);

/* Adds what lies in the directory, by start, and leaves it there. */
int harvest_all(struct report *report, const char *directory, struct err *err);

/* All at once, of what lies in config->session_directory: of a finished session or of one that
 * runs.  A damaged recording is skipped with a note, never fatal. */
int harvest_build(struct profile *profile, const struct report_config *config, struct err *err);

#endif
