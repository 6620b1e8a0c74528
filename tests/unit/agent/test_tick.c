/* CPU samples of a thread whose clock, stack and place in the machine code are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/kin.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/memory/runners.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "os/os.h"

#include <sys/syscall.h>

struct agent agent;

enum {
    IDENT = 11,
    OTHER_IDENT = 12,
    OTHER_TID = 13,
    TIMER = 5,
    MS = 1000000,
    INTERVAL_NS = 7 * MS
};

/* ---- the world ---- */

static struct wire_control control;
static struct thread thread, other;
static uint64_t cpu_ns, mono_ns;
static unsigned armed, walks;
static void *tstate;
static struct fake_object *cframe, *code, *library_code, *shim, *root, *leaf;
static struct wire_filter filter = {.directories = {"/p"}};
static struct thread *self;
static enum classify_result doing;

/* Of `other`, as the system tells it. */
static uint64_t other_cpu_ns;
static struct os_wait other_wait;
static unsigned other_looks, other_step; /* at its call; how far it runs meanwhile, */
static void (*as_other_runs)(void);      /* and what it does then */

uint64_t __wrap_os_mono_ns(void);
bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns_out);
bool __wrap_os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out);
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

bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns_out)
{
    *cpu_ns_out = other_cpu_ns;
    return tid == OTHER_TID;
}

bool __wrap_os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out)
{
    assert_int_equal(*fd, -1);
    assert_false(keep);
    *out = other_wait;
    other_looks++;
    return tid == OTHER_TID;
}

void __wrap_os_timer_arm(int timer, uint64_t after_ns)
{
    armed += timer == TIMER && after_ns == INTERVAL_NS;
}

void __wrap_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t state,
                        struct py_frame *frames, struct py_walk *walk)
{
    walks++;
    other_cpu_ns += other_step;
    __real_frames_walk(layout, code_type, state, frames, walk);
    if (as_other_runs)
        as_other_runs();
}

