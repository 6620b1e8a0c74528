/* Which command is run for which words, in a directory of prepared files. */
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "launch/shebang.h"
#include "launch/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})

static char place[] = "/tmp/test_target.XXXXXX";

static struct pool paths;

/* Lives to the end of the tests. */
static char *at(const char *relative)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", place, relative);
    return pool_strndup(&paths, path, (size_t)length);
}

static void put(const char *relative, const char *text, mode_t mode)
{
    assert_int_equal(file_write_atomic(at(relative), text, strlen(text), NULL), 0);
    assert_int_equal(chmod(at(relative), mode), 0);
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(place));
    static const char *const directories[] = {"work", "work/pkg", "work/app", "work/dir", "bin",
                                              "venv", "venv/bin", "home",     "lib"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        assert_int_equal(mkdir(at(directories[i]), 0755), 0);
    put("work/prog.py", "print()\n", 0644);
    put("work/data.py", "print()\n", 0644);
    put("work/shell.py", "#!/bin/sh\n", 0755);
    put("work/script", "#!/usr/bin/env python3\n", 0755);
    put("work/other", "#!/usr/bin/perl\n", 0755);
    put("work/elf", "\177ELF\2", 0755);
    put("work/app.zip", "PK\3\4 and so on", 0644);
    put("work/app.pyz", "#!/usr/bin/env python3\nPK\3\4", 0755);
    put("work/secret.py", "", 0000);
    put("work/app/__main__.py", "", 0644);
    put("work/pkg/__init__.py", "", 0644);
    put("work/pkg/__main__.py", "", 0644);
    put("work/pkg/mod.py", "", 0644);
    put("lib/far.py", "", 0644);
    put("home/h.py", "", 0644);
    put("bin/python3", "", 0755);
    put("bin/python3.9", "", 0755);
    put("bin/plain", "text", 0644);
    put("bin/tool", "#!/usr/bin/env -S python3.9 -s\n", 0755);
    put("bin/ls", "\177ELF", 0755);
    put("bin/dir", "#!/usr/bin/env python3\n", 0755);
    put("bin/shim", "#!/usr/bin/env bash\nexec \"/x/.pyenv/libexec/pyenv\" exec \"$program\"\n",
        0755);
    put("venv/bin/python", "", 0755);
    char *line = mem_format("#!%s\n", at("venv/bin/python"));
    put("venv/bin/entry", line, 0755);
    free(line);
    line = mem_format("#!/bin/sh\n'''exec' \"%s\" \"$0\" \"$@\"\n' '''\n", at("venv/bin/python"));
    put("bin/long", line, 0755);
    free(line);
    put("venv/bin/moved",
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n",
        0755);
    put("bin/lost", "#!/nonexistent/python3\n", 0755);
    return chdir(at("work"));
}

static int tear_down(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", place);
    pool_release(&paths);
    return chdir("/") || system(command);
}

static struct target_config config_for(char *const *words)
{
    static char path[8192];
    snprintf(path, sizeof path, "/nonexistent:%s:%s", at("bin"), at("venv/bin"));
    return (struct target_config){.words = words,
                                  .search_path = path,
                                  .python_path = at("lib"),
                                  .home = at("home"),
                                  .beside = at("work")};
}

static void resolve(struct target *target, const struct target_config *config)
{
    struct err err = {""};
    if (target_resolve(target, config, &err))
        fail_msg("%s", err.text);
}

static void assert_command(const struct target *target, char *const *expected)
{
    size_t i = 0;
    for (; expected[i]; i++) {
        assert_non_null(target->command[i]);
        assert_string_equal(target->command[i], expected[i]);
    }
    assert_null(target->command[i]);
}

static void good(char *const *words, enum target_kind kind, char *const *command,
                 const char *program, const char *directory)
{
    struct target target;
    struct target_config config = config_for(words);
    resolve(&target, &config);
    assert_command(&target, command);
    assert_int_equal(target.kind, kind);
    assert_string_equal(target.program, program);
    assert_string_equal(target.directory, directory);
    target_release(&target);
    target_release(&target);
}

static void bad(char *const *words, int expected, const char *message)
{
    struct target target;
    struct target_config config = config_for(words);
    struct err err = {""};
    assert_int_equal(target_resolve(&target, &config, &err), expected);
    assert_string_equal(err.text, message);
    assert_null(target.command);
}

