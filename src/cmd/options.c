/*
 * Parsing of the command line by the option table; see options.h for the
 * rules.  Called by main.c and the verbs.
 */
#include "cmd/options.h"

#include "cmd/nearest.h"
#include "launch/target.h"
#include "serve/server.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct parser {
    struct options *options;
    enum option_verb verb;
    char *const *words;
    size_t at;
    bool program_seen;
    struct buf late; /* options of ours that stood behind the program */
    struct err *err;
};

static void keep(struct parser *parser, char *word)
{
    struct options *options = parser->options;
    VEC_PUSH(options->words, options->word_count, options->word_cap) = word;
}

static void keep_rest(struct parser *parser)
{
    while (parser->words[parser->at])
        keep(parser, parser->words[parser->at++]);
}

/* "-o/--outfile", as argparse names an option in its messages. */
static const char *shown(const struct option *option, char *text, size_t size)
{
    if (option->letter)
        snprintf(text, size, "-%c/--%s", option->letter, option->name);
    else if (option->type == OPTION_SWITCH)
        snprintf(text, size, "--%s/--no-%s", option->name, option->name);
    else
        snprintf(text, size, "--%s", option->name);
    return text;
}

/* For messages about a value: "argument --pid: " and what is wrong. */
static int complain(struct err *err, const struct option *option, const char *what,
                    const char *text)
{
    char name[80];
    return err_set(err, "argument %s: %s '%s'", shown(option, name, sizeof name), what, text);
}

static int out_of_range(struct err *err, const struct option *option, const char *text)
{
    char name[80];
    return err_set(err, "argument %s: must be between %.15g and %.15g%s%s, not '%s'",
                   shown(option, name, sizeof name), option->least, option->most,
                   option->unit ? " " : "", option->unit ? option->unit : "", text);
}

/* Digits, sign, point and exponent, "inf" and "nan"; not the hexadecimal that strtod also takes. */
static bool parse_real(const char *text, double *value)
{
    char *end;
    if (!*text || strpbrk(text, "xXpP( \t\n"))
        return false;
    *value = strtod(text, &end);
    return !*end;
}

static bool parse_bool(const char *text, bool *value)
{
    static const char *const yes[] = {"true", "yes", "on"};
    static const char *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < 3; i++) {
        if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
            *value = !strcasecmp(text, yes[i]);
            return true;
        }
    }
    return false;
}

static int assign_real(double *field, const struct option *option, const char *text,
                       struct err *err)
{
    double value;
    if (!parse_real(text, &value))
        return complain(err, option, "invalid float value:", text);
    /* Where infinity is the default it may be typed too. */
    bool never = isinf(value) && value > 0 && option->initial && !strcmp(option->initial, "inf");
    if (!never && !(value >= option->least && value <= option->most))
        return out_of_range(err, option, text);
    *field = value;
    return 0;
}

static int assign_whole(int64_t *field, const struct option *option, const char *text,
                        struct err *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (!*text || *end || strchr(" \t\n", *text))
        return complain(err, option, "invalid int value:", text);
    if (errno == ERANGE || (double)value < option->least || (double)value > option->most)
        return out_of_range(err, option, text);
    *field = value;
    return 0;
}

static int assign_choice(const char **field, const struct option *option, const char *text,
                         struct err *err)
{
    struct buf choices = {0};
    for (const char *const *choice = option->choices; *choice; choice++) {
        if (!strcmp(*choice, text)) {
            *field = *choice;
            buf_release(&choices);
            return 0;
        }
        buf_addf(&choices, "%s'%s'", choices.len ? ", " : "", *choice);
    }
    char name[80];
    err_set(err, "argument %s: invalid choice: '%s' (choose from %s)",
            shown(option, name, sizeof name), text, choices.data);
    buf_release(&choices);
    return -1;
}

