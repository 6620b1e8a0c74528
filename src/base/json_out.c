#include "base/json_out.h"

#include "base/utf8.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_out_begin(struct json_out *out, struct buf *buf)
{
    *out = (struct json_out){.buf = buf, .indent_max = JSON_INDENT_MAX};
}

void json_out_begin_compact(struct json_out *out, struct buf *buf)
{
    *out = (struct json_out){.buf = buf};
}

/* Before what is in the innermost object or array, and before its end if that is further out. */
static void newline(struct json_out *out, int depth)
{
    if (out->depth > out->indent_max)
        return;
    buf_char(out->buf, '\n');
    buf_pad(out->buf, ' ', (size_t)depth * 4);
}

/* What stands before any value: a comma and a new line inside an array, nothing after a key. */
static void before_value(struct json_out *out)
{
    if (out->has_key) {
        out->has_key = false;
        return;
    }
    if (!out->depth)
        return;
    if (out->level[out->depth - 1].any)
        buf_char(out->buf, ',');
    out->level[out->depth - 1].any = true;
    newline(out, out->depth);
}

static void open_level(struct json_out *out, char open, char close)
{
    before_value(out);
    assert(out->depth < JSON_DEPTH_MAX);
    buf_char(out->buf, open);
    out->level[out->depth].close = close;
    out->level[out->depth].any = false;
    out->level[out->depth].last_key = "";
    out->depth++;
}

void json_out_object(struct json_out *out)
{
    open_level(out, '{', '}');
}

void json_out_array(struct json_out *out)
{
    open_level(out, '[', ']');
}

void json_out_end(struct json_out *out)
{
    assert(out->depth > 0 && !out->has_key);
    if (out->level[out->depth - 1].any)
        newline(out, out->depth - 1);
    out->depth--;
    buf_char(out->buf, out->level[out->depth].close);
}

static void quoted(struct buf *buf, const char *text, size_t length)
{
    buf_char(buf, '"');
    for (size_t at = 0; at < length;) {
        size_t plain = at;
        while (at < length && text[at] >= 0x20 && text[at] < 0x7F && text[at] != '"' &&
               text[at] != '\\')
            at++;
        if (at > plain)
            buf_add(buf, text + plain, at - plain);
        if (at == length)
            break;
        uint32_t c = utf8_decode(text, length, &at);
        switch (c) {
        case '"':
            buf_str(buf, "\\\"");
            break;
        case '\\':
            buf_str(buf, "\\\\");
            break;
        case '\n':
            buf_str(buf, "\\n");
            break;
        case '\r':
            buf_str(buf, "\\r");
            break;
        case '\t':
            buf_str(buf, "\\t");
            break;
        case '\b':
            buf_str(buf, "\\b");
            break;
        case '\f':
            buf_str(buf, "\\f");
            break;
        default:
            if (c == 0x7F)
                buf_char(buf, 0x7F);
            else if (c >= 0x10000)
                buf_addf(buf, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                         0xDC00 + ((c - 0x10000) & 0x3FF));
            else
                buf_addf(buf, "\\u%04x", c);
        }
    }
    buf_char(buf, '"');
}

void json_out_key_raw(struct json_out *out, const char *key, size_t length)
{
    assert(out->depth > 0 && !out->has_key);
    before_value(out);
    quoted(out->buf, key, length);
    buf_str(out->buf, out->depth > out->indent_max ? ":" : ": ");
    out->has_key = true;
}

void json_out_key(struct json_out *out, const char *key)
{
    assert(strcmp(out->level[out->depth - 1].last_key, key) < 0); /* keys are sorted */
    out->level[out->depth - 1].last_key = key;
    json_out_key_raw(out, key, strlen(key));
}

void json_out_string(struct json_out *out, const char *text, size_t length)
{
    before_value(out);
    quoted(out->buf, text, length);
}

void json_out_cstr(struct json_out *out, const char *text)
{
    json_out_string(out, text, strlen(text));
}

void json_out_int(struct json_out *out, int64_t value)
{
    char text[24], *at = text + sizeof text;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    before_value(out);
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    buf_add(out->buf, at, (size_t)(text + sizeof text - at));
}

void json_out_real(struct json_out *out, double value)
{
    before_value(out);
    if (!isfinite(value))
        value = 0;
    char text[40];
    for (int digits = DBL_DIG; digits <= 17; digits++) { /* fewer are needed? then fewer come */
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_str(out->buf, text);
    if (!strpbrk(text, ".en"))
        buf_str(out->buf, ".0");
}

void json_out_short(struct json_out *out, double value)
{
    before_value(out);
    buf_addf(out->buf, "%.9g", isfinite(value) ? value : 0);
}

void json_out_bool(struct json_out *out, bool value)
{
    before_value(out);
    buf_str(out->buf, value ? "true" : "false");
}

void json_out_null(struct json_out *out)
{
    before_value(out);
    buf_str(out->buf, "null");
}
