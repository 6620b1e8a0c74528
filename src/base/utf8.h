/* Reading UTF-8 that may be damaged.  A pure function, any context. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decode the character at text[*at] and step over it.  A byte that begins no valid sequence is
 * stepped over alone and gives U+FFFD.  *at must be below `length`. */
uint32_t utf8_decode(const char *text, size_t length, size_t *at);

#endif
