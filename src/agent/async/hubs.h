/*
 * gevent's hubs: a greenlet that polls while all others of its thread are suspended.  With
 * the first one that is met, greenlets become known (async/greenlets.h): where things are in one is
 * found out (py/greenlet.h), and those that exist are looked for once among the objects that
 * the garbage collector follows.
 *
 * Not so without GIL: who changes the table would not be alone.
 */
#ifndef AGENT_ASYNC_HUBS_H
#define AGENT_ASYNC_HUBS_H

#include "agent/async/registry.h"

/* With the GIL, in a thread that is about to poll.  There is no loop unless its greenlets can be
 * read. */
struct registry_loop hubs_ask(void);

#endif
