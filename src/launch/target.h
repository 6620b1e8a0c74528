/*
 * What to run: from the words the user typed (options of ours already taken
 * out) to the interpreter's command line and the facts the report needs.
 *
 * The command is the one the user could have typed without a profiler, so that
 * sys.argv, sys.path, __main__ and tracebacks are what they always are.  Looks
 * at files, starts nothing.
 */
#ifndef LAUNCH_TARGET_H
#define LAUNCH_TARGET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum target_kind { TARGET_SCRIPT, TARGET_MODULE, TARGET_CODE, TARGET_STDIN, TARGET_CONSOLE };

struct target {
    enum target_kind kind;
    char **command; /* NULL-terminated: interpreter, its flags, program, arguments */
    char **args;    /* into command, where the program begins: as Python's sys.argv, for a module
                       {"-m", name, ...}, for code {"-c", text, ...}; may be empty */
    char *program;  /* absolute path of the script, the module's file when it can be found, or "" */
    char
        *directory;   /* what the filter takes for "the program" unless --program-path is given:
                         the script's directory; the current one for -m, -c, stdin, console scripts */
    char *tool;       /* top-level module of an installed command or of -m, else "" */
    const char *code; /* of -c, else NULL; points into command */
};

struct target_config {
    char *const *words; /* leftover words, NULL-terminated */
    const char *python; /* --python, or NULL */
    const char
        *beside; /* directory of the scalene binary, for the interpreter and commands next to it */
    const char *search_path; /* $PATH */
    const char *python_path; /* $PYTHONPATH or NULL, for finding the module's file */
    const char *home;        /* $HOME or NULL, for ~ */
    bool stdin_has_program;  /* standard input is a file or a pipe: runs when no program is named */
};

/* What went wrong, besides the text: the first two have their own messages since the original. */
enum target_error { TARGET_NO_INPUT = -3, TARGET_NOT_FOUND = -2, TARGET_UNUSABLE = -1 };

/* Is there a file, or a command in that search path, of this name? */
bool target_exists(const char *word, const char *search_path);

/* How many words an option of the interpreter takes, itself included: 0 (it is none), 1 or 2. */
size_t target_flag_words(const char *word);

int target_resolve(struct target *target, const struct target_config *config, struct err *err);
void target_release(struct target *target); /* idempotent */

#endif
