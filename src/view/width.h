/*
 * How many terminal columns a character takes.  Nothing here depends on
 * the locale: wcwidth(3) knows only ASCII in the C locale, which is where scripts
 * and CI run.
 *
 * Pure functions, any context.
 */
#ifndef VIEW_WIDTH_H
#define VIEW_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 for combining marks, 2 for wide East Asian characters and emoji, else 1. */
int width_of(uint32_t codepoint);

/* Characters that make a terminal do something instead of showing something: control characters,
 * and the marks that reorder or break a line.  Text from a profile may hold them. */
bool width_is_unsafe(uint32_t codepoint);

#endif