static void scripts(void **state)
{
    char *python = at("bin/python3");
    good(WORDS("prog.py", "-o", "x"), TARGET_SCRIPT, WORDS(python, "prog.py", "-o", "x"),
         at("work/prog.py"), at("work"));
    /* The first word, not the first that ends in .py. */
    good(WORDS("script", "data.py"), TARGET_SCRIPT, WORDS(python, "script", "data.py"),
         at("work/script"), at("work"));
    good(WORDS("./pkg/..//prog.py"), TARGET_SCRIPT, WORDS(python, "./pkg/..//prog.py"),
         at("work/prog.py"), at("work"));
    char *home = at("home/h.py");
    good(WORDS("~/h.py"), TARGET_SCRIPT, WORDS(python, home), home, at("home"));
    good(WORDS("shell.py"), TARGET_SCRIPT, WORDS(python, "shell.py"), at("work/shell.py"),
         at("work"));
    good(WORDS("app", "a"), TARGET_SCRIPT, WORDS(python, "app", "a"), at("work/app/__main__.py"),
         at("work/app"));
    good(WORDS("app.zip"), TARGET_SCRIPT, WORDS(python, "app.zip"), at("work/app.zip/__main__.py"),
         at("work/app.zip"));
    good(WORDS("app.pyz"), TARGET_SCRIPT, WORDS(python, "app.pyz"), at("work/app.pyz/__main__.py"),
         at("work/app.pyz"));
}

static void interpreter_flags(void **state)
{
    char *python = at("bin/python3");
    good(WORDS("-u", "-W", "error", "-bX", "dev", "-Wd", "prog.py", "-u"), TARGET_SCRIPT,
         WORDS(python, "-u", "-W", "error", "-bX", "dev", "-Wd", "prog.py", "-u"),
         at("work/prog.py"), at("work"));
    assert_int_equal(target_flag_words("-OO"), 1);
    assert_int_equal(target_flag_words("-uW"), 2);
    assert_int_equal(target_flag_words("-Xdev"), 1);
    assert_int_equal(target_flag_words("-m"), 0);
    assert_int_equal(target_flag_words("-"), 0);
    assert_int_equal(target_flag_words("--"), 0);
    assert_int_equal(target_flag_words("prog.py"), 0);
    bad(WORDS("-W"), TARGET_UNUSABLE, "argument expected for the -W option");
    bad(WORDS("--bogus", "prog.py"), TARGET_UNUSABLE,
        "'--bogus' is not an option of the interpreter");
}

static void modules(void **state)
{
    char *python = at("bin/python3"), *work = at("work");
    good(WORDS("-m", "pkg", "-v"), TARGET_MODULE, WORDS(python, "-m", "pkg", "-v"),
         at("work/pkg/__main__.py"), work);
    good(WORDS("-O", "-mpkg.mod"), TARGET_MODULE, WORDS(python, "-O", "-mpkg.mod"),
         at("work/pkg/mod.py"), work);
    good(WORDS("-m", "far"), TARGET_MODULE, WORDS(python, "-m", "far"), at("lib/far.py"), work);
    good(WORDS("-m", "nowhere"), TARGET_MODULE, WORDS(python, "-m", "nowhere"), "", work);
    bad(WORDS("-m"), TARGET_UNUSABLE, "argument expected for the -m option");
}

static void code_and_stdin(void **state)
{
    struct target target;
    char *python = at("bin/python3");
    struct target_config config = config_for(WORDS("-u", "-c", "print()", "a"));
    resolve(&target, &config);
    assert_command(&target, WORDS(python, "-u", "-c", "print()", "a"));
    assert_int_equal(target.kind, TARGET_CODE);
    assert_string_equal(target.code, "print()");
    assert_ptr_equal(target.args, target.command + 2);
    target_release(&target);

    good(WORDS("-", "a"), TARGET_STDIN, WORDS(python, "-", "a"), "", at("work"));
    config = config_for(WORDS("-u"));
    config.stdin_has_program = true;
    resolve(&target, &config);
    assert_command(&target, WORDS(python, "-u"));
    assert_int_equal(target.kind, TARGET_STDIN);
    assert_null(target.args[0]);
    target_release(&target);
    bad(WORDS("-u"), TARGET_NO_INPUT, "no input file specified.");
}

