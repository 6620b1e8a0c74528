/* Rendering of help; see help.h.  Called by main.c. */
#include "cmd/help.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 2, COLUMN = 24, WIDTH_LEAST = 40 };

/* The colours of the original. */
#define HEADING "\033[1;34m"
#define PROGRAM "\033[1;35m"
#define LONG    "\033[1;36m"
#define SHORT   "\033[1;32m"
#define METAVAR "\033[1;33m"

static void paint(struct buf *out, const struct help_style *style, const char *color,
                  const char *text)
{
    if (style->color)
        buf_addf(out, "%s%s\033[0m", color, text);
    else
        buf_str(out, text);
}

/* Flow `text` from column `at` on, following lines indented by `indent`. */
static void flow(struct buf *out, const char *text, size_t at, size_t indent, size_t width)
{
    bool first = true;
    if (width < WIDTH_LEAST)
        width = WIDTH_LEAST;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (!first && at + 1 + length > width - 1) {
            buf_char(out, '\n');
            buf_pad(out, ' ', indent);
            at = indent;
            first = true;
        }
        if (!first) {
            buf_char(out, ' ');
            at++;
        }
        buf_add(out, text, length);
        at += length;
        text += length;
        text += strspn(text, " ");
        first = false;
    }
    buf_char(out, '\n');
}

static void metavar(struct buf *out, const struct option *option, const struct help_style *style)
{
    if (option->metavar) {
        buf_char(out, ' ');
        paint(out, style, METAVAR, option->metavar);
    }
}

static void names(struct buf *out, const struct option *option, const struct help_style *style)
{
    char text[80];
    if (option->letter) {
        snprintf(text, sizeof text, "-%c", option->letter);
        paint(out, style, SHORT, text);
        metavar(out, option, style);
        buf_str(out, ", ");
    }
    snprintf(text, sizeof text, "--%s", option->name);
    paint(out, style, LONG, text);
    metavar(out, option, style);
    if (option->type == OPTION_SWITCH) {
        snprintf(text, sizeof text, "--no-%s", option->name);
        buf_str(out, ", ");
        paint(out, style, LONG, text);
    }
}

static void row(struct buf *out, const struct option *option, const struct help_style *style)
{
    const struct help_style plain = {0};
    struct buf left = {0}, text = {0};
    names(&left, option, &plain);
    size_t at = INDENT + left.len;
    buf_pad(out, ' ', INDENT);
    names(out, option, style);
    if (at + 2 > COLUMN) {
        buf_char(out, '\n');
        at = 0;
    }
    buf_pad(out, ' ', COLUMN - at);
    buf_str(&text, option->help);
    if (option->initial)
        buf_addf(&text, " (default: %s)", option->initial);
    flow(out, text.data, COLUMN, COLUMN, style->width);
    buf_release(&left);
    buf_release(&text);
}

static void heading(struct buf *out, const struct help_style *style, const char *text)
{
    buf_char(out, '\n');
    paint(out, style, HEADING, text);
    buf_char(out, '\n');
}

static void usage(struct buf *out, const struct help_style *style, const char *program,
                  const char *rest)
{
    paint(out, style, HEADING, "usage:");
    buf_char(out, ' ');
    paint(out, style, PROGRAM, program);
    buf_addf(out, " %s\n", rest);
}

void help_main(struct buf *out, const struct help_style *style)
{
    usage(out, style, "scalene", "[-h] [--version] command [options]");
    buf_str(out,
            "\nScalene: a profiler for Python that says, line by line, where the time goes.\n");
    heading(out, style, "commands:");
    for (size_t i = 0; i < VERBS; i++)
        buf_addf(out, "  %-*s%s\n", COLUMN - INDENT, verb_table[i].name, verb_table[i].summary);
    heading(out, style, "options:");
    buf_str(out, "  -h, --help            show this help and exit\n"
                 "  --version             show the version and exit\n");
    heading(out, style, "examples:");
    buf_str(out, "  scalene run your_program.py          profile, save to scalene-profile.json\n"
                 "  scalene view --cli                   show it in the terminal\n"
                 "  scalene run -m your.module           profile a module\n"
                 "  scalene run pytest -q                profile an installed command\n"
                 "  scalene run prog.py --- --cpu-only   what follows --- is the program's\n"
                 "  scalene merge a.json b.json          one profile of two runs\n");
    buf_str(out, "\nMore: scalene run --help, scalene run --help-advanced, and --help of the "
                 "others\n");
}

