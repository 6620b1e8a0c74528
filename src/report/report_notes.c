/*
 * The part of a report that says what is missing and what to beware of: losses
 * and notes.
 */
#include "report/report_parts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Of notes that name a process, so many; the others are counted. */
enum { UNREADABLE_NOTED_MAX = 5, RUNNING_NAMED_MAX = 3 };

static const struct {
    const char *key, *text;
} loss_texts[WIRE_LOSSES] = {
    [WIRE_LOST_TABLE_FULL] = {"table_full", "samples lost: a table of the recording was full"},
    [WIRE_LOST_BAD_FRAME] = {"bad_frame", "samples without a stack: its frames could not be read"},
    [WIRE_LOST_TORN_WAIT] = {"torn_wait", "looks at a waiting thread that moved meanwhile"},
    [WIRE_LOST_LOG_FULL] = {"log_full",
                            "timeline entries lost: the log was full (totals are right)"},
    [WIRE_LOST_TIMER] = {"timer", "threads without a timer: their CPU time was not sampled"},
    [WIRE_LOST_THREAD] = {"slot",
                          "threads beyond the thread limit: their CPU time was not sampled"},
    [WIRE_LOST_TRUNCATED] = {"truncated", "stacks deeper than the limit: outermost frames cut"},
    [WIRE_LOST_TORN] = {"torn", "stacks whose outermost frames could not be read"},
    [WIRE_LOST_FOLDED] = {"folded",
                          "stacks stored with recursion folded: the tables were nearly full"},
    [WIRE_LOST_TEXT] = {"text", "names or line tables too long or unreadable"},
    [WIRE_LOST_GROW] = {"grow", "times the recording could not grow: the disk was full"},
    [WIRE_LOST_SAMPLER] = {"sampler",
                           "processes without wait sampling: its thread could not start"},
    [WIRE_LOST_ALLOCATION] =
        {"allocation", "memory samples lost: no room in the recording, or the process forked "
                       "for long"},
};

static const struct {
    const char *key, *text;
} section_texts[WIRE_SECTIONS] = {
    [WIRE_BLOB] = {"dropped_text", "names and line tables that found no room"},
    [WIRE_CODE] = {"dropped_code", "code objects that found no room"},
    [WIRE_NODE] = {"dropped_node", "stack frames that found no room"},
    [WIRE_CELL] = {"dropped_cell", "stacks that found no room"},
    [WIRE_LOG] = {"dropped_log", "timeline entries that found no room (totals are right)"},
    [WIRE_THREAD] = {"dropped_thread", "threads that found no room in the thread table"},
    [WIRE_AWAIT] = {"dropped_await", "stacks of tasks that found no room"},
    [WIRE_PLACE] = {"dropped_place",
                    "places where tasks wait that found no room (their time is right)"},
    [WIRE_NAME] = {"dropped_name", "names of tasks that found no room (times are right)"},
    [WIRE_CROWD] = {"dropped_crowd", "points of the number of tasks that found no room"},
    [WIRE_MODULE] = {"dropped_module", "libraries that found no room"},
    [WIRE_SITE] = {"dropped_site", "allocating stacks that found no room"},
    [WIRE_BLOCK] = {"dropped_block", "sampled blocks that found no room"},
    [WIRE_FOOT] = {"dropped_foot", "points of the footprint that found no room"},
};

/* The same note is said once. */
void report_note(struct report *report, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_addv(&text, format, args);
    va_end(args);
    str_id id = intern_add(&report->profile->strings, text.data, text.len);
    buf_release(&text);
    for (size_t i = 0; i < report->note_count; i++)
        if (report->notes[i] == id)
            return;
    VEC_PUSH(report->notes, report->note_count, report->note_cap) = id;
}

void report_loss(struct report *report, const char *key, const char *text, uint64_t count)
{
    if (!count)
        return;
    VEC_PUSH(report->losses, report->loss_count, report->loss_cap) = (struct profile_loss){
        .key = intern_cstr(&report->profile->strings, key),
        .text = intern_cstr(&report->profile->strings, text),
        .count = count,
    };
}

void report_unreadable(struct report *report, pid_t pid, const char *why)
{
    if (report->unreadable++ < UNREADABLE_NOTED_MAX)
        report_note(report, "nothing is known of process %d: %s", (int)pid, why);
}

void report_unrecorded(struct report *report, uint64_t processes)
{
    report_loss(report, "unrecorded",
                "processes without a recording: the disk was full or a limit was met", processes);
}

