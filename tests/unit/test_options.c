/* The command line: what is ours, what is the program's, what is a mistake. */
#include "cmd/help.h"
#include "cmd/options.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static void parse(struct options *options, enum option_verb verb, char *const *words)
{
    struct err err = {""};
    options_init(options);
    if (options_parse(options, verb, words, &err))
        fail_msg("%s", err.text);
}

static void assert_words(const struct options *options, char *const *expected)
{
    size_t i = 0;
    for (; expected[i]; i++) {
        assert_non_null(options->words[i]);
        assert_string_equal(options->words[i], expected[i]);
    }
    assert_null(options->words[i]);
}

/* What remains for the program of these words. */
static void assert_left(char *const *words, char *const *expected)
{
    struct options options;
    parse(&options, VERB_RUN, words);
    assert_words(&options, expected);
    options_release(&options);
}

static void assert_mistake(enum option_verb verb, char *const *words, const char *message)
{
    struct options options;
    struct err err = {""};
    options_init(&options);
    assert_int_equal(options_parse(&options, verb, words, &err), -1);
    assert_string_equal(err.text, message);
    options_release(&options);
}

static void defaults(void **state)
{
    struct options options;
    parse(&options, VERB_RUN, WORDS("prog.py"));
    options_finish(&options);
    const struct run_options *run = &options.run;
    assert_null(run->outfile);
    assert_true(run->memory && run->gpu && run->stacks && run->async_profile && run->start_on);
    assert_true(!run->cpu_only && !run->profile_all && !run->disable_jit);
    assert_true(isinf(run->interval_sec) && run->cpu_sampling_sec == 0.01);
    assert_true(run->cpu_percent_threshold == 1);
    assert_int_equal(run->allocation_window_bytes, 1048576);
    assert_int_equal(run->malloc_threshold, 100);
    assert_string_equal(run->profile_only, "");
    options_release(&options);
}

static void every_option(void **state)
{
    struct options options;
    parse(&options, VERB_RUN,
          WORDS("-o", "a.json", "--config=c.yaml", "--python", "/p", "--profile-all",
                "--profile-only", "x,y", "--profile-exclude=z", "--no-stacks", "--no-async",
                "--profile-interval", "2.5", "--use-virtual-time", "--cpu-percent-threshold", "0",
                "--cpu-sampling-rate", "0.0001", "--allocation-sampling-window", "1",
                "--malloc-threshold=0", "--program-path", "/d", "--memory-leak-detector",
                "--profile-system-libraries", "--use-legacy-tracer", "--use-python-callback",
                "--disable-jit", "--off", "--ipython", "--reduced-profile", "--pid", "7", "p.py"));
    const struct run_options *run = &options.run;
    assert_string_equal(run->outfile, "a.json");
    assert_string_equal(run->config_file, "c.yaml");
    assert_string_equal(run->python, "/p");
    assert_string_equal(run->profile_only, "x,y");
    assert_string_equal(run->profile_exclude, "z");
    assert_string_equal(run->program_path, "/d");
    assert_true(run->profile_all && run->use_virtual_time && run->profile_system_libraries);
    assert_true(run->legacy_tracer && run->python_callback && run->disable_jit && run->ipython);
    assert_true(run->reduced_profile && run->leak_detector);
    assert_true(!run->stacks && !run->async_profile && !run->start_on);
    assert_true(run->interval_sec == 2.5 && run->cpu_percent_threshold == 0);
    assert_true(run->cpu_sampling_sec == 0.0001);
    assert_int_equal(run->allocation_window_bytes, 1);
    assert_int_equal(run->malloc_threshold, 0);
    assert_int_equal(run->parent_pid, 7);
    assert_words(&options, WORDS("p.py"));
    options_release(&options);
}

