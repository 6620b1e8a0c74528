/*
 * A module that is unloaded takes its unwind rules and its name with it: what
 * was cached for its addresses is void.
 */
#include "agent/core/agent.h"
#include "agent/memory/memory.h"
#include "os/unwind.h"

#include <dlfcn.h>

AGENT_EXPORT int dlclose(void *handle)
{
    static int (*real)(void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dlclose");
    int result = real(handle);
    unwind_forget();
    memory_forget_modules();
    return result;
}
