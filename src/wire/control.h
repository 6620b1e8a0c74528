/*
 * The control page: one file `control` in the session directory, written by
 * the launcher before the program starts and mapped MAP_SHARED by every agent
 * of the session.  It carries the options to all processes, and the switch
 * that turns sampling on and off while they run.
 *
 * The session directory (mode 0700, unpredictable name):
 *
 *   control            this page
 *   libscalene.so      link to the agent; its path has no blank or colon, so
 *                      LD_PRELOAD can name it wherever the product is installed
 *   PID-N.arena        one a process image (N: 0, 1, ... when a pid execs again)
 *   facts              what the launcher knows of the run (collect/facts.h); agents do not read it
 *
 * The environment of a profiled process holds two things more than the user's:
 * our entry in front of LD_PRELOAD, and WIRE_SESSION_ENV.  The agent removes
 * both before the program can look and puts them back when it execs.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#define WIRE_SESSION_ENV  "SCALENE_SESSION"
#define WIRE_CONTROL_NAME "control"
#define WIRE_AGENT_NAME   "libscalene.so"
#define WIRE_ARENA_SUFFIX ".arena"

#define WIRE_CONTROL_MAGIC UINT64_C(0x6c7274636c616373) /* "scalctrl" */
enum { WIRE_CONTROL_VERSION = 1, WIRE_CONTROL_BYTES = 4096 };

enum wire_control_flags {
    WIRE_FLAG_STACKS = 1u << 0,       /* keep whole stacks, not only what charging needs */
    WIRE_FLAG_ASYNC = 1u << 1,        /* follow suspended coroutines */
    WIRE_FLAG_MEMORY = 1u << 2,       /* follow allocations and copies */
    WIRE_FLAG_VIRTUAL_TIME = 1u << 3, /* CPU time alone: no wait sampler */
};

struct wire_control {
    uint64_t magic;
    uint32_t version;
    uint32_t flags;            /* enum wire_control_flags */
    uint64_t cpu_interval_ns;  /* mean CPU time between two samples of a thread */
    uint64_t wait_interval_ns; /* wall time between two passes of the wait sampler */
    int32_t launcher_pid;
    _Atomic uint32_t on;         /* sampling now? */
    _Atomic uint32_t closed;     /* the launcher has gone: exec'd children are not followed */
    _Atomic uint32_t generation; /* bumped with every change of `on` */
    _Atomic uint64_t cpu_ns;     /* CPU used by all processes of the session, added by each */
    /* Pids come again; together with these three, launcher_pid is one process for ever. */
    uint64_t launcher_start_ticks;    /* since boot: /proc/PID/stat, field 22 */
    uint64_t boot;                    /* which boot of the machine: a hash of its id */
    uint64_t pid_namespace;           /* inode of /proc/self/ns/pid */
    _Atomic uint64_t harvested;       /* recordings the launcher has taken in and removed */
    _Atomic uint64_t unrecorded;      /* processes that could not make their recording */
    uint64_t allocation_window_bytes; /* most bytes between two memory samples, on average */
    uint8_t reserved[WIRE_CONTROL_BYTES - 104];
};

_Static_assert(sizeof(struct wire_control) == WIRE_CONTROL_BYTES, "control page is one page");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "shared words are lock-free");

#endif
