/*
 * Which allocations are samples.  Each thread counts bytes down in gaps, one for each
 * kind of call (struct memory_thread); when one runs out it asks here.
 *
 * Large blocks (from 64 KiB on, later from a quarter of T) are all
 * recorded, exactly.  Of the rest each thread takes one about every T bytes: the
 * number of bytes up to the next one (the gap) is drawn from [T/2, 3T/2), and the
 * sample stands for T bytes.  T is a small part of the session's window at first.  It
 * grows up to all of it with the number of samples that live, so that there is room
 * for all, and while samples cost more than they should (the pace); it falls
 * back afterwards.
 */
#ifndef AGENT_MEMORY_GAPS_H
#define AGENT_MEMORY_GAPS_H

#include "agent/memory/memory.h"

/* A new arena.  The calling thread's gaps are new, too. */
void gaps_begin(void);

/*
 * The gap ran out, or the block is large (then it was not counted down yet).  Is
 * this a sample?  The block has `size_bytes` now, `grown_bytes` of them new.  Fills
 * `sample` if so, and draws the next gap.
 */
bool gaps_choose(struct memory_gap *gap, uint64_t grown_bytes, uint64_t size_bytes,
                 struct memory_sample *sample);
uint64_t gaps_random(void);
/* From now on so much is left of it. */
void gaps_set(struct memory_gap *gap, int64_t left_bytes);
/* Nothing is recorded now: a gap so long that this thread does not come again soon. */
void gaps_postpone(struct memory_gap *gap);

/* Under the recorder's lock: a sample of a stack with so many frames was recorded.  / Now and then,
 * as the program runs. */
void gaps_spend(uint32_t frames);
void gaps_keep_pace(void);

#endif
