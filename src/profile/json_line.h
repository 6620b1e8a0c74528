/*
 * A line or function of a file as JSON.  Of source lines on which nothing happened,
 * most of a profile, only the original's keys are written: its scripts index
 * them.  A reader takes a key that is not there for 0.
 */
#ifndef PROFILE_JSON_LINE_H
#define PROFILE_JSON_LINE_H

#include "base/json_out.h"
#include "profile/profile.h"

/* `scratch` is used in between; it can be the same for all. */
void json_line_put(struct json_out *out, const struct profile *profile,
                   const struct profile_line *line, bool is_function, struct buf *scratch);

#endif
