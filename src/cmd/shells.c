/* Completions and the manual page; see shells.h.  Called by main.c. */
#include "cmd/shells.h"

#include "cmd/options.h"

#include <string.h>

static bool takes_value(const struct option *option)
{
    return option->type == OPTION_TEXT || option->type == OPTION_CHOICE ||
           option->type == OPTION_REAL || option->type == OPTION_WHOLE;
}

/* The next option of a verb that people are to know of, from `at` on; NULL: there is no more. */
static const struct option *next_option(enum option_verb verb, size_t *at)
{
    while (*at < option_count) {
        const struct option *option = &option_table[(*at)++];
        if (option->verb == verb && option->level != LEVEL_HIDDEN)
            return option;
    }
    return NULL;
}

/* With a backslash before each of these characters. */
static void escaped(struct buf *out, const char *text, const char *characters)
{
    for (; *text; text++) {
        if (strchr(characters, *text))
            buf_char(out, '\\');
        buf_char(out, *text);
    }
}

/* Within '...', which has no escapes in most shells: it is ended, and begun again. */
static void quoted(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            buf_str(out, "'\\''");
        else
            buf_char(out, *text);
    }
}

static void choices(struct buf *out, const struct option *option)
{
    for (const char *const *choice = option->choices; *choice; choice++)
        buf_addf(out, "%s%s", choice == option->choices ? "" : " ", *choice);
}

/* ---- bash ---- */

static void bash_words(struct buf *out, enum option_verb verb)
{
    const struct option *option;
    for (size_t at = 0; (option = next_option(verb, &at));) {
        if (option->letter)
            buf_addf(out, " -%c", option->letter);
        buf_addf(out, " --%s", option->name);
        if (option->type == OPTION_SWITCH)
            buf_addf(out, " --no-%s", option->name);
    }
}

/* VERB:OPTION) of each option whose value is to be completed by this. */
static void bash_values(struct buf *out, enum option_type type, const char *reply)
{
    for (int verb = 0; verb < VERBS; verb++) {
        const struct option *option;
        for (size_t at = 0; (option = next_option((enum option_verb)verb, &at));) {
            if (option->type != type)
                continue;
            buf_str(out, "    ");
            if (option->letter)
                buf_addf(out, "%s:-%c | ", verb_table[verb].name, option->letter);
            buf_addf(out, "%s:--%s) ", verb_table[verb].name, option->name);
            if (type == OPTION_CHOICE) {
                buf_str(out, "COMPREPLY=($(compgen -W '");
                choices(out, option);
                buf_str(out, "' -- \"$word\"))");
            } else {
                buf_str(out, reply);
            }
            buf_str(out, "; return ;;\n");
        }
    }
}

void shells_bash(struct buf *out)
{
    buf_str(out,
            "# bash completion for scalene\n\n"
            "_scalene() {\n"
            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=\n"
            "    COMPREPLY=()\n"
            "    [ \"$COMP_CWORD\" -gt 1 ] && verb=${COMP_WORDS[1]}\n"
            "    if [ -z \"$verb\" ]; then\n"
            "        COMPREPLY=($(compgen -W '--help --version");
    for (int verb = 0; verb < VERBS; verb++)
        buf_addf(out, " %s", verb_table[verb].name);
    buf_str(out, "' -- \"$word\"))\n        return\n    fi\n    case $verb:$before in\n");
    bash_values(out, OPTION_CHOICE, NULL);
    bash_values(out, OPTION_TEXT, "compopt -o default 2>/dev/null");
    bash_values(out, OPTION_REAL, ":");
    bash_values(out, OPTION_WHOLE, ":");
    buf_str(out, "    esac\n    case $verb:$word in\n");
    for (int verb = 0; verb < VERBS; verb++) {
        buf_addf(out, "    %s:-*) COMPREPLY=($(compgen -W '", verb_table[verb].name);
        bash_words(out, (enum option_verb)verb);
        buf_str(out, "' -- \"$word\")) ;;\n");
    }
    buf_str(out, "    *) compopt -o default 2>/dev/null ;;\n"
                 "    esac\n"
                 "}\n\n"
                 "complete -F _scalene scalene\n");
}

