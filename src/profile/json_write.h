/*
 * The profile as JSON: all keys of the original Scalene, ours beside them
 * (docs/format.md has every field).  Keys sorted, indent 4, ASCII, a newline at
 * the end; an empty profile is `{}`.
 */
#ifndef PROFILE_JSON_WRITE_H
#define PROFILE_JSON_WRITE_H

#include "base/buf.h"
#include "base/json_out.h"
#include "profile/profile.h"

enum { JSON_WRITE_SCHEMA = 1 };

/* No number is larger.  Keeps every sum and every cast to an integer of a reader defined. */
#define JSON_AMOUNT_MAX 1e12
#define JSON_COUNT_MAX  9e15 /* below 2^53 */
#define JSON_ID_MAX     9.2e18

/* Appends to `out`. */
void json_write_profile(const struct profile *profile, struct buf *out);

/* The top level without files, stacks, memory stacks and timeline, as a value for another document.
 * (json_put.h has smaller pieces.) */
void json_write_top(const struct profile *profile, struct json_out *out);

#endif