void help_verb(struct buf *out, enum option_verb verb, enum option_level level,
               const struct help_style *style)
{
    char program[40];
    snprintf(program, sizeof program, "scalene %s", verb_table[verb].name);
    usage(out, style, program, verb_table[verb].usage);
    buf_char(out, '\n');
    flow(out, verb_table[verb].about, 0, 0, style->width);
    heading(out, style, level == LEVEL_ADVANCED ? "advanced options:" : "options:");
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].verb == verb && option_table[i].level == level)
            row(out, &option_table[i], style);
    }
}

/* The cell texts hold no "|", which would end a cell: the test of the file would show it. */
static void markdown_row(struct buf *out, const struct option *option)
{
    const struct help_style plain = {0};
    buf_str(out, "| `");
    names(out, option, &plain);
    buf_str(out, "` | ");
    if (option->verb == VERB_RUN) {
        if (!option->no_key)
            buf_addf(out, "`%s`", option->name);
        if (option->key)
            buf_addf(out, ", `%s`", option->key);
        buf_str(out, " | ");
    }
    if (option->required)
        buf_str(out, "required | ");
    else if (option->least != option->most)
        buf_addf(out, "%s; %.15g to %.15g%s%s | ", option->initial, option->least, option->most,
                 option->unit ? " " : "", option->unit ? option->unit : "");
    else
        buf_addf(out, "%s | ", option->initial ? option->initial : "");
    buf_addf(out, "%s |\n", option->help);
}

static void markdown_table(struct buf *out, enum option_verb verb, enum option_level level)
{
    if (verb == VERB_RUN)
        buf_str(out,
                "\n| Option | Key in the file | Default; range | Meaning |\n|---|---|---|---|\n");
    else
        buf_str(out, "\n| Option | Default | Meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].verb == verb && option_table[i].level == level)
            markdown_row(out, &option_table[i]);
    }
}

void help_markdown(struct buf *out)
{
    buf_str(out, "# Options\n\n"
                 "This page is made from the option table: `scalene --dump-options-md`.\n\n"
                 "Long options may be shortened as long as they stay unambiguous "
                 "(`--profile-i 2`), and take their value as the next word or after `=`.\n\n"
                 "## scalene run\n\n"
                 "`scalene run [options] program.py [arguments] [--- arguments]`\n\n"
                 "The program is a script, a directory or zip file with a `__main__.py`, "
                 "`-m module`, a command from `PATH` that is written in Python, or `-` for "
                 "standard input. Options of the interpreter (`-u`, `-O`, `-W error`, `-X dev`, "
                 "...) go before it. Our options are recognised on both sides of the program; "
                 "the program gets all others, and everything that follows `---`.\n\n"
                 "Each option that has a key can be set in the YAML file named by `--config`, "
                 "with hyphens or underscores; the command line overrules the file. Flags take "
                 "`true` or `false`.\n");
    markdown_table(out, VERB_RUN, LEVEL_BASIC);
    buf_str(out, "\nAdvanced:\n");
    markdown_table(out, VERB_RUN, LEVEL_ADVANCED);
    buf_str(out, "\nIf `--cpu-only`, `--gpu` or `--memory` is given, only what is named is "
                 "measured besides CPU time.\n");
    for (int verb = VERB_VIEW; verb < VERBS; verb++) {
        const struct verb *about = &verb_table[verb];
        buf_addf(out, "\n## scalene %s\n\n`scalene %s %s`\n\n%s\n", about->name, about->name,
                 about->usage, about->about);
        markdown_table(out, (enum option_verb)verb, LEVEL_BASIC);
    }
}
