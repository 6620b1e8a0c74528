/*
 * The verbs and their options, all of them.  Order is the order of the help.
 * For run and view the names, the defaults and the grouping into basic and
 * advanced are those of the original; `--python`, `--json`, `--color` and what
 * view has below it are additions, and so are the other verbs.
 */
#include "cmd/options.h"

#define RUN(member)  .verb = VERB_RUN, .field = offsetof(struct options, run.member)
#define VIEW(member) .verb = VERB_VIEW, .field = offsetof(struct options, view.member)
#define HELP(the_verb)                                                                             \
    {                                                                                              \
        .verb = the_verb, .name = "help", .letter = 'h', .type = OPTION_HELP,                      \
        .help = "show this help and exit"                                                          \
    }
#define PID(the_verb)                                                                              \
    .verb = the_verb, .field = offsetof(struct options, control.pid), .name = "pid",               \
    .type = OPTION_WHOLE, .metavar = "PID", .least = 1, .most = INT32_MAX, .required = true

const struct verb verb_table[VERBS] = {
    [VERB_RUN] = {"run", "[options] {prog.py|-m module|command|-} [args] [--- args]",
                  "profile a Python program and save the profile",
                  "Run a Python program and profile it. Its output, its arguments and its exit "
                  "status are what they are without the profiler. Options stand before the "
                  "program; what stands after it is the program's own.",
                  SIZE_MAX},
    [VERB_VIEW] = {"view", "[options] [profile_file]", "show a saved profile",
                   "Show a profile that scalene run saved (default: scalene-profile.json), in the "
                   "browser unless an option says otherwise. The page comes from this machine, "
                   "follows the file while it changes, and scalene ends when the page is closed.",
                   1},
    [VERB_MERGE] = {"merge", "[options] profile_file profile_file ...",
                    "make one profile of several",
                    "Add up the profiles of several runs into one. Times and samples of the same "
                    "line are summed, and percents are of the total of all runs. Where the source "
                    "of a file differs, that of the newest run is shown, and what was on lines "
                    "that it does not have any more counts as untraced.",
                    SIZE_MAX},
    [VERB_ON] = {"on", "--pid PID", "turn profiling on in a running program",
                 "Turn profiling on in a program that scalene runs, and in all processes that it "
                 "started.",
                 0},
    [VERB_OFF] = {"off", "--pid PID", "turn profiling off in a running program",
                  "Turn profiling off in a program that scalene runs, and in all processes that it "
                  "started. The program runs on; its time does not count until profiling is "
                  "turned on again.",
                  0},
    [VERB_SNAPSHOT] = {"snapshot", "--pid PID [options]",
                       "save the profile of a running program as it is now",
                       "Save what was profiled up to now in a program that scalene runs. The "
                       "program runs on and is profiled on.",
                       0},
    [VERB_RECOVER] = {"recover", "[options] [directory]",
                      "save profiles that a killed scalene left behind",
                      "When scalene itself is killed, the program runs on and is still recorded. "
                      "Find such recordings, save a profile of each program that has ended, and "
                      "remove its recording. Programs that still run are only listed; naming the "
                      "directory of one saves what there is up to now, and keeps it.",
                      1},
};

static const char *const color_choices[] = {"auto", "always", "never", NULL};

