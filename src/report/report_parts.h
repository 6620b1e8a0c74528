/*
 * What the files of a report share: report.c drives, report_run.c keeps rows of
 * processes and threads, report_notes.c losses and notes, report_stacks.c stacks
 * and timeline, report_async.c what tasks did, report_crowd.c how many there were,
 * report_async_stacks.c their stacks, report_memory.c figures of memory, report_course.c how they
 * went over time, report_leaks.c which of it may leak, report_executions.c how often statements
 * ran, report_files.c files, lines and functions, report_elsewhere.c what is on none of them.
 * Nobody else includes this.
 */
#ifndef REPORT_REPORT_PARTS_H
#define REPORT_REPORT_PARTS_H

#include "report/charge.h"
#include "report/report.h"

/* Sums over all processes; elapsed_sec is that of the longest. */
struct report_clocks {
    double elapsed_sec, cpu_sec, startup_sec, unsampled_sec, handler_sec, sampler_sec, memory_sec,
        sampled_sec;
    uint64_t cpu_samples;
};

/* Texts of rows are kept beside them and not as string ids: those of a thousand rows that end up in
 * a sum must not stay in memory. */
struct report_process {
    struct profile_process row;
    char *command; /* owned */
    uint64_t start_mono_ns;
    bool is_first; /* started by the launcher */
};

struct report_thread {
    struct profile_thread row;
    char name[16];
    uint64_t start_mono_ns; /* of its process */
    uint32_t id;            /* in its process's recording */
};

/* A stretch of the timeline. */
struct report_run {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    uint64_t ident; /* of the thread; 0: unknown */
    uint64_t us;
    uint32_t node; /* of the merged tree */
};

/*
 * A change of live memory: of a line and function (each + 1), or of the whole
 * (both 0).  It may be several changes in a row that were folded into one; then
 * `high_mb` is how far up they led on the way, at least once.
 */
struct report_change {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    uint32_t line, function;
    double net_mb, high_mb;
};

/* Sums of lines, functions and files are in `charge`; here is what belongs to none. */
struct report_memory {
    struct profile_memory all, untraced;
    bool is_missing; /* the program's own memory was not followed */
    double native_threads_mb, interval_mb;
    double all_square_mb2; /* of all samples of allocations, see struct profile_memory */
    bool has_peak;         /* of the process whose own footprint was highest: */
    double peak_mb, peak_python_fraction;
    uint32_t peak_line; /* + 1 */
    double *stack_mb;   /* allocated, by node of the merged tree */
    size_t stack_count;
    struct report_change *changes;
    size_t change_count, change_cap, change_limit;
    unsigned fold_shift; /* changes within 2^N ns are folded; 0: none was yet */
    uint64_t end_ns;     /* of the process that lived longest */
};

/* How many tasks there were over time, the most in each of equal stretches. */
struct report_crowd {
    uint64_t first; /* number of the first stretch, counted from 0 of CLOCK_MONOTONIC */
    unsigned shift; /* a stretch lasts 2^shift ns */
    uint64_t *tasks;
    size_t count;
};

/* Sums of lines, functions and files are in `charge`; here is what belongs to none. */
struct report_async {
    struct profile_loops loops;
    uint64_t looks;              /* at tasks, and stretches of blocked loops */
    struct charge_place longest; /* where a loop was blocked for loops.longest_sec */
    double *stack_sec;           /* awaited, by node of the merged tree */
    size_t stack_count;
    struct report_crowd crowd;
};

/* An interpreter that was seen: tells where modules are. */
struct report_interpreter {
    str_id path;
    uint32_t python_hex;
};

struct report {
    struct profile *profile;
    const struct report_config *config;
    struct wire_filter filter;
    struct sources sources;
    struct charge charge;
    bool has_filter, has_fixed_rate;

    bool has_first; /* the earliest process added so far, which at the end is the program */
    uint64_t first_mono_ns, first_real_ns, first_main_ident;
    char *program;   /* "" if unknown */
    char *directory; /* "" if unknown */
    str_id program_file;

    struct report_clocks clocks;
    struct report_process *processes;
    size_t process_count, process_cap;
    struct report_process more_processes; /* the sum of those without a row */
    struct report_thread *threads;
    size_t thread_count, thread_cap;
    struct profile_thread more_threads;
    struct map cpu_end_ns; /* pid of a replaced image -> its CPU clock: exec does not reset it */
    struct map idents;     /* of threads, that are taken */

    struct report_run *runs;
    size_t run_count, run_cap;
    unsigned run_halvings; /* one in 2^N runs is kept */

    struct report_memory memory;
    struct report_async async;

