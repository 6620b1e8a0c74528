/*
 * Checked access to a parsed JSON document, for json_read.c: fields are
 * described by tables, and whatever does not fit its description gives an error
 * that names the place:
 *
 *   files["/a/b.py"].lines[3].n_cpu_percent_c: expected a number from 0 to 100, got "x"
 *
 * The text of such an error is safe to print: what comes from the document is
 * shown as ASCII JSON, cut to a sensible length.
 */
#ifndef PROFILE_JSON_FIELD_H
#define PROFILE_JSON_FIELD_H

#include "base/err.h"
#include "base/intern.h"

#include <jansson.h>
#include <stdint.h>

/* Where in the document we are: a chain on the C stack, turned into text only for an error. */
struct json_path {
    const struct json_path *up; /* NULL: a member of the document itself */
    const char *key;            /* NULL: element `index` of a list */
    size_t index;
};

enum json_field_kind {
    FIELD_REAL,   /* double */
    FIELD_U32,    /* uint32_t */
    FIELD_I32,    /* int32_t */
    FIELD_U64,    /* uint64_t */
    FIELD_BOOL,   /* bool */
    FIELD_STRING, /* str_id */
    FIELD_LIST,   /* only its type is checked */
    FIELD_OBJECT, /* only its type is checked */
};

#define FIELD_CHECK_ONLY SIZE_MAX

struct json_field {
    const char *key;
    enum json_field_kind kind;
    double least, most; /* of numbers */
    bool nullable;      /* null leaves the target alone */
    size_t offset;      /* where the value goes in the target, or FIELD_CHECK_ONLY */
};

struct json_fields {
    const struct json_field *items;
    size_t count;
};

/* Fail with "PATH: expected WHAT, got VALUE". */
int json_field_expected(const struct json_path *path, const char *what, const json_t *value,
                        struct err *err);
/* Fail with "PATH: " and any other text. */
int json_field_fail(const struct json_path *path, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Check one value against its description and store it in `target`. */
int json_field_store(const struct json_field *field, const json_t *value,
                     const struct json_path *path, struct intern *strings, void *target,
                     struct err *err);

/* The same for all described members of an object that are present; others are ignored. */
int json_fields_read(const struct json_fields *fields, const json_t *object,
                     const struct json_path *path, struct intern *strings, void *target,
                     struct err *err);

#endif
