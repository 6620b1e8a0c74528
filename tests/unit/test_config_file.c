/* The YAML file: keys, values, precedence, messages. */
#include "cmd/config_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

/* Parse the command line, then the text. */
static int apply(struct options *options, char *const *words, const char *text,
                 struct buf *warnings, struct err *err)
{
    options_init(options);
    assert_int_equal(options_parse(options, VERB_RUN, words, err), 0);
    int rc = config_text_apply(options, "f.yaml", text, strlen(text), warnings, err);
    if (!rc)
        options_finish(options);
    return rc;
}

static void good(struct options *options, char *const *words, const char *text)
{
    struct err err = {""};
    struct buf warnings = {0};
    if (apply(options, words, text, &warnings, &err))
        fail_msg("%s", err.text);
    assert_int_equal(warnings.len, 0);
    buf_release(&warnings);
}

static void bad(const char *text, int expected, const char *message)
{
    struct options options;
    struct err err = {""};
    struct buf warnings = {0};
    assert_int_equal(apply(&options, WORDS("p.py"), text, &warnings, &err), expected);
    assert_string_equal(err.text, message);
    buf_release(&warnings);
    options_release(&options);
}

static void all_keys(void **state)
{
    struct options options;
    good(&options, WORDS("p.py"),
         "output: out.json\npython: /p\nprofile-all: true\nprofile_only: 'a,b'\n"
         "profile-exclude: c\nstacks: false\nasync: no\nprofile_interval: 2\n"
         "use-virtual-time: yes\ncpu-percent-threshold: 5\ncpu_sampling_rate: 0.002\n"
         "allocation-sampling-window: 4096\nmalloc-threshold: 7\nprogram-path: \"/x y\"\n"
         "memory-leak-detector: false\nprofile-system-libraries: on\ndisable-jit: True\n"
         "off: true\n");
    const struct run_options *run = &options.run;
    assert_string_equal(run->outfile, "out.json");
    assert_string_equal(run->python, "/p");
    assert_string_equal(run->profile_only, "a,b");
    assert_string_equal(run->profile_exclude, "c");
    assert_string_equal(run->program_path, "/x y");
    assert_true(run->profile_all && run->use_virtual_time && run->profile_system_libraries);
    assert_true(run->disable_jit && !run->stacks && !run->async_profile && !run->leak_detector);
    assert_true(!run->start_on && run->interval_sec == 2 && run->cpu_percent_threshold == 5);
    assert_true(run->cpu_sampling_sec == 0.002);
    assert_int_equal(run->allocation_window_bytes, 4096);
    assert_int_equal(run->malloc_threshold, 7);
    options_release(&options);
}

static void command_line_wins(void **state)
{
    struct options options;
    good(&options,
         WORDS("-o", "cli.json", "--stacks", "--cpu-sampling-rate", "0.5", "--on", "p.py"),
         "outfile: file.json\nstacks: false\ncpu-sampling-rate: 0.1\noff: true\ngpu: true\n");
    assert_string_equal(options.run.outfile, "cli.json");
    assert_true(options.run.stacks && options.run.start_on && options.run.gpu);
    assert_true(options.run.cpu_sampling_sec == 0.5);
    options_release(&options);
}

static void metrics(void **state)
{
    struct options options;
    good(&options, WORDS("p.py"), "cpu-only: true\n");
    assert_true(!options.run.memory && !options.run.gpu);
    options_release(&options);
    /* The choice on the command line replaces the file's as a whole. */
    good(&options, WORDS("--cpu-only", "p.py"), "memory: true\n");
    assert_true(!options.run.memory && !options.run.gpu);
    options_release(&options);
    /* Saying no to one says nothing about the other. */
    good(&options, WORDS("p.py"), "gpu: false\n");
    assert_true(options.run.memory && !options.run.gpu);
    options_release(&options);
    good(&options, WORDS("p.py"), "off: false\n");
    assert_true(options.run.start_on);
    options_release(&options);
}

