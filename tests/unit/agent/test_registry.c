/*
 * Asking an interpreter that is made up: its functions are here, its objects are plain memory. What
 * was found is kept for the life of the process, so each case has one of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/registry.h"
#include "agent/core/agent.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"

#include <sys/wait.h>

struct agent agent;

/* ---- the interpreter ---- */

static char none[16], asyncio[16], asyncio_tasks[16], get_running_loop[16], running_loop[16];
static uintptr_t types[8][64]; /* Task, Future, gathering, coroutine */
static struct fake_object *task, *coroutine, *code, *tstate;
static uintptr_t said_waiter; /* what the task says of itself */
static int references, gil, fetched;
static bool is_finalizing, is_other_interpreter, has_tstate;
static unsigned asks;
static void (*in_the_middle)(void);

/* As asyncio describes itself, in a section of this program. */
__attribute__((section(".AsyncioDebug"), used)) static const uint64_t description[16] = {
    168, 136, 88, 100, 108, 128, 144, 0, 0, 0, 0, 0, 400};

static int ensure(void)
{
    asks++;
    return gil++;
}

static void release(int state)
{
    assert_int_equal(--gil, state);
}

static int is_initialized(void)
{
    return 1;
}

static int finalizing(void)
{
    return is_finalizing;
}

static void *interpreter_of(void *of)
{
    (void)of;
    return is_other_interpreter ? none : asyncio;
}

static void *main_interpreter(void)
{
    return asyncio;
}

static void *reference(void *object)
{
    assert_true(gil > 0 && fetched > 0);
    references += object != NULL;
    return object;
}

static void *text(const char *name)
{
    return reference((void *)(uintptr_t)name);
}

static void *module(void *name)
{
    return reference(!strcmp(name, "_asyncio")        ? asyncio
                     : !strcmp(name, "asyncio.tasks") ? asyncio_tasks
                                                      : NULL);
}

static void *attribute(void *from, const char *name)
{
    const struct {
        void *from;
        const char *name;
        void *is;
    } all[] = {
        {asyncio, "_get_running_loop", get_running_loop},
        {asyncio, "Task", types[0]},
        {asyncio, "Future", types[1]},
        {asyncio_tasks, "_GatheringFuture", types[2]},
        {task, "_coro", coroutine},
        {task, "_loop", running_loop},
        {task, "_fut_waiter", said_waiter ? (void *)said_waiter : none},
        {coroutine, "cr_code", code},
        {coroutine, "cr_await", none},
    };
    if (in_the_middle && !strcmp(name, "Future")) {
        void (*call)(void) = in_the_middle;
        in_the_middle = NULL;
        call();
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].from == from && !strcmp(all[i].name, name))
            return reference(all[i].is);
    return NULL;
}

static void *call(void *function, void *arguments)
{
    assert_ptr_equal(function, get_running_loop);
    assert_null(arguments);
    return reference(running_loop);
}

static void forget(void *object)
{
    assert_non_null(object);
    references--;
}

static void fetch(void **type, void **value, void **trace)
{
    *type = *value = *trace = NULL;
    fetched++;
}

static void restore(void *type, void *value, void *trace)
{
    (void)type;
    (void)value;
    (void)trace;
    fetched--;
}

static void clear(void)
{
}

static void never(void)
{
    fail();
}

void *__wrap_dlsym(void *handle, const char *name);

