/*
 * Where the profile goes.  The name follows the original's rule (the extension
 * becomes .json); a place that turns out not to be writable never costs the
 * data: other places are tried.
 */
#ifndef CMD_OUTPUT_H
#define CMD_OUTPUT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define OUTPUT_DEFAULT "scalene-profile.json"

/* The file for `-o outfile` (NULL: the default).  The caller frees it. */
char *output_name(const char *outfile);
bool output_is_directory(const char *outfile);

/* Could a file be made there now?  The error names the directory and the reason. */
int output_check(const char *path, struct err *err);

/*
 * Write to `path`, else under the same name in the first of `fallbacks` (NULL-terminated
 * directories, entries may be "") that can be written to.  Returns the path used, which the
 * caller frees; when that is not `path`, `err` says why.  NULL: nowhere.
 */
char *output_write(const char *path, const char *const *fallbacks, const struct buf *text,
                   struct err *err);

#endif
