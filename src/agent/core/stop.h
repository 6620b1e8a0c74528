/*
 * The end of recording while the program goes on: no timer, no thread of ours, no
 * system call that the program does not make itself.  What was recorded stays; what
 * is exec'd or forked from now on is not followed.
 */
#ifndef AGENT_CORE_STOP_H
#define AGENT_CORE_STOP_H

#include "wire/arena.h"

/* `why` goes to the header's flags.  Not from a handler. */
void stop_for_good(enum wire_header_flags why);

#endif
