/* Where this command and its agent are installed. */
#ifndef CMD_INSTALL_H
#define CMD_INSTALL_H

#include <stdbool.h>

/* The directory of the running executable; the caller frees it.  NULL if it cannot be found. */
char *install_directory(void);

/* libscalene.so: $SCALENE_AGENT if set, else where installation puts it relative to `directory`
 * (which may be NULL); without memory libscalene-cpu.so, if it is beside.  NULL if there is none;
 * the caller frees it. */
char *install_agent(const char *directory, bool memory);

#endif
