/*
 * The source files of one report, each loaded and parsed at most once: charge.c
 * asks them for function names, report.c for texts, regions and imports.
 */
#ifndef REPORT_SOURCES_H
#define REPORT_SOURCES_H

#include "base/intern.h"
#include "source/source.h"
#include "source/statements.h"
#include "source/structure.h"

#include <stdbool.h>
#include <stdint.h>

struct source_file {
    bool is_loaded; /* else what follows is empty and `why` says why */
    struct source source;
    struct structure structure;
    struct statements statements;
    struct err why;
    uint64_t modified_ns; /* CLOCK_REALTIME; 0 if unknown */
};

struct sources {
    struct intern *strings;  /* the profile's, not owned */
    const char *string_text; /* source of `<string>`, or NULL */
    struct map index;        /* name -> position + 1 in files */
    struct source_file **files;
    size_t count, cap;
};

void sources_init(struct sources *sources, struct intern *strings, const char *string_text);
void sources_release(struct sources *sources); /* idempotent */
const struct source_file *sources_get(struct sources *sources, str_id name);

/*
 * The name under which a code object's file is reported: absolute (the main
 * script of Python 3.8 is called as it was typed, relative to where the program
 * was started, which is where the launcher still is), and without the `/./` and
 * `/../` of what was typed when that is still the same file.  `<...>` stays.
 */
str_id sources_name(struct sources *sources, const char *file);

#endif
