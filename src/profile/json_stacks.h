/* The part of json_read.c about `stacks`: what combined_stacks does not say of the same stacks. */
#ifndef PROFILE_JSON_STACKS_H
#define PROFILE_JSON_STACKS_H

#include "profile/profile.h"

#include <jansson.h>

/*
 * The document lists stacks twice: all frames with a number of hits, and the
 * traced frames alone with their times.  Tell by the second list which frames of
 * profile->stacks are traced, and give each stack its part of the time, by hits,
 * where several look alike there.  Entries that do not fit are ignored.
 */
void json_stacks_read(struct profile *profile, const json_t *stacks);

#endif
