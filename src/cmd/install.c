/* Finding the agent; see install.h.  Called by run.c. */
#include "cmd/install.h"

#include "base/mem.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Below the executable's directory, in the order they are tried. */
static const char *const places[] = {
    "libscalene.so",
    "../lib/scalene/libscalene.so",
    "../lib/*/scalene/libscalene.so",                      /* multiarch */
    "../lib/python3*/site-packages/scalene/libscalene.so", /* wheel */
    "../lib64/python3*/site-packages/scalene/libscalene.so",
    "../agent/libscalene.so", /* build tree */
};

char *install_directory(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? mem_strndup(path, (size_t)(slash - path)) : NULL;
}

/* The directory is the user's and may hold characters that glob(3) would read as a pattern. */
static char *quote(const char *directory)
{
    char *out = mem_alloc(2 * strlen(directory) + 1), *at = out;
    for (; *directory; directory++) {
        if (strchr("*?[\\", *directory))
            *at++ = '\\';
        *at++ = *directory;
    }
    *at = '\0';
    return out;
}

static char *find(const char *directory)
{
    char *quoted = directory ? quote(directory) : NULL, *found = NULL;
    for (size_t i = 0; quoted && !found && i < sizeof places / sizeof *places; i++) {
        glob_t matches;
        char *pattern = mem_format("%s/%s", quoted, places[i]);
        if (!glob(pattern, 0, NULL, &matches)) {
            found = realpath(matches.gl_pathv[0], NULL);
            globfree(&matches);
        }
        free(pattern);
    }
    free(quoted);
    return found;
}

char *install_agent(const char *directory, bool memory)
{
    const char *chosen = getenv("SCALENE_AGENT");
    if (chosen && *chosen)
        return access(chosen, R_OK) ? NULL : realpath(chosen, NULL);
    char *agent = find(directory);
    if (!agent || memory)
        return agent;
    char *lean = mem_format("%.*s-cpu.so", (int)(strlen(agent) - strlen(".so")), agent);
    if (access(lean, R_OK)) {
        free(lean);
        return agent;
    }
    free(agent);
    return lean;
}
