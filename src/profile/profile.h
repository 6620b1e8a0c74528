/*
 * The profile: what a run showed, ready to be written as JSON (json_write.h) or
 * rendered (src/view).  Built by src/report after a run, or read back from a
 * file (json_read.h).  docs/format.md says what each number means; the names
 * here follow it.
 *
 * One owner: profile_release frees everything; strings are ids in `strings`.
 * Times are seconds.  `total_sec` is what 100 % stands for: all CPU time plus
 * all charged waits of all processes.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "base/intern.h"
#include "wire/waits.h"

#include <stdbool.h>
#include <stdint.h>

/* Causes of waiting, in the order of enum wire_kind from WIRE_WAIT_FIRST on: WAIT_FILE, ... */
#define WAIT_CAUSE_ROW(NAME, key, label, external, help) WAIT_##NAME,
enum wait_cause { WIRE_WAITS(WAIT_CAUSE_ROW) WAIT_CAUSES };
extern const char *const wait_cause_key[WAIT_CAUSES];   /* JSON: "file", "socket", ... */
extern const char *const wait_cause_label[WAIT_CAUSES]; /* people: "file I/O", "GIL", ... */

/* Time charged to something: a line, a function, the remainder. */
struct profile_time {
    double python_sec, native_sec, system_sec; /* add up to the share of total_sec */
    double wait_sec[WAIT_CAUSES]; /* all waits seen there, charged (in system_sec) or not */
    uint64_t samples;             /* CPU samples and charged wait samples it stands on */
    double square_sec2;           /* sum of squared sample weights: gives the half-width */
};

struct profile_point { /* of a footprint over time */
    double at_sec;     /* since the program's start */
    double mb;
};

struct profile_leak {
    double likelihood; /* 0: nothing suspicious */
    double velocity_mb_s;
};

/* Figures of memory that stand on samples. */
struct profile_memory_parts {
    double allocated, live, peak, copied;
};

/* Memory charged to something, in MiB (docs/format.md "Memory").  `allocated` is what moved the
 * footprint, `total` all that was asked for. */
struct profile_memory {
    double total_mb;
    uint64_t total_count; /* allocations, estimated */
    double allocated_mb;
    double python_mb; /* of it: by the interpreter */
    double live_mb;   /* at the program's end, or when the profile was made */
    double at_peak_mb;
    double peak_mb; /* its own highest */
    double average_mb;
    double copied_mb;
    uint64_t count; /* of allocated_mb, estimated */
    uint64_t samples;
    struct profile_memory_parts half_width_mb; /* 95 %; exact blocks add nothing */
    struct profile_memory_parts square_mb2; /* sums of squared weights, while a report is made, */
    struct profile_memory_parts window_mb2; /* and what windows add to them */
    double most_mb;                         /* `peak` in both is of what so much is made of */
    str_id library;                         /* that allocated most of the native part; 0: none */
    double library_mb;
    struct profile_leak leak;
    struct profile_point *points; /* the program's footprint when it allocated */
    struct profile_point *own;    /* its own live memory; as many */
    uint32_t point_count;         /* at most PROFILE_POINTS_MAX */
};

/*
 * What tasks did at a line, and what the line did to event loops (docs/format.md "Async").  Time of
 * tasks is that of all of them together: ten that wait for a second are ten seconds.
 */
struct profile_async {
    double await_sec;           /* they waited for something that is no task, */
    double join_sec;            /* or for other tasks, whose time counts by itself, */
    double ready_sec;           /* or could run, but the loop had not come to them */
    double half_width_sec;      /* 95 %, of the sum of these three */
    double square_sec2;         /* its variance, while a report is made */
    double present_sec;         /* in which at least one of them waited */
    double peak;                /* so many waited at once */
    double blocked_sec;         /* a loop did nothing else, */
    double blocked_longest_sec; /* and so long at a stretch, */
    uint64_t blocked_count;     /* of which there were so many */
    str_id *names; /* of tasks that waited here, by name; at most PROFILE_TASK_NAMES_MAX */
    uint32_t name_count;
};

struct profile_crowd { /* of tasks that are not finished */
    double at_sec;     /* since the program's start */
    uint64_t tasks;
};

