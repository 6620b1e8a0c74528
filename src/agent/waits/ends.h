/*
 * Who is at the other end of a descriptor that a thread waits on: a process of the
 * session, somebody else, or clients that have not come yet?  Sampler thread only.
 */
#ifndef AGENT_WAITS_ENDS_H
#define AGENT_WAITS_ENDS_H

#include <stdbool.h>
#include <stdint.h>

enum end {
    END_OUTSIDE, /* also: unknown */
    END_INSIDE,  /* a process of the session has it, this one included */
    END_CLIENTS, /* the socket listens */
};

/* Of the program's descriptor `fd`.  `writes`: it waits to write. */
enum end ends_look(int fd, bool writes, uint64_t now_ns);

#endif
