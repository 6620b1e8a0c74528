/* Base64 (RFC 4648), with padding, on one line.  Appends to `out`. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

void base64_encode(const void *bytes, size_t length, struct buf *out);

#endif