void *__wrap_dlsym(void *handle, const char *name)
{
    (void)handle;
    const struct {
        const char *name;
        void *is;
    } all[] = {
        {"PyGILState_Ensure", (void *)ensure},
        {"PyGILState_Release", (void *)release},
        {"Py_IsInitialized", (void *)is_initialized},
        {"_Py_IsFinalizing", (void *)finalizing},
        {"PyThreadState_GetInterpreter", (void *)interpreter_of},
        {"PyInterpreterState_Main", (void *)main_interpreter},
        {"PyUnicode_FromString", (void *)text},
        {"PyImport_GetModule", (void *)module},
        {"PyObject_GetAttrString", (void *)attribute},
        {"PyObject_CallObject", (void *)call},
        {"Py_DecRef", (void *)forget},
        {"PyErr_Fetch", (void *)fetch},
        {"PyErr_Restore", (void *)restore},
        {"PyErr_Clear", (void *)clear},
        {"PyList_New", (void *)never}, /* for gevent, which is not there */
        {"PySequence_Size", (void *)never},
        {"PySequence_GetItem", (void *)never},
        {"PyCode_Type", (void *)fake_code_type},
        {"PyCoro_Type", types[3]},
        {"_Py_NoneStruct", none},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i].name, name))
            return all[i].is;
    return NULL;
}

static void *current_tstate(void)
{
    return has_tstate ? tstate : NULL;
}

/* ---- */

enum { NODE = 144, TS_TASKS = 400, COROUTINE = 128, WAITER = 120, TYPE_BYTES = 32, TYPE_CODE = 48 };

static void put_at(void *base, size_t offset, uint64_t value)
{
    memcpy((char *)base + offset, &value, sizeof value);
}

static void list_tasks(bool has_task)
{
    uintptr_t head = (uintptr_t)tstate + TS_TASKS, link = (uintptr_t)task + NODE;
    put_at(tstate, TS_TASKS, has_task ? link : head);
    put_at(tstate, TS_TASKS + 8, has_task ? link : head);
    put_at(task, NODE, head);
    put_at(task, NODE + 8, head);
}

static void begin(void)
{
    struct py_layout *l = &agent.layout;
    faults_install(NULL);
    agent = (struct agent){
        .has_layout = true, .code_type = fake_code_type, .current_tstate = current_tstate};
    assert_true(layout_select(l, 0x030c01f0, 0, 0) && fixture_open(&agent.arena));
    l->futures = (struct py_futures){.is_described = true};
    tstate = fake_alloc();
    agent.main_tstate = (uintptr_t)tstate;
    put_at(tstate, 0,
           (uintptr_t)&asyncio); /* whatever is there, before it is known where to look */
    code = fake_code(l, "/p/a.py", "f", 1);
    coroutine = fake_new(l, (uintptr_t)types[3]);
    ((int8_t *)coroutine)[l->generators.state] = -1;
    put_at(coroutine, (size_t)l->generators.frame + (size_t)l->fr_code, (uintptr_t)code);
    put_at(coroutine, (size_t)l->generators.frame + (size_t)l->fr_instr,
           (uintptr_t)code + (uintptr_t)l->code_bytes + 4);
    task = fake_new(l, (uintptr_t)types[0]);
    put_at(task, (size_t)l->head_bytes, (uintptr_t)running_loop);
    put_at(task, COROUTINE, (uintptr_t)coroutine);
    put_at(types[0], TYPE_BYTES, 168);
    put_at(types[0], TYPE_CODE, (uintptr_t)ensure);
    list_tasks(true);
    has_tstate = true;
    registry_init();
}

static enum wire_async_state state_told(void)
{
    return (enum wire_async_state)agent.arena.header->async.state;
}

/* References that are kept for ever, so that nothing that is read goes away. */
enum { KEPT = 3 };

static void settle(void)
{
    begin();
    list_tasks(false);
    struct registry_loop loop = registry_ask();
    assert_int_equal(loop.kind, REGISTRY_ASYNCIO);
    assert_int_equal(loop.object, (uintptr_t)running_loop);
    assert_false(registry_ready(REGISTRY_ASYNCIO)); /* there is no task to check with */
    assert_int_equal(state_told(), WIRE_ASYNC_UNSEEN);
    list_tasks(true);
    registry_ask();
    assert_true(registry_ready(REGISTRY_ASYNCIO));
    assert_false(registry_ready(REGISTRY_TRIO));
    assert_int_equal(state_told(), WIRE_ASYNC_OK);
    assert_int_equal(agent.layout.futures.node, NODE);
    assert_int_equal(registry.types.task, (uintptr_t)types[0]);
    assert_int_equal(registry.types.gathering, (uintptr_t)types[2]);
    assert_int_equal(registry.tasks, 0);
    assert_int_equal(references, KEPT);
    assert_int_equal(gil, 0);
    assert_int_equal(fetched, 0);
}

