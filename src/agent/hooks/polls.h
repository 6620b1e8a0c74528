/* See polls.c. */
#ifndef AGENT_HOOKS_POLLS_H
#define AGENT_HOOKS_POLLS_H

void polls_init(void); /* find libc's own, in the constructor */

#endif