static void metrics(void **state)
{
    struct {
        const char *words[3];
        bool memory, gpu;
    } cases[] = {
        {{"--cpu-only"}, false, false}, {{"--memory"}, true, false},
        {{"--gpu"}, false, true},       {{"--gpu", "--memory"}, true, true},
        {{NULL}, true, true},           {{"--cpu-only", "--memory"}, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options;
        parse(&options, VERB_RUN, (char **)cases[i].words);
        options_finish(&options);
        assert_int_equal(options.run.memory, cases[i].memory);
        assert_int_equal(options.run.gpu, cases[i].gpu);
        options_release(&options);
    }
}

static void assert_warned(enum option_verb verb, char *const *words, const char *text)
{
    struct options options;
    parse(&options, verb, words);
    assert_string_equal(options.warnings.len ? options.warnings.data : "", text);
    options_release(&options);
}

static void program_and_arguments(void **state)
{
    assert_left(WORDS("p.py", "-x", "--why", "1"), WORDS("p.py", "-x", "--why", "1"));
    /* Behind the program all is the program's: short options, beginnings of ours, and most of ours.
     */
    assert_left(WORDS("--cpu-only", "p.py", "-o", "x", "a"), WORDS("p.py", "-o", "x", "a"));
    assert_left(WORDS("p.py", "-ox", "-c2", "-h"), WORDS("p.py", "-ox", "-c2", "-h"));
    assert_left(WORDS("p.py", "--cpu-o", "--profile-al"), WORDS("p.py", "--cpu-o", "--profile-al"));
    assert_left(
        WORDS("p.py", "--help", "--outfile", "x", "--gpu", "--memory", "--async", "--config", "c",
              "--on", "--off", "--python", "q", "--stacks", "--help-advanced"),
        WORDS("p.py", "--help", "--outfile", "x", "--gpu", "--memory", "--async", "--config", "c",
              "--on", "--off", "--python", "q", "--stacks", "--help-advanced"));
    /* Options of the interpreter stay, with their values. */
    assert_left(WORDS("-u", "-W", "error", "-Xdev", "-OO", "p.py"),
                WORDS("-u", "-W", "error", "-Xdev", "-OO", "p.py"));
    assert_left(WORDS("-X", "dev", "-m", "--cpu-only"), WORDS("-X", "dev", "-m", "--cpu-only"));
    /* The first word is the program, whatever its name. */
    assert_left(WORDS("tool", "data.py"), WORDS("tool", "data.py"));
    assert_left(WORDS("-", "a"), WORDS("-", "a"));
    assert_left(WORDS("p.py", "-1", "-"), WORDS("p.py", "-1", "-"));
}

static void late_options(void **state)
{
    struct options options;
    parse(&options, VERB_RUN,
          WORDS("-m", "pkg.mod", "--cpu-only", "a", "--profile-all", "--profile-only", "x",
                "--profile-exclude=y", "--profile-interval", "2", "--cpu-sampling-rate=0.02",
                "--cpu-percent-threshold", "3", "--allocation-sampling-window", "4",
                "--malloc-threshold", "5", "--memory-leak-detector", "--profile-system-libraries",
                "--use-virtual-time", "--program-path", "/d", "--no-browser", "b"));
    const struct run_options *run = &options.run;
    assert_true(run->cpu_only && run->profile_all && run->profile_system_libraries);
    assert_true(run->use_virtual_time && run->no_browser);
    assert_string_equal(run->profile_only, "x");
    assert_string_equal(run->profile_exclude, "y");
    assert_string_equal(run->program_path, "/d");
    assert_true(run->interval_sec == 2 && run->cpu_sampling_sec == 0.02);
    assert_true(run->cpu_percent_threshold == 3);
    assert_int_equal(run->allocation_window_bytes, 4);
    assert_int_equal(run->malloc_threshold, 5);
    assert_words(&options, WORDS("-m", "pkg.mod", "a", "b"));
    options_release(&options);
    assert_warned(
        VERB_RUN, WORDS("p.py", "--cpu-only", "--profile-only=x"),
        "Scalene: --cpu-only, --profile-only after the program: taken for the profiler's; "
        "options go before the program, the program's own after ---\n");
    assert_warned(VERB_RUN, WORDS("--cpu-only", "p.py", "-o", "x", "---", "--cpu-only"), "");
    assert_mistake(VERB_RUN, WORDS("p.py", "--profile-only"),
                   "argument --profile-only: expected one argument; the program's own options go "
                   "after ---");
}

static void unknown_options(void **state)
{
    /* Before the program they are nobody's. */
    assert_left(WORDS("--no-browser", "--json", "--cli", "p.py", "a"), WORDS("p.py", "a"));
    assert_left(WORDS("--json", "-m", "mod", "--json"), WORDS("-m", "mod", "--json"));
    assert_left(WORDS("--bogus=1", "-Z", "p.py"), WORDS("p.py"));
    /* What follows is their value if it is no program and a program comes later. */
    assert_left(WORDS("--column-width", "120", "p.py", "b.py"), WORDS("p.py", "b.py"));
    assert_left(WORDS("--theme", "dark-blue", "-m", "mod"), WORDS("-m", "mod"));
    assert_left(WORDS("--json", "sh", "p.py"), WORDS("sh", "p.py"));
    assert_left(WORDS("--json", "/", "p.py"), WORDS("/", "p.py"));
    assert_left(WORDS("--column-width", "120", "x"), WORDS("120", "x"));
    assert_left(WORDS("--column-width", "120", "---", "p.py"), WORDS("120", "p.py"));
    assert_warned(VERB_RUN, WORDS("--profile-al", "--no-browser", "p.py", "--bogus"), "");
    assert_warned(VERB_RUN, WORDS("--cpuonly", "--xyz=1", "-Z", "p.py"),
                  "Scalene: warning: unknown option '--cpuonly' (ignored); did you mean "
                  "'--cpu-only'?\n"
                  "Scalene: warning: unknown option '--xyz=1' (ignored)\n"
                  "Scalene: warning: unknown option '-Z' (ignored)\n");
    assert_warned(VERB_VIEW, WORDS("--reduzed", "a.json", "b.json"),
                  "Scalene: warning: unknown option '--reduzed' (ignored); did you mean "
                  "'--reduced'?\n"
                  "Scalene: warning: one profile is shown at a time; 'b.json' (ignored)\n");
}

static void verbatim(void **state)
{
    assert_left(WORDS("p.py", "---", "--cpu-only", "-o", "x"),
                WORDS("p.py", "--cpu-only", "-o", "x"));
    assert_left(WORDS("---", "-c", "print()", "---", "-h"), WORDS("-c", "print()", "---", "-h"));
    assert_left(WORDS("--", "p.py", "-o", "x"), WORDS("p.py", "-o", "x"));
    assert_left(WORDS("p.py", "--", "--cpu-only", "---"), WORDS("p.py", "--", "--cpu-only", "---"));
    assert_left(WORDS("p.py", "---"), WORDS("p.py"));
}

static void abbreviations(void **state)
{
    struct options options;
    parse(&options, VERB_RUN, WORDS("--profile-i", "2", "--out=x", "--no-st", "--memory", "p.py"));
    assert_true(options.run.interval_sec == 2 && !options.run.stacks);
    assert_true(options.run.memory); /* a full name, though others begin with it */
    assert_string_equal(options.run.outfile, "x");
    options_release(&options);
    parse(&options, VERB_VIEW, WORDS("--red", "--cl"));
    assert_true(options.view.reduced && options.view.cli);
    assert_true(options.view.browser && options.view.port == 11235);
    options_release(&options);
    parse(&options, VERB_VIEW, WORDS("--no-browser", "--port=0", "--linger", "1.5", "-ox"));
    assert_true(!options.view.browser && !options.view.port && options.view.linger_sec == 1.5);
    assert_string_equal(options.view.outfile, "x");
    options_release(&options);
    assert_mistake(VERB_RUN, WORDS("--cpu", "p.py"),
                   "ambiguous option: --cpu could match --cpu-only, --cpu-percent-threshold, "
                   "--cpu-sampling-rate");
    assert_mistake(VERB_RUN, WORDS("--no-=1"),
                   "ambiguous option: --no-=1 could match --no-stacks, --no-async, --no-browser");
    /* No beginning of anything. */
    assert_left(WORDS("p.py", "--cpus", "--=x"), WORDS("p.py", "--cpus", "--=x"));
}

static void help(void **state)
{
    struct options options;
    parse(&options, VERB_RUN, WORDS("--help", "p.py"));
    assert_int_equal(options.help, OPTION_HELP);
    options_release(&options);
    parse(&options, VERB_RUN, WORDS("--help-a", "--cpu"));
    assert_int_equal(options.help, OPTION_HELP_ADVANCED);
    options_release(&options);
    parse(&options, VERB_RUN, WORDS("p.py", "---", "-h"));
    assert_int_equal(options.help, OPTION_SET);
    options_release(&options);
}

static void mistakes(void **state)
{
    assert_mistake(VERB_RUN, WORDS("-o"), "argument -o/--outfile: expected one argument");
    assert_mistake(VERB_RUN, WORDS("-o", "--cpu-only"),
                   "argument -o/--outfile: expected one argument");
    assert_mistake(VERB_RUN, WORDS("-o", "---"), "argument -o/--outfile: expected one argument");
    assert_mistake(VERB_RUN, WORDS("--cpu-only=1"),
                   "argument --cpu-only: ignored explicit argument '1'");
    assert_mistake(VERB_RUN, WORDS("--on", "--off"),
                   "argument --off: not allowed with argument --on");
    assert_mistake(VERB_RUN, WORDS("--pid", "x"), "argument --pid: invalid int value: 'x'");
    assert_mistake(VERB_RUN, WORDS("--pid="), "argument --pid: invalid int value: ''");
    assert_mistake(VERB_MERGE, WORDS("--bogus"), "unrecognized arguments: --bogus");
    assert_mistake(VERB_VIEW, WORDS("--color", "red"),
                   "argument --color: invalid choice: 'red' (choose from 'auto', 'always', "
                   "'never')");
}

static void other_verbs(void **state)
{
    struct options options;
    for (int verb = VERB_ON; verb <= VERB_SNAPSHOT; verb++) {
        parse(&options, (enum option_verb)verb, WORDS("--pid", "12"));
        assert_int_equal(options.control.pid, 12);
        assert_null(options.control.outfile);
        options_release(&options);
        parse(&options, (enum option_verb)verb, WORDS("-h"));
        assert_int_equal(options.help, OPTION_HELP);
        options_release(&options);
        assert_mistake((enum option_verb)verb, WORDS("--pid", "12", "x"),
                       "unrecognized arguments: x");
        assert_mistake((enum option_verb)verb, WORDS("--pid", "0"),
                       "argument --pid: must be between 1 and 2147483647, not '0'");
        assert_mistake((enum option_verb)verb, (char **)(const char *[]){NULL},
                       "the following arguments are required: --pid");
    }
    assert_mistake(VERB_OFF, WORDS("--pid", "12", "-o", "x"), "unrecognized arguments: -o");
    parse(&options, VERB_MERGE, WORDS("a.json", "-o", "c", "b.json", "d.json"));
    assert_words(&options, WORDS("a.json", "b.json", "d.json"));
    assert_string_equal(options.merge.outfile, "c");
    options_release(&options);
    parse(&options, VERB_RECOVER, WORDS("--list", "/tmp/x"));
    assert_true(options.recover.list);
    assert_words(&options, WORDS("/tmp/x"));
    options_release(&options);
    assert_mistake(VERB_RECOVER, WORDS("a", "b"), "unrecognized arguments: b");
}

static void absurd_numbers(void **state)
{
    static const char *const rates[] = {"0",   "-1", "nan",     "inf",   "-inf",
                                        "1e9", "11", "0.00009", "1e-400"};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        char word[64], message[200];
        snprintf(word, sizeof word, "--cpu-sampling-rate=%s", rates[i]);
        snprintf(message, sizeof message,
                 "argument --cpu-sampling-rate: must be between 0.0001 and 10 seconds, not '%s'",
                 rates[i]);
        assert_mistake(VERB_RUN, WORDS(word), message);
    }
    static const char *const texts[] = {"", "x", "0x1", "1 ", "1s", "--", "1,5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char word[64], message[200];
        snprintf(word, sizeof word, "--cpu-sampling-rate=%s", texts[i]);
        snprintf(message, sizeof message, "argument --cpu-sampling-rate: invalid float value: '%s'",
                 texts[i]);
        assert_mistake(VERB_RUN, WORDS(word), message);
    }
    assert_mistake(VERB_RUN, WORDS("--cpu-sampling-rate", "-1"),
                   "argument --cpu-sampling-rate: must be between 0.0001 and 10 seconds, not '-1'");
    assert_mistake(VERB_RUN, WORDS("--profile-interval", "3601"),
                   "argument --profile-interval: must be between 0.1 and 3600 seconds, not '3601'");
    assert_mistake(VERB_RUN, WORDS("--malloc-threshold", "99999999999999999999"),
                   "argument --malloc-threshold: must be between 0 and 1099511627776, not "
                   "'99999999999999999999'");
    struct options options;
    parse(&options, VERB_RUN, WORDS("--profile-interval", "inf"));
    assert_true(isinf(options.run.interval_sec));
    options_release(&options);
}

