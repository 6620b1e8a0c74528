/*
 * The control page: one file `control` in the session directory, written by
 * the launcher before the program starts and mapped MAP_SHARED by every agent
 * of the session.  It carries the options to all processes, the switch that
 * turns sampling on and off while they run, and what the processes tell each
 * other, so that time in which all of them wait is charged once.
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
enum {
    WIRE_CONTROL_VERSION = 3,
    WIRE_FILTER_TEXT_BYTES = 4096,
    WIRE_FILTER_TOOL_BYTES = 64,
    WIRE_FILTER_DIRECTORIES = 4,
    WIRE_CLAIMS_MAX = 448,
    WIRE_MARKS_MAX = 1024,
};

enum wire_control_flags {
    WIRE_FLAG_VIRTUAL_TIME = 1u << 0, /* CPU time alone: no waits */
    WIRE_FLAG_FIXED_RATE =
        1u << 1,                  /* cpu_interval_ns was asked for: sample neither more nor less */
    WIRE_FLAG_NO_ASYNC = 1u << 2, /* leave event loops alone */
};

/*
 * Which files are traced (wire/traced.h).  The launcher writes it; agents ask it for each new code
 * object, since whom idle time is charged to depends on who has a line of the user's.
 */
struct wire_filter {
    uint32_t flags; /* enum wire_filter_flags */
    /* All of these end with NUL.  Directories: the program's, the same with links resolved; the
     * working directory if the program lies below it, and resolved.  "" where there is none. */
    char directories[WIRE_FILTER_DIRECTORIES][WIRE_FILTER_TEXT_BYTES];
    char script[WIRE_FILTER_TEXT_BYTES];       /* named on the command line, or a command's */
    char profile_only[WIRE_FILTER_TEXT_BYTES]; /* patterns, comma-separated */
    char profile_exclude[WIRE_FILTER_TEXT_BYTES];
    char tool[WIRE_FILTER_TOOL_BYTES]; /* an installed program's package; the launcher's alone */
};
enum wire_filter_flags {
    WIRE_FILTER_ALL = 1u << 0,              /* --profile-all; or the texts did not fit */
    WIRE_FILTER_SYSTEM_LIBRARIES = 1u << 1, /* --profile-system-libraries */
    WIRE_FILTER_STDIN = 1u << 2,            /* the program is read from stdin */
    WIRE_FILTER_CODE = 1u << 3,             /* the program is -c */
    WIRE_FILTER_COMMAND = 1u << 4, /* the script is an installed command's: not the user's */
};

/*
 * Whom the time is charged to in which no thread of any process runs: in this order, the first
 * rank that anybody in the session has, in equal parts to all who have it.  "Outside" is what is
 * not a process or thread of the session; "main" is the first process's main thread.
 */
enum wire_rank {
    WIRE_RANK_MAIN_OUTSIDE, /* with a traced line on the stack, this and the next two */
    WIRE_RANK_STARVED,      /* ready to run, no processor being free */
    WIRE_RANK_OUTSIDE,
    WIRE_RANK_REQUEST, /* a server that waits for requests: idle, whoever it is */
    WIRE_RANK_MAIN,    /* whatever it waits for, with a traced line */
    WIRE_RANK_UNTRACED_MAIN_OUTSIDE,
    WIRE_RANK_UNTRACED_STARVED,
    WIRE_RANK_UNTRACED_OUTSIDE,
    WIRE_RANK_UNTRACED_MAIN,
    WIRE_RANKS,
};

/* What one process claims of idle time: how many of its threads have each rank. */
struct wire_claims {
    _Atomic int32_t pid; /* 0: free */
    int32_t ppid;
    _Atomic uint64_t beat_mono_ns; /* of its last pass: an old claim is void */
    _Atomic uint16_t threads[WIRE_RANKS];
    uint8_t reserved[64 - 16 - 2 * WIRE_RANKS];
};
_Static_assert(sizeof(struct wire_claims) == 64, "wire_claims");

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
    _Atomic uint64_t late_cpu_ns;     /* of cpu_ns, what was added for a time long past: by a
                                         process's first and last word */
    struct wire_filter filter;
    struct wire_claims claims[WIRE_CLAIMS_MAX];
    _Atomic uint32_t joined; /* bumped when a process takes an entry */
    /* Sockets by inode: those that listen, and both ends of pairs that a process of the session
     * made.  A ring; what is overwritten is taken for a connection to somewhere else. */
    _Atomic uint32_t marks_made;
    _Atomic uint64_t marks[WIRE_MARKS_MAX]; /* inode << 2 | enum wire_mark */
};
enum wire_mark { WIRE_MARK_NONE, WIRE_MARK_LISTENS, WIRE_MARK_PAIR };

enum { WIRE_CONTROL_BYTES = sizeof(struct wire_control) };

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "shared words are lock-free");

#endif
