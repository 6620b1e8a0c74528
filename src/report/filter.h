/*
 * Which files are traced, i.e. may have time charged to their lines.  One rule
 * for CPU, waiting and everything else, asked by charge.c once a file name.
 * The rules are in wire/traced.h, which agents follow as well; what needs the file
 * system to be told, a file that is below the program's directory only when
 * links are resolved, is decided here.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include "wire/control.h"

#include <stdbool.h>
#include <stddef.h>

struct filter_config {
    const char *directory;       /* absolute; "" = no file is inside */
    const char *work_directory;  /* absolute; counts if `directory` is inside; "" or NULL = none */
    const char *script;          /* absolute; "" or NULL = none */
    bool script_is_command;      /* it only starts an installed program */
    const char *tool;            /* top-level package of an installed program; "" or NULL = none */
    const char *profile_only;    /* comma-separated substrings; "" or NULL = not given */
    const char *profile_exclude; /* the same */
    bool profile_all;
    bool profile_system_libraries;
    bool program_is_stdin;
    bool program_is_code; /* -c */
};

/* Patterns of more than WIRE_FILTER_TEXT_BYTES do not fit: then everything is traced. */
void filter_init(struct wire_filter *filter, const struct filter_config *config);
bool filter_traces(const struct wire_filter *filter, const char *file);

/* Of a file that is not traced: is it of the installed program that was run, which is looked at
 * when nothing that is traced was reached? */
bool filter_is_tool(const struct wire_filter *filter, const char *file);

/* Standard library or installed package? */
bool filter_is_library(const char *file);

/* Collapse `//`, `.` and `..` by text alone; the caller frees the result. */
char *filter_normalise(const char *path);

#endif