/* Help, the page and the parser are made from one table; this is what the table promises. */
static void table_is_sound(void **state)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        assert_non_null(option->help);
        assert_null(strchr(option->help, '|'));
        bool number = option->type == OPTION_REAL || option->type == OPTION_WHOLE;
        assert_true(number == (option->most > option->least));
        assert_true((option->type == OPTION_CHOICE) == (option->choices != NULL));
        assert_true((number || option->type == OPTION_TEXT || option->choices) ==
                    (option->metavar != NULL));
        for (size_t k = 0; k < i; k++) {
            if (option_table[k].verb != option->verb)
                continue;
            assert_string_not_equal(option_table[k].name, option->name);
            assert_true(!option->letter || option_table[k].letter != option->letter);
        }
    }
}

static void help_text(void **state)
{
    struct buf basic = {0}, advanced = {0}, colored = {0};
    help_verb(&basic, VERB_RUN, LEVEL_BASIC, &(struct help_style){.width = 60});
    help_verb(&advanced, VERB_RUN, LEVEL_ADVANCED, &(struct help_style){.width = 60});
    help_verb(&colored, VERB_RUN, LEVEL_BASIC, &(struct help_style){.color = true, .width = 60});
    assert_non_null(strstr(basic.data, "-o OUTFILE, --outfile OUTFILE"));
    assert_null(strstr(basic.data, "--profile-all"));
    assert_non_null(strstr(advanced.data, "--stacks, --no-stacks"));
    assert_null(strstr(advanced.data, "--outfile"));
    assert_null(strstr(advanced.data, "--ipython"));
    assert_null(strchr(basic.data, '\033'));
    assert_non_null(strstr(colored.data, "\033[1;36m--outfile\033[0m"));
    /* Everything below the usage line is folded. */
    char *line = strchr(basic.data, '\n') + 1;
    for (char *end; (end = strchr(line, '\n')); line = end + 1)
        assert_true(end - line < 60);
    buf_release(&basic);
    buf_release(&advanced);
    buf_release(&colored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),       cmocka_unit_test(every_option),
        cmocka_unit_test(metrics),        cmocka_unit_test(program_and_arguments),
        cmocka_unit_test(verbatim),       cmocka_unit_test(abbreviations),
        cmocka_unit_test(help),           cmocka_unit_test(mistakes),
        cmocka_unit_test(absurd_numbers), cmocka_unit_test(table_is_sound),
        cmocka_unit_test(help_text),      cmocka_unit_test(other_verbs),
        cmocka_unit_test(late_options),   cmocka_unit_test(unknown_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
