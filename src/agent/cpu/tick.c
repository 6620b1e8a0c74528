#include "agent/cpu/tick.h"

#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/kin.h"
#include "agent/core/timeline.h"
#include "agent/cpu/owner.h"
#include "agent/memory/runners.h"
#include "os/guard.h"
#include "os/os.h"

/*
 * The layout is believed once a real stack has been read with it.  What comes
 * from a table or from a newer patch release is checked here against the
 * interpreter's own types; if it does not fit, no stack is ever read again.
 */
bool tick_layout_fits(uintptr_t tstate, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk)
{
    _Atomic uint32_t *state = &agent.arena.header->stacks_state;
    if (atomic_load_explicit(state, memory_order_relaxed) == WIRE_STACKS_OK)
        return true;
    if (!frames_thread_is(&agent.layout, tstate, (uintptr_t)thread->ident)) {
        atomic_store(state, WIRE_STACKS_SELFCHECK);
        return false;
    }
    if (!walk->count)
        return !walk->bad; /* nothing to judge by yet */
    struct py_code code;
    if (!code_read(&agent.layout, frames[0].code, &code) ||
        !code_is_a(&agent.layout, code.file, agent.str_type) ||
        !code_is_a(&agent.layout, code.name, agent.str_type) || code.first_line < 0) {
        atomic_store(state, WIRE_STACKS_SELFCHECK);
        return false;
    }
    atomic_store(state, WIRE_STACKS_OK);
    return true;
}

/*
 * Where a chain of frames can be caught half-linked: one that is whole ends where C code entered
 * the interpreter.  (That it ends elsewhere than others of its thread says nothing: each greenlet
 * has a root of its own.)
 */
static bool is_torn(const struct py_walk *walk)
{
    const struct py_layout *l = &agent.layout;
    unsigned bad = 0;
    if (!l->chain_may_tear || walk->truncated || !walk->count)
        return false;
    return l->fr_is_entry >= 0 ? !guard_u8(walk->root + (uintptr_t)l->fr_is_entry, &bad)
                               : !guard_ptr(walk->root + (uintptr_t)l->fr_back, &bad);
}

/* Frames without a traced one among them come below the line they work for. */
static uint32_t stack_node(struct thread *thread, const struct py_walk *walk)
{
    uint32_t owner = thread->has_no_line ? owner_of_python(thread) : 0;
    for (int attempt = 0;; attempt++) {
        uint32_t node =
            tables_stack(&agent.tables, &agent.layout, owner_root(owner), thread->frames, walk);
        bool has_no_line = tables_traced(&agent.tables, node) == owner;
        if (attempt || has_no_line == thread->has_no_line)
            return node;
        thread->has_no_line = has_no_line; /* not as the last time: once more */
        owner = has_no_line ? owner_of_python(thread) : 0;
    }
}

/* The stack of the calling thread as a node, and what it is doing. */
static uint32_t sample_stack(struct thread *thread, const void *ucontext, enum wire_kind *kind)
{
    uintptr_t tstate = (uintptr_t)agent.current_tstate();
    uint32_t state = atomic_load_explicit(&agent.arena.header->stacks_state, memory_order_relaxed);
    *kind = WIRE_CPU_NATIVE;
    if (!tstate)
        return owner_of_native(thread);
    if (state == WIRE_STACKS_UNKNOWN_PYTHON || state == WIRE_STACKS_SELFCHECK)
        return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, 0, 0, 0);
    struct py_walk walk;
    frames_walk(&agent.layout, agent.code_type, tstate, thread->frames, &walk);
    if (!tick_layout_fits(tstate, thread, thread->frames, &walk))
        return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, 0, 0, 0);
    atomic_store_explicit(&thread->tstate, tstate, memory_order_relaxed);
    if (!walk.count) {
        *kind = WIRE_CPU_PYTHON;
        if (!walk.bad)
            return tables_node(&agent.tables, owner_root(owner_of_python(thread)),
                               WIRE_FRAME_INTERPRETER, 0, 0, 0);
        arena_lost(&agent.arena, WIRE_LOST_BAD_FRAME);
        return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, 0, 0, 0);
    }
    if (is_torn(&walk))
        walk.bad = true;
    static const enum wire_kind kinds[] = {
        [CLASSIFY_PYTHON] = WIRE_CPU_PYTHON,
        [CLASSIFY_NATIVE] = WIRE_CPU_NATIVE,
        [CLASSIFY_CALL] = WIRE_CPU_CALL,
    };
    *kind = kinds[classify(&agent.regions, &agent.layout, walk.leaf_opcode, ucontext)];
    uint32_t node = stack_node(thread, &walk);
    owner_see(thread, node, *kind == WIRE_CPU_PYTHON ? OWNER_RUNS : OWNER_IN_NATIVE);
    if (thread->record) {
        struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, thread->record);
        atomic_store_explicit(&record->python, 1, memory_order_relaxed);
    }
    return node;
}

void tick_sample(struct thread *thread, const void *ucontext)
{
    if (!atomic_load_explicit(&agent.active, memory_order_relaxed))
        return; /* the last signal of a timer that is gone */
    struct wire_header *header = agent.arena.header;
    uint64_t now = os_thread_cpu_ns();
    uint64_t weight = now - thread->last_cpu_ns;
    thread->last_cpu_ns = now;
    if (atomic_load_explicit(&agent.control->on, memory_order_relaxed)) {
        enum wire_kind kind;
        uint32_t node = sample_stack(thread, ucontext, &kind);
        tables_add(&agent.tables, node, kind, weight, 0);
        atomic_store_explicit(&thread->last_node, node, memory_order_relaxed);
        thread->last_kind = (uint8_t)kind;
        if (thread->loop)
            loops_see(thread, node);
        kin_see(thread, node, kind);
        timeline_add(&thread->log, thread->record, node, kind, os_mono_ns(), weight);
        runners_ran(node, kind != WIRE_CPU_PYTHON, weight);
        if (thread->record) {
            struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, thread->record);
            atomic_store_explicit(&record->cpu_ns, now - thread->begin_cpu_ns,
                                  memory_order_relaxed);
        }
        atomic_fetch_add_explicit(&header->handler_count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&header->handler_ns, os_thread_cpu_ns() - now,
                                  memory_order_relaxed);
    }
    os_timer_arm(thread->timer, threads_next_interval_ns(thread));
}

/* Where the calling thread is if it runs Python code, else 0. */
static uint32_t own_stack(struct thread *thread)
{
    uintptr_t tstate = (uintptr_t)agent.current_tstate();
    struct py_walk walk = {0};
    if (tstate && atomic_load(&agent.arena.header->stacks_state) == WIRE_STACKS_OK)
        frames_walk(&agent.layout, agent.code_type, tstate, thread->memory_frames, &walk);
    return walk.count && !walk.bad
               ? tables_stack(&agent.tables, &agent.layout, 0, thread->memory_frames, &walk)
               : 0;
}

void tick_last(void)
{
    struct thread *thread = threads_self();
    if (!thread || !thread->has_timer || !atomic_load(&agent.control->on))
        return;
    uint64_t now = os_thread_cpu_ns();
    uint32_t node = atomic_load(&thread->last_node);
    enum wire_kind kind = node ? (enum wire_kind)thread->last_kind : WIRE_CPU_PYTHON;
    if (!node)
        node = own_stack(thread);
    if (node)
        tables_add(&agent.tables, node, kind, now - thread->last_cpu_ns, 0);
    thread->last_cpu_ns = now;
}