struct thread *threads_self(void)
{
    return self;
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

static unsigned loop_seen;

void loops_see(struct thread *whose, uint32_t node)
{
    assert_ptr_equal(whose, &thread);
    assert_int_equal(node, thread.last_node);
    loop_seen++;
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
    code = fake_code(&agent.layout, "/p/a.py", "f", 1);
    library_code = fake_code(&agent.layout, "/l/a.py", "g", 1);
    shim = fake_frame(&agent.layout, code, 0, NULL, agent.layout.fr_owner_shim);
    root = fake_frame(&agent.layout, code, 2, shim, 0);
    leaf = fake_frame(&agent.layout, code, 4, root, 0);
    struct fake_object *made = fake_thread(&agent.layout, leaf, IDENT);
    uintptr_t address;
    memcpy(&address, (char *)made + agent.layout.ts_cframe, sizeof address);
    cframe = (struct fake_object *)address;
    tstate = made;
    cpu_ns = 1000 * MS;
    mono_ns = agent.arena.header->start_mono_ns = (uint64_t)5000 * MS;
    thread = other =
        (struct thread){.ident = (pthread_t)IDENT, .timer = TIMER, .state = THREAD_LIVE};
    thread.record = (uint16_t)arena_append(&agent.arena, WIRE_THREAD, 1);
    thread.begin_cpu_ns = thread.last_cpu_ns = cpu_ns;
    armed = walks = 0;
    doing = CLASSIFY_PYTHON;
    owner_in_child(true);
    kin_in_child(true);
    agent.tables.filter = &filter;
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
    run(3 * MS);
    assert_int_equal(only_cell()->ns, 3 * MS);
    run(4 * MS);
    assert_int_equal(only_cell()->ns, 7 * MS);
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
    assert_int_equal(entry->us, 7000);
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

static void test_loop(void **state)
{
    faults_install(state);
    struct loop loop;
    loop_seen = 0;
    run(MS);
    assert_int_equal(loop_seen, 0);
    thread.loop = &loop;
    run(MS);
    assert_int_equal(loop_seen, 1);
}

static void test_off(void **state)
{
    faults_install(state);
    run(3 * MS);
    control.on = 0;
    run(20 * MS);
    assert_int_equal(only_cell()->ns, 3 * MS);
    assert_int_equal(armed, 2); /* it looks again */
    control.on = 1;
    run(4 * MS);
    assert_int_equal(only_cell()->ns, 7 * MS); /* without what passed */
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

static void expect_cut(bool is, unsigned lost)
{
    run(MS);
    assert_int_equal(is_cut(thread.last_node), is);
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_TORN], lost);
    assert_int_equal(agent.arena.header->lost[WIRE_LOST_BAD_FRAME], 0);
}

static void test_half_linked(void **state)
{
    faults_install(state);
    struct fake_object *begins = fake_frame(&agent.layout, code, 0, NULL, 0);
    struct fake_object *called = fake_frame(&agent.layout, code, 4, begins, 0);
    expect_cut(false, 0);
    stand_at(begins);
    expect_cut(true, 1);
    stand_at(called);
    expect_cut(true, 2);
    fake_put(begins, agent.layout.fr_back, (uintptr_t)root);
    expect_cut(false, 2);
}

/* Of greenlets, of which there may be any number, in turns. */
static void test_many_roots(void **state)
{
    faults_install(state);
    for (int i = 0; i < 10; i++) {
        stand_at(fake_frame(&agent.layout, code, 2, shim, 0));
        expect_cut(false, 0);
    }
}

/* 3.11: frames themselves say that they were entered from C. */
static void test_entries_by_flag(void **state)
{
    faults_install(state);
    agent.layout.fr_is_entry = agent.layout.fr_owner + 1;
    struct fake_object *inner = fake_frame(&agent.layout, code, 4, NULL, 0);
    stand_at(inner);
    expect_cut(true, 1);
    ((uint8_t *)inner)[agent.layout.fr_is_entry] = 1;
    expect_cut(false, 1);
}

static void test_chains_that_do_not_tear(void **state)
{
    faults_install(state);
    agent.layout.chain_may_tear = false;
    stand_at(fake_frame(&agent.layout, code, 0, NULL, 0));
    expect_cut(false, 0);
}

/* ---- on whose behalf ---- */

/* The node to which the CPU of a thread without Python goes now; 0: to nobody's line. */
static uint32_t owner_of(struct thread *native)
{
    uint32_t node = owner_of_native(native);
    const struct wire_node *found = arena_record(&agent.arena, WIRE_NODE, node);
    return found->frame == WIRE_FRAME_NO_PYTHON ? 0 : node;
}

static uint32_t line(int at)
{
    return tables_node(&agent.tables, 0, WIRE_FRAME_PYTHON,
                       tables_code(&agent.tables, &agent.layout, (uintptr_t)code), at, 0);
}

static uint32_t library_line(int at)
{
    return tables_node(&agent.tables, 0, WIRE_FRAME_PYTHON,
                       tables_code(&agent.tables, &agent.layout, (uintptr_t)library_code), at, 0);
}

static void test_native_owner(void **state)
{
    faults_install(state);
    struct thread native = {.state = THREAD_LIVE};
    assert_int_equal(owner_of(&native), 0);
    owner_see(&other, line(2), OWNER_WAITS); /* for a Python lock: not for this */
    assert_int_equal(owner_of(&native), 0);
    owner_see(&other, line(2), OWNER_IN_NATIVE);
    assert_int_equal(owner_of(&native), line(2));
    owner_see(&other, line(2), OWNER_NATIVE_WAITS);
    assert_int_equal(owner_of(&native), line(2));
    mono_ns += (uint64_t)1000 * MS; /* it still sits there */
    assert_int_equal(owner_of(&native), line(2));
    owner_see(&thread, library_line(2), OWNER_IN_NATIVE); /* no line of the user's */
    assert_int_equal(owner_of(&native), line(2));
    owner_see(&thread, line(4), OWNER_IN_NATIVE);
    assert_int_equal(owner_of(&native), line(4));
    native.starter = &other;
    assert_int_equal(owner_of(&native), line(2));
    owner_see(&other, line(2), OWNER_RUNS);
    assert_int_equal(owner_of(&native), line(4));
    thread.state = THREAD_ENDED;
    assert_int_equal(owner_of(&native), 0);
    native.birth_node = line(6);
    const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, owner_of_native(&native));
    assert_int_equal(node->frame, WIRE_FRAME_THREAD);
    assert_int_equal(node->parent, line(6));
    thread.state = THREAD_LIVE;
    owner_in_child(true); /* nobody of that process is here */
    native.birth_node = 0;
    assert_int_equal(owner_of(&native), 0);
}

