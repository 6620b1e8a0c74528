#include "base/buf.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *reserve(struct buf *buf, size_t extra)
{
    if (buf->cap - buf->len < extra + 1) {
        size_t cap = buf->cap ? buf->cap : 256;
        while (cap - buf->len < extra + 1)
            cap *= 2;
        buf->data = mem_resize(buf->data, cap, 1);
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void buf_add(struct buf *buf, const void *bytes, size_t length)
{
    char *at = reserve(buf, length);
    if (length)
        memcpy(at, bytes, length);
    at[length] = '\0';
    buf->len += length;
}

void buf_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_pad(struct buf *buf, char c, size_t count)
{
    char *at = reserve(buf, count);
    memset(at, c, count);
    at[count] = '\0';
    buf->len += count;
}

void buf_str(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_addv(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length > 0) {
        char *at = reserve(buf, (size_t)length);
        vsnprintf(at, (size_t)length + 1, format, again);
        buf->len += (size_t)length;
    }
    va_end(again);
}

void buf_addf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_addv(buf, format, args);
    va_end(args);
}

void buf_utf8(struct buf *buf, unsigned codepoint)
{
    unsigned char out[4];
    size_t n;
    if (codepoint < 0x80) {
        out[0] = (unsigned char)codepoint;
        n = 1;
    } else if (codepoint < 0x800) {
        out[0] = (unsigned char)(0xC0 | codepoint >> 6);
        out[1] = (unsigned char)(0x80 | (codepoint & 0x3F));
        n = 2;
    } else if (codepoint < 0x10000) {
        if (codepoint >= 0xD800 && codepoint < 0xE000)
            codepoint = 0xFFFD; /* a lone surrogate is not encodable */
        out[0] = (unsigned char)(0xE0 | codepoint >> 12);
        out[1] = (unsigned char)(0x80 | (codepoint >> 6 & 0x3F));
        out[2] = (unsigned char)(0x80 | (codepoint & 0x3F));
        n = 3;
    } else if (codepoint < 0x110000) {
        out[0] = (unsigned char)(0xF0 | codepoint >> 18);
        out[1] = (unsigned char)(0x80 | (codepoint >> 12 & 0x3F));
        out[2] = (unsigned char)(0x80 | (codepoint >> 6 & 0x3F));
        out[3] = (unsigned char)(0x80 | (codepoint & 0x3F));
        n = 4;
    } else {
        buf_utf8(buf, 0xFFFD);
        return;
    }
    buf_add(buf, out, n);
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

char *buf_detach(struct buf *buf)
{
    reserve(buf, 0)[0] = '\0';
    char *data = buf->data;
    buf->data = NULL;
    buf->len = buf->cap = 0;
    return data;
}

void buf_release(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}