const struct option option_table[] = {
    {.verb = VERB_RUN,
     .name = "help",
     .letter = 'h',
     .type = OPTION_HELP,
     .no_key = true,
     .help = "show this help and exit"},
    {RUN(outfile), .name = "outfile", .letter = 'o', .type = OPTION_TEXT, .metavar = "OUTFILE",
     .key = "output", .initial = "scalene-profile.json",
     .help = "file to write the profile to; its extension becomes .json"},
    {RUN(cpu_only), .name = "cpu-only", .late = true, .type = OPTION_SET, .group = GROUP_METRICS,
     .help = "profile CPU time only, neither memory nor GPU"},
    {RUN(config_file), .name = "config", .letter = 'c', .type = OPTION_TEXT,
     .metavar = "CONFIG_FILE", .no_key = true,
     .help = "read options from this YAML file; the command line overrules it"},
    {RUN(python), .name = "python", .type = OPTION_TEXT, .metavar = "PYTHON",
     .initial = "the python3 beside scalene, else the one in PATH",
     .help = "interpreter to run the program with"},
    {.verb = VERB_RUN,
     .name = "help-advanced",
     .type = OPTION_HELP_ADVANCED,
     .no_key = true,
     .help = "show the advanced options and exit"},

    {RUN(profile_all), .name = "profile-all", .late = true, .type = OPTION_SET,
     .level = LEVEL_ADVANCED,
     .help = "report all code, not only that below the program's directory"},
    {RUN(profile_only), .name = "profile-only", .late = true, .type = OPTION_TEXT,
     .level = LEVEL_ADVANCED, .metavar = "PROFILE_ONLY",
     .help = "report only files whose name contains one of these comma-separated texts"},
    {RUN(profile_exclude), .name = "profile-exclude", .late = true, .type = OPTION_TEXT,
     .level = LEVEL_ADVANCED, .metavar = "PROFILE_EXCLUDE",
     .help = "do not report files whose name contains one of these comma-separated texts"},
    {RUN(gpu), .name = "gpu", .type = OPTION_SET, .level = LEVEL_ADVANCED, .group = GROUP_METRICS,
     .help = "profile GPU use, without memory unless --memory is given too (not in this version)"},
    {RUN(memory), .name = "memory", .type = OPTION_SET, .level = LEVEL_ADVANCED,
     .group = GROUP_METRICS, .help = "profile memory, without GPU unless --gpu is given too"},
    {RUN(stacks), .name = "stacks", .type = OPTION_SWITCH, .level = LEVEL_ADVANCED, .initial = "on",
     .help = "collect whole call stacks"},
    {RUN(async_profile), .name = "async", .type = OPTION_SWITCH, .level = LEVEL_ADVANCED,
     .initial = "on",
     .help = "tell what tasks of asyncio's event loops wait for, and which lines block the loop"},
    {RUN(interval_sec), .name = "profile-interval", .late = true, .type = OPTION_REAL,
     .level = LEVEL_ADVANCED, .metavar = "PROFILE_INTERVAL", .least = 0.1, .most = 3600,
     .unit = "seconds", .initial = "inf",
     .help = "write the profile every so many seconds; inf: only at the end"},
    {RUN(use_virtual_time), .name = "use-virtual-time", .late = true, .type = OPTION_SET,
     .level = LEVEL_ADVANCED,
     .help = "measure CPU time only, not time spent waiting for I/O, locks or sleep"},
    {RUN(cpu_percent_threshold), .name = "cpu-percent-threshold", .late = true, .type = OPTION_REAL,
     .level = LEVEL_ADVANCED, .metavar = "CPU_PERCENT_THRESHOLD", .least = 0, .most = 100,
     .unit = "percent", .initial = "1",
     .help = "report only files with at least this percent of the time"},
    {RUN(cpu_sampling_sec), .name = "cpu-sampling-rate", .late = true, .type = OPTION_REAL,
     .level = LEVEL_ADVANCED, .metavar = "CPU_SAMPLING_RATE", .least = 0.0001, .most = 10,
     .unit = "seconds", .initial = "0.01",
     .help = "seconds of CPU time between two samples of a thread (by default as few as the kernel "
             "allows, while that costs less than 0.3 percent)"},
    {RUN(allocation_window_bytes), .name = "allocation-sampling-window", .late = true,
     .type = OPTION_WHOLE, .level = LEVEL_ADVANCED, .metavar = "ALLOCATION_SAMPLING_WINDOW",
     .least = 1, .most = 1099511627776.0, .unit = "bytes", .initial = "1048576",
     .help = "bytes allocated between two memory samples, at most (fewer at first)"},
    {RUN(malloc_threshold), .name = "malloc-threshold", .late = true, .type = OPTION_WHOLE,
     .level = LEVEL_ADVANCED, .metavar = "MALLOC_THRESHOLD", .least = 0, .most = 1099511627776.0,
     .initial = "100",
     .help =
         "allocations from which on a file with less than 1 % of all memory is reported for it"},
    {RUN(program_path), .name = "program-path", .late = true, .type = OPTION_TEXT,
     .level = LEVEL_ADVANCED, .metavar = "PROGRAM_PATH", .initial = "the program's directory",
     .help = "directory whose files are the program"},
    {RUN(leak_detector), .name = "memory-leak-detector", .late = true, .type = OPTION_SET,
     .level = LEVEL_ADVANCED, .initial = "on", .help = "report likely memory leaks"},
    {RUN(profile_system_libraries), .name = "profile-system-libraries", .late = true,
     .type = OPTION_SET, .level = LEVEL_ADVANCED,
     .help = "report the standard library and installed packages too"},
    {RUN(legacy_tracer), .name = "use-legacy-tracer", .type = OPTION_SET, .level = LEVEL_ADVANCED,
     .no_key = true, .help = "accepted for compatibility; no tracer is used"},
    {RUN(python_callback), .name = "use-python-callback", .type = OPTION_SET,
     .level = LEVEL_ADVANCED, .no_key = true,
     .help = "accepted for compatibility; no tracer is used"},
    {RUN(disable_jit), .name = "disable-jit", .type = OPTION_SET, .level = LEVEL_ADVANCED,
     .help = "set JAX_DISABLE_JIT=1 and PYTORCH_JIT=0 for the program, unless they are set"},
    {RUN(start_on), .name = "on", .type = OPTION_SET, .level = LEVEL_ADVANCED, .group = GROUP_START,
     .help = "start with profiling on (the default)"},
    {RUN(start_on), .name = "off", .type = OPTION_CLEAR, .level = LEVEL_ADVANCED,
     .group = GROUP_START, .help = "start with profiling off"},
    {RUN(ipython), .name = "ipython", .type = OPTION_SET, .level = LEVEL_HIDDEN, .no_key = true,
     .help = "the program is a notebook cell"},
    {RUN(no_browser), .name = "no-browser", .late = true, .type = OPTION_SET, .level = LEVEL_HIDDEN,
     .no_key = true, .help = "accepted for compatibility; no browser is opened"},
    {RUN(reduced_profile), .name = "reduced-profile", .type = OPTION_SET, .level = LEVEL_HIDDEN,
     .no_key = true, .help = "leave lines without activity out of the profile"},
    {RUN(parent_pid), .name = "pid", .type = OPTION_WHOLE, .level = LEVEL_HIDDEN, .metavar = "PID",
     .least = 0, .most = INT32_MAX, .no_key = true, .help = "accepted for compatibility"},

    {.verb = VERB_VIEW,
     .name = "help",
     .letter = 'h',
     .type = OPTION_HELP,
     .help = "show this help and exit"},
    {VIEW(cli), .name = "cli", .type = OPTION_SET, .help = "show the profile in the terminal"},
    {VIEW(json), .name = "json", .type = OPTION_SET, .help = "print the profile as JSON"},
    {VIEW(html), .name = "html", .type = OPTION_SET,
     .help = "write the page as one file, which works offline and can be sent to others"},
    {VIEW(standalone), .name = "standalone", .type = OPTION_SET,
     .help = "the same as --html: both have everything in one file"},
    {VIEW(reduced), .name = "reduced", .letter = 'r', .type = OPTION_SET,
     .help = "with --cli: show only lines with activity"},
    {VIEW(color), .name = "color", .type = OPTION_CHOICE, .metavar = "WHEN",
     .choices = color_choices, .initial = "auto",
     .help = "with --cli: auto, always or never; auto means on a terminal, unless NO_COLOR is set"},
    {VIEW(outfile), .name = "outfile", .letter = 'o', .type = OPTION_TEXT, .metavar = "OUTFILE",
     .initial = "scalene-profile.html", .help = "with --html: file to write the page to"},
    {VIEW(browser), .name = "no-browser", .type = OPTION_CLEAR,
     .help = "do not open a browser, only print the page's address"},
    {VIEW(port), .name = "port", .type = OPTION_WHOLE, .metavar = "PORT", .least = 0, .most = 65535,
     .initial = "11235", .help = "port on this machine for the page, or the next free one; 0: any"},
    {VIEW(linger_sec), .name = "linger", .type = OPTION_REAL, .metavar = "SECONDS", .least = 0,
     .most = 86400, .unit = "seconds", .initial = "150",
     .help = "end so long after the page was last heard of"},

    HELP(VERB_MERGE),
    {.verb = VERB_MERGE,
     .field = offsetof(struct options, merge.outfile),
     .name = "outfile",
     .letter = 'o',
     .type = OPTION_TEXT,
     .metavar = "OUTFILE",
     .initial = "scalene-profile.json",
     .help = "file to write the merged profile to; its extension becomes .json"},

    HELP(VERB_ON),
    {PID(VERB_ON), .help = "the program, any process it started, or the scalene that runs it"},

    HELP(VERB_OFF),
    {PID(VERB_OFF), .help = "the program, any process it started, or the scalene that runs it"},

    HELP(VERB_SNAPSHOT),
    {PID(VERB_SNAPSHOT),
     .help = "the program, any process it started, or the scalene that runs it"},
    {.verb = VERB_SNAPSHOT,
     .field = offsetof(struct options, control.outfile),
     .name = "outfile",
     .letter = 'o',
     .type = OPTION_TEXT,
     .metavar = "OUTFILE",
     .initial = "scalene-profile.json",
     .help = "file to write the profile to; its extension becomes .json"},

    HELP(VERB_RECOVER),
    {.verb = VERB_RECOVER,
     .field = offsetof(struct options, recover.list),
     .name = "list",
     .type = OPTION_SET,
     .help = "only list what there is"},
    {.verb = VERB_RECOVER,
     .field = offsetof(struct options, recover.outfile),
     .name = "outfile",
     .letter = 'o',
     .type = OPTION_TEXT,
     .metavar = "OUTFILE",
     .initial = "the program's name and pid",
     .help = "file to write the profile to, if there is one session only; its extension becomes "
             ".json"},
};

const size_t option_count = sizeof option_table / sizeof *option_table;

_Static_assert(sizeof option_table / sizeof *option_table <= OPTIONS_MAX,
               "struct options has a place for the source of every option");
