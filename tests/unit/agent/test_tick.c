/* CPU samples of a thread whose clock, stack and place in the machine code are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/cpu/tick.h"
#include "agent/memory/runners.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "os/os.h"

struct agent agent;

enum { IDENT = 11, TIMER = 5, MS = 1000000, INTERVAL_NS = 7 * MS };

/* ---- the world ---- */

static struct wire_control control;
static struct thread thread, other;
static uint64_t cpu_ns, mono_ns;
static unsigned armed, walks;
static void *tstate;
static struct fake_object *cframe, *code, *root, *leaf;
static enum classify_result doing;

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_thread_cpu_ns(void);
void __wrap_os_timer_arm(int timer, uint64_t after_ns);
void __wrap_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t state,
                        struct py_frame *frames, struct py_walk *walk);
void __real_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t state,
                        struct py_frame *frames, struct py_walk *walk);

uint64_t __wrap_os_mono_ns(void)
{
    return mono_ns;
}

uint64_t __wrap_os_thread_cpu_ns(void)
{
    return cpu_ns;
}

void __wrap_os_timer_arm(int timer, uint64_t after_ns)
{
    armed += timer == TIMER && after_ns == INTERVAL_NS;
}

void __wrap_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t state,
                        struct py_frame *frames, struct py_walk *walk)
{
    walks++;
    __real_frames_walk(layout, code_type, state, frames, walk);
}

static struct {
    uint32_t node;
    bool is_native;
    uint64_t ns;
} ran;

void runners_ran(uint32_t node, bool is_native, uint64_t ns)
{
    ran.node = node;
    ran.is_native = is_native;
    ran.ns = ns;
}

uint64_t threads_next_interval_ns(struct thread *asking)
{
    (void)asking;
    return INTERVAL_NS;
}

enum classify_result classify(const struct py_regions *regions, const struct py_layout *layout,
                              uint8_t opcode, const void *ucontext)
{
    (void)regions;
    (void)layout;
    (void)opcode;
    (void)ucontext;
    return doing;
}

static void *current_tstate(void)
{
    return tstate;
}

/* Where the thread's chain of frames begins. */
static void stand_at(struct fake_object *frame)
{
    fake_put(cframe, agent.layout.cframe_current, (uintptr_t)frame);
}

static int open_all(void **state)
{
    (void)state;
    control = (struct wire_control){.cpu_interval_ns = INTERVAL_NS, .on = 1};
    agent = (struct agent){.active = true,
                           .control = &control,
                           .has_layout = true,
                           .code_type = fake_code_type,
                           .str_type = fake_str_type,
                           .current_tstate = current_tstate};
    if (!layout_select(&agent.layout, 0x030c01f0, 0, 0) || !fixture_open(&agent.arena) ||
        !tables_init(&agent.tables, &agent.arena))
        return -1;
    code = fake_code(&agent.layout, "/a.py", "f", 1);
    root = fake_frame(&agent.layout, code, 2, NULL, 0);
    leaf = fake_frame(&agent.layout, code, 4, root, 0);
    struct fake_object *made = fake_thread(&agent.layout, leaf, IDENT);
    uintptr_t address;
    memcpy(&address, (char *)made + agent.layout.ts_cframe, sizeof address);
    cframe = (struct fake_object *)address;
    tstate = made;
    cpu_ns = 1000 * MS;
    mono_ns = agent.arena.header->start_mono_ns = (uint64_t)5000 * MS;
    thread = other = (struct thread){.ident = (pthread_t)IDENT, .timer = TIMER};
    thread.record = (uint16_t)arena_append(&agent.arena, WIRE_THREAD, 1);
    thread.begin_cpu_ns = thread.last_cpu_ns = cpu_ns;
    armed = walks = 0;
    doing = CLASSIFY_PYTHON;
    tick_in_child(true);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static void run(uint64_t ns)
{
    cpu_ns += ns;
    mono_ns += ns;
    tick_sample(&thread, NULL);
}

/* ---- what is on the books ---- */

static const struct wire_cell *only_cell(void)
{
    assert_int_equal(agent.arena.header->sections[WIRE_CELL].used, 2);
    return arena_record(&agent.arena, WIRE_CELL, 1);
}

static uint64_t ns_in(enum wire_frame frame, enum wire_kind kind)
{
    uint64_t ns = 0;
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_CELL].used; id++) {
        const struct wire_cell *cell = arena_record(&agent.arena, WIRE_CELL, id);
        const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, cell->node);
        if (node->frame == frame && cell->kind == (uint32_t)kind)
            ns += cell->ns;
    }
    return ns;
}

static uint32_t state_of_stacks(void)
{
    return agent.arena.header->stacks_state;
}

/* ---- weights ---- */

