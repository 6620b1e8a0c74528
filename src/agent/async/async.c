#include "agent/async/async.h"

#include "agent/async/awaits.h"
#include "agent/async/loops.h"
#include "agent/async/visits.h"
#include "os/os.h"

static uint64_t last_ns; /* when tasks were last visited; 0: not yet */

uint64_t async_pass(uint64_t now_ns, bool is_on)
{
    if (!loops_used())
        return 0;
    uint64_t before_ns = os_thread_cpu_ns();
    if (is_on) {
        loops_pass(now_ns);
        if (!last_ns)
            last_ns = loops_first_ns();
        if (last_ns && now_ns > last_ns)
            visits_pass(now_ns, now_ns - last_ns);
    } else {
        loops_skip(now_ns);
        visits_reset();
    }
    last_ns = now_ns;
    return os_thread_cpu_ns() - before_ns;
}

bool async_is_wanted(void)
{
    for (unsigned i = 0; i < loops_used(); i++)
        if (loops_is_running(loops_at(i)))
            return true;
    return false;
}

void async_in_child(bool is_recorded)
{
    last_ns = 0;
    loops_in_child(is_recorded);
    awaits_in_child(is_recorded); /* before visits, who would write of the parent's places */
    visits_reset();
}
