/* system(), interposed; see shell.c. */
#ifndef AGENT_HOOKS_SHELL_H
#define AGENT_HOOKS_SHELL_H

#include <stdbool.h>

void shell_in_child(bool is_recorded); /* see forks.h */

#endif
