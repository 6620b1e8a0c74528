/*
 * Which process is that?  A pid alone does not say: it is given again when its
 * process is gone, means another process in another pid namespace (a container
 * that shares /tmp), and nothing at all after a reboot.  Used where pids are
 * written down (session.c) and read back later (sessions.c).
 */
#ifndef COLLECT_PROCESS_H
#define COLLECT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When the process was started, in clock ticks since boot, never 0; 0: there is none, or it has
 * ended and only waits to be waited for. */
uint64_t process_start_ticks(pid_t pid);

/* A number for this boot of the machine and one for our pid namespace; 0 if not to be had. */
uint64_t process_boot(void);
uint64_t process_pid_namespace(void);

/* Did this process exist at `mono_ns` of CLOCK_MONOTONIC, of this boot?  Then it is the one that
 * had the pid at that moment. */
bool process_existed_at(pid_t pid, uint64_t mono_ns);

#endif
