/*
 * From 3.12 on, os.fork() warns when the process has more than one thread, and
 * counts them in /proc/self/stat right after forking.  Our sampler must not be
 * the reason for a warning: when CPython asks, the file cannot be opened and it
 * counts its own threads instead.  Only the interpreter itself is answered so.
 */
#undef _FILE_OFFSET_BITS /* under which fopen would be another name of fopen64; here both are      \
                            meant */

#include "agent/core/agent.h"
#include "agent/core/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_fork_check(const char *path, uintptr_t caller)
{
    return path && atomic_load_explicit(&agent.active, memory_order_relaxed) &&
           py_range_has(&agent.regions.interpreter, caller) && !strcmp(path, "/proc/self/stat");
}

typedef FILE *fopen_function(const char *, const char *);

static FILE *open_unless_check(fopen_function **real, const char *name, const char *path,
                               const char *mode, uintptr_t caller)
{
    if (!*real)
        *(void **)real = dlsym(RTLD_NEXT, name);
    if (is_fork_check(path, caller)) {
        errno = EACCES;
        return NULL;
    }
    return (*real)(path, mode);
}

AGENT_EXPORT FILE *fopen(const char *path, const char *mode)
{
    static fopen_function *real;
    return open_unless_check(&real, "fopen", path, mode, (uintptr_t)__builtin_return_address(0));
}

AGENT_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    static fopen_function *real;
    return open_unless_check(&real, "fopen64", path, mode, (uintptr_t)__builtin_return_address(0));
}
