/*
 * The end of a process that ends by itself: its last clocks and its status are
 * noted in the arena.  Nothing else happens at exit, and nothing at all when the
 * process is killed: the data are in the file.
 */
#ifndef AGENT_CORE_ENDING_H
#define AGENT_CORE_ENDING_H

void ending_init(void);

/* Note the clocks. */
void ending_beat(void);

#endif
