/*
 * The YAML file of `run --config`: a mapping from option names (with hyphens
 * or underscores) to values.  What the command line said already stays.
 */
#ifndef CMD_CONFIG_FILE_H
#define CMD_CONFIG_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "cmd/options.h"

enum {
    CONFIG_FILE_BAD = -1,   /* missing, not YAML, not a mapping: said as the original says it */
    CONFIG_FILE_OTHER = -2, /* not readable, or a value that does not fit its option */
};

/* 0 or one of the above.  `warnings` gets one line for each key that is no option. */
int config_file_apply(struct options *options, const char *path, struct buf *warnings,
                      struct err *err);
/* The same from text, for config_file_apply and the tests. */
int config_text_apply(struct options *options, const char *path, const char *text, size_t length,
                      struct buf *warnings, struct err *err);

#endif
