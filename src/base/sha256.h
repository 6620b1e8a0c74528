/* SHA-256 (FIPS 180-4), by which a one-file report tells the browser which script is its own. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES]);

#endif
