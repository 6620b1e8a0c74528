/*
 * One profile of several runs, for `scalene merge`.  The runs may be of ours or
 * of the original Scalene, read by json_read.h.
 *
 *   times, samples, CPU clocks   summed: of lines, functions, files, the whole
 *   percents, half-widths        of the new total; 0 half-widths if one of the runs has none
 *   elapsed_sec                  the time covered by at least one run: runs one after the other
 *                                add up, runs at the same time count once
 *   memory                       allocated, copied, live: summed, their half-widths as errors of
 *                                different runs are; highest footprints: the highest;
 *                                averages weigh by what was allocated; leaks: the likeliest.
 *                                Courses over time, and what was live at the peak: those of the
 *                                run with the highest footprint
 *   event loops, tasks           times and counts summed, and so mean concurrency weighs by the
 * time in which tasks waited; peaks and longest stretches: the highest. Names of tasks: of all
 * runs, a hundred.  How many tasks there were over time: of the run that had most stacks summed
 * where all frames are equal timeline, stamps, processes  placed by the absolute time at which the
 * runs began threads, processes           of all runs; a thread whose ident another run had gets a
 * new one notes, losses                each once; counts summed program, arguments, options  those
 * of the earliest run
 *
 * Where the source of a file differs, the newest run's is kept; lines of older
 * runs are found in it by their text, and time and memory on lines that are not
 * there any more go to `untraced`, what was awaited there to `untraced_await_sec`.  GPU figures are
 * not part of the profile model: a note says so when a run had some.
 */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "profile/profile.h"

#include <stddef.h>

/* Initialises *merged, which shares nothing with the runs; those are in any order.  Empty runs add
 * nothing; if there is no other, the result is empty. */
void merge_profiles(struct profile *merged, const struct profile *runs, size_t count);

#endif
