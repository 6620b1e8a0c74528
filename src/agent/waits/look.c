#include "agent/waits/look.h"

#include "agent/core/agent.h"

static uintptr_t tstate_of(const struct thread *thread)
{
    uintptr_t tstate = atomic_load_explicit(&thread->tstate, memory_order_relaxed);
    if (!agent.has_layout)
        return 0;
    if (!frames_thread_is(&agent.layout, tstate, (uintptr_t)thread->ident))
        tstate = frames_find_thread(&agent.layout, agent.main_tstate, (uintptr_t)thread->ident);
    return tstate;
}

static bool stacks_usable(void)
{
    uint32_t state = atomic_load_explicit(&agent.arena.header->stacks_state, memory_order_relaxed);
    return state == WIRE_STACKS_OK || (state == WIRE_STACKS_UNTRIED && agent.has_layout);
}

bool look_begin(const struct thread *thread, struct look *look)
{
    *look = (struct look){.tstate = tstate_of(thread)};
    return look->tstate && stacks_usable();
}

void look_stack(struct look *look, struct py_frame *frames)
{
    struct py_walk walk;
    frames_walk(&agent.layout, agent.code_type, look->tstate, frames, &walk);
    look->frames = walk.count;
    look->leaf_opcode = walk.leaf_opcode;
    if (walk.count && !walk.bad)
        look->node = tables_stack(&agent.tables, &agent.layout, 0, frames, &walk);
}

bool look_wait(const struct thread *thread, int *fd, bool keep, struct look *look)
{
    look->knows_wait = os_thread_wait(thread->tid, fd, keep, &look->wait);
    return !look->knows_wait || !look->wait.running;
}

bool look_held(const struct thread *thread, uint64_t cpu_ns)
{
    uint64_t after_ns;
    return os_thread_cpu_of(thread->tid, &after_ns) && after_ns == cpu_ns;
}
