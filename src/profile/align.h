/*
 * Which line of a source is which line of another version of it: the longest
 * common subsequence of their lines.  Used where profiles of a file that was
 * edited between the runs are put together.
 */
#ifndef PROFILE_ALIGN_H
#define PROFILE_ALIGN_H

#include "base/intern.h"

/*
 * Lines are given as ids of their texts.  The answer has, for each old line, the
 * number of its new line, counted from 1, or 0 if it has none; numbers ascend.
 * The caller frees it.  Where thousands of lines were changed only what comes
 * before the first and after the last change is found.
 */
uint32_t *align_lines(const str_id *old_lines, uint32_t old_count, const str_id *new_lines,
                      uint32_t new_count);

#endif
