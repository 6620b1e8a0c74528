/* Whole-file reading, and writing that either replaces the file completely or leaves it alone. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* The error text says "cannot open 'x': No such file or directory"; errno is kept for callers. */
int file_read(const char *path, struct buf *out, struct err *err);

/* Write beside the target under an unpredictable name, then rename over it.  Mode 0666 & ~umask. */
int file_write_atomic(const char *path, const void *bytes, size_t length, struct err *err);

#endif
