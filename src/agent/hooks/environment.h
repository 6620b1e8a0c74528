/*
 * Our two entries in the environment (wire/control.h): taken out before the
 * program can see them, put back into that of every program it execs.
 */
#ifndef AGENT_HOOKS_ENVIRONMENT_H
#define AGENT_HOOKS_ENVIRONMENT_H

/* Remove them from `environ`; returns the session directory, or NULL when there is none. */
const char *environment_scrub(void);

/* From now on, programs that are exec'd are not followed. */
void environment_forget(void);

#endif
