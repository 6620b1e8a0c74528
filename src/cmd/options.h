/*
 * The command line.  One const table (options_table.c) holds every option of
 * every verb; the parser here, the help (help.h), the keys of the YAML file
 * (config_file.h), completions and the manual (shells.h) and docs/options.md are all
 * made from it.
 *
 *   options_init -> options_parse -> config_file_apply -> options_finish -> use -> options_release
 *
 * Of `run`, options stand before the program, in full or by an unambiguous
 * beginning; one that we do not know is dropped with a warning, as the original
 * accepts such options too.  What stands after the program is the program's, but
 * for a few long names (`late`) that are ours wherever they stand, since scripts
 * for the original rely on it; what follows `---` is never looked at.
 *
 * Nothing here prints or ends the process: callers do, `warnings` included.
 */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALENE_DATE "2026.11.15"

enum option_verb {
    VERB_RUN,
    VERB_VIEW,
    VERB_MERGE,
    VERB_ON,
    VERB_OFF,
    VERB_SNAPSHOT,
    VERB_RECOVER,
    VERBS,
};

/* What `scalene VERB` is, for the help and the messages. */
struct verb {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line of the main help */
    const char *about;   /* the first paragraph of its own */
    size_t words_most;   /* so many words that are no options may follow */
};

enum option_level { LEVEL_BASIC, LEVEL_ADVANCED, LEVEL_HIDDEN };

enum option_type {
    OPTION_SET,    /* bool, becomes true */
    OPTION_CLEAR,  /* bool, becomes false */
    OPTION_SWITCH, /* bool, --name and --no-name */
    OPTION_TEXT,   /* const char * */
    OPTION_CHOICE, /* const char *, one of `choices` */
    OPTION_REAL,   /* double between `least` and `most` */
    OPTION_WHOLE,  /* int64_t between `least` and `most` */
    OPTION_HELP,
    OPTION_HELP_ADVANCED,
};

/* Options that only make sense together: one of them on the command line
 * overrules all of them in the file. */
enum option_group {
    GROUP_NONE,
    GROUP_METRICS, /* --cpu-only, --gpu, --memory */
    GROUP_START,   /* --on, --off: not both */
};

struct option {
    enum option_verb verb;
    const char *name; /* long name, without dashes */
    char letter;      /* short name, or 0 */
    enum option_type type;
    enum option_level level;
    enum option_group group;
    size_t field; /* offset into struct options */
    const char *metavar;
    double least, most;
    const char *unit;
    const char *const *choices;
    bool no_key; /* has no key in the YAML file */
    bool required;
    bool late;           /* of `run`: ours also after the program, in full */
    const char *key;     /* a second key, besides the name */
    const char *initial; /* default as shown to people, or NULL */
    const char *help;
};

struct run_options {
    const char *outfile;        /* NULL: the default name */
    const char *config_file;    /* NULL: none */
    const char *python;         /* NULL: look for one */
    bool cpu_only, gpu, memory; /* after options_finish: what to measure besides CPU */
    bool profile_all, profile_system_libraries;
    const char *profile_only, *profile_exclude, *program_path; /* "" when not given */
    bool stacks, async_profile;
    double interval_sec; /* of --profile-interval; infinite: only at the end */
    bool use_virtual_time;
    double cpu_percent_threshold, cpu_sampling_sec;
    bool has_fixed_rate; /* cpu_sampling_sec was asked for */
    int64_t allocation_window_bytes, malloc_threshold;
    bool leak_detector, legacy_tracer, python_callback, disable_jit;
    bool start_on;
    bool reduced_profile;
    bool ipython, no_browser; /* accepted for compatibility */
    int64_t parent_pid;       /* likewise */
};

struct view_options {
    bool cli, json, html, standalone, reduced;
    const char *color;
    const char *outfile; /* of the report; NULL: the default name */
    bool browser;        /* open one */
    int64_t port;
    double linger_sec;
};

struct merge_options {
    const char *outfile; /* NULL: the default name */
};

struct control_options { /* on, off, snapshot */
    int64_t pid;
    const char *outfile; /* of snapshot; NULL: the default name */
};

struct recover_options {
    bool list;
    const char *outfile; /* NULL: named after the program */
};

enum option_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_COMMAND };

enum { OPTIONS_MAX = 64 };

struct options {
    struct run_options run;
    struct view_options view;
    struct merge_options merge;
    struct control_options control;
    struct recover_options recover;
    enum option_type help; /* OPTION_HELP or OPTION_HELP_ADVANCED when asked for, else OPTION_SET */
    char **words;          /* what is not ours: the program and its arguments; NULL-terminated */
    size_t word_count, word_cap;
    enum option_source source[OPTIONS_MAX]; /* by place in the table */
    struct pool pool;                       /* texts that came from a file */
    struct buf warnings;                    /* whole lines for the user */
};

extern const struct verb verb_table[VERBS];
extern const struct option option_table[];
extern const size_t option_count;

void options_init(struct options *options);
void options_release(struct options *options);

/* `words` are those after the verb.  On failure `err` is worded as argparse words it. */
int options_parse(struct options *options, enum option_verb verb, char *const *words,
                  struct err *err);

/* What follows from all options together; after the configuration file was read. */
void options_finish(struct options *options);

bool options_given(const struct options *options, const char *run_option);

/* For config_file.c.  A key is the long name with hyphens or underscores. */
const struct option *option_by_key(const char *key);
/* Set from the file, unless the command line decided already; a bad value is an error either way.
 */
int option_set_from_file(struct options *options, const struct option *option, const char *text,
                         struct err *err);

#endif
