/*
 * What the files of report_build share: report.c drives, report_run.c tells about
 * processes, threads and losses, report_stacks.c makes stacks and timeline,
 * report_memory.c all about memory, report_files.c files, lines and functions.  Nobody else
 * includes this.
 */
#ifndef COLLECT_REPORT_PARTS_H
#define COLLECT_REPORT_PARTS_H

#include "collect/charge.h"
#include "collect/report.h"

/* One process image's arena and what was made of it. */
struct recording {
    struct arena arena;
    int32_t pid;
    uint32_t image;         /* N of PID-N.arena */
    uint64_t cpu_before_ns; /* CPU clock of the pid when this image began: exec does not reset it */
    uint32_t *node_of;      /* arena's node id -> node of the merged tree */
    double sampled_cpu_sec;
    uint64_t *ident_of; /* arena's thread id -> ident in the profile */
};

struct report {
    struct profile *profile;
    const struct report_config *config;
    struct recording *recordings; /* by start; the first is the program itself */
    size_t recording_count, recording_cap;
    struct filter filter;
    struct sources sources;
    struct charge charge;
    char *program;   /* "" if unknown */
    char *directory; /* "" if unknown */
    str_id program_file;
    str_id *notes;
    size_t note_count, note_cap;
    struct profile_loss *losses;
    size_t loss_count, loss_cap;
};

void report_note(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Notes and losses are kept apart; a count of 0 is not a loss. */
void report_loss(struct report *report, const char *key, const char *text, uint64_t count);

/* report_run.c: processes, threads, CPU by the clocks, losses and notes about them. */
void report_run(struct report *report);

/* report_stacks.c: stamps of lines, stacks and runs; the latter two only if config->stacks. */
void report_stacks(struct report *report);

/* A node's frames, outermost first, into room for its depth. */
void report_frames(const struct charge *charge, uint32_t node_id, struct profile_frame *frames);

/* report_memory.c: before report_files (it fills what that takes over). */
void report_memory(struct report *report);

/* report_files.c: after report_stacks (it takes the stamps over); moves what is not reported to
 * profile->untraced. */
void report_files(struct report *report);

#endif
