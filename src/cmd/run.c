/*
 * `scalene run`: start the program with the agent in it, wait, write the
 * profile, end with the program's own status.  Whatever is wrong with the
 * profiler, a program that could be run is run to its end.
 */
#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/config_file.h"
#include "cmd/install.h"
#include "cmd/output.h"
#include "collect/report.h"
#include "collect/session.h"
#include "collect/target.h"
#include "profile/json_write.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_SIGNAL = 128 };

#define NS_PER_SEC        1e9
#define WAIT_INTERVAL_MIN 0.001 /* seconds; a pass over all threads is not free */

struct run {
    const struct run_options *options;
    struct target target;
    struct session session;
    char *outfile;
    char *program_path; /* absolute */
};

static void say(const struct err *err)
{
    fprintf(stderr, "scalene: %s\n", err->text);
}

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
        say(&err);
    buf_release(&warnings);
    return rc;
}

/* Only what was asked for by name: by default everything is wanted, and this is what there is. */
static void say_what_is_missing(struct options *options)
{
    if (options->run.gpu && options_given(options, "gpu"))
        fputs("scalene: --gpu has no effect: this version measures time and memory only\n", stderr);
    if (!options_given(options, "memory"))
        options->run.memory = false;
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
        say(&err);
    return rc;
}

static int find_output(struct run *run)
{
    const char *outfile = run->options->outfile;
    struct err err;
    run->outfile = output_name(outfile);
    if ((outfile && output_is_directory(outfile)) || output_is_directory(run->outfile)) {
        fprintf(stderr, "Scalene: outfile %s is a directory\n", outfile ? outfile : run->outfile);
        return -1;
    }
    if (output_check(run->outfile, &err))
        fprintf(stderr, "scalene: %s; another place will be tried\n", err.text);
    return 0;
}

static void find_program_path(struct run *run)
{
    const char *typed = run->options->program_path;
    char *real = *typed ? realpath(typed, NULL) : NULL;
    if (*typed && !real)
        fprintf(stderr, "scalene: --program-path '%s': %s\n", typed, strerror(errno));
    run->program_path = mem_strdup(real ? real : run->target.directory);
    free(real);
}

/* Without the profiler: the program takes our place, and so its status is ours. */
static int run_plain(const struct run *run)
{
    execvp(run->target.command[0], run->target.command);
    fprintf(stderr, "scalene: cannot run '%s': %s\n", run->target.command[0], strerror(errno));
    return EXIT_CANNOT_EXECUTE;
}

static int build(struct run *run, struct profile *profile, struct err *err)
{
    const struct run_options *options = run->options;
    const struct target *target = &run->target;
    struct report_config config = {
        .session_directory = run->session.directory,
        .program = target->program,
        .is_module = target->kind == TARGET_MODULE,
        .program_path = run->program_path,
        .profile_only = options->profile_only,
        .profile_exclude = options->profile_exclude,
        .profile_all = options->profile_all,
        .profile_system_libraries = options->profile_system_libraries,
        .cpu_percent_threshold = options->cpu_percent_threshold,
        .stacks = options->stacks,
        .memory = options->memory,
        .leaks = options->leak_detector,
        .malloc_threshold = (uint64_t)options->malloc_threshold,
        .args = target->args,
        .child_cpu_ns = run->session.child_cpu_ns,
        .program_text = target->code,
        .program_is_stdin = target->kind == TARGET_STDIN,
    };
    return report_build(profile, &config, err);
}

