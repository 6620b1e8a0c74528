#include "agent/core/ending.h"

#include "agent/core/agent.h"
#include "agent/core/kin.h"
#include "agent/cpu/tick.h"
#include "agent/memory/memory.h"
#include "agent/waits/sampler.h"
#include "os/os.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void ending_beat(void)
{
    struct wire_header *header = agent.arena.header;
    uint64_t now_ns = os_mono_ns(), last_ns = atomic_load(&header->beat_mono_ns);
    if (atomic_load(&agent.control->on) && now_ns > last_ns)
        atomic_fetch_add(&header->on_ns, now_ns - last_ns);
    atomic_store(&header->beat_mono_ns, now_ns);
    atomic_store(&header->beat_cpu_ns, os_process_cpu_ns());
}

static void say_farewell(int status)
{
    if (!atomic_load(&agent.active) || agent.arena.header->pid != getpid())
        return;
    struct wire_header *header = agent.arena.header;
    tick_last();
    kin_settle();
    sampler_farewell();
    ending_beat();
    memory_end();
    atomic_store(&header->exit_status, status & 0xFF);
    atomic_store(&header->has_status, 1);
    atomic_store(&header->ended, 1);
}

static void on_regular_exit(int status, void *unused)
{
    (void)unused;
    say_farewell(status);
}

/* os._exit() and forked workers end here, without the exit handlers. */
AGENT_EXPORT void _exit(int status)
{
    say_farewell(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

AGENT_EXPORT void _Exit(int status)
{
    _exit(status);
}

void ending_init(void)
{
    on_exit(on_regular_exit, NULL);
}
