/* Compression of a whole buffer. */
#ifndef BASE_DEFLATE_H
#define BASE_DEFLATE_H

#include "base/buf.h"

enum deflate_format {
    DEFLATE_ZLIB, /* RFC 1950: "deflate" of HTTP and of browsers' DecompressionStream */
    DEFLATE_GZIP, /* RFC 1952 */
};

/* `level` from 1, fast, to 9, small.  Appends to `out`. */
void deflate_bytes(const void *bytes, size_t length, enum deflate_format format, int level,
                   struct buf *out);

#endif
