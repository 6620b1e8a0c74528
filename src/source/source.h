/*
 * A Python source file as text: loaded with its own encoding, cut into lines.
 * Used for the `line` texts of the profile and for its structure (structure.h).
 *
 * Nothing here needs an interpreter, and no input makes it fail: a file that is
 * not valid in its declared encoding is read byte for byte (latin-1), NUL bytes
 * become U+FFFD.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct source {
    char *text; /* UTF-8, without byte order mark; line ends as in the file */
    size_t length;
    size_t *line_start; /* line_count + 1 offsets into text; line n is [n-1, n) */
    size_t line_count;
};

/* Encoding by BOM or PEP 263 cookie (utf-8, latin-1/iso-8859-1, iso-8859-15, ascii, cp1252;
 * iconv(3) for the rest), else UTF-8.  Lines end at \n, \r\n or \r.  Regular files only, at most 64
 * MiB. */
int source_load(struct source *source, const char *path, struct err *err);

/* UTF-8 text from elsewhere (a notebook cell, exec'd code); it is copied. */
void source_from_text(struct source *source, const char *text, size_t length);

/* Line `lineno` (1-based) with its line end, not NUL-terminated; NULL when there is no such line.
 */
const char *source_line(const struct source *source, size_t lineno, size_t *length);
void source_release(struct source *source);

#endif
