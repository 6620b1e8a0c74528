#include "agent/core/forks.h"

#include "agent/async/async.h"
#include "agent/core/agent.h"
#include "agent/core/kin.h"
#include "agent/core/start.h"
#include "agent/core/threads.h"
#include "agent/core/timeline.h"
#include "agent/cpu/owner.h"
#include "agent/hooks/shell.h"
#include "agent/hooks/signals.h"
#include "agent/memory/memory.h"
#include "agent/waits/sampler.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static void tables_in_child(bool is_recorded)
{
    if (is_recorded)
        tables_reset(&agent.tables);
}

/*
 * In the order in which they run in the child.  Locks come first, since what follows
 * may need them; then the tables over the new arena, then the threads, which
 * write to it; the sampler last, since it looks at everything.
 */
static const struct part {
    void (*before)(void); /* in the parent, before it forks */
    void (*in_parent)(void);
    void (*in_child)(bool is_recorded);
} parts[] = {
    {NULL, NULL, signals_in_child},
    {NULL, NULL, shell_in_child},
    {NULL, NULL, timeline_in_child},
    {NULL, NULL, owner_in_child},
    {NULL, NULL, kin_in_child},
    {NULL, NULL, tables_in_child},
    {NULL, NULL, threads_in_child},
    {NULL, NULL, async_in_child},
    {memory_before_fork, memory_in_parent, memory_in_child},
    {NULL, NULL, sampler_in_child},
};
enum { PARTS = sizeof parts / sizeof *parts };

static _Atomic uint32_t *mark; /* 0 in a child of any kind, until it is known */
static pid_t own_pid;          /* whose memory this is; 0: we are no longer interested */
static bool was_active;        /* when the process forked */

static void make_new(bool is_recorded)
{
    if (own_pid)
        own_pid = getpid();
    if (mark)
        atomic_store(mark, 1);
    atomic_store(&agent.active, is_recorded);
    for (int i = 0; i < PARTS; i++)
        parts[i].in_child(is_recorded);
}

void forks_check(void)
{
    if (mark && !atomic_load_explicit(mark, memory_order_relaxed))
        make_new(false);
}

bool forks_is_guest(void)
{
    forks_check();
    return own_pid && getpid() != own_pid;
}

void forks_stop(void)
{
    own_pid = 0;
}

static void before(void)
{
    was_active = atomic_load(&agent.active);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].before)
            parts[i].before();
}

static void in_parent(void)
{
    for (int i = 0; i < PARTS; i++)
        if (parts[i].in_parent)
            parts[i].in_parent();
}

/*
 * Give the child an arena of its own, or leave it alone.  It may already have been
 * taken for one that nobody told us of, if another library's handler came first.
 */
static void in_child(void)
{
    int saved = errno;
    bool is_recorded = false;
    if (was_active) {
        arena_unmap(&agent.arena);
        is_recorded = start_arena(WIRE_PROCESS_FORKED);
        if (!is_recorded)
            atomic_fetch_add(&agent.control->unrecorded, 1);
    }
    make_new(is_recorded);
    errno = saved;
}

bool forks_init(void)
{
    own_pid = getpid();
    mark = os_fork_mark();
    if (mark)
        atomic_store(mark, 1);
    return !pthread_atfork(before, in_parent, in_child);
}
