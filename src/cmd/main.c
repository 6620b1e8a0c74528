/*
 * The `scalene` command: which verb, and the few things that are none.  Each
 * verb has a file of its own.
 */
#include "cmd/cmd.h"
#include "cmd/shells.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t cmd_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (width <= 0 && !ioctl(fd, TIOCGWINSZ, &size))
        width = size.ws_col;
    return width > 0 && width < 10000 ? (size_t)width : 80;
}

bool cmd_wants_color(int fd)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fd) && !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

int cmd_print(const struct buf *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(STDOUT_FILENO, text->data + done, text->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EPIPE)
            return EXIT_SUCCESS;
        if (n < 0) {
            fprintf(stderr, "scalene: cannot write to standard output: %s\n", strerror(errno));
            return EXIT_FAILURE;
        }
        done += (size_t)n;
    }
    return EXIT_SUCCESS;
}

static struct help_style style_for(int fd)
{
    return (struct help_style){.color = cmd_wants_color(fd), .width = cmd_width(fd)};
}

bool cmd_parse(struct options *options, enum option_verb verb, char *const *words, int *status)
{
    struct err err;
    options_init(options);
    int rc = options_parse(options, verb, words, &err);
    if (options->warnings.len)
        fputs(options->warnings.data, stderr);
    if (rc) {
        fprintf(stderr, "scalene %s: error: %s\n", verb_table[verb].name, err.text);
        *status = EXIT_USAGE;
        return true;
    }
    if (options->help == OPTION_SET)
        return false;
    struct buf text = {0};
    struct help_style style = style_for(STDOUT_FILENO);
    help_verb(&text, verb, options->help == OPTION_HELP ? LEVEL_BASIC : LEVEL_ADVANCED, &style);
    *status = cmd_print(&text);
    buf_release(&text);
    return true;
}

static int print_main_help(int status)
{
    struct buf text = {0};
    struct help_style style = style_for(STDOUT_FILENO);
    help_main(&text, &style);
    int printed = cmd_print(&text);
    buf_release(&text);
    return status ? status : printed;
}

/* What the build and the docs are made from: asked for by words that no help names. */
static const struct {
    const char *word;
    void (*write)(struct buf *out);
} dumps[] = {
    {"--dump-options-md", help_markdown},    {"--dump-man", shells_man},
    {"--dump-completion-bash", shells_bash}, {"--dump-completion-zsh", shells_zsh},
    {"--dump-completion-fish", shells_fish},
};

static int print_dump(void (*write_it)(struct buf *out))
{
    struct buf text = {0};
    write_it(&text);
    int status = cmd_print(&text);
    buf_release(&text);
    return status;
}

/* The habit of versions long ago: `scalene prog.py`. */
static int forgot_run(const char *word, char *const *words)
{
    struct buf text = {0};
    struct help_style style = style_for(STDERR_FILENO);
    buf_addf(&text, "Scalene: error: '%s' is not a valid command.\nDid you mean: scalene run",
             word);
    for (; *words; words++)
        buf_addf(&text, " %s", *words);
    buf_str(&text, "\n\n");
    help_main(&text, &style);
    fputs(text.data, stderr);
    buf_release(&text);
    return EXIT_FAILURE;
}

static int (*const verbs[VERBS])(char *const *words) = {
    [VERB_RUN] = cmd_run,         [VERB_VIEW] = cmd_view, [VERB_MERGE] = cmd_merge,
    [VERB_ON] = cmd_on,           [VERB_OFF] = cmd_off,   [VERB_SNAPSHOT] = cmd_snapshot,
    [VERB_RECOVER] = cmd_recover,
};

/* `words` are all there are, at least one. */
static int no_verb(char *const *words)
{
    char *const *word = words;
    do {
        size_t length = strlen(*word);
        if (!strcmp(*word, "-m") || (length > 3 && !strcmp(*word + length - 3, ".py")))
            return forgot_run(*word, words);
    } while (*++word);
    if (**words == '-')
        return print_main_help(EXIT_FAILURE);
    fprintf(stderr, "scalene: error: argument command: invalid choice: '%s' (choose from ", *words);
    for (size_t i = 0; i < VERBS; i++)
        fprintf(stderr, "%s'%s'", i ? ", " : "", verb_table[i].name);
    fputs(")\n", stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return print_main_help(EXIT_FAILURE);
    const char *word = argv[1];
    for (size_t i = 0; i < VERBS; i++)
        if (!strcmp(word, verb_table[i].name))
            return verbs[i](argv + 2);
    if (!strcmp(word, "-h") || !strcmp(word, "--help"))
        return print_main_help(EXIT_SUCCESS);
    for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++)
        if (!strcmp(word, dumps[i].word))
            return print_dump(dumps[i].write);
    if (!strcmp(word, "--version")) {
        puts("Scalene version " SCALENE_VERSION " (" SCALENE_DATE ")");
        return EXIT_SUCCESS;
    }
    return no_verb(argv + 1);
}