static void ask_another(void)
{
    assert_int_equal(registry_ask().kind, REGISTRY_ASYNCIO);
    assert_false(registry_ready(REGISTRY_ASYNCIO));
}

/* Where there is no GIL, another thread asks while this one looks things up. */
static void ask_at_once(void)
{
    begin();
    in_the_middle = ask_another;
    registry_ask();
    assert_int_equal(asks, 2);
    assert_true(registry_ready(REGISTRY_ASYNCIO));
    assert_int_equal(state_told(), WIRE_ASYNC_OK);
    assert_int_equal(registry_ask().kind, REGISTRY_ASYNCIO); /* nobody gave up */
    assert_int_equal(references, KEPT);
}

static void begin_again_in_child(void)
{
    registry_in_child();
    registry_ask();
    assert_true(registry_ready(REGISTRY_ASYNCIO));
}

/* A child is forked while this thread looks things up, and has to do it again. */
static void fork_at_once(void)
{
    begin();
    in_the_middle = begin_again_in_child;
    registry_ask();
}

static void find_a_lie(void)
{
    begin();
    said_waiter = (uintptr_t)running_loop;
    registry_ask();
    assert_false(registry_ready(REGISTRY_ASYNCIO));
    assert_int_equal(state_told(), WIRE_ASYNC_SELFCHECK);
    unsigned before = asks;
    assert_int_equal(registry_ask().kind, REGISTRY_NO_LOOP); /* no more of that */
    assert_int_equal(asks, before);
}

static void find_another_size(void)
{
    begin();
    put_at(types[0], TYPE_BYTES, 176);
    registry_ask();
    assert_int_equal(state_told(), WIRE_ASYNC_SELFCHECK);
}

static void find_no_description(void)
{
    begin();
    put_at(types[0], TYPE_CODE, (uintptr_t)&strlen);
    registry_ask();
    assert_false(registry_ready(REGISTRY_ASYNCIO));
    assert_int_equal(state_told(), WIRE_ASYNC_UNKNOWN_PYTHON);
}

static void may_not_ask(void)
{
    begin();
    has_tstate = false;
    assert_int_equal(registry_ask().kind, REGISTRY_NO_LOOP);
    has_tstate = true;
    is_finalizing = true;
    assert_int_equal(registry_ask().kind, REGISTRY_NO_LOOP);
    is_finalizing = false;
    is_other_interpreter = true;
    assert_int_equal(registry_ask().kind, REGISTRY_NO_LOOP);
    is_other_interpreter = false;
    assert_int_equal(asks, 0);
    agent.layout.generators.await = PY_AWAIT_UNKNOWN;
    registry_init();
    assert_int_equal(registry_ask().kind, REGISTRY_NO_LOOP);
    assert_int_equal(asks, 0);
}

static void run_apart(void **state)
{
    void (*run)(void);
    memcpy(&run, state, sizeof run);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        setenv("CMOCKA_TEST_ABORT", "1", 1); /* who fails does not go on with the other cases */
        run();
        _exit(fixture_close(&agent.arena) ? 2 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define CASE(name)                                                                                 \
    {                                                                                              \
#name, run_apart, NULL, NULL, (void *)(name)                                               \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(settle),      CASE(ask_at_once),       CASE(fork_at_once),
        CASE(find_a_lie),  CASE(find_another_size), CASE(find_no_description),
        CASE(may_not_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
