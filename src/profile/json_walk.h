/*
 * Reading a large JSON document piece by piece, for json_read.c.  A parsed value
 * takes six times the memory of its text, so a document is never parsed as a
 * whole: its objects and lists are walked over as text, and only their members
 * become jansson values, one at a time.
 *
 * Whatever is walked over or loaded to the end was checked completely; together
 * that is what jansson would take, except for how deep values may be nested.
 */
#ifndef PROFILE_JSON_WALK_H
#define PROFILE_JSON_WALK_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_document {
    const char *text;
    size_t length;
    bool is_broken;  /* something was no JSON; `err` says where */
    struct err *err; /* may be NULL */
};

/* A value in the document, as text. */
struct json_slice {
    size_t start, end; /* end 0: there is none */
};

/* How the document begins, blanks aside; '\0' if there is nothing else. */
char json_walk_first(const struct json_document *document);
/* The document's own value, with nothing but blanks around it.  -1: broken. */
int json_walk_root(struct json_document *document, struct json_slice *root);

/* The value that it is, which the caller releases; NULL: broken. */
json_t *json_walk_load(struct json_document *document, struct json_slice slice);

/* Its members, one after the other, if it is an object or a list. */
struct json_walk {
    struct json_document *document;
    size_t at, end;
    char close; /* '}' or ']' */
    size_t count;
};

void json_walk_begin(struct json_walk *walk, struct json_document *document,
                     struct json_slice slice);
/* 1: there is one, 0: no more, -1: broken.  Of an object's member *key is the name, which the
 * caller releases; a list's has none, and `key` may be NULL. */
int json_walk_next(struct json_walk *walk, json_t **key, struct json_slice *value);

/* Load an object but for the members called as one of `large` (NULL-terminated), which go to
 * `slices` in that order.  Of members with the same name the last one counts.  NULL: broken. */
json_t *json_walk_object(struct json_document *document, struct json_slice slice,
                         const char *const *large, struct json_slice *slices);

/* '{', '[', or how any other value begins. */
char json_walk_type(const struct json_document *document, struct json_slice slice);

#endif
