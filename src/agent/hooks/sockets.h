/* Sockets that listen, and pairs of them; see sockets.c. */
#ifndef AGENT_HOOKS_SOCKETS_H
#define AGENT_HOOKS_SOCKETS_H

/* Find libc's own functions.  Constructor only. */
void sockets_init(void);

#endif
