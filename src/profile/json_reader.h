/*
 * What json_read.c reads a profile with: the state of a reading, words for its
 * tables of fields (json_field.h), and the values that occur in several places.
 *
 * All functions return 0, or -1 with the place and the reason in the reader's
 * `err`.  What is absent from the document leaves its target alone.
 */
#ifndef PROFILE_JSON_READER_H
#define PROFILE_JSON_READER_H

#include "profile/json_field.h"
#include "profile/json_walk.h"
#include "profile/json_write.h"
#include "profile/profile.h"

#define SEC_MAX   JSON_AMOUNT_MAX
#define COUNT_MAX JSON_COUNT_MAX
#define ID_MAX    JSON_ID_MAX
/* CPython's own bound. */
#define LINENO_MAX INT32_MAX

struct reader {
    struct json_document *document;
    struct profile *profile;
    struct map traced; /* names of files with lines */
    struct err *err;
};

/* The middle of a table row: kind, bounds, whether null will do. */
#define SECONDS FIELD_REAL, 0, SEC_MAX, false
#define AMOUNT  FIELD_REAL, 0, SEC_MAX, false
#define PERCENT FIELD_REAL, 0, 100, false
#define SHARE   FIELD_REAL, 0, 1, false
#define COUNT   FIELD_U64, 0, COUNT_MAX, false
#define LINENO  FIELD_U32, 0, LINENO_MAX, false
#define PROCESS FIELD_I32, 0, INT32_MAX, false
#define THREAD  FIELD_U64, 0, ID_MAX, true
#define TEXT    FIELD_STRING, 0, 0, false
#define FLAG    FIELD_BOOL, 0, 0, false
#define LIST    FIELD_LIST, 0, 0, false

#define AT(type, member) offsetof(struct type, member)
#define FIELDS(list)                                                                               \
    {                                                                                              \
        list, sizeof list / sizeof list[0]                                                         \
    }

int reader_fields(struct reader *reader, const struct json_fields *fields, const json_t *object,
                  const struct json_path *path, void *target);

typedef int reader_item(struct reader *, const json_t *value, const struct json_path *path,
                        void *item);

/* The list `key` of an object into an array of the profile's pool. */
int reader_list(struct reader *reader, const json_t *object, const struct json_path *path,
                const char *key, size_t item_size, reader_item *read, void *items_out,
                uint32_t *count_out);
/* The same of a list that was not loaded (json_walk.h), with one member at a time in memory. */
int reader_long_list(struct reader *reader, struct json_slice list, const struct json_path *path,
                     const char *key, size_t item_size, reader_item *read, void *items_out,
                     uint32_t *count_out);
/* What was not loaded is not of the type that it should be: always -1. */
int reader_wrong_type(struct reader *reader, struct json_slice slice, const struct json_path *path,
                      const char *what);

/* Of lists: a str_id, seconds as a double. */
reader_item reader_string, reader_real;

/* The member `waits` of an object; a list of points, thinned to PROFILE_POINTS_MAX. */
int reader_waits(struct reader *reader, const json_t *object, const struct json_path *path,
                 struct profile_time *time);
int reader_points(struct reader *reader, const json_t *object, const struct json_path *path,
                  const char *key, struct profile_point **points, uint32_t *count);

#endif