static void nothing_said(void **state)
{
    static const char *const texts[] = {"", "# only this\n", "---\n...\n", "outfile:\nstacks: ~\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct options options;
        good(&options, WORDS("p.py"), texts[i]);
        assert_null(options.run.outfile);
        assert_true(options.run.stacks);
        options_release(&options);
    }
    struct options options;
    good(&options, WORDS("p.py"), "profile-interval: .inf\n");
    assert_true(isinf(options.run.interval_sec));
    options_release(&options);
}

static void unknown_keys(void **state)
{
    struct options options;
    struct err err = {""};
    struct buf warnings = {0};
    assert_int_equal(apply(&options, WORDS("p.py"),
                           "bogus: 1\nprofile-all: true\nhelp: true\nipython: true\n[a]: 2\n",
                           &warnings, &err),
                     0);
    assert_true(options.run.profile_all && !options.run.ipython);
    assert_string_equal(warnings.data,
                        "Scalene: warning: unknown config option 'bogus' (ignored)\n"
                        "Scalene: warning: unknown config option 'help' (ignored)\n"
                        "Scalene: warning: unknown config option 'ipython' (ignored)\n"
                        "Scalene: warning: unknown config option '?' (ignored)\n");
    buf_release(&warnings);
    options_release(&options);
}

static void bad_documents(void **state)
{
    bad("- a\n- b\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got list)");
    bad("hello\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got str)");
    bad("'1'\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got str)");
    bad("12\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got int)");
    bad("1.5\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got float)");
    bad("true\n", CONFIG_FILE_BAD, "config file must contain a YAML mapping (got bool)");
    struct options options;
    struct err err = {""};
    struct buf warnings = {0};
    assert_int_equal(apply(&options, WORDS("p.py"), "a: [1\nb: 2\n", &warnings, &err),
                     CONFIG_FILE_BAD);
    assert_non_null(strstr(err.text, "invalid YAML in config file: "));
    assert_non_null(strstr(err.text, "line 2"));
    options_release(&options);
    buf_release(&warnings);
}

static void bad_values(void **state)
{
    bad("stacks: true\n\ncpu-sampling-rate: fast\n", CONFIG_FILE_OTHER,
        "config file 'f.yaml', line 3: cpu-sampling-rate: argument --cpu-sampling-rate: invalid "
        "float value: 'fast'");
    bad("profile-all: 7\n", CONFIG_FILE_OTHER,
        "config file 'f.yaml', line 1: profile-all: invalid bool value: '7'");
    bad("profile-only: [a, b]\n", CONFIG_FILE_OTHER,
        "config file 'f.yaml', line 1: profile-only: it needs a single value");
    /* Also where the command line decided. */
    struct options options;
    struct err err = {""};
    struct buf warnings = {0};
    assert_int_equal(apply(&options, WORDS("--malloc-threshold", "3", "p.py"),
                           "malloc-threshold: x\n", &warnings, &err),
                     CONFIG_FILE_OTHER);
    assert_int_equal(options.run.malloc_threshold, 3);
    options_release(&options);
    buf_release(&warnings);
}

static void missing_file(void **state)
{
    struct options options;
    struct err err = {""};
    struct buf warnings = {0};
    options_init(&options);
    assert_int_equal(config_file_apply(&options, "/nonexistent.yaml", &warnings, &err),
                     CONFIG_FILE_BAD);
    assert_string_equal(err.text, "config file '/nonexistent.yaml' not found.");
    assert_int_equal(config_file_apply(&options, "/", &warnings, &err), CONFIG_FILE_OTHER);
    assert_string_equal(err.text, "cannot read '/': Is a directory");
    options_release(&options);
    buf_release(&warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_keys),     cmocka_unit_test(command_line_wins),
        cmocka_unit_test(metrics),      cmocka_unit_test(nothing_said),
        cmocka_unit_test(unknown_keys), cmocka_unit_test(bad_documents),
        cmocka_unit_test(bad_values),   cmocka_unit_test(missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
