/*
 * The head of the terminal view: what ran, how long, where the time went as a
 * whole, on what the numbers stand and what is missing from them.  Facts that
 * the profile does not have (one of the original Scalene) are left out.  Used
 * by terminal.c.
 */
#ifndef VIEW_SUMMARY_H
#define VIEW_SUMMARY_H

#include "profile/profile.h"
#include "view/screen.h"

void summary_render(struct screen *screen, const struct profile *profile);

#endif
