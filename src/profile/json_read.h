/*
 * Read a JSON profile back: ours (schema_version 1) or one of the original
 * Scalene, which has no schema_version and no seconds; its seconds are then its
 * percents of elapsed_time_sec, and its total is elapsed_time_sec.
 *
 * Everything known is checked for type and range, unknown keys are ignored.
 * After success the promises of profile.h hold: files are sorted by name, their
 * lines by number, stamps are sorted.  What is made is about as large as the
 * document, whatever numbers it has.  Not in the file and therefore left at 0:
 * `square_sec2` everywhere; samples and waits of stacks.  The texts of lines are
 * those of the source again (the file has `&`, `<`, `>` as six-character
 * escapes).
 */
#ifndef PROFILE_JSON_READ_H
#define PROFILE_JSON_READ_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

enum {
    JSON_READ_SCHEMA = 1,   /* the newest schema_version understood */
    JSON_READ_INVALID = -1, /* JSON, but not a valid profile; the text names the place */
    JSON_READ_SYNTAX = -2,  /* not JSON; the text says where and why */
};

/* 0 or one of the above.  Initialises *profile; on failure nothing is left to release. */
int json_read_profile(struct profile *profile, const char *text, size_t length, struct err *err);

/* Validate as json_read_profile does, then append the whole document to `out` as
 * json.dumps(indent=4, sort_keys=True) writes it, unknown keys included, and a newline. */
int json_check_and_dump(const char *text, size_t length, struct buf *out, struct err *err);

#endif
