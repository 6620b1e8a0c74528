/*
 * Values of a profile, and keys with values, into JSON.  What a damaged recording
 * says is kept to what a reader takes (JSON_AMOUNT_MAX and others, json_write.h).
 * For json_write.c, json_line.c and the parts of the page.
 */
#ifndef PROFILE_JSON_PUT_H
#define PROFILE_JSON_PUT_H

#include "base/json_out.h"
#include "profile/profile.h"

void json_put_real(struct json_out *out, double value);
void json_put_count(struct json_out *out, uint64_t value);
void json_put_id(struct json_out *out, uint64_t value);
void json_put_text(struct json_out *out, const struct profile *profile, str_id id);

/* To the microsecond: there are many of them, and more digits mean nothing. */
void json_put_moment(struct json_out *out, double sec);

/* {cause: seconds, ...}, of causes that occurred, sorted. */
void json_put_waits(struct json_out *out, const struct profile_time *time);

/* [[nanoseconds since the start, MB], ...] */
void json_put_points(struct json_out *out, const struct profile_point *points, uint32_t count);

void json_put_key_real(struct json_out *out, const char *key, double value);
void json_put_key_int(struct json_out *out, const char *key, uint64_t value);
void json_put_key_int_or_null(struct json_out *out, const char *key, bool is_known, uint64_t value);
void json_put_key_pid(struct json_out *out, const char *key, int32_t value);
void json_put_key_bool(struct json_out *out, const char *key, bool value);
void json_put_key_null(struct json_out *out, const char *key);
void json_put_key_text(struct json_out *out, const char *key, const struct profile *profile,
                       str_id id);
void json_put_key_texts(struct json_out *out, const char *key, const struct profile *profile,
                        const str_id *ids, uint32_t count);
void json_put_texts(struct json_out *out, const struct profile *profile, const str_id *ids,
                    uint32_t count);

/* A share of the total; rounding must not lift it over 100, which readers check. */
void json_put_key_percent(struct json_out *out, const char *key, const struct profile *profile,
                          double sec);

#endif