static void console_scripts(void **state)
{
    char *work = at("work");
    good(WORDS("-u", "tool", "x"), TARGET_CONSOLE,
         WORDS(at("bin/python3.9"), "-s", "-u", at("bin/tool"), "x"), at("bin/tool"), work);
    good(WORDS("long"), TARGET_CONSOLE, WORDS(at("venv/bin/python"), at("bin/long")),
         at("bin/long"), work);
    good(WORDS("moved"), TARGET_CONSOLE, WORDS(at("venv/bin/python"), at("venv/bin/moved")),
         at("venv/bin/moved"), work);
    /* By its path: recognised by the interpreter beside it. */
    good(WORDS("../venv/bin/entry"), TARGET_CONSOLE,
         WORDS(at("venv/bin/python"), "../venv/bin/entry"), at("venv/bin/entry"), work);
    /* Run as it is, it finds its Python. */
    good(WORDS("shim", "a"), TARGET_CONSOLE, WORDS(at("bin/shim"), "a"), "", work);
    /* A directory that is no program does not hide the command. */
    good(WORDS("dir"), TARGET_CONSOLE, WORDS(at("bin/python3"), at("bin/dir")), at("bin/dir"),
         work);
}

static void assert_tool(const char *name, const char *text, const char *expected)
{
    struct target target;
    char *path = mem_format("bin/%s", name);
    put(path, text, 0755);
    struct target_config config = config_for(WORDS(name));
    resolve(&target, &config);
    assert_string_equal(target.tool, expected);
    target_release(&target);
    free(path);
}

/* What installers write names the package; a script that does its work itself is the user's. */
static void tools(void **state)
{
#define HEAD "#!/usr/bin/env python3\nimport re\nimport sys\n"
    assert_tool("tidy", HEAD "from black.cli import main\nsys.exit(main())\n", "black");
    assert_tool("work", HEAD "import numpy\nprint(numpy.zeros(3))\n", "");
    struct buf text = {0};
    buf_str(&text, HEAD "import numpy\n");
    for (int i = 0; i < 100; i++)
        buf_str(&text, "numpy.zeros(3)\n");
    buf_str(&text, "sys.exit(0)\n");
    assert_tool("long-work", text.data, "");
    buf_release(&text);
}

static void chosen_interpreter(void **state)
{
    struct target target;
    struct err err = {""};
    struct target_config config = config_for(WORDS("tool"));
    config.python = "python3.9";
    resolve(&target, &config);
    assert_command(&target, WORDS(at("bin/python3.9"), at("bin/tool")));
    target_release(&target);
    config.python = "/nonexistent/python";
    assert_int_equal(target_resolve(&target, &config, &err), TARGET_UNUSABLE);
    assert_string_equal(err.text, "cannot find the interpreter '/nonexistent/python'");
    config = config_for(WORDS("prog.py"));
    config.beside = at("bin");
    config.search_path = NULL;
    resolve(&target, &config);
    assert_command(&target, WORDS(at("bin/python3"), "prog.py"));
    target_release(&target);
    config.beside = NULL;
    assert_int_equal(target_resolve(&target, &config, &err), TARGET_UNUSABLE);
    assert_string_equal(err.text, "cannot find python3 in PATH; use --python");
    /* A command beside the binary, in no directory of PATH. */
    config = config_for(WORDS("entry"));
    config.search_path = "";
    config.beside = at("venv/bin");
    resolve(&target, &config);
    assert_command(&target, WORDS(at("venv/bin/python"), at("venv/bin/entry")));
    target_release(&target);
    bad(WORDS("lost"), TARGET_UNUSABLE,
        "cannot find the program's interpreter '/nonexistent/python3'");
}

static void not_programs(void **state)
{
    char message[4200];
    snprintf(message, sizeof message, "could not find input file %s", at("work/no.py"));
    bad(WORDS("no.py"), TARGET_NOT_FOUND, message);
    snprintf(message, sizeof message, "could not find input file %s", at("work/prog.py/x"));
    bad(WORDS("prog.py/x"), TARGET_NOT_FOUND, message);
    bad(WORDS("pkg/../dir/"), TARGET_UNUSABLE,
        "'pkg/../dir/' is a directory without a __main__.py");
    bad(WORDS("elf"), TARGET_UNUSABLE, "'elf' is not a Python program");
    bad(WORDS("other"), TARGET_UNUSABLE, "'other' is not a Python program");
    snprintf(message, sizeof message, "'%s' is not a Python program", at("bin/ls"));
    bad(WORDS("ls"), TARGET_UNUSABLE, message);
    snprintf(message, sizeof message, "could not find input file %s", at("work/plain"));
    bad(WORDS("plain"), TARGET_NOT_FOUND, message); /* in PATH, but not executable */
    if (geteuid())
        bad(WORDS("secret.py"), TARGET_UNUSABLE, "cannot open 'secret.py': Permission denied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts),
        cmocka_unit_test(interpreter_flags),
        cmocka_unit_test(modules),
        cmocka_unit_test(code_and_stdin),
        cmocka_unit_test(tools),
        cmocka_unit_test(console_scripts),
        cmocka_unit_test(chosen_interpreter),
        cmocka_unit_test(not_programs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
