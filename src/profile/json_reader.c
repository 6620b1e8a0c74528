/* Lists, texts, waits and points of a document; see json_reader.h. */
#include "profile/json_reader.h"

#include <string.h>

int reader_fields(struct reader *reader, const struct json_fields *fields, const json_t *object,
                  const struct json_path *path, void *target)
{
    return json_fields_read(fields, object, path, &reader->profile->strings, target, reader->err);
}

int reader_wrong_type(struct reader *reader, struct json_slice slice, const struct json_path *path,
                      const char *what)
{
    json_t *value = json_walk_load(reader->document, slice);
    if (value)
        json_field_expected(path, what, value, reader->err);
    json_decref(value);
    return -1;
}

int reader_list(struct reader *reader, const json_t *object, const struct json_path *path,
                const char *key, size_t item_size, reader_item *read, void *items_out,
                uint32_t *count_out)
{
    const json_t *list = json_object_get(object, key);
    const struct json_path list_path = {.up = path, .key = key};
    if (!list)
        return 0;
    if (!json_is_array(list))
        return json_field_expected(&list_path, "a list", list, reader->err);
    size_t count = json_array_size(list);
    char *items = pool_alloc(&reader->profile->pool, count * item_size);
    for (size_t i = 0; i < count; i++) {
        const struct json_path item_path = {.up = &list_path, .index = i};
        if (read(reader, json_array_get(list, i), &item_path, items + i * item_size))
            return -1;
    }
    memcpy(items_out, &items, sizeof items);
    *count_out = (uint32_t)count;
    return 0;
}

int reader_long_list(struct reader *reader, struct json_slice list, const struct json_path *path,
                     const char *key, size_t item_size, reader_item *read, void *items_out,
                     uint32_t *count_out)
{
    const struct json_path list_path = {.up = path, .key = key};
    struct json_walk walk;
    struct json_slice slice;
    size_t count = 0;
    int more;
    if (!list.end)
        return 0;
    if (json_walk_type(reader->document, list) != '[')
        return reader_wrong_type(reader, list, &list_path, "a list");
    json_walk_begin(&walk, reader->document, list);
    while ((more = json_walk_next(&walk, NULL, &slice)) > 0)
        count++;
    if (more)
        return -1;
    char *items = pool_alloc(&reader->profile->pool, count * item_size);
    json_walk_begin(&walk, reader->document, list);
    for (size_t i = 0; json_walk_next(&walk, NULL, &slice) > 0; i++) {
        const struct json_path item_path = {.up = &list_path, .index = i};
        json_t *value = json_walk_load(reader->document, slice);
        int rc = value ? read(reader, value, &item_path, items + i * item_size) : -1;
        json_decref(value);
        if (rc)
            return -1;
    }
    memcpy(items_out, &items, sizeof items);
    *count_out = (uint32_t)count;
    return 0;
}

int reader_string(struct reader *reader, const json_t *value, const struct json_path *path,
                  void *item)
{
    static const struct json_field text = {"", TEXT, 0};
    return json_field_store(&text, value, path, &reader->profile->strings, item, reader->err);
}

int reader_real(struct reader *reader, const json_t *value, const struct json_path *path,
                void *item)
{
    static const struct json_field number = {"", SECONDS, 0};
    return json_field_store(&number, value, path, NULL, item, reader->err);
}

int reader_waits(struct reader *reader, const json_t *object, const struct json_path *path,
                 struct profile_time *time)
{
    const json_t *waits = json_object_get(object, "waits");
    const struct json_path waits_path = {.up = path, .key = "waits"};
    if (!waits)
        return 0;
    if (!json_is_object(waits))
        return json_field_expected(&waits_path, "an object", waits, reader->err);
    for (int cause = 0; cause < WAIT_CAUSES; cause++) {
        const struct json_path here = {.up = &waits_path, .key = wait_cause_key[cause]};
        const json_t *value = json_object_get(waits, wait_cause_key[cause]);
        if (value && reader_real(reader, value, &here, &time->wait_sec[cause]))
            return -1;
    }
    return 0;
}

/* [nanoseconds, MB]; the original's children may have begun before it: a time below 0 is its start.
 */
static int read_point(struct reader *reader, const json_t *value, const struct json_path *path,
                      void *item)
{
    struct profile_point *point = item;
    const json_t *at = json_array_get(value, 0), *mb = json_array_get(value, 1);
    if (!json_is_number(at) || !json_is_number(mb))
        return json_field_expected(path, "a time and megabytes", value, reader->err);
    double at_ns = json_number_value(at), amount = json_number_value(mb);
    point->at_sec = at_ns > 0 ? (at_ns < 1e9 * SEC_MAX ? at_ns / 1e9 : SEC_MAX) : 0;
    point->mb = amount > 0 ? (amount < SEC_MAX ? amount : SEC_MAX) : 0;
    return 0;
}

int reader_points(struct reader *reader, const json_t *object, const struct json_path *path,
                  const char *key, struct profile_point **points, uint32_t *count)
{
    if (reader_list(reader, object, path, key, sizeof **points, read_point, points, count))
        return -1;
    if (*count > PROFILE_POINTS_MAX) {
        for (uint32_t i = 0; i < PROFILE_POINTS_MAX; i++)
            (*points)[i] = (*points)[(uint64_t)i * *count / PROFILE_POINTS_MAX];
        *count = PROFILE_POINTS_MAX;
    }
    return 0;
}
