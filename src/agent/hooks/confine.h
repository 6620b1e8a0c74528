/* Calls by which a program confines itself; see confine.c. */
#ifndef AGENT_HOOKS_CONFINE_H
#define AGENT_HOOKS_CONFINE_H

/* Find libc's own functions.  Constructor only. */
void confine_init(void);

#endif
