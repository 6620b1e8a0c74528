/*
 * `scalene view --json`: a profile passed through the reader and written out
 * again; the function is in json_read.h.  The writing goes through json_out and
 * not through jansson's own dump, which shows 0.1 as 0.10000000000000001.
 */
#include <jansson.h> /* before json_out.h, whose short names are jansson's */

#include "base/json_out.h"
#include "base/mem.h"
#include "profile/json_read.h"

#include <stdlib.h>
#include <string.h>

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int dump(struct json_out *out, const json_t *value, struct err *err);

static int dump_object(struct json_out *out, json_t *object, struct err *err)
{
    size_t count = 0;
    const char **keys = mem_zalloc(json_object_size(object), sizeof *keys);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) keys[count++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    int result = 0;
    json_out_object(out);
    for (size_t i = 0; i < count && !result; i++) {
        json_out_key_raw(out, keys[i], strlen(keys[i]));
        result = dump(out, json_object_get(object, keys[i]), err);
    }
    if (!result)
        json_out_end(out);
    free(keys);
    return result;
}

static int dump(struct json_out *out, const json_t *value, struct err *err)
{
    if (out->depth == JSON_DEPTH_MAX)
        return err_set(err, "the document is nested more than %d levels deep", JSON_DEPTH_MAX);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return dump_object(out, (json_t *)value, err);
    case JSON_ARRAY:
        json_out_array(out);
        for (size_t i = 0; i < json_array_size(value); i++)
            if (dump(out, json_array_get(value, i), err))
                return -1;
        json_out_end(out);
        return 0;
    case JSON_STRING:
        json_out_string(out, json_string_value(value), json_string_length(value));
        return 0;
    case JSON_INTEGER:
        json_out_int(out, json_integer_value(value));
        return 0;
    case JSON_REAL:
        json_out_real(out, json_real_value(value));
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        json_out_bool(out, json_is_true(value));
        return 0;
    case JSON_NULL:
        json_out_null(out);
        return 0;
    }
    return 0;
}

int json_check_and_dump(const char *text, size_t length, struct buf *out, struct err *err)
{
    struct profile profile;
    int result = json_read_profile(&profile, text, length, err);
    if (result)
        return result;
    profile_release(&profile);
    size_t start = out->len;
    json_error_t error;
    json_t *root = json_loadb(text, length, 0, &error);
    if (!root) { /* it was read a moment ago, but not as one whole: it is nested too deep */
        err_set(err, "line %d, column %d: %s", error.line, error.column, error.text);
        return JSON_READ_SYNTAX;
    }
    struct json_out writer;
    json_out_begin(&writer, out);
    if (dump(&writer, root, err)) {
        out->len = start;
        result = JSON_READ_INVALID;
    } else {
        buf_char(out, '\n');
    }
    json_decref(root);
    return result;
}
