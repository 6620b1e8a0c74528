#include "agent/core/stop.h"

#include "agent/core/agent.h"
#include "agent/core/ending.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/hooks/environment.h"
#include "agent/memory/memory.h"
#include "agent/waits/sampler.h"

#include <errno.h>

void stop_for_good(enum wire_header_flags why)
{
    int saved = errno;
    if (forks_is_guest())
        return; /* of what its parent does we know nothing */
    environment_forget();
    if (atomic_exchange(&agent.active, false)) {
        atomic_fetch_or(&agent.arena.header->flags, why);
        threads_stop();
        memory_end();
        memory_stop();
        sampler_stop();
        ending_beat();
        forks_stop();
    }
    errno = saved;
}
