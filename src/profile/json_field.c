/*
 * Field tables over jansson values; see json_field.h.  Called by json_read.c
 * only, in the command's process.
 */
#include "profile/json_field.h"

#include "base/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_VALUE_MAX = 60, SHOWN_KEY_MAX = 300 };

/* A sum of shares may miss a bound by rounding; such a value is taken for the bound. */
static const double TOLERANCE = 1e-6;

static void add_ascii_json(struct buf *out, const json_t *value, size_t length_max)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    if (!text)
        return;
    size_t length = strlen(text);
    if (length <= length_max) {
        buf_str(out, text);
    } else {
        buf_add(out, text, length_max - 3);
        buf_str(out, "...");
    }
    free(text);
}

static bool is_plain_key(const char *key)
{
    return *key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                    "0123456789")];
}

static void add_path(struct buf *out, const struct json_path *path)
{
    if (!path)
        return;
    add_path(out, path->up);
    if (!path->key) {
        buf_addf(out, "[%zu]", path->index);
    } else if (is_plain_key(path->key)) {
        buf_addf(out, "%s%s", path->up ? "." : "", path->key);
    } else {
        json_t *key = json_string(path->key);
        buf_char(out, '[');
        add_ascii_json(out, key, SHOWN_KEY_MAX);
        buf_char(out, ']');
        json_decref(key);
    }
}

int json_field_fail(const struct json_path *path, struct err *err, const char *format, ...)
{
    struct buf text = {0};
    add_path(&text, path);
    if (path)
        buf_str(&text, ": ");
    va_list args;
    va_start(args, format);
    buf_addv(&text, format, args);
    va_end(args);
    err_set(err, "%s", text.data);
    buf_release(&text);
    return -1;
}

int json_field_expected(const struct json_path *path, const char *what, const json_t *value,
                        struct err *err)
{
    struct buf got = {0};
    if (json_is_object(value))
        buf_str(&got, "an object");
    else if (json_is_array(value))
        buf_str(&got, "a list");
    else
        add_ascii_json(&got, value, SHOWN_VALUE_MAX);
    json_field_fail(path, err, "expected %s, got %s", what, got.data ? got.data : "something else");
    buf_release(&got);
    return -1;
}

static bool is_integer(enum json_field_kind kind)
{
    return kind == FIELD_U32 || kind == FIELD_I32 || kind == FIELD_U64;
}

static void describe(const struct json_field *field, char *out, size_t size)
{
    static const char *const plain[] = {
        [FIELD_BOOL] = "true or false",
        [FIELD_STRING] = "text",
        [FIELD_LIST] = "a list",
        [FIELD_OBJECT] = "an object",
    };
    if (field->kind == FIELD_REAL || is_integer(field->kind))
        snprintf(out, size, "%s from %.10g to %.10g",
                 is_integer(field->kind) ? "an integer" : "a number", field->least, field->most);
    else
        snprintf(out, size, "%s", plain[field->kind]);
}

static bool store_number(const struct json_field *field, const json_t *value, void *at)
{
    if (!json_is_number(value))
        return false;
    double number = json_number_value(value);
    double slack = is_integer(field->kind) ? 0 : TOLERANCE * (1 + fabs(field->most));
    if (!(number >= field->least - TOLERANCE && number <= field->most + slack))
        return false;
    if (field->kind == FIELD_REAL) {
        number = fmin(fmax(number, field->least), field->most);
        if (at)
            *(double *)at = number;
        return true;
    }
    if (number != floor(number))
        return false;
    /* An integer beyond 2^53 is exact only as an integer; a real that is one is small enough. */
    json_int_t integer = json_is_integer(value) ? json_integer_value(value) : (json_int_t)number;
    if (!at)
        return true;
    if (field->kind == FIELD_U32)
        *(uint32_t *)at = (uint32_t)integer;
    else if (field->kind == FIELD_I32)
        *(int32_t *)at = (int32_t)integer;
    else
        *(uint64_t *)at = (uint64_t)integer;
    return true;
}

int json_field_store(const struct json_field *field, const json_t *value,
                     const struct json_path *path, struct intern *strings, void *target,
                     struct err *err)
{
    void *at = field->offset == FIELD_CHECK_ONLY ? NULL : (char *)target + field->offset;
    bool ok = false;
    if (field->nullable && json_is_null(value))
        return 0;
    switch (field->kind) {
    case FIELD_REAL:
    case FIELD_U32:
    case FIELD_I32:
    case FIELD_U64:
        ok = store_number(field, value, at);
        break;
    case FIELD_BOOL:
        ok = json_is_boolean(value);
        if (ok && at)
            *(bool *)at = json_is_true(value);
        break;
    case FIELD_STRING:
        ok = json_is_string(value);
        if (ok && at)
            *(str_id *)at =
                intern_add(strings, json_string_value(value), json_string_length(value));
        break;
    case FIELD_LIST:
        ok = json_is_array(value);
        break;
    case FIELD_OBJECT:
        ok = json_is_object(value);
        break;
    }
    if (ok)
        return 0;
    char what[96];
    describe(field, what, sizeof what);
    return json_field_expected(path, what, value, err);
}

int json_fields_read(const struct json_fields *fields, const json_t *object,
                     const struct json_path *path, struct intern *strings, void *target,
                     struct err *err)
{
    if (!json_is_object(object))
        return json_field_expected(path, "an object", object, err);
    for (size_t i = 0; i < fields->count; i++) {
        const struct json_field *field = &fields->items[i];
        const json_t *value = json_object_get(object, field->key);
        const struct json_path here = {.up = path, .key = field->key};
        if (value && json_field_store(field, value, &here, strings, target, err))
            return -1;
    }
    return 0;
}