/* `text` is NULL for an option without value; `positive` tells --name from --no-name. */
static int assign(struct options *options, const struct option *option, const char *text,
                  bool positive, struct err *err)
{
    void *field = (char *)options + option->field;
    switch (option->type) {
    case OPTION_SET:
    case OPTION_SWITCH:
        *(bool *)field = positive;
        return 0;
    case OPTION_CLEAR:
        *(bool *)field = !positive;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = text;
        return 0;
    case OPTION_CHOICE:
        return assign_choice(field, option, text, err);
    case OPTION_REAL:
        return assign_real(field, option, text, err);
    case OPTION_WHOLE:
        return assign_whole(field, option, text, err);
    case OPTION_HELP:
    case OPTION_HELP_ADVANCED:
        options->help = option->type;
        return 0;
    }
    return 0;
}

static bool takes_value(const struct option *option)
{
    return option->type == OPTION_TEXT || option->type == OPTION_CHOICE ||
           option->type == OPTION_REAL || option->type == OPTION_WHOLE;
}

/* argparse takes a word that looks like an option as a value only when it is a negative number. */
static bool can_be_value(const char *word)
{
    double number;
    return word && (word[0] != '-' || !word[1] || parse_real(word, &number));
}

/* Take an option that was recognised; `text` is its joined value or NULL.  parser->at is behind
 * the option's own word. */
static int take(struct parser *parser, const struct option *option, const char *text, bool positive)
{
    struct options *options = parser->options;
    char name[80], other_name[80];
    for (size_t i = 0; option->group == GROUP_START && i < option_count; i++) {
        const struct option *other = &option_table[i];
        if (other != option && other->group == GROUP_START && options->source[i] == SOURCE_COMMAND)
            return err_set(parser->err, "argument %s: not allowed with argument %s",
                           shown(option, name, sizeof name),
                           shown(other, other_name, sizeof other_name));
    }
    if (takes_value(option) && !text) {
        const char *next = parser->words[parser->at];
        if (!can_be_value(next) || !strcmp(next, "---"))
            return err_set(parser->err, "argument %s: expected one argument%s",
                           shown(option, name, sizeof name),
                           parser->program_seen ? "; the program's own options go after ---" : "");
        text = next;
        parser->at++;
    } else if (!takes_value(option) && text) {
        return complain(parser->err, option, "ignored explicit argument", text);
    }
    options->source[option - option_table] = SOURCE_COMMAND;
    return assign(options, option, text, positive, parser->err);
}

struct match {
    const struct option *option;
    bool positive;
    size_t count;     /* of spellings that begin like this */
    struct buf names; /* of those */
};

/* True: this is the full name, look no further. */
static bool match_name(struct match *match, const struct option *option, bool positive,
                       const char *name, size_t length)
{
    char spelling[80];
    snprintf(spelling, sizeof spelling, "%s%s", positive ? "" : "no-", option->name);
    if (strncmp(spelling, name, length) != 0)
        return false;
    match->option = option;
    match->positive = positive;
    match->count = spelling[length] ? match->count + 1 : 1;
    buf_addf(&match->names, "%s--%s", match->names.len ? ", " : "", spelling);
    return !spelling[length];
}

/* --name, --name=value, or a beginning of the name.  1: not ours. */
static int parse_long(struct parser *parser, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    struct match match = {0};
    for (size_t i = 0; length && i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->verb != parser->verb)
            continue;
        if (match_name(&match, option, true, name, length) ||
            (option->type == OPTION_SWITCH && match_name(&match, option, false, name, length)))
            break;
    }
    int rc = 1;
    if (match.count > 1) {
        rc = err_set(parser->err, "ambiguous option: %s could match %s", word, match.names.data);
    } else if (match.count) {
        parser->at++;
        rc = take(parser, match.option, equals ? equals + 1 : NULL, match.positive);
    }
    buf_release(&match.names);
    return rc;
}

/* -o VALUE, -oVALUE, -h.  1: not ours. */
static int parse_short(struct parser *parser, const char *word)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->verb != parser->verb || option->letter != word[1])
            continue;
        if (!takes_value(option) && word[2])
            return 1;
        parser->at++;
        return take(parser, option, word[2] ? word + 2 : NULL, true);
    }
    return 1;
}

