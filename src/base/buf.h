/*
 * A growing byte buffer, always NUL-terminated once something was added.
 * Zero-initialise it; release is idempotent.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
    char *data;
    size_t len, cap;
};

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_char(struct buf *buf, char c);
void buf_pad(struct buf *buf, char c, size_t count);
void buf_str(struct buf *buf, const char *text);
void buf_addf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_addv(struct buf *buf, const char *format, va_list args);
void buf_utf8(struct buf *buf, unsigned codepoint);
void buf_reset(struct buf *buf);   /* forget the contents, keep the memory */
char *buf_detach(struct buf *buf); /* hand the text over to the caller, who frees it */
void buf_release(struct buf *buf);

#endif
