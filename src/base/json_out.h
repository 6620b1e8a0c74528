/*
 * Streaming JSON writer into a buffer: ASCII only (everything else escaped),
 * indent 4, one space after a colon, as Python's json.dumps(indent=4) writes it;
 * but what is more than JSON_INDENT_MAX levels deep stands on one line, without
 * blanks: of a profile that is most of it.  Or compact, all on one line.  The
 * caller emits keys in sorted order; debug builds assert that.
 *
 * The functions carry the file's full prefix because jansson, which is linked
 * into the same program, has functions called json_object, json_array and so on.
 *
 *   json_out_object(&out);  json_out_key(&out, "a");  json_out_int(&out, 1);  json_out_end(&out);
 */
#ifndef BASE_JSON_OUT_H
#define BASE_JSON_OUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32, JSON_INDENT_MAX = 4 };

struct json_out {
    struct buf *buf;
    int depth, indent_max;
    bool has_key;
    struct {
        char close;
        bool any;
        const char *last_key;
    } level[JSON_DEPTH_MAX];
};

void json_out_begin(struct json_out *out, struct buf *buf);
void json_out_begin_compact(struct json_out *out, struct buf *buf);
void json_out_object(struct json_out *out);
void json_out_array(struct json_out *out);
void json_out_end(struct json_out *out);                  /* closes the innermost object or array */
void json_out_key(struct json_out *out, const char *key); /* a constant: it is kept */
void json_out_key_raw(struct json_out *out, const char *key, size_t length); /* keys from outside */
void json_out_string(struct json_out *out, const char *text,
                     size_t length); /* UTF-8, bad bytes -> U+FFFD */
void json_out_cstr(struct json_out *out, const char *text);
void json_out_int(struct json_out *out, int64_t value);
void json_out_real(struct json_out *out,
                   double value); /* shortest text that reads back; non-finite -> 0.0 */
void json_out_short(struct json_out *out, double value); /* nine digits, 1 and not 1.0 */
void json_out_bool(struct json_out *out, bool value);
void json_out_null(struct json_out *out);

#endif