static void test_weight(void **state)
{
    faults_install(state);
    thread.carry_ns = 2 * MS; /* of threads that have ended */
    run(3 * MS);
    assert_int_equal(only_cell()->ns, 5 * MS);
    assert_int_equal(thread.carry_ns, 0);
    run(4 * MS);
    assert_int_equal(only_cell()->ns, 9 * MS);
    assert_int_equal(only_cell()->count, 2);
    assert_int_equal(only_cell()->kind, WIRE_CPU_PYTHON);
    assert_int_equal(armed, 2);
    assert_int_equal(thread.last_node, only_cell()->node);
    assert_int_equal(ran.node, only_cell()->node);
    assert_int_equal(ran.ns, 4 * MS);
    assert_false(ran.is_native);
    assert_int_equal(agent.arena.header->handler_count, 2);
    const struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, thread.record);
    assert_int_equal(record->cpu_ns, 7 * MS);
    assert_int_equal(record->python, 1);
    const struct wire_log *entry = arena_record(&agent.arena, WIRE_LOG, 1);
    assert_int_equal(entry->us, 9000);
    assert_int_equal(entry->at_ns, 3 * MS);
}

static void test_kinds(void **state)
{
    faults_install(state);
    static const struct {
        enum classify_result doing;
        enum wire_kind kind;
    } cases[] = {{CLASSIFY_PYTHON, WIRE_CPU_PYTHON},
                 {CLASSIFY_NATIVE, WIRE_CPU_NATIVE},
                 {CLASSIFY_CALL, WIRE_CPU_CALL}};
    for (unsigned i = 0; i < 3; i++) {
        doing = cases[i].doing;
        run((i + 1) * MS);
        assert_int_equal(ns_in(WIRE_FRAME_PYTHON, cases[i].kind), (i + 1) * MS);
    }
}

static void test_off(void **state)
{
    faults_install(state);
    run(3 * MS);
    control.on = 0;
    thread.carry_ns = 2 * MS;
    run(20 * MS);
    assert_int_equal(only_cell()->ns, 3 * MS);
    assert_int_equal(armed, 2); /* it looks again */
    control.on = 1;
    run(4 * MS);
    assert_int_equal(only_cell()->ns, 7 * MS); /* neither what passed nor what was carried */
    assert_int_equal(agent.arena.header->handler_count, 2);
}

static void test_inactive(void **state)
{
    faults_install(state);
    agent.active = false;
    struct wire_header *header = agent.arena.header;
    agent.arena.header = NULL; /* a child without a recording: nothing may be looked at */
    struct thread before = thread;
    run(3 * MS);
    agent.arena.header = header;
    assert_memory_equal(&thread, &before, sizeof thread);
    assert_int_equal(armed, 0);
    assert_int_equal(walks, 0);
    assert_int_equal(header->sections[WIRE_CELL].used, 1);
}

/* ---- is it a Python as we know it? ---- */

static void test_layout_fits(void **state)
{
    faults_install(state);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_UNTRIED);
    run(MS);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_OK);
    assert_int_equal(thread.tstate, (uintptr_t)tstate);
    fake_put(tstate, agent.layout.ts_thread_id, IDENT + 1); /* judged once only */
    run(MS);
    assert_int_equal(ns_in(WIRE_FRAME_PYTHON, WIRE_CPU_PYTHON), 2 * MS);
}

static void expect_no_stacks(void)
{
    run(MS);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_SELFCHECK);
    unsigned read = walks;
    run(2 * MS);
    assert_int_equal(walks, read); /* none is read any more */
    assert_int_equal(ns_in(WIRE_FRAME_UNKNOWN, WIRE_CPU_NATIVE), 3 * MS);
    assert_int_equal(only_cell()->ns, 3 * MS);
}

static void test_thread_does_not_fit(void **state)
{
    faults_install(state);
    fake_put(tstate, agent.layout.ts_thread_id, IDENT + 1);
    expect_no_stacks();
}

static void test_file_is_no_text(void **state)
{
    faults_install(state);
    fake_put(code, agent.layout.code_file, (uintptr_t)fake_new(&agent.layout, 1));
    expect_no_stacks();
}

static void test_name_is_no_text(void **state)
{
    faults_install(state);
    fake_put(code, agent.layout.code_name, (uintptr_t)fake_new(&agent.layout, 1));
    expect_no_stacks();
}

static void test_line_is_none(void **state)
{
    faults_install(state);
    int line = -5;
    memcpy((char *)code + agent.layout.code_first_line, &line, sizeof line);
    expect_no_stacks();
}

