/*
 * `scalene run`: start the program with the agent in it, wait, write the
 * profile, end with the program's own status.  Whatever is wrong with the
 * profiler, a program that could be run is run to its end.
 */
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/config_file.h"
#include "cmd/install.h"
#include "collect/facts.h"
#include "collect/harvest.h"
#include "launch/session.h"
#include "launch/target.h"
#include "report/report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_CANNOT_EXECUTE = 126 };

#define NS_PER_SEC        1e9
#define WAIT_INTERVAL_MIN 0.001 /* seconds; a pass over all threads is not free */
#define TICK_SEC          0.1   /* between two looks at what ended processes left */

struct run {
    const struct run_options *options;
    struct target target;
    struct session session;
    struct report_config report_config;
    struct profile profile; /* of the whole run; its report is the harvest's */
    struct harvest harvest;
    double interval_end_sec; /* CLOCK_MONOTONIC; when the next interval profile is due */
    uint32_t generation;     /* of the control page's switch, when last looked at */
    char *outfile;
    char *program_path;   /* absolute */
    char *work_directory; /* "": does not count */
};

static void say_as_before(const struct err *err)
{
    fprintf(stderr, "Scalene: %s\n", err->text);
}

static int read_config(struct options *options)
{
    struct err err;
    struct buf warnings = {0};
    if (!options->run.config_file)
        return 0;
    int rc = config_file_apply(options, options->run.config_file, &warnings, &err);
    if (warnings.len)
        fputs(warnings.data, stderr);
    if (rc == CONFIG_FILE_BAD)
        say_as_before(&err);
    else if (rc)
        cmd_say(&err);
    buf_release(&warnings);
    return rc;
}

/* As the original: what is no number of bytes counts for nothing. */
static void obey_environment(struct options *options)
{
    static const char name[] = "allocation-sampling-window";
    const char *text = getenv("SCALENE_ALLOCATION_SAMPLING_WINDOW");
    struct err ignored;
    if (text && !options_given(options, name))
        (void)option_set_from_file(options, option_by_key(name), text, &ignored);
}

/* Only what was asked for by name: by default everything is wanted, and this is what there is. */
static void say_what_is_missing(const struct options *options)
{
    if (options->run.gpu && options_given(options, "gpu"))
        fputs("scalene: --gpu has no effect: this version measures time and memory only\n", stderr);
}

/* Standard input is taken for the program only where somebody put one there: not a terminal, not
 * /dev/null. */
