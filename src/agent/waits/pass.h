/*
 * One pass of the sampler over all threads: which of them waited since the last pass,
 * where and for what, and who is charged for the time in which nobody ran.  Sampler
 * thread only.
 */
#ifndef AGENT_WAITS_PASS_H
#define AGENT_WAITS_PASS_H

#include "agent/core/threads.h"
#include "agent/waits/claims.h"

struct pass {
    uint64_t now_ns, wall_ns; /* wall_ns: since the last pass */
    uint64_t idle_ns;         /* the part of it in which no thread of any process ran */

    /* What it found. */
    struct claims claims;
    bool any_moved, any_waited;
};

/* The calling thread is the sampler from now on.  What threads did up to now_ns is not looked at;
 * of those that a sampler before knew, not what it has looked at.  Whether files may be kept open
 * between passes. */
void pass_begin(uint64_t now_ns, bool may_keep_descriptors);

void pass_look(struct pass *pass);

/* Instead, while switched off: let time pass without charging it. */
void pass_skip(uint64_t now_ns);

#endif