static void test_nothing_to_judge_by(void **state)
{
    faults_install(state);
    stand_at(NULL);
    run(MS);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_UNTRIED);
    assert_int_equal(ns_in(WIRE_FRAME_INTERPRETER, WIRE_CPU_PYTHON), MS);
    stand_at((struct fake_object *)16); /* no memory */
    run(2 * MS);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_UNTRIED);
    assert_int_equal(ns_in(WIRE_FRAME_UNKNOWN, WIRE_CPU_NATIVE), 2 * MS);
    stand_at(leaf);
    run(4 * MS);
    assert_int_equal(state_of_stacks(), WIRE_STACKS_OK);
    stand_at((struct fake_object *)16);
    run(8 * MS);
    assert_int_equal(ns_in(WIRE_FRAME_UNKNOWN, WIRE_CPU_PYTHON), 8 * MS);
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_BAD_FRAME], 1);
}

static void test_unknown_python(void **state)
{
    faults_install(state);
    agent.arena.header->stacks_state = WIRE_STACKS_UNKNOWN_PYTHON;
    run(MS);
    assert_int_equal(walks, 0);
    assert_int_equal(ns_in(WIRE_FRAME_UNKNOWN, WIRE_CPU_NATIVE), MS);
}

/* ---- chains caught half-linked ---- */

static bool is_cut(uint32_t node)
{
    const struct wire_node *record = arena_record(&agent.arena, WIRE_NODE, node);
    while (record->parent)
        record = arena_record(&agent.arena, WIRE_NODE, record->parent);
    return record->frame == WIRE_FRAME_TRUNCATED;
}

static void test_root(void **state)
{
    faults_install(state);
    run(MS);
    assert_false(is_cut(thread.last_node));
    fake_put(leaf, agent.layout.fr_back, 0); /* not linked to its caller, yet or any more */
    for (unsigned i = 1; i <= 3; i++) {
        run(MS);
        assert_true(is_cut(thread.last_node));
        assert_int_equal(agent.arena.header->lost[WIRE_LOST_BAD_FRAME], i);
    }
    fake_put(leaf, agent.layout.fr_back, (uintptr_t)root);
    run(MS);
    assert_false(is_cut(thread.last_node));
    /* It really ends elsewhere from now on. */
    fake_put(leaf, agent.layout.fr_back, 0);
    for (int i = 0; i < 4; i++)
        run(MS);
    assert_false(is_cut(thread.last_node));
    run(MS);
    assert_false(is_cut(thread.last_node));
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_BAD_FRAME], 6);
}

static void test_root_of_chains_that_do_not_tear(void **state)
{
    faults_install(state);
    agent.layout.chain_may_tear = false;
    run(MS);
    fake_put(leaf, agent.layout.fr_back, 0);
    run(MS);
    assert_false(is_cut(thread.last_node));
}

/* ---- threads without Python ---- */

/* The node to which the CPU of such a thread goes now; 0: to nobody's line. */
static uint32_t owner(void)
{
    void *saved = tstate;
    tstate = NULL;
    run(MS);
    tstate = saved;
    const struct wire_node *found = arena_record(&agent.arena, WIRE_NODE, thread.last_node);
    return found->frame == WIRE_FRAME_NO_PYTHON ? 0 : thread.last_node;
}

static uint32_t node(uint32_t number)
{
    return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, number, 0, 0);
}

static void test_owner(void **state)
{
    faults_install(state);
    assert_int_equal(owner(), 0);
    tick_native_owner(&other, node(1), true);
    assert_int_equal(owner(), node(1));
    mono_ns += 57 * MS;
    assert_int_equal(owner(), node(1));
    mono_ns += 2 * MS; /* 60 ms and more */
    assert_int_equal(owner(), 0);
    tick_native_owner(&other, node(2), true);
    tick_native_owner(&thread, node(3), false); /* another one is not in native code: no matter */
    assert_int_equal(owner(), node(2));
    tick_native_owner(&other, node(3), false);
    assert_int_equal(owner(), 0);
    tick_native_owner(&other, node(4), true);
    tick_in_child(true); /* nobody of that process is here */
    assert_int_equal(owner(), 0);
}

static void test_owner_by_samples(void **state)
{
    faults_install(state);
    doing = CLASSIFY_NATIVE;
    run(MS);
    uint32_t here = thread.last_node;
    assert_int_equal(owner(), here);
    doing = CLASSIFY_PYTHON;
    run(MS);
    assert_int_equal(owner(), 0);
    doing = CLASSIFY_CALL;
    run(MS);
    assert_int_equal(owner(), here);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_weight),
        CASE(test_kinds),
        CASE(test_off),
        CASE(test_inactive),
        CASE(test_layout_fits),
        CASE(test_thread_does_not_fit),
        CASE(test_file_is_no_text),
        CASE(test_name_is_no_text),
        CASE(test_line_is_none),
        CASE(test_nothing_to_judge_by),
        CASE(test_unknown_python),
        CASE(test_root),
        CASE(test_root_of_chains_that_do_not_tear),
        CASE(test_owner),
        CASE(test_owner_by_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
