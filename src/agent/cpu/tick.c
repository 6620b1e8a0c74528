#include "agent/cpu/tick.h"

#include "agent/core/agent.h"
#include "agent/core/timeline.h"
#include "agent/memory/runners.h"
#include "os/guard.h"
#include "os/os.h"

enum {
    ROOT_MISSES_MAX = 3,       /* so many stacks in a row with a new root: it is the root now */
    OWNER_VALID_NS = 60000000, /* how long "this line is in native code" is believed */
};

/* node << 32 | milliseconds: who is in native code, and when that was seen. */
static _Atomic uint64_t native_owner;
static _Atomic(const struct thread *) native_owner_thread;

static uint32_t now_ms(void)
{
    return (uint32_t)(os_mono_ns() / 1000000);
}

void tick_native_owner(const struct thread *thread, uint32_t node, bool in_native)
{
    if (in_native) {
        atomic_store(&native_owner_thread, thread);
        atomic_store(&native_owner, (uint64_t)node << 32 | now_ms());
    } else if (atomic_load_explicit(&native_owner_thread, memory_order_relaxed) == thread) {
        atomic_store(&native_owner, 0);
    }
}

static uint32_t node_of_native_thread(void)
{
    uint64_t owner = atomic_load(&native_owner);
    if (owner && now_ms() - (uint32_t)owner < OWNER_VALID_NS / 1000000)
        return (uint32_t)(owner >> 32);
    return tables_node(&agent.tables, 0, WIRE_FRAME_NO_PYTHON, 0, 0, 0);
}

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
 * Where a chain of frames can be caught half-linked, a stack that does not end
 * where this thread's stacks end has lost its outer part; keep the inner one.
 */
static void check_root(struct thread *thread, struct py_walk *walk)
{
    if (!agent.layout.chain_may_tear || walk->truncated || !walk->count)
        return;
    if (!thread->root_frame || walk->root == thread->root_frame) {
        thread->root_frame = walk->root;
        thread->root_misses = 0;
    } else if (++thread->root_misses > ROOT_MISSES_MAX) {
        thread->root_frame = walk->root; /* it really changed: atexit callbacks, a new run */
        thread->root_misses = 0;
    } else {
        walk->bad = true;
    }
}

/* The stack of the calling thread as a node, and what it is doing. */
static uint32_t sample_stack(struct thread *thread, const void *ucontext, enum wire_kind *kind)
{
    uintptr_t tstate = (uintptr_t)agent.current_tstate();
    uint32_t state = atomic_load_explicit(&agent.arena.header->stacks_state, memory_order_relaxed);
    *kind = WIRE_CPU_NATIVE;
    if (!tstate)
        return node_of_native_thread();
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
            return tables_node(&agent.tables, 0, WIRE_FRAME_INTERPRETER, 0, 0, 0);
        arena_lost(&agent.arena, WIRE_LOST_BAD_FRAME);
        return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, 0, 0, 0);
    }
    check_root(thread, &walk);
    static const enum wire_kind kinds[] = {
        [CLASSIFY_PYTHON] = WIRE_CPU_PYTHON,
        [CLASSIFY_NATIVE] = WIRE_CPU_NATIVE,
        [CLASSIFY_CALL] = WIRE_CPU_CALL,
    };
    *kind = kinds[classify(&agent.regions, &agent.layout, walk.leaf_opcode, ucontext)];
    uint32_t node = tables_stack(&agent.tables, &agent.layout, thread->frames, &walk);
    tick_native_owner(thread, node, *kind != WIRE_CPU_PYTHON);
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
    uint64_t weight = now - thread->last_cpu_ns + thread->carry_ns;
    thread->last_cpu_ns = now;
    thread->carry_ns = 0;
    if (atomic_load_explicit(&agent.control->on, memory_order_relaxed)) {
        enum wire_kind kind;
        uint32_t node = sample_stack(thread, ucontext, &kind);
        tables_add(&agent.tables, node, kind, weight, 0);
        atomic_store_explicit(&thread->last_node, node, memory_order_relaxed);
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

void tick_in_child(bool is_recorded)
{
    (void)is_recorded;
    atomic_store(&native_owner, 0);
    atomic_store(&native_owner_thread, NULL);
}