static bool stdin_has_program(void)
{
    struct stat st;
    return !fstat(STDIN_FILENO, &st) &&
           (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static int find_target(struct run *run, char *const *words, const char *directory)
{
    struct err err;
    struct target_config config = {
        .words = words,
        .python = run->options->python,
        .beside = directory,
        .search_path = getenv("PATH"),
        .python_path = getenv("PYTHONPATH"),
        .home = getenv("HOME"),
        .stdin_has_program = stdin_has_program(),
    };
    int rc = target_resolve(&run->target, &config, &err);
    if (rc == TARGET_NO_INPUT || rc == TARGET_NOT_FOUND)
        say_as_before(&err);
    else if (rc)
        cmd_say(&err);
    return rc;
}

static void find_program_path(struct run *run)
{
    const char *typed = run->options->program_path;
    char *real = *typed ? realpath(typed, NULL) : NULL;
    if (*typed && !real)
        fprintf(stderr, "scalene: --program-path '%s': %s\n", typed, strerror(errno));
    run->program_path = mem_strdup(real ? real : run->target.directory);
    run->work_directory = real ? NULL : getcwd(NULL, 0);
    if (!run->work_directory)
        run->work_directory = mem_strdup("");
    free(real);
}

/* Without the profiler: the program takes our place, and so its status is ours. */
static int run_plain(const struct run *run)
{
    execvp(run->target.command[0], run->target.command);
    fprintf(stderr, "scalene: cannot run '%s': %s\n", run->target.command[0], strerror(errno));
    return EXIT_CANNOT_EXECUTE;
}

static struct report_config report_config(const struct run *run)
{
    const struct run_options *options = run->options;
    const struct target *target = &run->target;
    bool is_command = target->kind == TARGET_CONSOLE;
    return (struct report_config){
        .session_directory = run->session.directory,
        .program = target->program,
        .is_module = target->kind == TARGET_MODULE,
        .program_path = run->program_path,
        .work_directory = run->work_directory,
        .script = is_command || target->kind == TARGET_SCRIPT ? target->program : "",
        .script_is_command = is_command && target->tool[0],
        .tool = target->tool,
        .profile_only = options->profile_only,
        .profile_exclude = options->profile_exclude,
        .profile_all = options->profile_all,
        .profile_system_libraries = options->profile_system_libraries,
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .stacks = options->stacks,
        .async_profile = options->async_profile,
        .memory = options->memory,
        .leaks = options->leak_detector,
        .malloc_threshold = (uint64_t)options->malloc_threshold,
        .reduced = options->reduced_profile,
        .args = target->args,
        .program_text = target->code,
        .program_is_stdin = target->kind == TARGET_STDIN,
    };
}

/* Everything the report needs to know beforehand.  Facts are for snapshots and recovery; the run
 * itself can do without, so a failure is not worth a word. */
static void begin_report(struct run *run)
{
    run->report_config = report_config(run);
    facts_save(&run->report_config, NULL);
    report_filter(&run->report_config, &run->session.control->filter);
    run->harvest = (struct harvest){
        .directory = run->session.directory,
        .control = run->session.control,
        .report = report_begin(&run->profile, &run->report_config),
    };
}

static void say_empty(const struct run_options *options)
{
    fputs("Scalene: The specified code did not run for long enough to profile.\n", stderr);
    if (!options->profile_all)
        fputs("By default, Scalene only profiles code in the file executed and its "
              "subdirectories.\n"
              "To track the time spent in all files, use the `--profile-all` option.\n",
              stderr);
    else if (*options->profile_only || *options->profile_exclude)
        fputs("The patterns used in `--profile-only` or `--profile-exclude` may be filtering out "
              "too many files.\n",
              stderr);
    else
        fputs("Scalene can only profile code that runs for at least one second or allocates at "
              "least 10MB.\n",
              stderr);
}

static void write_interval_profile(const struct run *run)
{
    struct profile profile;
    profile_init(&profile);
    struct report *report = report_copy(run->harvest.report, &profile);
    /* Until the program has begun there is nothing to read; at the end an error will be said. */
    harvest_all(report, run->session.directory, NULL);
    report_finish(report);
    if (!profile.empty)
        cmd_save(&profile, run->outfile);
    profile_release(&profile);
}

static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / NS_PER_SEC;
}

/* As the original does: when somebody turns profiling off, and the file has a name, it is written.
 */
static bool was_turned_off(struct run *run)
{
    const struct wire_control *control = run->session.control;
    uint32_t generation = atomic_load(&control->generation);
    bool has_changed = generation != run->generation;
    run->generation = generation;
    return has_changed && !atomic_load(&control->on) && run->options->outfile;
}

static void on_tick(void *context)
{
    struct run *run = context;
    harvest_tick(&run->harvest);
    if (was_turned_off(run) || now_sec() >= run->interval_end_sec) {
        write_interval_profile(run);
        run->interval_end_sec = now_sec() + run->options->interval_sec;
    }
}

static bool all_have_ended(void *context)
{
    const struct run *run = context;
    return !harvest_running(run->session.directory);
}

static void write_final_profile(struct run *run)
{
    struct report *report = run->harvest.report;
    const struct profile *profile = &run->profile;
    struct err err;
    int rc = harvest_all(report, run->session.directory, &err);
    uint64_t unrecorded = atomic_load(&run->session.control->unrecorded);
    report_unrecorded(report, unrecorded);
    report_program_ended(report, run->session.child, run->session.status);
    report_finish(report);
    run->harvest.report = NULL;
    if (rc && !profile->process_count) {
        fprintf(stderr, "scalene: no profile: %s\n", err.text);
    } else if (!profile->process_count && unrecorded) {
        fprintf(stderr,
                "scalene: no profile: no recording could be made in '%s': is its disk full, or a "
                "limit on file size or memory too low?\n",
                run->session.directory);
    } else if (!profile->process_count) {
        fprintf(stderr,
                "scalene: no profile: %s did not load the profiler (CPython 3.8 or newer is "
                "needed)\n",
                run->target.command[0]);
    } else {
        if (profile->empty)
            say_empty(run->options);
        cmd_save(profile, run->outfile);
    }
    cmd_say_notes(profile);
}

/* Started with &: tell how to reach the program, since no terminal will. */
static void say_background(pid_t pid)
{
    pid_t foreground = isatty(STDOUT_FILENO) ? tcgetpgrp(STDOUT_FILENO) : -1;
    if (foreground < 0 || foreground == getpgrp())
        return;
    fprintf(stderr,
            "Scalene now profiling process %d\n"
            "  to disable profiling: python3 -m scalene.profile --off --pid %d\n"
            "  to resume profiling:  python3 -m scalene.profile --on  --pid %d\n",
            (int)pid, (int)pid, (int)pid);
}

static void say_killed(int status)
{
    if (!WIFSIGNALED(status))
        return;
    int number = WTERMSIG(status);
    if (number == SIGINT)
        fputs("Scalene execution interrupted.\n", stderr);
    else
        fprintf(stderr, "scalene: the program was killed by signal %d (%s)\n", number,
                strsignal(number));
}

/* The program's status, as waitpid gives it, in *status if there is one; else ours is returned. */
static int run_profiled(struct run *run, const char *agent, int *status)
{
    const struct run_options *options = run->options;
    struct err err;
    struct session_config config = {
        .agent_path = agent,
        .command = run->target.command,
        .cpu_interval_ns = (uint64_t)(options->cpu_sampling_sec * NS_PER_SEC),
        .wait_interval_ns =
            (uint64_t)(fmax(options->cpu_sampling_sec, WAIT_INTERVAL_MIN) * NS_PER_SEC),
        .allocation_window_bytes = options->memory ? (uint64_t)options->allocation_window_bytes : 0,
        .flags = (options->use_virtual_time ? WIRE_FLAG_VIRTUAL_TIME : 0u) |
                 (options->has_fixed_rate ? WIRE_FLAG_FIXED_RATE : 0u) |
                 (options->async_profile ? 0u : WIRE_FLAG_NO_ASYNC),
        .start_on = options->start_on,
    };
    if (session_open(&run->session, &config, &err)) {
        fprintf(stderr, "scalene: %s; running without profiling\n", err.text);
        return run_plain(run);
    }
    int rc = EXIT_FAILURE;
    uint64_t tick_ns = (uint64_t)(fmin(options->interval_sec, TICK_SEC) * NS_PER_SEC);
    run->interval_end_sec = now_sec() + options->interval_sec;
    begin_report(run);
    if (session_spawn(&run->session, &config, &err)) {
        cmd_say(&err);
        goto out;
    }
    say_background(run->session.child);
    if (session_wait(&run->session, tick_ns, on_tick, run, &err)) {
        cmd_say(&err);
        goto out;
    }
    rc = EXIT_SUCCESS;
    *status = run->session.status;
    say_killed(*status);
    session_linger(all_have_ended, run);
    write_final_profile(run);
out:
    report_free(run->harvest.report);
    profile_release(&run->profile);
    session_close(&run->session);
    return rc;
}

static int prepare_and_run(struct run *run, char *const *words, int *status)
{
    int rc = EXIT_FAILURE;
    char *directory = install_directory(), *agent = install_agent(directory, run->options->memory);
    if (find_target(run, words, directory) || !(run->outfile = cmd_outfile(run->options->outfile)))
        goto out;
    find_program_path(run);
    if (run->options->disable_jit) {
        setenv("JAX_DISABLE_JIT", "1", 0);
        setenv("PYTORCH_JIT", "0", 0);
    }
    if (agent) {
        rc = run_profiled(run, agent, status);
    } else {
        fputs("scalene: libscalene.so was not found; running without profiling\n", stderr);
        rc = run_plain(run);
    }
out:
    free(agent);
    free(directory);
    return rc;
}

int cmd_run(char *const *words)
{
    struct options options;
    struct run run = {.options = &options.run};
    int rc = EXIT_FAILURE, status = 0;
    if (!cmd_parse(&options, VERB_RUN, words, &rc) && !read_config(&options)) {
        options_finish(&options);
        obey_environment(&options);
        say_what_is_missing(&options);
        rc = prepare_and_run(&run, options.words, &status);
    }
    target_release(&run.target);
    free(run.outfile);
    free(run.program_path);
    free(run.work_directory);
    options_release(&options);
    return rc ? rc : session_end_like(status);
}