static void test_native_owner_by_samples(void **state)
{
    faults_install(state);
    struct thread native = {.state = THREAD_LIVE};
    doing = CLASSIFY_NATIVE;
    run(MS);
    uint32_t here = thread.last_node;
    assert_int_equal(owner_of(&native), here);
    doing = CLASSIFY_PYTHON;
    run(MS);
    assert_int_equal(owner_of(&native), 0);
    doing = CLASSIFY_CALL;
    run(MS);
    assert_int_equal(owner_of(&native), here);
}

/* The line of the user's that the last sample is charged to. */
static uint32_t charged_line(void)
{
    return tables_traced(&agent.tables, thread.last_node);
}

/* A thread of a library works for the line that waits, else for the one that started it. */
static void test_python_owner(void **state)
{
    faults_install(state);
    struct fake_object *library = fake_frame(&agent.layout, library_code, 2, NULL, 0);
    agent.layout.chain_may_tear = false;
    stand_at(library);
    run(MS);
    assert_int_equal(charged_line(), 0);
    thread.birth_node = line(6);
    thread.starter = &other;
    run(MS);
    assert_int_equal(charged_line(), line(6));
    owner_see(&other, line(8), OWNER_IN_NATIVE); /* it has work of its own */
    run(MS);
    assert_int_equal(charged_line(), line(6));
    owner_see(&other, line(8), OWNER_NATIVE_WAITS);
    run(MS);
    assert_int_equal(charged_line(), line(8));
    owner_see(&other, line(8), OWNER_WAITS);
    run(MS);
    assert_int_equal(charged_line(), line(8));
    stand_at(leaf); /* a line of its own */
    run(MS);
    uint32_t own = charged_line();
    const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, own);
    assert_int_equal(own, thread.last_node);
    assert_int_equal(node->at, 4);
    stand_at(library);
    owner_see(&other, line(8), OWNER_RUNS);
    run(MS);
    assert_int_equal(charged_line(), line(6));
    other.serial++; /* that thread is another one now */
    owner_see(&other, line(8), OWNER_WAITS);
    run(MS);
    assert_int_equal(charged_line(), line(6));
}

/* `other` has these frames, its innermost one in a library if `in_library`. */
static void put_other_at(int at, bool in_library)
{
    struct fake_object *frame = fake_frame(&agent.layout, code, at, shim, 0);
    if (in_library)
        frame = fake_frame(&agent.layout, library_code, 2, frame, 0);
    other.tstate = (uintptr_t)fake_thread(&agent.layout, frame, OTHER_IDENT);
    other_cpu_ns++;
}

static void put_other_further(void)
{
    static int at = 30;
    put_other_at(at += 2, true);
}

enum { NO_LOOK, LOOK, LOOK_AT_CALL, TWO_LOOKS }; /* at its system call, too; at its frames alone */

static void expect_owner(int at, int look)
{
    uint32_t cost = 0;
    other_looks = 0;
    walks = 0;
    assert_int_equal(owner_of_allocation(&thread, &cost), line(at));
    assert_int_equal(walks, look == TWO_LOOKS ? 2 : look != NO_LOOK);
    assert_int_equal(other_looks, look == LOOK_AT_CALL);
    assert_int_equal(cost > 0, look != NO_LOOK);
    assert_int_equal(cost > 50, look == LOOK_AT_CALL);
}

