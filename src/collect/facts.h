/*
 * What the launcher knows of a run and the arenas do not tell: which program
 * it is, its arguments, which files are to be reported.  Kept in the session
 * directory, so that somebody else can make the report: `scalene snapshot` while
 * the program runs, `scalene recover` when the launcher was killed.
 *
 * The file `facts` is a row of texts `name=value`, each ended by NUL.  Not JSON,
 * because paths and arguments are bytes, not characters.  Unknown names are
 * ignored, missing ones leave the default.
 */
#ifndef COLLECT_FACTS_H
#define COLLECT_FACTS_H

#include "base/err.h"
#include "base/mem.h"
#include "report/report.h"

#define FACTS_NAME "facts"

struct facts {
    struct report_config config; /* its texts live in the pool */
    struct pool pool;
};

/* Write config's facts into its session directory. */
int facts_save(const struct report_config *config, struct err *err);

/* Always leaves a usable config, for this directory (whose text stays the caller's): if the file is
 * missing or cannot be read, that of a program nothing is known of, and -1. */
int facts_load(struct facts *facts, const char *directory, struct err *err);
void facts_release(struct facts *facts); /* idempotent */

#endif
