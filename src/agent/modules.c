/*
 * A module that is unloaded takes its unwind rules with it: what was cached for
 * its addresses is void.
 */
#include "agent/agent.h"
#include "os/unwind.h"

#include <dlfcn.h>

AGENT_EXPORT int dlclose(void *handle)
{
    static int (*real)(void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dlclose");
    int result = real(handle);
    if (atomic_load_explicit(&agent.active, memory_order_relaxed))
        unwind_forget();
    return result;
}