/* Of an allocation, the starter is looked at if it ran since. */
static void test_owner_of_allocation(void **state)
{
    static uint8_t calls[256];
    faults_install(state);
    agent.arena.header->stacks_state = WIRE_STACKS_OK;
    agent.main_tstate = (uintptr_t)tstate;
    agent.layout.calls = calls;
    calls[0] = PY_CALL_C; /* the opcode that stands everywhere in the made-up code */
    thread.birth_node = line(6);
    expect_owner(6, NO_LOOK); /* whoever started it is gone */
    thread.starter = &other;
    other.ident = OTHER_IDENT;
    other.tid = OTHER_TID;
    put_other_at(8, true); /* whatever it does there */
    expect_owner(8, LOOK);
    expect_owner(8, NO_LOOK); /* it did not run */
    other_wait = (struct os_wait){.call = SYS_clock_nanosleep};
    put_other_at(10, false);
    expect_owner(10, LOOK_AT_CALL);
    other_wait.running = true; /* it is ready to, in the user's own code */
    put_other_at(12, false);
    expect_owner(6, LOOK_AT_CALL);
    agent.runtime = 0x1000;
    agent.runtime_bytes = 64;
    other_wait = (struct os_wait){.call = SYS_futex, .args = {agent.runtime + 8}};
    put_other_at(14, false); /* for the interpreter's lock */
    expect_owner(6, LOOK_AT_CALL);
    other_wait.args[0] = agent.runtime + 64; /* another lock */
    put_other_at(16, false);
    expect_owner(16, LOOK_AT_CALL);
    calls[0] = PY_CALL_NONE; /* for nothing that it called */
    put_other_at(18, false);
    expect_owner(6, LOOK);
    put_other_at(20, true);
    expect_owner(20, LOOK);
    as_other_runs = put_other_further; /* while it is looked at: what was known stays */
    expect_owner(20, NO_LOOK);
    put_other_at(22, true);
    expect_owner(20, TWO_LOOKS);
    expect_owner(20, TWO_LOOKS);
    as_other_runs = NULL;
    other_step = 1; /* it runs, but does not leave its line */
    put_other_at(24, true);
    expect_owner(24, TWO_LOOKS);
    put_other_at(26, false); /* of the user's own code nothing is believed then */
    expect_owner(24, LOOK);
    other_step = 0;
    expect_owner(6, LOOK);
    put_other_at(28, true);
    expect_owner(28, LOOK);
    other.serial++; /* that thread is another one now */
    expect_owner(6, NO_LOOK);
}

/* ---- what is left at the end ---- */

static uint64_t ns_at(uint32_t node)
{
    uint64_t ns = 0;
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_CELL].used; id++) {
        const struct wire_cell *cell = arena_record(&agent.arena, WIRE_CELL, id);
        ns += cell->node == node ? cell->ns : 0;
    }
    return ns;
}

static void test_kin(void **state)
{
    faults_install(state);
    thread.birth_node = other.birth_node = line(6);
    kin_begin(&thread);
    kin_begin(&other);
    assert_int_equal(thread.family, other.family);
    kin_leave(&other, 3 * MS); /* nothing was seen yet */
    assert_int_equal(agent.arena.header->sections[WIRE_CELL].used, 1);
    for (int i = 0; i < 8; i++)
        kin_see(&thread, line(2 + 2 * (i % 2)), WIRE_CPU_PYTHON);
    for (int i = 0; i < 100; i++) {
        other.random = (uint32_t)i << 16 | 1;
        kin_leave(&other, MS);
    }
    assert_int_equal(ns_at(line(2)), 50 * MS + 3 * MS / 2);
    assert_int_equal(ns_at(line(4)), 50 * MS + 3 * MS / 2);
    kin_settle();
    assert_int_equal(ns_at(line(2)) + ns_at(line(4)), 103 * MS);
}

static void test_kin_never_seen(void **state)
{
    faults_install(state);
    other.birth_node = line(6);
    kin_begin(&thread);
    kin_begin(&other);
    assert_int_not_equal(thread.family, other.family);
    kin_leave(&other, 3 * MS);
    kin_settle();
    assert_int_equal(ns_at(line(6)), 3 * MS);
}

static void test_last(void **state)
{
    faults_install(state);
    self = &thread;
    thread.has_timer = true;
    cpu_ns += 2 * MS;
    tick_last(); /* no stack was ever read */
    assert_int_equal(agent.arena.header->sections[WIRE_CELL].used, 1);
    run(3 * MS);
    stand_at(root);
    cpu_ns += MS;
    tick_last();
    assert_int_equal(only_cell()->ns, 4 * MS);
    thread.last_node = 0; /* never sampled, but it stands somewhere */
    cpu_ns += MS;
    tick_last();
    assert_int_equal(agent.arena.header->sections[WIRE_CELL].used, 3);
    self = NULL;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_weight),
        CASE(test_kinds),
        CASE(test_loop),
        CASE(test_off),
        CASE(test_inactive),
        CASE(test_layout_fits),
        CASE(test_thread_does_not_fit),
        CASE(test_file_is_no_text),
        CASE(test_name_is_no_text),
        CASE(test_line_is_none),
        CASE(test_nothing_to_judge_by),
        CASE(test_unknown_python),
        CASE(test_native_owner),
        CASE(test_native_owner_by_samples),
        CASE(test_python_owner),
        CASE(test_owner_of_allocation),
        CASE(test_kin),
        CASE(test_kin_never_seen),
        CASE(test_last),
        CASE(test_half_linked),
        CASE(test_many_roots),
        CASE(test_entries_by_flag),
        CASE(test_chains_that_do_not_tear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
