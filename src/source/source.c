/*
 * Loads Python source as UTF-8 text and cuts it into lines (source.h).  Called by
 * the collector and the views, in the launcher.
 *
 * The encodings that real programs declare are decoded here and not by iconv(3):
 * a statically linked command may run where the C library's conversion modules
 * are not installed.
 */
#include "source/source.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SOURCE_MAX_BYTES = 64 * 1024 * 1024, ENCODING_MAX = 64, REPLACEMENT = 0xfffd };

/* Windows code page 1252, 0x80 to 0x9f; 0 is undefined.  The rest is latin-1. */
static const uint16_t cp1252[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

typedef unsigned (*decode_byte)(unsigned char byte); /* to a code point, 0 when undefined */

static unsigned decode_latin1(unsigned char byte)
{
    return byte;
}

static unsigned decode_ascii(unsigned char byte)
{
    return byte < 0x80 ? byte : 0;
}

static unsigned decode_cp1252(unsigned char byte)
{
    return byte >= 0x80 && byte <= 0x9f ? cp1252[byte - 0x80] : byte;
}

static unsigned decode_latin9(unsigned char byte)
{
    switch (byte) {
    case 0xa4:
        return 0x20ac;
    case 0xa6:
        return 0x0160;
    case 0xa8:
        return 0x0161;
    case 0xb4:
        return 0x017d;
    case 0xb8:
        return 0x017e;
    case 0xbc:
        return 0x0152;
    case 0xbd:
        return 0x0153;
    case 0xbe:
        return 0x0178;
    default:
        return byte;
    }
}

static const struct encoding {
    const char *name;   /* as Python spells it, in lower case, '_' as '-' */
    decode_byte decode; /* NULL: UTF-8 */
} encodings[] = {
    {"ascii", decode_ascii},
    {"us-ascii", decode_ascii},
    {"646", decode_ascii},
    {"cp1252", decode_cp1252},
    {"windows-1252", decode_cp1252},
    {"1252", decode_cp1252},
    {"latin-1", decode_latin1},
    {"latin1", decode_latin1},
    {"latin", decode_latin1},
    {"l1", decode_latin1},
    {"iso-8859-1", decode_latin1},
    {"iso8859-1", decode_latin1},
    {"iso-latin-1", decode_latin1},
    {"cp819", decode_latin1},
    {"8859", decode_latin1},
    {"latin-9", decode_latin9},
    {"latin9", decode_latin9},
    {"l9", decode_latin9},
    {"iso-8859-15", decode_latin9},
    {"iso8859-15", decode_latin9},
    {"utf-8", NULL},
    {"utf8", NULL},
    {"utf-8-sig", NULL},
    {"u8", NULL},
    {"utf", NULL},
    {"cp65001", NULL},
};

static const struct encoding *find_encoding(const char *name)
{
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (!strcmp(name, encodings[i].name))
            return &encodings[i];
    /* PEP 263 allows an ending, as in Emacs' latin-1-unix. */
    if (!strncmp(name, "utf-8-", 6))
        return find_encoding("utf-8");
    if (!strncmp(name, "latin-1-", 8) || !strncmp(name, "iso-8859-1-", 11))
        return find_encoding("latin-1");
    return NULL;
}

/* The length of a well-formed UTF-8 sequence (as Python accepts it: no surrogates), else 0. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static bool is_utf8(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        size_t sequence = utf8_sequence(s + i, length - i);
        if (!sequence)
            return false;
        i += sequence;
    }
    return true;
}

static bool decode_bytes(struct buf *out, const char *text, size_t length, decode_byte decode)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        unsigned codepoint = decode(byte);
        if (byte && !codepoint)
            return false;
        buf_utf8(out, codepoint);
    }
    return true;
}

static bool decode_iconv(struct buf *out, const char *text, size_t length, const char *name)
{
    iconv_t converter = iconv_open("UTF-8", name);
    if (converter == (iconv_t)-1)
        return false;
    char *in = (char *)text; /* iconv() does not write through it */
    bool ok = true, flush = false;
    while (ok && !flush) {
        char chunk[4096], *to = chunk;
        size_t room = sizeof chunk;
        flush = length == 0;
        ok = iconv(converter, flush ? NULL : &in, &length, &to, &room) != (size_t)-1 ||
             errno == E2BIG;
        buf_add(out, chunk, (size_t)(to - chunk));
    }
    iconv_close(converter);
    return ok && is_utf8(out->data, out->len);
}

static size_t line_end(const char *text, size_t length, size_t start)
{
    while (start < length && text[start] != '\n' && text[start] != '\r')
        start++;
    return start;
}