/* All event loops, and tasks of the whole run. */
struct profile_loops {
    uint64_t count;
    uint64_t looks;            /* times that tasks were looked at */
    double busy_sec, idle_sec; /* a loop is idle while it polls */
    double blocked_sec;        /* of busy: had not polled for some milliseconds */
    double longest_sec;        /* the longest such stretch, */
    str_id longest_file;       /* and where most of it was spent; 0: unknown */
    uint32_t longest_line;
    double await_sec, join_sec, ready_sec;
    double untraced_await_sec; /* of await_sec: on no reported line */
    uint64_t tasks_peak;
    struct profile_crowd *crowd; /* over time; at most PROFILE_POINTS_MAX */
    uint32_t crowd_count;
};

/* A source line, or a function (then `text` is its qualified name). */
struct profile_line {
    uint32_t lineno;
    str_id text;
    struct profile_time time;
    struct profile_memory memory;
    struct profile_async async;
    bool is_coroutine;         /* in an `async def` */
    double half_width_percent; /* 95 % half-width of (python + native + system) percent */
    double core_utilization;
    double *stamps; /* CLOCK_MONOTONIC seconds of samples, sorted; at most PROFILE_STAMPS_MAX */
    uint32_t stamp_count;
    uint32_t start_region, end_region;
    uint32_t start_outermost_loop, end_outermost_loop;
    uint32_t start_function, end_function;
};
enum {
    PROFILE_STAMPS_MAX = 500,
    PROFILE_RUNS_MAX = 100000,
    PROFILE_STACKS_MAX = 10000,
    PROFILE_FRAMES_MAX = 5000, /* of all stacks together: about 1 MB of JSON */
    PROFILE_POINTS_MAX = 100,
    PROFILE_TASK_NAMES_MAX = 100,
    PROFILE_AWAIT_STACKS_MAX = 1000, /* beside the others */
    PROFILE_AWAIT_FRAMES_MAX = 2000,
    PROFILE_MEMORY_STACKS_MAX = 1000,
    PROFILE_MEMORY_FRAMES_MAX = 2000,
    PROFILE_ELSEWHERE_MAX = 10,
    PROFILE_ROWS_MAX = 1000, /* of processes, and of threads; one more is the sum of the others */
};

struct profile_file {
    str_id name;
    struct profile_time time;
    struct profile_memory memory;
    struct profile_line
        *lines; /* by number; every line of the source, or those the file read has */
    uint32_t line_count;
    struct profile_line *functions; /* by first line */
    uint32_t function_count;
    str_id *imports; /* statements that import a native module */
    uint32_t import_count;
};

struct profile_frame {
    str_id name; /* qualified function name */
    str_id file;
    uint32_t line; /* 0: none */
    bool traced;
    bool is_native; /* a function of a library, which only the original's profiles have */
};

struct profile_stack {
    struct profile_frame *frames; /* outermost first */
    uint32_t frame_count;
    struct profile_time time;
    uint64_t hits; /* its time in units of the sampling interval, at least 1 */
};

struct profile_memory_stack {
    struct profile_frame *frames; /* outermost first */
    uint32_t frame_count;
    double mb; /* allocated with it */
};

struct profile_run { /* a stretch of the timeline */
    double at_sec;
    uint32_t stack;
    uint64_t count;
    uint64_t thread_ident;
};

struct profile_thread {
    int32_t pid, tid;
    uint64_t count; /* 1, or how many threads the row is the sum of */
    uint64_t ident;
    str_id name;
    bool is_python;
    double cpu_sec, wait_sec;
};

struct profile_process {
    int32_t pid, ppid;
    uint64_t count;         /* 1, or how many processes the row is the sum of */
    str_id command, python; /* "3.12.1" */
    double start_sec;       /* after the first process began */
    double elapsed_sec, cpu_sec, startup_sec, sampled_cpu_sec;
    uint64_t peak_rss_bytes;
    bool ended, forked;
    bool running;        /* when the profile was made */
    int32_t exit_status; /* -1: unknown */
    int32_t signal;      /* that ended it; 0: none, or unknown */
    bool has_memory;
    /* Resident memory explained: rss_mb is the sum of all others, less untouched_mb
     * (docs/format.md "Resident"). */
    double rss_mb, start_rss_mb, python_live_mb, native_live_mb, mapped_live_mb, slack_mb, other_mb,
        untouched_mb;
    double mapped_reserved_mb; /* the size of what mapped_live_mb is the resident part of */
};

/* A package, or a file of none, that took time which is on no reported line. */
struct profile_place {
    str_id name;
    double sec;
};