static void warn_of_unknown(struct parser *parser, const char *word)
{
    struct buf *warnings = &parser->options->warnings;
    struct nearest nearest;
    const char *name = word + strspn(word, "-");
    nearest_init(&nearest, name, strcspn(name, "="));
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].verb == parser->verb && option_table[i].level != LEVEL_HIDDEN)
            nearest_offer(&nearest, option_table[i].name);
    buf_addf(warnings, "Scalene: warning: unknown option '%s' (ignored)", word);
    if (word[1] == '-' && nearest.best)
        buf_addf(warnings, "; did you mean '--%s'?", nearest.best);
    buf_char(warnings, '\n');
}

static bool ends_in_py(const char *word)
{
    size_t length = strlen(word);
    return length > 3 && !strcmp(word + length - 3, ".py");
}

/* Behind an option that we do not know: its value, rather than the program?  It is if there is no
 * such program, while a later word looks like one. */
static bool is_value_of_unknown(char *const *words)
{
    if (!words[0] || words[0][0] == '-' || ends_in_py(words[0]) ||
        target_exists(words[0], getenv("PATH")))
        return false;
    for (words++; *words && strcmp(*words, "---") != 0; words++)
        if (ends_in_py(*words) || !strcmp(*words, "-m"))
            return true;
    return false;
}

/* A word with a dash that is none of our options. */
static int unknown(struct parser *parser, char *word)
{
    if (parser->verb != VERB_RUN && parser->verb != VERB_VIEW)
        return err_set(parser->err, "unrecognized arguments: %s", word);
    parser->at++;
    size_t flag_words = parser->verb == VERB_RUN ? target_flag_words(word) : 0;
    if (parser->verb == VERB_RUN && !strncmp(word, "-m", 2)) {
        parser->program_seen = true;
        flag_words = word[2] ? 1 : 2;
    }
    if (!flag_words) {
        warn_of_unknown(parser, word);
        if (parser->verb == VERB_RUN && is_value_of_unknown(parser->words + parser->at))
            parser->at++;
        return 0;
    }
    keep(parser, word);
    if (flag_words == 2 && parser->words[parser->at])
        keep(parser, parser->words[parser->at++]);
    return 0;
}

static const struct option *late_option(const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->late && strlen(option->name) == length && !strncmp(option->name, name, length))
            return option;
    }
    return NULL;
}

static int parse_behind_program(struct parser *parser)
{
    char *word = parser->words[parser->at];
    const struct option *option = late_option(word);
    if (!strcmp(word, "---")) {
        parser->at++;
        keep_rest(parser);
        return 0;
    }
    if (!strcmp(word, "--")) {
        keep_rest(parser);
        return 0;
    }
    parser->at++;
    if (!option) {
        keep(parser, word);
        return 0;
    }
    const char *equals = strchr(word, '=');
    buf_addf(&parser->late, "%s--%s", parser->late.len ? ", " : "", option->name);
    return take(parser, option, equals ? equals + 1 : NULL, true);
}

static int parse_word(struct parser *parser)
{
    char *word = parser->words[parser->at];
    bool is_end = !strcmp(word, "--") || (parser->verb == VERB_RUN && !strcmp(word, "---"));
    if (parser->program_seen)
        return parse_behind_program(parser);
    if (is_end) {
        parser->at++;
        keep_rest(parser);
        return 0;
    }
    if (word[0] != '-' || !word[1]) {
        parser->at++;
        parser->program_seen = parser->verb == VERB_RUN;
        keep(parser, word);
        return 0;
    }
    int rc = word[1] == '-' ? parse_long(parser, word) : parse_short(parser, word);
    return rc == 1 ? unknown(parser, word) : rc;
}

/* More words than the verb has use for. */
static int check_words(struct parser *parser)
{
    struct options *options = parser->options;
    size_t most = verb_table[parser->verb].words_most;
    if (options->word_count <= most)
        return 0;
    if (parser->verb != VERB_VIEW)
        return err_set(parser->err, "unrecognized arguments: %s", options->words[most]);
    buf_addf(&options->warnings,
             "Scalene: warning: one profile is shown at a time; '%s' (ignored)\n",
             options->words[most]);
    return 0;
}

