/* Mappings by the program's own code; see mappings.c. */
#ifndef AGENT_HOOKS_MAPPINGS_H
#define AGENT_HOOKS_MAPPINGS_H

/* Find the functions we stand in front of.  Constructor only. */
void mappings_init(void);

#endif