static void say_saved(const char *path)
{
    bool is_default = !strcmp(path, OUTPUT_DEFAULT);
    const char *blank = is_default ? "" : " ", *name = is_default ? "" : path;
    fprintf(stderr,
            "\nScalene: profile saved to %s\n"
            "  To view in browser:  scalene view%s%s\n"
            "  To view in terminal: scalene view --cli%s%s\n",
            path, blank, name, blank, name);
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

static void save(const struct run *run, const struct profile *profile)
{
    const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    const char *const fallbacks[] = {".", home ? home : "", temporary ? temporary : "", "/tmp",
                                     NULL};
    struct err err;
    struct buf text = {0};
    json_write_profile(profile, &text);
    char *path = output_write(run->outfile, fallbacks, &text, &err);
    if (!path)
        fprintf(stderr, "scalene: %s; no other place is writable either, the profile is lost\n",
                err.text);
    else if (strcmp(path, run->outfile) != 0)
        say(&err);
    if (path && !profile->empty)
        say_saved(path);
    free(path);
    buf_release(&text);
}

static void write_interval_profile(void *context)
{
    struct run *run = context;
    struct profile profile;
    struct err err;
    profile_init(&profile);
    /* Until the program has begun there is nothing to read; at the end an error will be said. */
    if (!build(run, &profile, &err) && !profile.empty)
        save(run, &profile);
    profile_release(&profile);
}

static void write_final_profile(struct run *run)
{
    struct profile profile;
    struct err err;
    profile_init(&profile);
    if (build(run, &profile, &err)) {
        fprintf(stderr, "scalene: no profile: %s\n", err.text);
    } else if (!profile.process_count) {
        fprintf(stderr,
                "scalene: no profile: %s did not load the profiler (CPython 3.8 or newer is "
                "needed)\n",
                run->target.command[0]);
    } else {
        if (profile.empty)
            say_empty(run->options);
        save(run, &profile);
    }
    for (uint32_t i = 0; i < profile.note_count; i++)
        fprintf(stderr, "scalene: %s\n", profile_str(&profile, profile.notes[i]));
    profile_release(&profile);
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

static int exit_status(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    int number = WTERMSIG(status);
    if (number == SIGINT)
        fputs("Scalene execution interrupted.\n", stderr);
    else
        fprintf(stderr, "scalene: the program was killed by signal %d (%s)\n", number,
                strsignal(number));
    return EXIT_SIGNAL + number;
}

static int run_profiled(struct run *run, const char *agent)
{
    const struct run_options *options = run->options;
    struct err err;
    struct session_config config = {
        .agent_path = agent,
        .command = run->target.command,
        .cpu_interval_ns = (uint64_t)(options->cpu_sampling_sec * NS_PER_SEC),
        .wait_interval_ns =
            (uint64_t)(fmax(options->cpu_sampling_sec, WAIT_INTERVAL_MIN) * NS_PER_SEC),
        .allocation_window_bytes = (uint64_t)options->allocation_window_bytes,
        .flags = (options->stacks ? WIRE_FLAG_STACKS : 0) |
                 (options->memory ? WIRE_FLAG_MEMORY : 0) |
                 (options->use_virtual_time ? WIRE_FLAG_VIRTUAL_TIME : 0),
        .start_on = options->start_on,
    };
    if (session_open(&run->session, &config, &err)) {
        fprintf(stderr, "scalene: %s; running without profiling\n", err.text);
        return run_plain(run);
    }
    int status = EXIT_FAILURE;
    uint64_t tick_ns =
        isinf(options->interval_sec) ? 0 : (uint64_t)(options->interval_sec * NS_PER_SEC);
    if (session_spawn(&run->session, &config, &err)) {
        say(&err);
        goto out;
    }
    say_background(run->session.child);
    if (session_wait(&run->session, tick_ns, write_interval_profile, run, &err)) {
        say(&err);
        goto out;
    }
    status = exit_status(run->session.status);
    write_final_profile(run);
out:
    session_close(&run->session);
    return status;
}

static int prepare_and_run(struct run *run, char *const *words)
{
    int status = EXIT_FAILURE;
    char *directory = install_directory(), *agent = install_agent(directory);
    if (find_target(run, words, directory) || find_output(run))
        goto out;
    find_program_path(run);
    if (run->options->disable_jit) {
        setenv("JAX_DISABLE_JIT", "1", 0);
        setenv("PYTORCH_JIT", "0", 0);
    }
    if (agent) {
        status = run_profiled(run, agent);
    } else {
        fputs("scalene: libscalene.so was not found; running without profiling\n", stderr);
        status = run_plain(run);
    }
out:
    free(agent);
    free(directory);
    return status;
}

int cmd_run(char *const *words)
{
    struct options options;
    struct run run = {.options = &options.run};
    int status = EXIT_FAILURE;
    if (!cmd_parse(&options, VERB_RUN, words, &status) && !read_config(&options)) {
        options_finish(&options);
        say_what_is_missing(&options);
        status = prepare_and_run(&run, options.words);
    }
    target_release(&run.target);
    free(run.outfile);
    free(run.program_path);
    options_release(&options);
    return status;
}