struct profile_loss {
    str_id key;  /* "table_full" */
    str_id text; /* "samples lost because a table was full" */
    uint64_t count;
};

struct profile {
    struct intern strings;
    struct pool pool; /* every array below lives here */

    bool empty;                                /* nothing to report: the file is {} */
    str_id program, entrypoint_dir, directory; /* `filename` in the JSON is the directory */
    str_id *args;
    uint32_t arg_count;
    bool has_args;
    bool async_profile, memory, gpu;

    double elapsed_sec, start_absolute_sec, start_perf_sec;
    double total_sec;                /* all CPU + all charged waits */
    struct profile_time time;        /* of the whole run, remainder included */
    struct profile_time untraced;    /* the part not on any reported line */
    struct profile_place *elsewhere; /* of untraced, largest first; at most PROFILE_ELSEWHERE_MAX */
    uint32_t elsewhere_count;
    double idle_sec;           /* beside total_sec: nobody ran, and a server waited for requests */
    double native_threads_sec; /* within untraced: CPU of threads without Python code that
                                  no Python line was waiting for */
    double cpu_sec;            /* CPU time of all processes by their own clocks */
    double startup_sec;        /* of it: before the program began */
    double unsampled_sec;      /* of it: never seen by a sample (cpu - startup - sampled) */
    double interval_sec, wait_interval_sec;
    double handler_sec, sampler_sec; /* our own cost, inside cpu_sec */
    double memory_sec;               /* the same of following memory, estimated */
    uint64_t main_ident;

    struct profile_loops loops;

    struct profile_memory all_memory; /* of the whole run; `points` is the footprint's course */
    struct profile_memory untraced_memory; /* the part not on any traced line */
    double native_threads_mb;              /* allocated by threads without Python code */
    double growth_percent;                 /* live at the end, of all that was allocated */
    double peak_python_fraction;
    str_id peak_file; /* whose line made the peak; 0: unknown */
    uint32_t peak_line;
    double memory_interval_mb;  /* between two samples, at the end */
    double stack_least_percent; /* stacks end where what follows took less of the total */
    struct profile_memory_stack *memory_stacks; /* largest first */
    uint32_t memory_stack_count;

    struct profile_file *files; /* by name */
    uint32_t file_count;
    struct profile_stack *stacks; /* first seen first */
    uint32_t stack_count;
    struct profile_run *runs;
    uint32_t run_count;
    struct profile_thread *threads;
    uint32_t thread_count;
    struct profile_process *processes;
    uint32_t process_count;
    struct profile_loss *losses;
    uint32_t loss_count;
    str_id *notes; /* sentences the user should read: "JIT on: ..." */
    uint32_t note_count;
};

void profile_init(struct profile *profile);
void profile_release(struct profile *profile);
const char *profile_str(const struct profile *profile, str_id id);

/* NULL if the file has no such line. */
struct profile_line *profile_line_at(const struct profile_file *file, uint32_t lineno);

/* Has time, waits, memory or tasks. */
bool profile_line_is_active(const struct profile_line *line);
bool profile_async_is_active(const struct profile_async *async);

/* Were event loops followed, or do we have what another profiler said of awaiting? */
bool profile_has_loops(const struct profile *profile);

/* Tasks that waited at once, while any did, on average. */
double profile_concurrency(const struct profile_async *async);
/* Of all awaiting. */
double profile_await_percent(const struct profile *profile, const struct profile_async *async);
/* All but names: sums, and the highest of what cannot be added. */
void profile_async_add(struct profile_async *into, const struct profile_async *from);

double profile_time_sum(const struct profile_time *time); /* python + native + system */
double profile_percent(const struct profile *profile, double sec);
void profile_time_add(struct profile_time *into, const struct profile_time *from);

/* 95 % half-width, in percent points, of a share that stands on these samples: 1.96 times the
 * binomial error with the effective number of samples n = (sum w)^2 / sum w^2 of the whole run. */
double profile_half_width(const struct profile *profile, const struct profile_time *time);

/* All our own cost. */
double profile_overhead_sec(const struct profile *profile);

/* 95 % half-width of a sum of sampled weights whose squares add up to `square`, where those of all
 * samples add up to `all`; windows add `window` to that (wire_site.window_square). */
double profile_memory_half_width(double square, double all, double window);

#endif