/* ---- zsh ---- */

/* An option as _arguments of zsh wants it: '(-o --outfile)'{-o,--outfile}'[help]:OUTFILE:_files'.
 */
static void zsh_option(struct buf *out, const struct option *option, const char *prefix)
{
    if (option->letter && !*prefix)
        buf_addf(out, " \\\n        '(-%c --%s)'{-%c,--%s}'[", option->letter, option->name,
                 option->letter, option->name);
    else
        buf_addf(out, " \\\n        '--%s%s[", prefix, option->name);
    struct buf help = {0};
    escaped(&help, option->help, "[]:");
    quoted(out, help.data);
    buf_release(&help);
    buf_char(out, ']');
    if (takes_value(option))
        buf_addf(out, ":%s:", option->metavar);
    if (option->type == OPTION_TEXT)
        buf_str(out, "_files");
    if (option->type == OPTION_CHOICE) {
        buf_char(out, '(');
        choices(out, option);
        buf_char(out, ')');
    }
    buf_char(out, '\'');
}

void shells_zsh(struct buf *out)
{
    buf_str(out, "#compdef scalene\n\n"
                 "_scalene() {\n"
                 "    local state line\n"
                 "    local -a verbs\n"
                 "    verbs=(\n");
    for (int verb = 0; verb < VERBS; verb++) {
        buf_addf(out, "        '%s:", verb_table[verb].name);
        quoted(out, verb_table[verb].summary);
        buf_str(out, "'\n");
    }
    buf_str(out, "    )\n"
                 "    _arguments -C '(- *)'{-h,--help}'[show this help and exit]' \\\n"
                 "        '(- *)--version[show the version and exit]' \\\n"
                 "        '1:command:->verb' '*::argument:->rest' && return\n"
                 "    if [[ $state == verb ]]; then\n"
                 "        _describe command verbs\n"
                 "        return\n"
                 "    fi\n"
                 "    case $words[1] in\n");
    for (int verb = 0; verb < VERBS; verb++) {
        const struct option *option;
        buf_addf(out, "    %s)\n        _arguments", verb_table[verb].name);
        for (size_t at = 0; (option = next_option((enum option_verb)verb, &at));) {
            zsh_option(out, option, "");
            if (option->type == OPTION_SWITCH)
                zsh_option(out, option, "no-");
        }
        /* What follows the program is the program's: a file, most likely. */
        buf_str(out, verb_table[verb].words_most ? " \\\n        '*:file:_files' ;;\n" : " ;;\n");
    }
    buf_str(out, "    esac\n"
                 "}\n\n"
                 "_scalene \"$@\"\n");
}

/* ---- fish ---- */

static void fish_option(struct buf *out, const struct option *option, const char *prefix)
{
    buf_addf(out, "complete -c scalene -n '__fish_seen_subcommand_from %s'",
             verb_table[option->verb].name);
    if (option->letter && !*prefix)
        buf_addf(out, " -s %c", option->letter);
    buf_addf(out, " -l %s%s", prefix, option->name);
    if (option->type == OPTION_CHOICE) {
        buf_str(out, " -x -a '");
        choices(out, option);
        buf_char(out, '\'');
    } else if (takes_value(option)) {
        buf_str(out, option->type == OPTION_TEXT ? " -r -F" : " -x");
    }
    buf_str(out, " -d '");
    escaped(out, option->help, "'\\");
    buf_str(out, "'\n");
}

