/*
 * The records of what tasks do (struct wire_await, wire_place, wire_name of wire/arena.h).
 * Sampler thread only: it is their one writer.
 *
 * A pass sees some of all tasks, and what each of them stands for is known when it ends; so
 * sightings are counted first (awaits_see) and turned into time afterwards
 * (awaits_weigh).  How many tasks wait at one place at once is counted over a round,
 * in which each task is seen once (awaits_end_round).
 */
#ifndef AGENT_ASYNC_AWAITS_H
#define AGENT_ASYNC_AWAITS_H

#include "wire/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* The tables, when the first task is seen.  False: there is no room. */
bool awaits_begin(void);

/* A task with this stack; what it does is of WAITS, TASKS or READY.  Returns its place, 0: none. */
uint32_t awaits_see(uint32_t node, enum wire_await_kind kind, bool is_loop_busy);

/* Does the place still want names?  And one. */
bool awaits_wants_name(uint32_t place);
void awaits_name(uint32_t place, uintptr_t text, uint64_t number);

/* Each sighting since the last call stands for `scale` tasks, which all did the same for so long.
 */
void awaits_weigh(double since_us, double scale);
/* Peaks, within a round: each task that was seen in it stands for so many.  Of places with few of
 * them that says little: theirs are known when the round ends.  Then each may stand for less than
 * one, where tasks came and went meanwhile. */
void awaits_raise(double scale);
void awaits_end_round(uint64_t round_us, double scale);

/* A stretch in which a loop is blocked, as far as it has been seen. */
struct awaits_part {
    uint32_t place;
    uint64_t ns;
};
struct awaits_stretch {
    uint32_t node; /* one at the place where most of it was spent */
    uint64_t ns;   /* all of it */
    unsigned count;
    struct awaits_part parts[WIRE_PARTS_MAX]; /* largest first */
};

/* It goes on for `ns` at this stack of the loop's thread. */
void awaits_block(struct awaits_stretch *stretch, uint32_t node, uint64_t ns);
/* The same of some whole stretches that were not seen. */
void awaits_block_more(uint32_t node, uint64_t ns, uint64_t stretches);

/* What a frame below the innermost traced one says of the wait. */
enum awaits_frame { AWAITS_PLAIN, AWAITS_FOR_TASKS, AWAITS_HIDDEN };
/* Of a whole stack: does it wait for other tasks in a library's function; is it a task of the
 * framework's own? */
enum awaits_frame awaits_judge(uint32_t node);

void awaits_in_child(bool is_recorded); /* see forks.h */

#endif
