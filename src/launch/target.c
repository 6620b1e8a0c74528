/*
 * Finding the program and the interpreter to run it with; see target.h.
 * Called by src/cmd/run.c once, before anything is started.
 */
#include "launch/target.h"

#include "base/buf.h"
#include "base/mem.h"
#include "launch/shebang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct builder {
    struct target *target;
    const struct target_config *config;
    size_t flag_count; /* leading words that are options of the interpreter */
    char **command;
    size_t count, cap;
    size_t args_at; /* where in command the program begins */
    struct err *err;
};

static void add(struct builder *builder, const char *word)
{
    VEC_PUSH(builder->command, builder->count, builder->cap) = mem_strdup(word);
}

static bool is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

static bool is_program_file(const char *path)
{
    return is_file(path) && !access(path, X_OK);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

static char *current_directory(void)
{
    char *here = getcwd(NULL, 0);
    return here ? here : mem_strdup("/"); /* the directory was removed under us */
}

/* Absolute, without "//", "." and "..": by the text alone, as os.path.abspath does it. */
static char *absolute(const char *path)
{
    struct buf out = {0};
    char *here = *path == '/' ? mem_strdup("") : current_directory();
    char *whole = mem_format("%s/%s", here, path), *rest = whole;
    for (char *part; (part = strsep(&rest, "/"));) {
        if (!strcmp(part, "..")) {
            while (out.len && out.data[--out.len] != '/')
                ;
        } else if (*part && strcmp(part, ".") != 0) {
            buf_addf(&out, "/%s", part);
        }
    }
    if (!out.len)
        buf_char(&out, '/');
    out.data[out.len] = '\0';
    free(whole);
    free(here);
    return buf_detach(&out);
}

static char *parent_directory(const char *absolute_path)
{
    const char *slash = strrchr(absolute_path, '/');
    size_t length = slash && slash != absolute_path ? (size_t)(slash - absolute_path) : 1;
    return mem_strndup(absolute_path, length);
}

/* The first executable file of that name in a list of directories; NULL if there is none. */
static char *search(const char *directories, const char *name)
{
    char *copy = mem_strdup(directories ? directories : ""), *rest = copy, *found = NULL;
    for (char *directory; !found && (directory = strsep(&rest, ":"));) {
        char *path = mem_format("%s/%s", *directory ? directory : ".", name);
        if (is_program_file(path))
            found = absolute(path);
        free(path);
    }
    free(copy);
    return found;
}

/* A path as it is, a name by PATH.  NULL if there is no such executable. */
static char *find_interpreter(const char *python, const char *search_path)
{
    if (!strchr(python, '/'))
        return search(search_path, python);
    return is_program_file(python) ? mem_strdup(python) : NULL;
}

/* The first word of the command: --python, else the program's own choice, else ours. */
static int add_interpreter(struct builder *builder, const struct shebang *shebang)
{
    const struct target_config *config = builder->config;
    char *found = NULL;
    if (config->python) {
        found = find_interpreter(config->python, config->search_path);
        if (!found)
            return err_set(builder->err, "cannot find the interpreter '%s'", config->python);
    } else if (shebang && shebang->python) {
        found = find_interpreter(shebang->python, config->search_path);
        if (!found)
            return err_set(builder->err, "cannot find the program's interpreter '%s'",
                           shebang->python);
    } else {
        char *beside = mem_format("%s/python3", config->beside ? config->beside : ".");
        found = config->beside && is_program_file(beside) ? mem_strdup(beside)
                                                          : search(config->search_path, "python3");
        free(beside);
        if (!found)
            return err_set(builder->err, "cannot find python3 in PATH; use --python");
    }
    add(builder, found);
    free(found);
    if (shebang && shebang->flag && !config->python)
        add(builder, shebang->flag);
    for (size_t i = 0; i < builder->flag_count; i++)
        add(builder, config->words[i]);
    return 0;
}

/* From here on the command is what the program finds in sys.argv. */
static void add_program(struct builder *builder, const char *word)
{
    builder->args_at = builder->count;
    add(builder, word);
    for (char *const *rest = builder->config->words + builder->flag_count + 1; *rest; rest++)
        add(builder, *rest);
}

/* Zip archives may have anything in front, usually a #! line. */
static bool is_zip(const char *path)
{
    char head[4096];
    shebang_head(path, head, sizeof head);
    const char *start = strncmp(head, "#!", 2) != 0 ? head : strchr(head, '\n');
    return start && !strncmp(start + (*start == '\n'), "PK\3\4", 4);
}

static int check_program(const char *path, const struct shebang *shebang, struct err *err)
{
    if (access(path, R_OK))
        return err_set(err, "cannot open '%s': %s", path, strerror(errno));
    char head[5];
    shebang_head(path, head, sizeof head);
    bool other_script = shebang->present && !shebang->python && !ends_with(path, ".py");
    if (!strcmp(head, "\177ELF") || (other_script && !access(path, X_OK)))
        return err_set(err, "'%s' is not a Python program", path);
    return 0;
}

/* Is it an entry point installed next to its interpreter, as in a virtual environment's bin? */
static bool is_entry_point(const char *program, const struct shebang *shebang)
{
    if (!shebang->python || *shebang->python != '/' || ends_with(program, ".py"))
        return false;
    char *ours = parent_directory(program), *its = parent_directory(shebang->python);
    bool same = !strcmp(ours, its);
    free(ours);
    free(its);
    return same;
}

static int resolve_file(struct builder *builder, const char *word)
{
    struct target *target = builder->target;
    struct shebang shebang = shebang_read(word);
    char *path = absolute(word);
    bool entry_point = is_entry_point(path, &shebang);
    int rc = check_program(word, &shebang, builder->err);
    if (!rc)
        rc = add_interpreter(builder, entry_point ? &shebang : NULL);
    if (rc)
        goto out;
    add_program(builder, word);
    target->kind = entry_point ? TARGET_CONSOLE : TARGET_SCRIPT;
    if (entry_point)
        target->tool = shebang_module(path);
    if (is_zip(word)) {
        target->program = mem_format("%s/__main__.py", path);
        target->directory = mem_strdup(path);
    } else {
        target->program = mem_strdup(path);
        target->directory = entry_point ? current_directory() : parent_directory(path);
    }
out:
    free(path);
    shebang_release(&shebang);
    return rc;
}

/* 1: a directory, but not a program. */
static int resolve_directory(struct builder *builder, const char *word)
{
    struct target *target = builder->target;
    char *path = absolute(word), *entry = mem_format("%s/__main__.py", path);
    int rc = is_file(entry) ? add_interpreter(builder, NULL) : 1;
    if (!rc) {
        add_program(builder, word);
        target->kind = TARGET_SCRIPT;
        target->program = mem_strdup(entry);
        target->directory = mem_strdup(path);
    }
    free(entry);
    free(path);
    return rc;
}

/* A command in PATH, such as pytest.  1: there is none. */
static int resolve_console(struct builder *builder, const char *word)
{
    struct target *target = builder->target;
    if (strchr(word, '/'))
        return 1;
    char *path = search(builder->config->search_path, word);
    if (!path && builder->config->beside) /* an environment that is used without activating it */
        path = search(builder->config->beside, word);
    if (!path)
        return 1;
    struct shebang shebang = shebang_read(path);
    /* pyenv's shim is run as it is: the agent stays asleep in the shell and wakes up in the
     * Python that it execs. */
    bool as_is = shebang.shim && !builder->config->python && !builder->flag_count;
    int rc = 0;
    if (!as_is)
        rc = shebang.python ? add_interpreter(builder, &shebang)
                            : err_set(builder->err, "'%s' is not a Python program", path);
    if (!rc) {
        add_program(builder, path);
        target->kind = TARGET_CONSOLE;
        target->tool = as_is ? mem_strdup(word) : shebang_module(path);
        target->program = mem_strdup(as_is ? "" : path);
        target->directory = current_directory();
    }
    shebang_release(&shebang);
    free(path);
    return rc;
}

static char *expand_home(const char *word, const char *home)
{
    if (word[0] == '~' && (word[1] == '/' || !word[1]) && home && *home)
        return mem_format("%s%s", home, word + 1);
    return mem_strdup(word);
}

static int resolve_word(struct builder *builder, const char *typed)
{
    struct stat st;
    char *word = expand_home(typed, builder->config->home);
    int missing = stat(word, &st) ? errno : 0;
    bool is_directory = !missing && S_ISDIR(st.st_mode);
    int rc = 1;
    if (is_directory)
        rc = resolve_directory(builder, word);
    else if (!missing)
        rc = resolve_file(builder, word);
    if (rc == 1)
        rc = resolve_console(builder, word);
    if (rc == 1 && is_directory) {
        rc = err_set(builder->err, "'%s' is a directory without a __main__.py", word);
    } else if (rc == 1 && missing != ENOENT && missing != ENOTDIR) {
        rc = err_set(builder->err, "cannot open '%s': %s", word, strerror(missing));
    } else if (rc == 1) {
        char *path = absolute(word);
        err_set(builder->err, "could not find input file %s", path);
        free(path);
        rc = TARGET_NOT_FOUND;
    }
    free(word);
    return rc;
}

/* The file that `-m name` runs, looked for where Python looks first: the current directory and
 * PYTHONPATH.  "" if it is not there (installed packages: the report finds out from the frames). */
static char *module_file(const char *module, const char *python_path)
{
    char *here = current_directory();
    char *roots = python_path ? mem_format("%s:%s", here, python_path) : mem_strdup(here);
    char *relative = mem_strdup(module), *rest = roots, *found = NULL;
    for (char *c = relative; *c; c++) {
        if (*c == '.')
            *c = '/';
    }
    for (char *root; !found && (root = strsep(&rest, ":"));) {
        static const char *const endings[] = {"/__main__.py", ".py"};
        for (size_t i = 0; !found && i < 2; i++) {
            char *path = mem_format("%s/%s%s", *root ? root : here, relative, endings[i]);
            if (is_file(path))
                found = absolute(path);
            free(path);
        }
    }
    free(relative);
    free(roots);
    free(here);
    return found ? found : mem_strdup("");
}

/* -m NAME or -c CODE; the value may be joined to the option. */
static int resolve_option(struct builder *builder, char *const *word)
{
    struct target *target = builder->target;
    bool joined = (*word)[2] != '\0';
    const char *value = joined ? *word + 2 : word[1];
    if (!value)
        return err_set(builder->err, "argument expected for the %s option", *word);
    if (add_interpreter(builder, NULL))
        return -1;
    add_program(builder, *word);
    target->directory = current_directory();
    if ((*word)[1] == 'm') {
        target->kind = TARGET_MODULE;
        target->tool = mem_strndup(value, strcspn(value, "."));
        target->program = module_file(value, builder->config->python_path);
    } else {
        target->kind = TARGET_CODE;
        target->program = mem_strdup("");
        char **args = builder->command + builder->args_at;
        target->code = joined ? args[0] + 2 : args[1];
    }
    return 0;
}

/* `word` is "-", or NULL: then Python is given no program at all and sys.argv is [""]. */
static int resolve_stdin(struct builder *builder, const char *word)
{
    if (add_interpreter(builder, NULL))
        return -1;
    builder->args_at = builder->count;
    if (word)
        add_program(builder, word);
    builder->target->kind = TARGET_STDIN;
    builder->target->program = mem_strdup("");
    builder->target->directory = current_directory();
    return 0;
}

static int resolve(struct builder *builder)
{
    char *const *words = builder->config->words;
    size_t at = 0;
    for (size_t n; words[at] && (n = target_flag_words(words[at])); at += n) {
        if (n == 2 && !words[at + 1])
            return err_set(builder->err, "argument expected for the %s option", words[at]);
    }
    builder->flag_count = at;
    const char *word = words[at];
    if (!word && !builder->config->stdin_has_program) {
        err_set(builder->err, "no input file specified.");
        return TARGET_NO_INPUT;
    }
    if (!word || !strcmp(word, "-"))
        return resolve_stdin(builder, word);
    if (!strncmp(word, "-m", 2) || !strncmp(word, "-c", 2))
        return resolve_option(builder, words + at);
    if (*word == '-')
        return err_set(builder->err, "'%s' is not an option of the interpreter", word);
    return resolve_word(builder, word);
}

bool target_exists(const char *word, const char *search_path)
{
    char *found = strchr(word, '/') ? NULL : search(search_path, word);
    bool exists = found || !access(word, F_OK);
    free(found);
    return exists;
}

size_t target_flag_words(const char *word)
{
    if (word[0] != '-' || !word[1])
        return 0;
    size_t plain = 1 + strspn(word + 1, "bBdEiIOPqRsSuvx");
    if (!word[plain])
        return 1;
    if (word[plain] != 'W' && word[plain] != 'X')
        return 0;
    return word[plain + 1] ? 1 : 2;
}

int target_resolve(struct target *target, const struct target_config *config, struct err *err)
{
    *target = (struct target){0};
    struct builder builder = {.target = target, .config = config, .err = err};
    int rc = resolve(&builder);
    VEC_PUSH(builder.command, builder.count, builder.cap) = NULL;
    target->command = builder.command;
    target->args = builder.command + builder.args_at;
    if (!target->tool)
        target->tool = mem_strdup("");
    if (rc)
        target_release(target);
    return rc;
}

void target_release(struct target *target)
{
    for (char **word = target->command; word && *word; word++)
        free(*word);
    free(target->command);
    free(target->program);
    free(target->directory);
    free(target->tool);
    *target = (struct target){0};
}