void shells_fish(struct buf *out)
{
    buf_str(
        out,
        "# fish completion for scalene\n\n"
        "complete -c scalene -n __fish_use_subcommand -f\n"
        "complete -c scalene -n __fish_use_subcommand -s h -l help -d 'show this help and exit'\n"
        "complete -c scalene -n __fish_use_subcommand -l version -d 'show the version and exit'\n");
    for (int verb = 0; verb < VERBS; verb++) {
        buf_addf(out, "complete -c scalene -n __fish_use_subcommand -a %s -d '",
                 verb_table[verb].name);
        escaped(out, verb_table[verb].summary, "'\\");
        buf_str(out, "'\n");
    }
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].level == LEVEL_HIDDEN)
            continue;
        fish_option(out, &option_table[i], "");
        if (option_table[i].type == OPTION_SWITCH)
            fish_option(out, &option_table[i], "no-");
    }
}

/* ---- man ---- */

/* Text of roff: a hyphen is one that can be copied, a backslash is none of its own. */
static void roff(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            buf_str(out, "\\-");
        else if (*text == '\\')
            buf_str(out, "\\e");
        else
            buf_char(out, *text);
    }
}

static void man_option(struct buf *out, const struct option *option)
{
    buf_str(out, ".TP\n");
    if (option->letter)
        buf_addf(out, "\\fB\\-%c\\fR, ", option->letter);
    buf_str(out, "\\fB\\-\\-");
    roff(out, option->name);
    buf_str(out, "\\fR");
    if (option->metavar)
        buf_addf(out, " \\fI%s\\fR", option->metavar);
    if (option->type == OPTION_SWITCH) {
        buf_str(out, ", \\fB\\-\\-no\\-");
        roff(out, option->name);
        buf_str(out, "\\fR");
    }
    buf_char(out, '\n');
    roff(out, option->help);
    if (option->initial) {
        buf_str(out, " (default: ");
        roff(out, option->initial);
        buf_char(out, ')');
    }
    buf_str(out, ".\n");
}

static void man_verb(struct buf *out, enum option_verb verb)
{
    const struct option *option;
    buf_addf(out, ".SS scalene %s ", verb_table[verb].name);
    roff(out, verb_table[verb].usage);
    buf_char(out, '\n');
    roff(out, verb_table[verb].about);
    buf_char(out, '\n');
    for (size_t at = 0; (option = next_option(verb, &at));)
        man_option(out, option);
}

void shells_man(struct buf *out)
{
    buf_str(out, ".TH SCALENE 1 " SCALENE_DATE " \"scalene " SCALENE_VERSION "\"\n"
                 ".SH NAME\n"
                 "scalene \\- a profiler for Python that says, line by line, where the time goes\n"
                 ".SH SYNOPSIS\n");
    for (int verb = 0; verb < VERBS; verb++) {
        buf_addf(out, "%s\\fBscalene %s\\fR ", verb ? ".br\n" : "", verb_table[verb].name);
        roff(out, verb_table[verb].usage);
        buf_char(out, '\n');
    }
    buf_str(
        out,
        ".SH DESCRIPTION\n"
        "Scalene runs a Python program and tells for each of its lines how much CPU time went to\n"
        "Python and to native code, what it waited for, and how much memory it allocated, keeps\n"
        "and copies; in all threads and processes, without changing the program.\n"
        ".SH COMMANDS\n");
    for (int verb = 0; verb < VERBS; verb++)
        man_verb(out, (enum option_verb)verb);
    buf_str(out,
            ".SH EXIT STATUS\n"
            "That of the program, for \\fBrun\\fR; else 0, 1 if something failed, and 2 if the\n"
            "command line makes no sense.\n"
            ".SH FILES\n"
            ".TP\n"
            "\\fIscalene\\-profile.json\\fR\n"
            "The profile, in the working directory, unless \\fB\\-\\-outfile\\fR names another.\n"
            ".SH EXAMPLES\n"
            ".nf\n"
            "scalene run prog.py\n"
            "scalene view \\-\\-cli\n"
            ".fi\n");
}