static void note_python(struct report *report, const struct wire_header *header)
{
    uint32_t state = atomic_load(&header->stacks_state);
    unsigned major = header->python_hex >> 24, minor = header->python_hex >> 16 & 0xFF;
    if (state == WIRE_STACKS_UNKNOWN_PYTHON)
        report_note(report, "CPython %u.%u is not known to this scalene: CPU totals only", major,
                    minor);
    if (state == WIRE_STACKS_SELFCHECK)
        report_note(report,
                    "this build of CPython %u.%u is laid out differently than expected: "
                    "CPU totals only",
                    major, minor);
    uint32_t async = atomic_load(&header->async.state);
    if (async == WIRE_ASYNC_UNKNOWN_PYTHON)
        report_note(report,
                    "async code was not followed: where CPython %u.%u keeps its tasks is not known "
                    "to this scalene",
                    major, minor);
    if (async == WIRE_ASYNC_SELFCHECK)
        report_note(report,
                    "async code was not followed: this build of CPython %u.%u keeps its tasks "
                    "differently than expected",
                    major, minor);
    report->has_jit |= (atomic_load(&header->flags) & WIRE_PROCESS_JIT) != 0;
}

/* What a cut recording's records refer to may be in the part that is missing. */
static void note_damage(struct report *report, const struct recording *recording)
{
    int pid = recording->header.pid;
    if ((!recording->is_cut && !recording->bad_count) ||
        report->unreadable++ >= UNREADABLE_NOTED_MAX)
        return;
    if (recording->is_cut)
        report_note(report, "the recording of process %d is cut off: what is missing is unknown",
                    pid);
    else
        report_note(report,
                    "the recording of process %d is damaged: %llu entries that make no sense were "
                    "left out",
                    pid, (unsigned long long)recording->bad_count);
}

void report_notes_add(struct report *report, const struct recording *recording)
{
    for (int k = 0; k < WIRE_LOSSES; k++)
        report->lost[k] += atomic_load(&recording->header.lost[k]);
    for (int k = 0; k < WIRE_SECTIONS; k++)
        report->dropped[k] += recording->sections[k].dropped;
    note_python(report, &recording->header);
    if (atomic_load(&recording->header.flags) & WIRE_PROCESS_CRAMPED)
        report_note(report, "little address space is left to the program (ulimit -v): fewer stacks "
                            "than usual are kept apart");
    if (atomic_load(&recording->header.flags) & WIRE_PROCESS_CONFINED)
        report->confined++;
    note_damage(report, recording);
}

/* Not in the middle of a run, where the program itself still runs. */
static void note_running(struct report *report)
{
    struct buf names = {0};
    uint64_t running = 0;
    for (size_t i = 0; i < report->process_count; i++) {
        const struct report_process *process = &report->processes[i];
        if (!process->row.running)
            continue;
        if (process->start_mono_ns == report->first_mono_ns)
            goto out;
        if (running++ < RUNNING_NAMED_MAX)
            buf_addf(&names, "%s%d %s", names.len ? ", " : "", (int)process->row.pid,
                     process->command);
    }
    if (running > RUNNING_NAMED_MAX)
        buf_str(&names, ", ...");
    if (running)
        report_note(report, "%llu %s still running when the profile was written: %s",
                    (unsigned long long)running, running == 1 ? "process was" : "processes were",
                    names.data);
out:
    buf_release(&names);
}

void report_notes_finish(struct report *report)
{
    for (int k = 0; k < WIRE_LOSSES; k++)
        report_loss(report, loss_texts[k].key, loss_texts[k].text, report->lost[k]);
    for (int k = 0; k < WIRE_SECTIONS; k++)
        report_loss(report, section_texts[k].key, section_texts[k].text, report->dropped[k]);
    report_loss(report, "stacks_cut",
                "stacks cut to their innermost frame in the stack views, there were too many "
                "(lines are right)",
                report->charge.cut_count);
    if (report->unreadable > UNREADABLE_NOTED_MAX)
        report_note(report, "%llu more recordings were damaged",
                    (unsigned long long)(report->unreadable - UNREADABLE_NOTED_MAX));
    if (report->confined)
        report_note(report, "%llu %s a seccomp filter, and %s in here up to that moment",
                    (unsigned long long)report->confined,
                    report->confined == 1 ? "process installed" : "processes installed",
                    report->confined == 1 ? "is" : "are");
    if (report->has_jit)
        report_note(report, "CPython's JIT is on: lines inside hot loops are approximate");
    note_running(report);
}

void report_notes_hand_over(struct report *report)
{
    struct profile *profile = report->profile;
    profile->note_count = (uint32_t)report->note_count;
    profile->notes = pool_alloc(&profile->pool, report->note_count * sizeof *profile->notes);
    for (size_t i = 0; i < report->note_count; i++)
        profile->notes[i] = report->notes[i];
    profile->loss_count = (uint32_t)report->loss_count;
    profile->losses = pool_alloc(&profile->pool, report->loss_count * sizeof *profile->losses);
    for (size_t i = 0; i < report->loss_count; i++)
        profile->losses[i] = report->losses[i];
}
