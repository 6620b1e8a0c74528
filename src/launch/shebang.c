/* Reading the first lines of scripts; see shebang.h.  Called by target.c. */
#include "launch/shebang.h"

#include "base/buf.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMAND_BYTES_MAX = 1024 }; /* what installers write is a quarter of that */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_python_name(const char *name)
{
    if (!strncmp(name, "pypy", 4))
        name += 4;
    else if (!strncmp(name, "python", 6))
        name += 6;
    else
        return false;
    return strspn(name, "0123456789.-dbgtw") == strlen(name);
}

/* The next word of a line of shell: quotes removed, nothing expanded.  NULL at the end. */
static char *next_word(const char **line)
{
    struct buf word = {0};
    const char *at = *line;
    at += strspn(at, " \t");
    if (!*at || *at == '\n' || *at == '\r')
        return NULL;
    for (char quote = 0; *at && *at != '\n' && *at != '\r'; at++) {
        if (quote ? *at == quote : *at == '"' || *at == '\'')
            quote = quote ? 0 : *at;
        else if (!quote && (*at == ' ' || *at == '\t'))
            break;
        else
            buf_char(&word, *at);
    }
    *line = at;
    return buf_detach(&word);
}

/* pip writes, when the path is too long or has blanks for the kernel:
 *     #!/bin/sh
 *     '''exec' "/path to/python3" "$0" "$@"
 * and uv, for environments that can be moved, finds the path beside the script with dirname. */
static void read_trampoline(struct shebang *shebang, const char *second_line, const char *script)
{
    if (strncmp(second_line, "'''exec' ", 9) != 0)
        return;
    second_line += 9;
    size_t length = strcspn(second_line, "\n");
    const char *slash = memmem(second_line, length, ")\"/", 3);
    if (slash && memmem(second_line, length, "dirname", 7)) {
        const char *rest = slash + 3;
        char *name = next_word(&rest), *real = realpath(script, NULL);
        const char *directory = real ? real : script;
        if (name)
            shebang->python =
                mem_format("%.*s%s", (int)(base_name(directory) - directory), directory, name);
        free(real);
        free(name);
    } else {
        shebang->python = next_word(&second_line);
    }
}

void shebang_head(const char *path, char *head, size_t size)
{
    struct stat st;
    ssize_t length = 0;
    memset(head, 0, size);
    int fd = stat(path, &st) || !S_ISREG(st.st_mode) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        length = read(fd, head, size - 1);
        close(fd);
    }
    head[length > 0 ? length : 0] = '\0';
}

struct shebang shebang_read(const char *path)
{
    struct shebang shebang = {0};
    char head[4096];
    shebang_head(path, head, sizeof head);
    if (strncmp(head, "#!", 2) != 0)
        return shebang;
    shebang.present = true;
    const char *line = head + 2;
    char *interpreter = next_word(&line), *word = next_word(&line);
    if (interpreter && !strcmp(base_name(interpreter), "env")) {
        /* env [-S] [NAME=VALUE ...] python3 [flag] */
        while (word && (word[0] == '-' || strchr(word, '='))) {
            free(word);
            word = next_word(&line);
        }
        free(interpreter);
        interpreter = word;
        word = next_word(&line);
    }
    const char *name = interpreter ? base_name(interpreter) : "";
    if (is_python_name(name)) {
        shebang.python = interpreter;
        shebang.flag = word;
        return shebang;
    }
    const char *newline = strchr(head, '\n');
    if (!strcmp(name, "sh") && newline)
        read_trampoline(&shebang, newline + 1, path);
    else if (!strcmp(name, "bash"))
        shebang.shim = strstr(head, "/pyenv\" exec ") != NULL;
    if (shebang.python && !is_python_name(base_name(shebang.python))) {
        free(shebang.python);
        shebang.python = NULL;
    }
    free(interpreter);
    free(word);
    return shebang;
}

/* What every such script imports for itself. */
static bool is_helper_module(const char *name, size_t length)
{
    static const char *const helpers[] = {"os", "re", "sys", "importlib", "pkg_resources", "runpy"};
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        if (strlen(helpers[i]) == length && !strncmp(helpers[i], name, length))
            return true;
    return false;
}

char *shebang_module(const char *path)
{
    char head[COMMAND_BYTES_MAX + 1];
    shebang_head(path, head, sizeof head);
    if (strlen(head) == COMMAND_BYTES_MAX || !strstr(head, "sys.exit("))
        return mem_strdup("");
    for (const char *line = head; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        size_t keyword = !strncmp(line, "from ", 5) ? 5 : !strncmp(line, "import ", 7) ? 7 : 0;
        const char *name = line + keyword + strspn(line + keyword, " ");
        size_t length = strcspn(name, ". ,;#\r\n\t");
        if (keyword && length && !is_helper_module(name, length))
            return mem_strndup(name, length);
    }
    return mem_strdup("");
}

void shebang_release(struct shebang *shebang)
{
    free(shebang->python);
    free(shebang->flag);
    *shebang = (struct shebang){0};
}
