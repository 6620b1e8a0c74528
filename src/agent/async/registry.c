#include "agent/async/registry.h"

#include "agent/async/hubs.h"
#include "agent/async/lists.h"
#include "agent/async/python.h"
#include "agent/core/agent.h"
#include "os/guard.h"
#include "py/symbols.h"

#include <dlfcn.h>

struct registry registry;

static _Atomic bool is_ready[REGISTRY_GEVENT + 1];

static const struct {
    const char *name;
    uintptr_t *address;
} type_names[] = {
    {"PyCode_Type", &registry.types.code},     {"PyCoro_Type", &registry.types.coroutine},
    {"PyGen_Type", &registry.types.generator}, {"PyAsyncGen_Type", &registry.types.async_generator},
    {"PyLong_Type", &registry.types.integer},  {"PyUnicode_Type", &registry.types.text},
    {"_Py_NoneStruct", &registry.types.none},  {"PyFrame_Type", &registry.greenlets.frame_type},
};

static _Atomic bool can_ask;
static bool was_looked_up;                         /* what asyncio has */
static atomic_flag is_settling = ATOMIC_FLAG_INIT; /* without GIL several may come at once */

void registry_init(void)
{
    can_ask =
        python_init() && agent.has_layout && agent.layout.generators.await != PY_AWAIT_UNKNOWN;
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        *type_names[i].address = (uintptr_t)dlsym(RTLD_DEFAULT, type_names[i].name);
}

/* ---- with the GIL ---- */

/* Is the attribute this very object?  NULL stands for None, and for nothing. */
static bool attribute_is(uintptr_t from, const char *name, uintptr_t expected)
{
    object found = python_attribute((object)from, name);
    python_forget(found);
    return found && (uintptr_t)found == (expected ? expected : registry.types.none);
}

static uintptr_t first_in_set(uintptr_t set_object, bool is_weak, uintptr_t type)
{
    struct py_set set;
    if (!tasks_set(&agent.layout, set_object, &set))
        return 0;
    for (uint64_t i = 0; i <= set.mask; i++) {
        uintptr_t key = tasks_set_key(&agent.layout, &set, i, is_weak);
        if (key && tasks_is_a(&agent.layout, key, type))
            return key;
    }
    return 0;
}

/* Do a coroutine's own words agree with what we read?  Those of other makes have none. */
static bool coroutine_fits(uintptr_t coroutine)
{
    const struct py_layout *l = &agent.layout;
    struct py_frame frames[64];
    struct py_walk walk;
    bool runs, has_begun;
    unsigned bad = 0;
    if (guard_ptr(coroutine + (uintptr_t)l->ob_type, &bad) != registry.types.coroutine || bad)
        return true;
    if (!tasks_chain(l, &registry.types, coroutine, frames, &walk, &runs, &has_begun) ||
        (!walk.truncated && !attribute_is(coroutine, "cr_code", frames[walk.count - 1].code)))
        return false;
    return runs || !has_begun ||
           attribute_is(coroutine, "cr_await", tasks_awaited(l, &registry.types, coroutine));
}

static bool task_fits(uintptr_t task)
{
    const struct py_layout *l = &agent.layout;
    struct py_task read;
    if (tasks_type_bytes(l, registry.types.task) != (uintptr_t)l->futures.task_bytes ||
        !tasks_read(l, &registry.types, task, &read))
        return false;
    if (read.state == PY_TASK_ENDED)
        return true;
    return attribute_is(task, "_coro", read.coroutine) && attribute_is(task, "_loop", read.loop) &&
           attribute_is(task, "_fut_waiter", read.waiter) && coroutine_fits(read.coroutine);
}

/* Where tasks are listed by asyncio's own description, find that: in the file that Task's code is
 * from. */
static bool describe(void)
{
    uint64_t words[32]; /* more than we know of */
    size_t bytes = 0;
    const void *description = symbols_section(tasks_type_code(&agent.layout, registry.types.task),
                                              ".AsyncioDebug", &bytes);
    if (bytes > sizeof words)
        bytes = sizeof words;
    /* With a guard: the file may be another one by now. */
    return description && guard_copy(words, (uintptr_t)description, bytes) &&
           tasks_describe(&agent.layout, words, bytes);
}

static void set_state(enum wire_async_state state)
{
    atomic_store(&agent.arena.header->async.state, state);
}

/* Nothing is believed before a living task was compared with what it says of itself. */
static void settle_asyncio(void)
{
    struct py_futures *at = &agent.layout.futures;
    if (!was_looked_up) {
        registry.types.task = python_kept("_asyncio", "Task");
        registry.types.future = python_kept("_asyncio", "Future");
        registry.types.gathering = python_kept("asyncio.tasks", "_GatheringFuture");
        if (registry.types.task && at->is_described && !describe()) {
            set_state(WIRE_ASYNC_UNKNOWN_PYTHON);
            can_ask = false;
            return;
        }
        uintptr_t weak = at->node >= 0 ? 0 : python_kept("asyncio.tasks", "_scheduled_tasks");
        if (at->node < 0 && !weak)
            weak = python_kept("asyncio.tasks", "_all_tasks");
        registry.tasks = (uintptr_t)python_attribute((object)weak, "data");
        if (at->interp_tasks >= 0 && python.main_interpreter)
            registry.tasks_left =
                (uintptr_t)python.main_interpreter() + (uintptr_t)at->interp_tasks;
        was_looked_up = true;
    }
    uintptr_t task =
        at->node >= 0 ? lists_first() : first_in_set(registry.tasks, true, registry.types.task);
    if (!task)
        return; /* the next time */
    bool fits = task_fits(task);
    set_state(fits ? WIRE_ASYNC_OK : WIRE_ASYNC_SELFCHECK);
    if (fits)
        atomic_store(&is_ready[REGISTRY_ASYNCIO], true);
    else
        can_ask = false;
}