void options_init(struct options *options)
{
    *options = (struct options){
        .run = {.profile_only = "",
                .profile_exclude = "",
                .program_path = "",
                .stacks = true,
                .async_profile = true,
                .interval_sec = INFINITY,
                .cpu_percent_threshold = 1,
                .cpu_sampling_sec = 0.01,
                .allocation_window_bytes = 1048576,
                .malloc_threshold = 100,
                .leak_detector = true,
                .start_on = true},
        .view = {.color = "auto",
                 .browser = true,
                 .port = SERVER_PORT,
                 .linger_sec = SERVER_LINGER_SEC},
        .help = OPTION_SET,
    };
}

void options_release(struct options *options)
{
    free(options->words);
    pool_release(&options->pool);
    buf_release(&options->warnings);
    *options = (struct options){0};
}

static int check_required(const struct options *options, enum option_verb verb, struct err *err)
{
    char name[80];
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->verb == verb && option->required && options->source[i] == SOURCE_DEFAULT)
            return err_set(err, "the following arguments are required: %s",
                           shown(option, name, sizeof name));
    }
    return 0;
}

int options_parse(struct options *options, enum option_verb verb, char *const *words,
                  struct err *err)
{
    struct parser parser = {.options = options, .verb = verb, .words = words, .err = err};
    int rc = 0;
    while (!rc && words[parser.at] && options->help == OPTION_SET)
        rc = parse_word(&parser);
    VEC_PUSH(options->words, options->word_count, options->word_cap) = NULL;
    options->word_count--;
    if (!rc && parser.late.len)
        buf_addf(&options->warnings,
                 "Scalene: %s after the program: taken for the profiler's; options go before the "
                 "program, the program's own after ---\n",
                 parser.late.data);
    buf_release(&parser.late);
    if (!rc)
        rc = check_words(&parser);
    if (!rc && options->help == OPTION_SET)
        rc = check_required(options, verb, err);
    return rc;
}

bool options_given(const struct options *options, const char *run_option)
{
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].verb == VERB_RUN && !strcmp(option_table[i].name, run_option))
            return options->source[i] != SOURCE_DEFAULT;
    }
    return false;
}

void options_finish(struct options *options)
{
    /* Asking for one metric means not asking for the others. */
    struct run_options *run = &options->run;
    bool any = run->cpu_only || run->gpu || run->memory;
    if (!options_given(options, "gpu"))
        run->gpu = !any;
    if (!options_given(options, "memory"))
        run->memory = !any;
    run->has_fixed_rate = options_given(options, "cpu-sampling-rate");
}

static bool same_key(const char *name, const char *key)
{
    for (; *name && (*name == *key || (*name == '-' && *key == '_')); name++)
        key++;
    return !*name && !*key;
}

const struct option *option_by_key(const char *key)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->verb != VERB_RUN || option->no_key)
            continue;
        if (same_key(option->name, key) || (option->key && same_key(option->key, key)))
            return option;
    }
    return NULL;
}

static bool decided_by_command(const struct options *options, const struct option *option)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option *other = &option_table[i];
        bool same = other == option || (option->group && other->group == option->group);
        if (same && options->source[i] == SOURCE_COMMAND)
            return true;
    }
    return false;
}

int option_set_from_file(struct options *options, const struct option *option, const char *text,
                         struct err *err)
{
    bool positive = true;
    struct options scratch = {0}; /* checks the value when it is not to be used */
    bool decided = decided_by_command(options, option);
    if (takes_value(option))
        text = pool_strndup(&options->pool, text, strlen(text));
    else if (!parse_bool(text, &positive))
        return err_set(err, "invalid bool value: '%s'", text);
    if (assign(decided ? &scratch : options, option, text, positive, err))
        return -1;
    if (!decided)
        options->source[option - option_table] = SOURCE_FILE;
    return 0;
}
