/* Keys and values as a profile holds them; see json_put.h. */
#include "profile/json_put.h"

#include "profile/json_write.h"

#include <math.h>
#include <string.h>

void json_put_real(struct json_out *out, double value)
{
    json_out_real(out, fmin(fmax(value, -JSON_AMOUNT_MAX), JSON_AMOUNT_MAX));
}

void json_put_count(struct json_out *out, uint64_t value)
{
    json_out_int(out, (double)value < JSON_COUNT_MAX ? (int64_t)value : (int64_t)JSON_COUNT_MAX);
}

void json_put_id(struct json_out *out, uint64_t value)
{
    json_out_int(out, (double)value < JSON_ID_MAX ? (int64_t)value : (int64_t)JSON_ID_MAX);
}

void json_put_key_real(struct json_out *out, const char *key, double value)
{
    json_out_key(out, key);
    json_put_real(out, value);
}

void json_put_key_percent(struct json_out *out, const char *key, const struct profile *profile,
                          double sec)
{
    json_put_key_real(out, key, fmin(profile_percent(profile, sec), 100));
}

void json_put_key_int(struct json_out *out, const char *key, uint64_t value)
{
    json_out_key(out, key);
    json_put_count(out, value);
}

void json_put_key_pid(struct json_out *out, const char *key, int32_t value)
{
    json_put_key_int(out, key, value > 0 ? (uint64_t)value : 0);
}

void json_put_key_int_or_null(struct json_out *out, const char *key, bool is_known, uint64_t value)
{
    json_out_key(out, key);
    if (is_known)
        json_put_count(out, value);
    else
        json_out_null(out);
}

void json_put_key_bool(struct json_out *out, const char *key, bool value)
{
    json_out_key(out, key);
    json_out_bool(out, value);
}

void json_put_key_null(struct json_out *out, const char *key)
{
    json_out_key(out, key);
    json_out_null(out);
}

void json_put_text(struct json_out *out, const struct profile *profile, str_id id)
{
    json_out_string(out, profile_str(profile, id), intern_length(&profile->strings, id));
}

void json_put_key_text(struct json_out *out, const char *key, const struct profile *profile,
                       str_id id)
{
    json_out_key(out, key);
    json_put_text(out, profile, id);
}

void json_put_key_texts(struct json_out *out, const char *key, const struct profile *profile,
                        const str_id *ids, uint32_t count)
{
    json_out_key(out, key);
    json_put_texts(out, profile, ids, count);
}

void json_put_texts(struct json_out *out, const struct profile *profile, const str_id *ids,
                    uint32_t count)
{
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++)
        json_put_text(out, profile, ids[i]);
    json_out_end(out);
}

void json_put_moment(struct json_out *out, double sec)
{
    json_put_real(out, round(sec * 1e6) / 1e6);
}

void json_put_waits(struct json_out *out, const struct profile_time *time)
{
    int causes[WAIT_CAUSES] = {0}, count = 0;
    for (int cause = 0; cause < WAIT_CAUSES; cause++) {
        if (!(time->wait_sec[cause] > 0))
            continue;
        int at = count++;
        for (; at > 0 && strcmp(wait_cause_key[causes[at - 1]], wait_cause_key[cause]) > 0; at--)
            causes[at] = causes[at - 1];
        causes[at] = cause;
    }
    json_out_object(out);
    for (int i = 0; i < count; i++)
        json_put_key_real(out, wait_cause_key[causes[i]], time->wait_sec[causes[i]]);
    json_out_end(out);
}

void json_put_points(struct json_out *out, const struct profile_point *points, uint32_t count)
{
    json_out_array(out);
    for (uint32_t i = 0; i < count; i++) {
        json_out_array(out);
        json_put_count(
            out, points[i].at_sec > 0 ? (uint64_t)fmin(points[i].at_sec * 1e9, JSON_COUNT_MAX) : 0);
        json_put_real(out, points[i].mb);
        json_out_end(out);
    }
    json_out_end(out);
}