    uint64_t harvested; /* by the session's launcher, when this report began */
    uint64_t lost[WIRE_LOSSES], dropped[WIRE_SECTIONS], unreadable;
    uint64_t confined; /* processes that a seccomp filter kept us out of */
    bool has_jit;
    struct report_interpreter *interpreters;
    size_t interpreter_count, interpreter_cap;
    str_id *notes;
    size_t note_count, note_cap;
    struct profile_loss *losses;
    size_t loss_count, loss_cap;
};

/* report_notes.c */
void report_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A count of 0 is not a loss. */
void report_loss(struct report *report, const char *key, const char *text, uint64_t count);
void report_notes_add(struct report *report, const struct recording *recording);
void report_notes_finish(struct report *report);    /* before the other _finish functions */
void report_notes_hand_over(struct report *report); /* last */

/* report_run.c: processes, threads, CPU by the clocks.  report_run_threads gives, for each thread
 * id of the recording, its ident in the profile; the caller frees that. */
void report_run_add(struct report *report, const struct recording *recording,
                    double sampled_cpu_sec, enum report_fate fate);
uint64_t *report_run_threads(struct report *report, const struct recording *recording);
void report_run_finish(struct report *report);
void report_run_copy(struct report *to, const struct report *from);
void report_run_release(struct report *report);

/* report_stacks.c: stamps of lines, stacks and runs; the latter two only if config->stacks.  After
 * report_run_finish: runs of threads that have no row are nobody's. */
void report_stacks_add(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, const uint64_t *ident_of);
void report_stacks_finish(struct report *report);

/* A node's frames, outermost first, into room for its depth. */
void report_frames(const struct charge *charge, uint32_t node_id, struct profile_frame *frames);

/* report_async.c.  _finish before report_files_finish, which takes over what it fills, and adds
 * what is on no reported line to profile->loops. */
void report_async_add(struct report *report, const struct recording *recording,
                      const struct charge_ids *ids);
void report_async_finish(struct report *report);
/* Fills names in, sorted. */
void report_async_names(struct profile *profile, const struct charge_names *from,
                        struct profile_async *async);
void report_async_copy(struct report *to, const struct report *from);
void report_async_release(struct report *report);

/* report_crowd.c.  Processes add up. */
void report_crowd_add(struct report_crowd *crowd, const struct recording *recording);
uint64_t report_crowd_peak(const struct report_crowd *crowd);
void report_crowd_finish(const struct report_crowd *crowd, uint64_t start_ns,
                         struct profile *profile);

/* report_async_stacks.c: adds stacks of what was awaited, which take over the time that event loops
 * waited meanwhile.  By report_stacks.c, when all others are there; their places stay. */
void report_async_stacks(struct report *report);

/* report_memory.c: only if config->memory.  _finish before report_files_finish, which takes over
 * what it fills. */
void report_memory_add(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, enum report_fate fate);
void report_memory_resident(struct report *report, const struct wire_header *header,
                            struct profile_process *row);
/* What following memory took of the program's threads, estimated. */
double report_memory_cost_sec(const struct wire_header *header);
void report_memory_finish(struct report *report);
void report_memory_copy(struct report *to, const struct report *from);
void report_memory_release(struct report *report);

/* report_course.c.  `places` has one entry a site of the arena. */
void report_course_add(struct report *report, const struct recording *recording,
                       const struct charge_place *places, enum report_fate fate);
/* Fills peaks, averages and points of lines, functions and the whole; and what was live at the
 * peak, unless one process made nearly all of it: then that process's own figures stay. */
void report_course_finish(struct report *report);
/* When the process was last heard of, after its start. */
uint64_t report_course_end_ns(const struct recording *recording);

/* report_executions.c: in how many separate executions a line's statement was seen, of one
 * recording. All arguments outlive it; the merged tree does not grow meanwhile. */
struct report_executions *report_executions_new(struct report *report,
                                                const struct recording *recording,
                                                const uint32_t *node_of);
void report_executions_free(struct report_executions *executions); /* may be NULL */
/* Those that were first seen in each of the `parts` times between two of `bounds_ns`, at least.
 * `line` is as in a place. */
void report_executions_count(struct report_executions *executions, uint32_t line,
                             const struct charge_place *places, const uint64_t *bounds_ns,
                             unsigned parts, uint32_t *counts);

/* report_leaks.c: marks lines of one recording that may leak. */
void report_leaks_find(struct report *report, const struct recording *recording,
                       const uint32_t *node_of, const struct charge_place *places);

/* report_files.c: moves what is not reported to profile->untraced. */
void report_files_add(struct report *report, const struct recording *recording);
void report_files_finish(struct report *report);
void report_elsewhere_finish(struct report *report); /* after the files */

#endif
