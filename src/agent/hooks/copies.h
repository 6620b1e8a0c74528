/* Copy volume; see copies.c. */
#ifndef AGENT_HOOKS_COPIES_H
#define AGENT_HOOKS_COPIES_H

/* Find libc's own functions.  Constructor only. */
void copies_init(void);

#endif
