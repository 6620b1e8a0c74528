/*
 * The profile as JSON: all keys of the original Scalene, ours beside them
 * (docs/format.md has every field).  Keys sorted, indent 4, ASCII, a newline at
 * the end; an empty profile is `{}`.
 */
#ifndef PROFILE_JSON_WRITE_H
#define PROFILE_JSON_WRITE_H

#include "base/buf.h"
#include "profile/profile.h"

enum { JSON_WRITE_SCHEMA = 1 };

/* Appends to `out`. */
void json_write_profile(const struct profile *profile, struct buf *out);

#endif
