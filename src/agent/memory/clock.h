/*
 * How long a block lived, by what its thread allocated meanwhile: what is gone again
 * before its thread has allocated another window did not move the footprint
 * (wire_site).
 *
 * Each thread knows exactly what it has asked for, since its gaps (memory.h) count
 * that down; small objects that went by while nobody looked (duty.h) are estimated.
 * It tells others whenever it comes to the recorder.  When another thread frees the
 * block, what the allocating one asked for since it last told is taken for half an
 * interval.  When the allocating thread has ended, its clock goes on with what the
 * whole process allocates, from when it last told, so that what it leaves to others is
 * judged like anything else.
 *
 * Under the recorder's lock.
 */
#ifndef AGENT_MEMORY_CLOCK_H
#define AGENT_MEMORY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A new arena: no thread has allocated anything. */
void clock_begin(void);

/* The calling thread's clock now, as one number to be kept with the block. */
uint64_t clock_born(uint64_t now_mono_ns);

/* Has the thread that was given `born` allocated `window_bytes` since?  `interval_bytes` is the
 * mean between two samples. */
bool clock_has_passed(uint64_t born, uint64_t window_bytes, uint64_t interval_bytes,
                      uint64_t now_mono_ns);

#endif