static struct registry_loop ask_asyncio(void)
{
    struct registry_loop loop = {REGISTRY_NO_LOOP, 0, 0};
    object module = python_module("_asyncio");
    object get = python_attribute(module, "_get_running_loop");
    object running = get ? python.call(get, NULL) : NULL;
    if (!running)
        python.clear();
    else if ((uintptr_t)running != registry.types.none)
        loop = (struct registry_loop){REGISTRY_ASYNCIO, (uintptr_t)running, 0};
    python_forget(running);
    python_forget(get);
    python_forget(module);
    if (loop.kind && !registry_ready(REGISTRY_ASYNCIO) && !atomic_flag_test_and_set(&is_settling)) {
        settle_asyncio();
        atomic_flag_clear(&is_settling);
    }
    return loop;
}

/* Where a slot of a class is in its objects: its descriptor knows. */
static int32_t slot_at(uintptr_t type, const char *name)
{
    enum { DESCRIPTOR_MEMBER = 24, MEMBER_OFFSET = 16, OFFSET_MAX = 4096 };
    object descriptor = python_attribute((object)type, name);
    unsigned bad = 0;
    uintptr_t member = descriptor
                           ? guard_ptr((uintptr_t)descriptor + (uintptr_t)agent.layout.head_bytes +
                                           DESCRIPTOR_MEMBER,
                                       &bad)
                           : 0;
    uint64_t offset = member ? guard_u64(member + MEMBER_OFFSET, &bad) : 0;
    python_forget(descriptor);
    return bad || !offset || offset > OFFSET_MAX ? PY_ABSENT : (int32_t)offset;
}

static void settle_trio(uintptr_t tasks)
{
    struct py_slots *at = &registry.trio;
    if (!at->type) {
        at->type = python_kept("trio._core._run", "Task");
        at->coroutine = slot_at(at->type, "coro");
        at->abort = slot_at(at->type, "_abort_func");
        at->name = slot_at(at->type, "name");
    }
    uintptr_t task = first_in_set(tasks, false, at->type);
    if (!task)
        return;
    struct py_task read;
    unsigned bad = 0;
    bool fits = at->coroutine >= 0 && at->abort >= 0 && at->name >= 0 &&
                tasks_read_slots(&agent.layout, &registry.types, at, task, &read) &&
                attribute_is(task, "coro", read.coroutine) &&
                attribute_is(task, "_abort_func", guard_ptr(task + (uintptr_t)at->abort, &bad)) &&
                coroutine_fits(read.coroutine);
    if (fits || !registry_ready(REGISTRY_ASYNCIO)) /* whose tasks may be read all the same */
        set_state(fits ? WIRE_ASYNC_OK : WIRE_ASYNC_SELFCHECK);
    atomic_store(&is_ready[REGISTRY_TRIO], fits);
}

static struct registry_loop ask_trio(void)
{
    object module = python_module("trio._core._run");
    object context = python_attribute(module, "GLOBAL_RUN_CONTEXT");
    object runner = python_attribute(context, "runner");
    object tasks = python_attribute(runner, "tasks");
    struct registry_loop loop = {tasks ? REGISTRY_TRIO : REGISTRY_NO_LOOP, 0, (uintptr_t)tasks};
    if (tasks && !registry_ready(REGISTRY_TRIO) && !atomic_flag_test_and_set(&is_settling)) {
        settle_trio(loop.tasks);
        atomic_flag_clear(&is_settling);
    }
    python_forget(tasks); /* as long as the loop runs it is there; it is read with guards */
    python_forget(runner);
    python_forget(context);
    python_forget(module);
    return loop;
}

/* The GIL of another interpreter than the main one is not ours to ask for. */
static bool may_ask(void)
{
    void *tstate = agent.current_tstate();
    if (!can_ask || !tstate || !python.is_initialized() ||
        (python.is_finalizing && python.is_finalizing()))
        return false;
    return !python.interpreter_of || !python.main_interpreter ||
           python.interpreter_of(tstate) == python.main_interpreter();
}

struct registry_loop registry_ask(void)
{
    struct registry_loop loop = {REGISTRY_NO_LOOP, 0, 0};
    if (!may_ask())
        return loop;
    object type, value, trace;
    int state = python.ensure();
    python.fetch(&type, &value, &trace);
    loop = ask_asyncio();
    if (!loop.kind)
        loop = ask_trio();
    if (!loop.kind)
        loop = hubs_ask();
    if (loop.kind == REGISTRY_GEVENT)
        atomic_store(&is_ready[REGISTRY_GEVENT], true);
    python.restore(type, value, trace);
    python.release(state);
    return loop;
}

/* Another thread may have been about it, which is not here. */
void registry_in_child(void)
{
    atomic_flag_clear(&is_settling);
}

bool registry_ready(enum registry_kind kind)
{
    return atomic_load_explicit(&is_ready[kind], memory_order_acquire);
}
