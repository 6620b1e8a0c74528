/*
 * What comes first in a view: files by their time, lines by time or by peak.
 * Pure functions of the profile; ties are broken by the order in the profile, so
 * that a view of the same profile is always the same.
 */
#ifndef VIEW_RANK_H
#define VIEW_RANK_H

#include "profile/profile.h"

/* All files, as places in profile->files: largest time first, then largest memory.  The caller
 * frees it. */
uint32_t *rank_files(const struct profile *profile);

struct rank_line {
    uint32_t file, row; /* places in profile->files and in its lines */
    double value;       /* what it is ranked by */
};

typedef double rank_value(const struct profile_line *line);
double rank_by_time(const struct profile_line *line); /* seconds */
double rank_by_peak(const struct profile_line *line); /* MiB */

/* The lines with the largest values above 0, at most `most` of them; returns how many. */
size_t rank_lines(const struct profile *profile, rank_value *value, struct rank_line *lines,
                  size_t most);

/* The source of a line in a ranking: without indentation and line end, and no longer than people
 * read.  It is not NUL-terminated. */
const char *rank_text(const struct profile *profile, const struct profile_line *line,
                      size_t *length);

#endif