/* The encoding named in a comment line, as PEP 263 says; false when there is none. */
static bool read_cookie(const char *line, size_t length, char name[ENCODING_MAX])
{
    static const char key[] = "coding";
    for (size_t i = 0; i + sizeof key <= length; i++) {
        if (memcmp(line + i, key, sizeof key - 1) != 0)
            continue;
        size_t at = i + sizeof key - 1, used = 0;
        if (line[at] != ':' && line[at] != '=')
            continue;
        for (at++; at < length && (line[at] == ' ' || line[at] == '\t'); at++)
            ;
        for (; at < length && used + 1 < ENCODING_MAX; at++) {
            unsigned char c = (unsigned char)line[at];
            if (!isalnum(c) && c != '-' && c != '_' && c != '.')
                break;
            name[used++] = c == '_' ? '-' : (char)tolower(c);
        }
        name[used] = '\0';
        if (used)
            return true;
    }
    return false;
}

/* Look for a cookie in the first two lines; the second counts only if the first has no code. */
static bool find_cookie(const char *text, size_t length, char name[ENCODING_MAX])
{
    size_t start = 0;
    for (int line = 0; line < 2 && start < length; line++) {
        size_t end = line_end(text, length, start), at = start;
        while (at < end && (text[at] == ' ' || text[at] == '\t' || text[at] == '\f'))
            at++;
        if (at < end && text[at] != '#')
            return false;
        if (read_cookie(text + at, end - at, name))
            return true;
        start = end + (end + 1 < length && text[end] == '\r' && text[end + 1] == '\n' ? 2 : 1);
    }
    return false;
}

static bool decode(struct buf *out, const char *text, size_t length, const char *name)
{
    const struct encoding *encoding = find_encoding(name);
    if (!encoding)
        return decode_iconv(out, text, length, name);
    if (encoding->decode)
        return decode_bytes(out, text, length, encoding->decode);
    if (!is_utf8(text, length))
        return false;
    buf_add(out, text, length);
    return true;
}

static void replace_nuls(struct buf *buf)
{
    if (!buf->len || !memchr(buf->data, '\0', buf->len))
        return;
    struct buf clean = {0};
    for (size_t i = 0; i < buf->len; i++)
        if (buf->data[i])
            buf_char(&clean, buf->data[i]);
        else
            buf_utf8(&clean, REPLACEMENT);
    buf_release(buf);
    *buf = clean;
}

static void index_lines(struct source *source)
{
    size_t cap = 0, count = 0;
    for (size_t at = 0; at < source->length;) {
        VEC_PUSH(source->line_start, count, cap) = at;
        at = line_end(source->text, source->length, at);
        if (at + 1 < source->length && source->text[at] == '\r' && source->text[at + 1] == '\n')
            at++;
        at++;
    }
    source->line_count = count;
    VEC_PUSH(source->line_start, count, cap) = source->length;
}

static void set_text(struct source *source, const char *text, size_t length, const char *encoding)
{
    struct buf decoded = {0};
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        length -= 3;
        encoding = "utf-8";
    }
    if (!decode(&decoded, text, length, encoding)) {
        buf_reset(&decoded);
        decode_bytes(&decoded, text, length, decode_latin1);
    }
    replace_nuls(&decoded);
    *source = (struct source){.length = decoded.len};
    source->text = buf_detach(&decoded);
    index_lines(source);
}

int source_load(struct source *source, const char *path, struct err *err)
{
    struct stat st;
    *source = (struct source){0};
    if (stat(path, &st))
        return err_set(err, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, "cannot read '%s': not a regular file", path);
    if (st.st_size > SOURCE_MAX_BYTES)
        return err_set(err, "cannot read '%s': larger than 64 MiB", path);
    struct buf bytes = {0};
    int rc = file_read(path, &bytes, err);
    if (!rc) {
        char encoding[ENCODING_MAX];
        if (!find_cookie(bytes.data, bytes.len, encoding))
            strcpy(encoding, "utf-8");
        set_text(source, bytes.data, bytes.len, encoding);
    }
    buf_release(&bytes);
    return rc;
}

void source_from_text(struct source *source, const char *text, size_t length)
{
    set_text(source, text, length, "utf-8");
}

const char *source_line(const struct source *source, size_t lineno, size_t *length)
{
    *length = 0;
    if (lineno < 1 || lineno > source->line_count)
        return NULL;
    size_t start = source->line_start[lineno - 1];
    *length = source->line_start[lineno] - start;
    return source->text + start;
}

void source_release(struct source *source)
{
    free(source->text);
    free(source->line_start);
    *source = (struct source){0};
}
