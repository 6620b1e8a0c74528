#include "agent/cpu/owner.h"

#include "agent/core/agent.h"
#include "agent/cpu/tick.h"
#include "agent/waits/cause.h"
#include "agent/waits/look.h"
#include "os/os.h"

/* Of looking at a thread, in frames of a stack: two clocks, and perhaps a file of the system's. */
enum { LOOK_COST = 10, LOOK_WAIT_COST = 90 };

/* The thread that was last seen in a native call with a traced line. */
static _Atomic(struct thread *) last_in_native;

static uint64_t pack(uint32_t node, enum owner_state state)
{
    return (uint64_t)state << 32 | node;
}

/* Where the thread is, if it is in that state or in one that is both; else 0. */
static uint32_t place_of(const struct thread *thread, enum owner_state state)
{
    uint64_t place = atomic_load_explicit(&thread->place, memory_order_relaxed);
    enum owner_state seen = (enum owner_state)(place >> 32);
    return seen == state || seen == OWNER_NATIVE_WAITS ? (uint32_t)place : 0;
}

void owner_see(struct thread *thread, uint32_t node, enum owner_state state)
{
    bool counts = state != OWNER_RUNS && tables_traced(&agent.tables, node);
    atomic_store_explicit(&thread->place, counts ? pack(node, state) : 0, memory_order_relaxed);
    if (counts && state != OWNER_WAITS)
        atomic_store_explicit(&last_in_native, thread, memory_order_relaxed);
}

/* The starter, if it is still there. */
static const struct thread *starter_of(const struct thread *thread)
{
    const struct thread *starter = thread->starter;
    return starter && atomic_load(&starter->serial) == thread->starter_serial &&
                   atomic_load(&starter->state) == THREAD_LIVE
               ? starter
               : NULL;
}

uint32_t owner_of_python(const struct thread *thread)
{
    const struct thread *starter = starter_of(thread);
    uint32_t node = starter ? place_of(starter, OWNER_WAITS) : 0;
    return node ? tables_traced(&agent.tables, node) : thread->birth_node;
}

uint32_t owner_of_native(const struct thread *thread)
{
    const struct thread *starter = starter_of(thread);
    const struct thread *last = atomic_load_explicit(&last_in_native, memory_order_relaxed);
    uint32_t node = starter ? place_of(starter, OWNER_IN_NATIVE) : 0;
    if (!node && last && atomic_load(&last->state) == THREAD_LIVE)
        node = place_of(last, OWNER_IN_NATIVE);
    if (node)
        return node;
    enum wire_frame frame = thread->birth_node ? WIRE_FRAME_THREAD : WIRE_FRAME_NO_PYTHON;
    return tables_node(&agent.tables, thread->birth_node, frame, 0, 0, 0);
}

/* Its innermost frame is the user's: does it wait there, and not for its turn? */
static bool waits_in_call(const struct thread *starter, struct look *look)
{
    int fd = -1;
    return agent.layout.calls[look->leaf_opcode] != PY_CALL_NONE &&
           look_wait(starter, &fd, false, look) &&
           !(look->knows_wait && cause_is_turn(&look->wait, look->tstate));
}

/*
 * Where is the starter now?  Inside of library code, it is not done with what its line called; in
 * the user's own code nobody works for it (0), unless it waits.  False: it cannot be told.
 */
static bool find_starter(struct thread *thread, const struct thread *starter, uint32_t *line,
                         uint32_t *cost)
{
    struct look look;
    *cost += LOOK_COST;
    if (!look_begin(starter, &look))
        return false;
    look_stack(&look, thread->memory_frames);
    *line = look.node ? tables_traced(&agent.tables, look.node) : 0;
    bool is_users = *line && *line == look.node;
    if (is_users && !waits_in_call(starter, &look))
        *line = 0;
    *cost += look.frames + (look.knows_wait ? LOOK_WAIT_COST : 0);
    return look.node != 0;
}

/*
 * What is read of a starter that runs meanwhile may be wrong; twice the same line is not, though
 * the frames within may be.  When it cannot be told, what was known stays.  Returns the cost.
 */
static uint32_t see_starter(struct thread *thread, const struct thread *starter, uint64_t cpu_ns)
{
    uint32_t line, again, cost = 0;
    if (!find_starter(thread, starter, &line, &cost))
        return cost;
    if (look_held(starter, cpu_ns)) {
        thread->starter_line = line;
        thread->starter_cpu_ns = cpu_ns;
    } else if (line && find_starter(thread, starter, &again, &cost) && again == line) {
        thread->starter_line = line;
    }
    return cost;
}

uint32_t owner_of_allocation(struct thread *thread, uint32_t *frames)
{
    const struct thread *starter = starter_of(thread);
    uint64_t cpu_ns;
    if (!starter || !os_thread_cpu_of(starter->tid, &cpu_ns))
        return thread->birth_node;
    if (thread->starter_cpu_ns != cpu_ns)
        *frames += see_starter(thread, starter, cpu_ns);
    return thread->starter_line ? thread->starter_line : thread->birth_node;
}

uint32_t owner_root(uint32_t owner)
{
    return owner ? tables_node(&agent.tables, owner, WIRE_FRAME_THREAD, 0, 0, 0) : 0;
}

/* The calling thread's own traced line; 0: it has none. */
static uint32_t own_line(struct thread *self)
{
    uintptr_t tstate = agent.has_layout ? (uintptr_t)agent.current_tstate() : 0;
    uint32_t state = atomic_load_explicit(&agent.arena.header->stacks_state, memory_order_relaxed);
    struct py_walk walk;
    if (!tstate || state == WIRE_STACKS_SELFCHECK)
        return 0;
    frames_walk(&agent.layout, agent.code_type, tstate, self->memory_frames, &walk);
    if (!walk.count || !tick_layout_fits(tstate, self, self->memory_frames, &walk))
        return 0;
    uint32_t node = tables_stack(&agent.tables, &agent.layout, 0, self->memory_frames, &walk);
    return tables_traced(&agent.tables, node);
}

void owner_begin(struct thread *thread)
{
    struct thread *self = threads_self();
    thread->starter = NULL;
    thread->birth_node = thread->starter_line = 0;
    thread->starter_cpu_ns = 0;
    if (!self)
        return;
    uint32_t line = own_line(self);
    thread->birth_node = line ? line : self->birth_node;
    thread->starter = line ? self : self->starter;
    thread->starter_serial = line ? atomic_load(&self->serial) : self->starter_serial;
}

void owner_in_child(bool is_recorded)
{
    (void)is_recorded;
    atomic_store(&last_in_native, NULL);
}
