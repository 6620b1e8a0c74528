/*
 * Passes over threads whose clocks, system calls and frames are made up, so that it is
 * known what each waited for, where, and how long nobody ran.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/cpu/owner.h"
#include "agent/waits/pass.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "os/os.h"

#include <sys/syscall.h>

struct agent agent;

enum { TRACED = 2 }; /* the place that is a line of the user's */
enum {
    THREADS = 208,
    COURSE_THREADS = 40,
    PLACES = 3,
    TID = 100,
    MS = 1000000,
    PASS_NS = 10 * MS,
    ANY = -1
};
enum { GIL_ADDRESS = 0x10000, LOCK_ADDRESS = 0x20000 };

/* ---- the world ---- */

enum state { RUNS, READY, MOVES, WAITS };

static struct {
    struct thread entry;
    struct fake_object *tstate, *cframe, *frames[PLACES];
    bool is_gone; /* the system knows it no more */
    uint64_t cpu_ns, starved_ns, switches;
    enum state state;
    struct os_wait wait;
    unsigned looks; /* how often its system call was read, */
    unsigned asks;  /* and its clock */
} world[THREADS];

static struct wire_control control;
static struct fake_object *code, *traced_code;
static struct wire_filter filter = {.directories = {"/d/p"}};
static unsigned used;
static uint64_t now_ns, passed_cpu_ns;
static uint64_t idle_ns;            /* time in which nobody ran */
static uint64_t own_ns;             /* the sampler's clock, */
static uint64_t look_cost_ns;       /* which a look at a thread moves so far */
static uint64_t others_cpu_ns;      /* of other processes, in the next pass */
static void (*in_the_middle)(void); /* of a pass: threads were looked at, nothing is written yet */
static const struct thread *native_owner;

static unsigned index_of(pid_t tid)
{
    return (unsigned)(tid - TID);
}

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_process_cpu_ns(void);
uint64_t __wrap_os_thread_cpu_ns(void);
bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns);
bool __wrap_os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out);
bool __wrap_os_thread_starved_ns(pid_t tid, int *fd, bool keep, uint64_t *ns);
bool __wrap_os_thread_switches(pid_t tid, uint64_t *count);

uint64_t __wrap_os_mono_ns(void)
{
    return now_ns;
}

uint64_t __wrap_os_process_cpu_ns(void)
{
    uint64_t cpu_ns = own_ns + 300; /* since that was asked for */
    for (unsigned i = 0; i < THREADS; i++)
        cpu_ns += world[i].cpu_ns;
    return cpu_ns;
}

uint64_t __wrap_os_thread_cpu_ns(void)
{
    return own_ns;
}

bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns)
{
    unsigned i = index_of(tid);
    world[i].asks++;
    *cpu_ns = world[i].cpu_ns;
    if (world[i].state == MOVES) {
        world[i].cpu_ns++;
        world[i].switches++;
    }
    if (in_the_middle && i == used - 1) {
        void (*call)(void) = in_the_middle;
        in_the_middle = NULL;
        call();
    }
    return !world[i].is_gone;
}

bool __wrap_os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out)
{
    unsigned i = index_of(tid);
    (void)fd;
    (void)keep;
    world[i].looks++;
    own_ns += look_cost_ns;
    *out = world[i].wait;
    out->running = world[i].state == READY || world[i].state == RUNS;
    return true;
}

bool __wrap_os_thread_starved_ns(pid_t tid, int *fd, bool keep, uint64_t *ns)
{
    (void)fd;
    (void)keep;
    *ns = world[index_of(tid)].starved_ns;
    return true;
}

bool __wrap_os_thread_switches(pid_t tid, uint64_t *count)
{
    *count = world[index_of(tid)].switches;
    return true;
}

struct thread *threads_at(unsigned index)
{
    return &world[index].entry;
}

unsigned threads_used(void)
{
    return used;
}

static void (*in_free)(struct thread *thread);

void threads_free(struct thread *thread)
{
    thread->state = THREAD_FREE;
    if (in_free)
        in_free(thread);
}

void owner_see(struct thread *thread, uint32_t node, enum owner_state state)
{
    native_owner = node && state == OWNER_NATIVE_WAITS ? thread : NULL;
}

/* ---- threads of the program ---- */

/* The instruction at which thread `i` stands in a place; each is a node of its own. */
static int at_of(unsigned i, unsigned place)
{
    return (int)(2 * (PLACES * i + place));
}

static uint32_t cpu_node(unsigned i)
{
    return tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, i + 1, 0, 0);
}

/* As threads.c does it: what the sampler keeps in the entry stays. */
static void begin_thread(unsigned i)
{
    struct thread *thread = &world[i].entry;
    thread->tid = TID + (pid_t)i;
    thread->index = i;
    thread->ident = (pthread_t)(i + 1);
    thread->is_main = i == 0;
    thread->begin_wall_ns = now_ns;
    thread->begin_cpu_ns = world[i].cpu_ns;
    thread->tstate = (uintptr_t)world[i].tstate;
    thread->last_node = cpu_node(i);
    thread->record = (uint16_t)arena_append(&agent.arena, WIRE_THREAD, 1);
    thread->serial++;
    thread->state = THREAD_LIVE;
    world[i].is_gone = false;
    world[i].state = RUNS;
}

static void make_thread(unsigned i)
{
    world[i].tstate = fake_thread(&agent.layout, NULL, i + 1);
    uintptr_t cframe;
    memcpy(&cframe, (char *)world[i].tstate + agent.layout.ts_cframe, sizeof cframe);
    world[i].cframe = (struct fake_object *)cframe;
    for (unsigned place = 0; place < PLACES; place++)
        world[i].frames[place] = fake_frame(&agent.layout, place == TRACED ? traced_code : code,
                                            at_of(i, place), NULL, 0);
    world[i].cpu_ns = 1000 + i; /* 0 would mean "unknown" */
    begin_thread(i);
}

static void stand_at(unsigned i, unsigned place)
{
    fake_put(world[i].cframe, agent.layout.cframe_current, (uintptr_t)world[i].frames[place]);
}

static void wait_at(unsigned i, unsigned place, long call)
{
    stand_at(i, place);
    world[i].state = WAITS;
    world[i].wait = (struct os_wait){.call = call, .args = {LOCK_ADDRESS}};
    world[i].cpu_ns++; /* it ran to get there */
    world[i].switches++;
}

static int open_all(void **state)
{
    (void)state;
    memset(world, 0, sizeof world);
    control = (struct wire_control){.cpu_interval_ns = PASS_NS, .on = 1};
    agent = (struct agent){.control = &control,
                           .is_first = true,
                           .has_layout = true,
                           .code_type = fake_code_type,
                           .runtime = GIL_ADDRESS,
                           .runtime_bytes = 64};
    if (!layout_select(&agent.layout, 0x030c01f0, 0, 0) || !fixture_open(&agent.arena) ||
        !tables_init(&agent.tables, &agent.arena))
        return -1;
    agent.tables.filter = &filter;
    code = fake_code(&agent.layout, "/a.py", "f", 1);
    traced_code = fake_code(&agent.layout, "/d/p/a.py", "f", 1);
    claims_in_child(true);
    claims_join((uint64_t)5000 * PASS_NS);
    fixture_grow_fully(&agent.arena);
    now_ns = agent.arena.header->start_mono_ns = 5000 * (uint64_t)PASS_NS;
    used = 0;
    idle_ns = others_cpu_ns = passed_cpu_ns = own_ns = look_cost_ns = 0;
    in_the_middle = NULL;
    in_free = NULL;
    native_owner = NULL;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static void begin(unsigned threads)
{
    used = threads;
    for (unsigned i = 0; i < threads; i++) {
        make_thread(i);
        passed_cpu_ns += world[i].cpu_ns;
    }
    pass_begin(now_ns, false);
}

static bool any_waited; /* in the last pass */

static void pass(uint64_t wall_ns)
{
    uint64_t cpu_ns = others_cpu_ns;
    for (unsigned i = 0; i < THREADS; i++)
        cpu_ns += world[i].cpu_ns;
    now_ns += wall_ns;
    uint64_t ran_ns = cpu_ns - passed_cpu_ns;
    struct pass one = {
        .now_ns = now_ns, .wall_ns = wall_ns, .idle_ns = ran_ns < wall_ns ? wall_ns - ran_ns : 0};
    passed_cpu_ns = cpu_ns - others_cpu_ns;
    others_cpu_ns = 0;
    idle_ns += one.idle_ns;
    pass_look(&one);
    any_waited = one.any_waited;
}

static void passes(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pass(PASS_NS);
}

/* ---- what is on the books ---- */

struct sum {
    uint64_t ns, charged_ns;
};

static bool is_at(const struct wire_cell *cell, int at)
{
    const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, cell->node);
    return at == ANY || (node->frame == WIRE_FRAME_PYTHON && node->at == at);
}

static struct sum sum_at(int at, int kind)
{
    struct sum sum = {0};
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_CELL].used; id++) {
        const struct wire_cell *cell = arena_record(&agent.arena, WIRE_CELL, id);
        if (is_at(cell, at) && (kind == ANY || (int)cell->kind == kind)) {
            sum.ns += cell->ns;
            sum.charged_ns += cell->charged_ns;
        }
    }
    return sum;
}

static struct sum on_cpu_node(unsigned i, enum wire_kind kind)
{
    struct sum sum = {0};
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_CELL].used; id++) {
        const struct wire_cell *cell = arena_record(&agent.arena, WIRE_CELL, id);
        if (cell->node == cpu_node(i) && cell->kind == (uint32_t)kind)
            sum = (struct sum){cell->ns, cell->charged_ns};
    }
    return sum;
}

static uint64_t logged_us(void)
{
    uint64_t us = 0;
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_LOG].used; id++)
        us += ((const struct wire_log *)arena_record(&agent.arena, WIRE_LOG, id))->us;
    return us;
}

static uint64_t lost(enum wire_loss loss)
{
    return agent.arena.header->lost[loss];
}

/* Threads run a nanosecond to get where they wait, and while they move. */
static void assert_about(uint64_t is_ns, uint64_t should_be_ns)
{
    assert_in_range(is_ns, should_be_ns > 300 ? should_be_ns - 300 : 0, should_be_ns);
}

static void assert_sum(struct sum is, uint64_t ns, uint64_t charged_ns)
{
    assert_about(is.ns, ns);
    assert_about(is.charged_ns, charged_ns);
}

/* ---- where, and for what ---- */

static void test_sleep(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(100);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 1000 * MS, 1000 * MS);
    assert_about(sum_at(ANY, ANY).ns, 1000 * MS);
    assert_in_range(logged_us(), 999900, 1000000);
    assert_int_equal(world[0].looks, 1); /* it did not run since: still there */
    const struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, 1);
    assert_about(record->waited_ns, 1000 * MS);
}

static void test_causes(void **state)
{
    (void)state;
    static const struct {
        long call;
        uintptr_t argument;
        enum wire_kind kind;
    } cases[] = {
        {SYS_clock_nanosleep, 0, WIRE_WAIT_SLEEP},
        {SYS_recvfrom, 0, WIRE_WAIT_SOCKET},
        {SYS_wait4, 0, WIRE_WAIT_CHILD},
        {SYS_epoll_pwait, 0, WIRE_WAIT_LOOP},
        {SYS_fsync, 0, WIRE_WAIT_FILE},
        {SYS_futex, LOCK_ADDRESS, WIRE_WAIT_LOCK},
        {SYS_futex, GIL_ADDRESS, WIRE_WAIT_GIL},
        {SYS_getpid, 0, WIRE_WAIT_OTHER},
    };
    begin(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wait_at(0, 0, cases[i].call);
        world[0].wait.args[0] = cases[i].argument;
        world[0].entry.placed = false; /* the wait before ended long ago */
        passes(10);
        assert_sum(sum_at(at_of(0, 0), cases[i].kind), 100 * MS, 100 * MS);
    }
}

static void test_half_way_between_places(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(10);
    wait_at(0, 1, SYS_recvfrom);
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 105 * MS, 105 * MS);
    assert_sum(sum_at(at_of(0, 1), WIRE_WAIT_SOCKET), 95 * MS, 95 * MS);
}

static void test_short_waits_are_noise(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    for (int i = 0; i < 50; i++) {
        world[0].cpu_ns += PASS_NS - 200000;
        pass(PASS_NS);
    }
    assert_int_equal(sum_at(ANY, ANY).ns, 0);
}

static void test_threads_without_python(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_clock_nanosleep);
    wait_at(1, 0, SYS_clock_nanosleep);
    fake_put(world[1].tstate, agent.layout.ts_thread_id, 999);
    passes(10);
    assert_sum(sum_at(ANY, ANY), 100 * MS, 100 * MS); /* the other one's alone */
    const struct wire_thread *record = arena_record(&agent.arena, WIRE_THREAD, 2);
    assert_int_equal(record->waited_ns, 0); /* nobody's line, and nobody's wait */
    assert_about(world[1].entry.waited_ns, 100 * MS);
}

/* ---- who is charged ---- */

static void test_main_outside(void **state)
{
    (void)state;
    begin(3);
    wait_at(0, 0, SYS_clock_nanosleep);
    wait_at(1, 0, SYS_recvfrom);
    world[2].state = READY;
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 100 * MS, 100 * MS);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET), 100 * MS, 0);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

static void test_ready_ones(void **state)
{
    (void)state;
    begin(4);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_recvfrom);
    world[2].state = world[3].state = READY;
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_LOCK), 100 * MS, 0);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET), 100 * MS, 0);
    assert_sum(on_cpu_node(2, WIRE_WAIT_STARVED), 95 * MS, 50 * MS);
    assert_sum(on_cpu_node(3, WIRE_WAIT_STARVED), 95 * MS, 50 * MS);
}

static void test_those_outside(void **state)
{
    (void)state;
    begin(4);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_recvfrom);
    wait_at(2, 0, SYS_clock_nanosleep);
    wait_at(3, 0, SYS_futex);
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_LOCK), 100 * MS, 0);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET), 100 * MS, 50 * MS);
    assert_sum(sum_at(at_of(2, 0), WIRE_WAIT_SLEEP), 100 * MS, 50 * MS);
    assert_sum(sum_at(at_of(3, 0), WIRE_WAIT_LOCK), 100 * MS, 0);
}

static void test_nobody_outside(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_futex);
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_LOCK), 100 * MS, 100 * MS);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_LOCK), 100 * MS, 0);
}

/* The time belongs to whoever has a line of the user's. */
static void test_a_traced_line(void **state)
{
    (void)state;
    begin(3);
    wait_at(0, 0, SYS_clock_nanosleep); /* main, in a library */
    wait_at(1, TRACED, SYS_recvfrom);
    wait_at(2, 0, SYS_recvfrom);
    passes(10);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 100 * MS, 0);
    assert_sum(sum_at(at_of(1, TRACED), WIRE_WAIT_SOCKET), 100 * MS, 100 * MS);
    assert_sum(sum_at(at_of(2, 0), WIRE_WAIT_SOCKET), 100 * MS, 0);
}

/* A thread of a library sleeps, and a line waits for that thread. */
static void test_a_line_that_joins(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, TRACED, SYS_futex);
    wait_at(1, 0, SYS_clock_nanosleep);
    passes(10);
    assert_sum(sum_at(at_of(0, TRACED), WIRE_WAIT_LOCK), 100 * MS, 100 * MS);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SLEEP), 100 * MS, 0);
}

static void test_requests(void **state)
{
    (void)state;
    begin(3);
    wait_at(0, TRACED, SYS_futex); /* until the server ends */
    wait_at(1, 0, SYS_accept4);
    wait_at(2, TRACED, SYS_clock_nanosleep); /* one that handles a request */
    passes(10);
    assert_sum(sum_at(at_of(2, TRACED), WIRE_WAIT_SLEEP), 100 * MS, 100 * MS);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_REQUEST), 100 * MS, 0);
    uint64_t logged = logged_us();
    world[2].is_gone = true;
    passes(10);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_REQUEST), 200 * MS, 100 * MS);
    assert_int_equal(logged_us(), logged); /* nothing happens */
    assert_int_equal(sum_at(at_of(0, TRACED), WIRE_WAIT_LOCK).charged_ns, 0);
}

/* ---- several processes ---- */

static void claim(int32_t pid, enum wire_rank rank, uint16_t threads)
{
    struct wire_claims *entry = &control.claims[pid];
    entry->pid = pid;
    entry->beat_mono_ns = now_ns;
    entry->threads[rank] = threads;
}

static void test_a_better_claim(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, TRACED, SYS_futex);
    passes(1); /* takes the first entry */
    claim(1, WIRE_RANK_OUTSIDE, 1);
    passes(9);
    assert_sum(sum_at(at_of(0, TRACED), WIRE_WAIT_LOCK), 100 * MS, 10 * MS);
}

static void test_equal_claims(void **state)
{
    (void)state;
    agent.is_first = false;
    begin(2);
    wait_at(0, TRACED, SYS_clock_nanosleep);
    wait_at(1, TRACED, SYS_futex);
    passes(1);
    claim(1, WIRE_RANK_OUTSIDE, 3);
    passes(8);
    assert_sum(sum_at(at_of(0, TRACED), WIRE_WAIT_SLEEP), 90 * MS, 30 * MS);
    assert_sum(sum_at(at_of(1, TRACED), WIRE_WAIT_LOCK), 90 * MS, 0);
}

/* A process that was killed says nothing any more. */
static void test_an_old_claim(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, TRACED, SYS_futex);
    claim(1, WIRE_RANK_OUTSIDE, 1);
    claim(2, WIRE_RANK_OUTSIDE, 1);
    passes(100);
    uint64_t before = sum_at(at_of(0, TRACED), WIRE_WAIT_LOCK).charged_ns;
    passes(10);
    assert_about(sum_at(at_of(0, TRACED), WIRE_WAIT_LOCK).charged_ns - before, 100 * MS);
}

static void test_while_another_runs(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_clock_nanosleep);
    for (int i = 0; i < 10; i++) { /* a thread of this process */
        world[1].cpu_ns += PASS_NS;
        pass(PASS_NS);
    }
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 100 * MS, 0);
    for (int i = 0; i < 10; i++) { /* another process, a third of the time */
        others_cpu_ns = PASS_NS / 4;
        world[1].state = WAITS;
        pass(PASS_NS);
    }
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 200 * MS, 75 * MS);
}

/* ---- threads that are not caught waiting ---- */

static void test_moving(void **state)
{
    (void)state;
    begin(1);
    stand_at(0, 0);
    world[0].state = MOVES;
    passes(3);
    assert_int_equal(lost(WIRE_LOST_TORN_WAIT), 3);
    assert_int_equal(sum_at(ANY, ANY).ns, 0); /* kept back */
    wait_at(0, 1, SYS_clock_nanosleep);
    passes(1);
    assert_sum(sum_at(at_of(0, 1), WIRE_WAIT_SLEEP), 40 * MS, 40 * MS);
    world[0].state = MOVES;
    world[0].cpu_ns++;
    passes(1); /* its wait ended in this pass */
    assert_sum(sum_at(at_of(0, 1), WIRE_WAIT_SLEEP), 50 * MS, 50 * MS);
    assert_about(sum_at(ANY, ANY).ns, 50 * MS);
}

static void test_never_caught(void **state)
{
    (void)state;
    begin(1);
    stand_at(0, 0);
    world[0].state = MOVES;
    passes(100);
    assert_int_equal(sum_at(ANY, ANY).ns, 0);
    passes(1); /* more than a second */
    assert_sum(on_cpu_node(0, WIRE_WAIT_OTHER), 1010 * MS, 1010 * MS);
    assert_int_equal(lost(WIRE_LOST_TORN_WAIT), 101);
}

/* A stack that cannot be read is none. */
static void test_no_stack(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    fake_put(world[0].cframe, agent.layout.cframe_current, 0);
    passes(5);
    assert_int_equal(sum_at(ANY, ANY).ns, 0);
    assert_int_equal(lost(WIRE_LOST_TORN_WAIT), 0);
    stand_at(0, 0);
    passes(1);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 60 * MS, 60 * MS);
}

static void test_starved(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(1);
    world[0].cpu_ns += 2 * MS; /* it woke, had to wait 3 ms for a processor, and sleeps again */
    world[0].starved_ns += 3 * MS;
    passes(1);
    assert_sum(on_cpu_node(0, WIRE_WAIT_STARVED), 3 * MS, 3 * MS);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 15 * MS, 15 * MS);
    world[0].cpu_ns += 2 * MS;
    world[0].starved_ns += 200000; /* noise */
    passes(1);
    assert_sum(on_cpu_node(0, WIRE_WAIT_STARVED), 3 * MS, 3 * MS);
}

/* A thread that computes, while its virtual machine has the processor half of the time. */
static void test_stolen(void **state)
{
    (void)state;
    begin(1);
    stand_at(0, 0);
    for (int i = 0; i < 10; i++) {
        world[0].cpu_ns += PASS_NS / 2;
        pass(PASS_NS);
    }
    /* At first it is not known whether it waited. */
    assert_sum(on_cpu_node(0, WIRE_WAIT_STARVED), 45 * MS, 45 * MS);
    assert_int_equal(world[0].entry.pending_ns, 5 * MS);
    assert_false(any_waited);
    world[0].switches++; /* it slept in between, where it was not seen */
    world[0].cpu_ns += PASS_NS / 2;
    pass(PASS_NS);
    assert_true(any_waited);
    assert_sum(on_cpu_node(0, WIRE_WAIT_STARVED), 45 * MS, 45 * MS);
    wait_at(0, 1, SYS_clock_nanosleep);
    pass(PASS_NS);
    assert_sum(sum_at(at_of(0, 1), WIRE_WAIT_SLEEP), 20 * MS, 20 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* It is seen ready for three passes; the kernel tells that when they are over.  In the pass in
 * which it does, the thread ran, and waited for a lock. */
static void test_starved_is_told_once(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    stand_at(1, 0);
    world[1].cpu_ns += PASS_NS / 2;
    pass(PASS_NS); /* from here on it is known whether it waited */
    world[1].state = READY;
    passes(3);
    assert_sum(on_cpu_node(1, WIRE_WAIT_STARVED), 35 * MS, 35 * MS);
    world[1].starved_ns += 35 * MS;
    world[1].cpu_ns += 2 * MS;
    wait_at(1, 1, SYS_futex);
    others_cpu_ns = 8 * MS;
    pass(PASS_NS);
    assert_sum(on_cpu_node(1, WIRE_WAIT_STARVED), 35 * MS, 35 * MS);
    assert_sum(sum_at(at_of(1, 1), WIRE_WAIT_LOCK), 8 * MS, 0);
    world[1].starved_ns += 4 * MS; /* another one */
    world[1].cpu_ns += 2 * MS;
    others_cpu_ns = 8 * MS;
    pass(PASS_NS);
    assert_sum(on_cpu_node(1, WIRE_WAIT_STARVED), 39 * MS, 35 * MS);
}

/* It slept, then ran, and now no processor is free: that is not a sleep, whatever it was before. */
static void test_ready_after_running(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_clock_nanosleep);
    passes(1);
    world[1].state = RUNS;
    world[1].cpu_ns += PASS_NS;
    passes(1);
    world[1].state = READY;
    passes(3);
    assert_sum(on_cpu_node(1, WIRE_WAIT_STARVED), 30 * MS, 30 * MS);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SLEEP), 10 * MS, 10 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* Whoever waits for a lock in a call of C: BLAS pools work for it meanwhile. */
static void test_native_owner(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(1);
    assert_null(native_owner);
    static uint8_t calls[256];
    calls[0] = PY_CALL_C; /* the opcode that stands everywhere in the made-up code */
    agent.layout.calls = calls;
    wait_at(1, 0, SYS_futex);
    passes(1);
    assert_ptr_equal(native_owner, &world[1].entry);
}

/* ---- many threads ---- */

static void end_thread(unsigned i)
{
    struct thread *thread = &world[i].entry;
    thread->end_cpu_ns = world[i].cpu_ns;
    thread->end_wall_ns = now_ns;
    thread->state = THREAD_ENDED;
    world[i].is_gone = true;
}

/* Threads that begin and end between two passes: nobody is charged for what was before or after. */
static void test_one_that_comes_and_goes(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, TRACED, SYS_accept4);
    world[1].entry.state = THREAD_FREE;
    passes(1);
    for (int i = 0; i < 10; i++) {
        now_ns += 7 * MS;
        begin_thread(1);
        wait_at(1, TRACED, SYS_clock_nanosleep);
        now_ns -= 7 * MS;
        pass(PASS_NS); /* it began 3 ms ago */
        now_ns += 6 * MS;
        end_thread(1);
        now_ns -= 6 * MS;
        pass(PASS_NS);
    }
    assert_sum(sum_at(at_of(1, TRACED), WIRE_WAIT_SLEEP), 90 * MS, 90 * MS);
    assert_sum(sum_at(at_of(0, TRACED), WIRE_WAIT_REQUEST), 210 * MS, 120 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

static void begin_many(long call)
{
    begin(THREADS);
    for (unsigned i = 1; i < THREADS; i++)
        wait_at(i, 0, call);
}

static unsigned asks(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < THREADS; i++)
        sum += world[i].asks;
    return sum;
}

static void run_beside(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        world[0].cpu_ns += PASS_NS;
        pass(PASS_NS);
    }
}

/* Threads that do not run are not asked in each pass, and their waits are all there. */
static void test_many_stand_still(void **state)
{
    (void)state;
    begin_many(SYS_futex);
    run_beside(20);
    unsigned before = asks();
    run_beside(80);
    assert_true(asks() - before <= 80 * 2); /* the one that runs */
    for (unsigned i = 1; i < THREADS; i++) {
        assert_int_equal(world[i].looks, 1);
        uint64_t ns = sum_at(at_of(i, 0), WIRE_WAIT_LOCK).ns;
        assert_in_range(ns, (1000 - 80) * MS, 1000 * MS); /* the last eight passes may come later */
        const struct wire_thread *record =
            arena_record(&agent.arena, WIRE_THREAD, world[i].entry.record);
        assert_in_range(record->waited_ns, (1000 - 80) * MS, 1000 * MS);
    }
    assert_int_equal(sum_at(ANY, ANY).charged_ns, 0);
}

/* Nobody runs: those who claim that time have their parts of it at once. */
static void test_many_share_idle_time(void **state)
{
    (void)state;
    agent.is_first = false;
    begin_many(SYS_recvfrom);
    wait_at(0, 0, SYS_futex);
    passes(100);
    unsigned before = asks();
    passes(100);
    assert_int_equal(asks() - before, 0);
    for (unsigned i = 1; i < THREADS; i++)
        assert_sum(sum_at(at_of(i, 0), WIRE_WAIT_SOCKET), 2000 * MS, 2000 * MS / (THREADS - 1));
}

/* One of them has run: it is found at once, and it is known when it had not yet. */
static void test_one_of_many_moves(void **state)
{
    (void)state;
    begin_many(SYS_futex);
    run_beside(45);
    world[7].cpu_ns += 50000;
    wait_at(7, 1, SYS_recvfrom);
    run_beside(1);
    assert_int_equal(world[7].looks, 2);
    assert_about(sum_at(at_of(7, 0), WIRE_WAIT_LOCK).ns, 455 * MS - 25000);
    assert_about(sum_at(at_of(7, 1), WIRE_WAIT_SOCKET).ns, 5 * MS - 25000);
    run_beside(54);
    assert_about(sum_at(at_of(7, 0), WIRE_WAIT_LOCK).ns, 455 * MS - 25000);
    assert_in_range(sum_at(at_of(7, 1), WIRE_WAIT_SOCKET).ns, (545 - 80) * MS, 545 * MS);
}

static void test_one_of_many_ends(void **state)
{
    (void)state;
    begin_many(SYS_futex);
    run_beside(45);
    now_ns += 4 * MS;
    world[0].cpu_ns += 4 * MS;
    world[7].cpu_ns += MS;
    end_thread(7);
    world[0].cpu_ns += 6 * MS;
    pass(6 * MS);
    assert_int_equal(world[7].entry.state, THREAD_FREE);
    assert_about(sum_at(at_of(7, 0), WIRE_WAIT_LOCK).ns, 453 * MS);
    begin_thread(7);
    wait_at(7, 1, SYS_recvfrom);
    run_beside(20);
    assert_in_range(sum_at(at_of(7, 1), WIRE_WAIT_SOCKET).ns, 120 * MS, 200 * MS);
}

/* All move, and to look at all of them in one pass would take too long. */
static void test_many_that_move(void **state)
{
    (void)state;
    enum { COURSE = 200 };
    begin_many(SYS_clock_nanosleep);
    wait_at(0, 0, SYS_clock_nanosleep);
    look_cost_ns = 10000;
    for (int i = 0; i < COURSE; i++) {
        uint64_t before_ns = own_ns;
        for (unsigned k = 0; k < THREADS; k++)
            world[k].cpu_ns += 1000;
        pass(PASS_NS);
        assert_true(own_ns - before_ns <= 500000);
    }
    assert_int_equal(world[0].looks, COURSE);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_true(world[i].looks >= COURSE / 8);
        uint64_t ns = sum_at(at_of(i, 0), WIRE_WAIT_SLEEP).ns;
        assert_in_range(ns, (COURSE - 8) * (uint64_t)(PASS_NS - 1000), COURSE * (uint64_t)PASS_NS);
    }
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* ---- beginning and ending ---- */

static void test_ended(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_clock_nanosleep);
    wait_at(1, 0, SYS_recvfrom);
    passes(1);
    now_ns += 4 * MS; /* it goes on waiting, runs for a millisecond and ends */
    world[1].cpu_ns += MS;
    end_thread(1);
    pass(6 * MS);
    assert_int_equal(world[1].entry.state, THREAD_FREE);
    assert_about(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET).ns, 13 * MS);
    passes(5);
    assert_about(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET).ns, 13 * MS);
}

static void test_ended_unseen(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(1);
    end_thread(1);
    begin_thread(1); /* the entry is another one's, which ends before the next pass */
    wait_at(1, 0, SYS_recvfrom);
    end_thread(1);
    passes(1);
    assert_int_equal(world[1].entry.state, THREAD_FREE);
    assert_int_equal(sum_at(at_of(1, 0), ANY).ns, 0);
    assert_int_equal(world[1].entry.syscall_fd, -1);
}

static void revive(struct thread *thread)
{
    begin_thread(index_of(thread->tid));
}

/* A thread that begins in the entry of one that has just been given free, in the same pass. */
static void test_entry_used_again_at_once(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_recvfrom);
    passes(2);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET), 20 * MS, 20 * MS);
    end_thread(1);
    in_free = revive;
    passes(1);
    assert_about(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET).ns, 20 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* The sampler was kept from its pass for long after it had looked at the clock. */
static void test_begins_in_a_pass(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    passes(1);
    end_thread(1);
    begin_thread(1);
    world[1].entry.begin_wall_ns = now_ns + PASS_NS + 4 * MS;
    wait_at(1, 0, SYS_recvfrom);
    passes(1);
    assert_int_equal(sum_at(at_of(1, 0), ANY).ns, 0);
    assert_int_equal(world[1].entry.waited_ns, 0);
    passes(1);
    assert_about(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET).ns, 6 * MS);
    assert_about(world[1].entry.waited_ns, 6 * MS);
}

static void end_second(void)
{
    end_thread(1);
}

/* It was looked at, and ends before that is written down. */
static void test_ends_in_the_middle(void **state)
{
    (void)state;
    begin(3);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_recvfrom);
    wait_at(2, 0, SYS_futex);
    passes(2);
    in_the_middle = end_second;
    passes(2);
    assert_null(in_the_middle);
    assert_int_equal(world[1].entry.state, THREAD_FREE);
    assert_sum(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET), 30 * MS, 30 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* ---- off and on ---- */

static void test_switched_off(void **state)
{
    (void)state;
    begin(1);
    wait_at(0, 0, SYS_clock_nanosleep);
    passes(5);
    for (int i = 0; i < 10; i++) {
        now_ns += PASS_NS;
        world[0].cpu_ns += MS;
        world[0].starved_ns += 4 * MS;
        pass_skip(now_ns);
    }
    passed_cpu_ns = world[0].cpu_ns;
    assert_sum(sum_at(ANY, ANY), 50 * MS, 50 * MS);
    world[0].cpu_ns++; /* so that starved time is asked for */
    passes(5);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 100 * MS, 100 * MS);
    assert_int_equal(sum_at(ANY, WIRE_WAIT_STARVED).ns, 0);
}

/* Another sampler thread goes on where the one before had looked last. */
static void test_another_sampler(void **state)
{
    (void)state;
    begin(3);
    wait_at(0, 0, SYS_clock_nanosleep);
    wait_at(2, 0, SYS_recvfrom);
    passes(5);
    int fd = dup(0);
    world[0].entry.syscall_fd = fd; /* what a number of a table that is gone means here */
    now_ns += 3 * MS;
    world[1].cpu_ns += 3 * MS;          /* it runs all the time */
    world[2].entry.state = THREAD_FREE; /* ended while there was no sampler */
    pass_begin(now_ns - 3 * MS, false);
    assert_int_equal(world[0].entry.syscall_fd, -1);
    assert_int_equal(close(fd), 0);
    world[1].cpu_ns += 7 * MS;
    now_ns -= 3 * MS;
    passes(1);
    assert_sum(sum_at(at_of(0, 0), WIRE_WAIT_SLEEP), 60 * MS, 50 * MS);
    assert_about(sum_at(at_of(2, 0), WIRE_WAIT_SOCKET).ns, 50 * MS);
    assert_about(world[1].entry.waited_ns, 50 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* It ended while another one was started, and told nobody. */
static void test_ended_between_samplers(void **state)
{
    (void)state;
    begin(2);
    wait_at(0, 0, SYS_futex);
    wait_at(1, 0, SYS_recvfrom);
    passes(5);
    world[1].entry.state = THREAD_FREE;
    passes(5);
    assert_about(sum_at(at_of(1, 0), WIRE_WAIT_SOCKET).ns, 50 * MS);
    assert_about(sum_at(ANY, ANY).charged_ns, idle_ns);
}

/* ---- any course of things ---- */

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % limit;
}

/* What one thread does until the next pass of `wall_ns`. */
static void do_something(unsigned i, uint64_t wall_ns)
{
    static const long calls[] = {SYS_clock_nanosleep, SYS_recvfrom, SYS_futex, SYS_futex,
                                 SYS_wait4};
    switch (random_below(8)) {
    case 0: /* runs all the time */
        world[i].state = RUNS;
        world[i].cpu_ns += wall_ns;
        break;
    case 1:
        world[i].state = READY;
        break;
    case 2:
        world[i].state = MOVES;
        break;
    case 3:
    case 4: /* goes on with what it does */
        break;
    default:
        wait_at(i, random_below(PLACES), calls[random_below(5)]);
        world[i].cpu_ns += random_below(2) ? 0 : random_below((uint32_t)wall_ns - MS);
    }
    if (random_below(4) == 0)
        world[i].starved_ns += random_below((uint32_t)wall_ns / 4);
    if (i && random_below(20) == 0) {
        world[i].cpu_ns += 5000; /* it ran to get there */
        end_thread(i);
    }
}

static uint64_t pending_charge(void)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < used; i++)
        ns += world[i].entry.pending_charged_ns;
    return ns;
}

/* All idle time is charged, and no more. */
static void check_course(uint32_t seed)
{
    enum { COURSE = 400 };
    random_state = seed * 2654435761u + 1;
    begin(1 + random_below(COURSE_THREADS));
    for (int step = 0; step < COURSE; step++) {
        for (unsigned i = 0; i < used; i++)
            if (world[i].entry.state == THREAD_FREE && random_below(3) == 0)
                begin_thread(i);
        uint64_t wall_ns = (1 + random_below(4)) * (uint64_t)PASS_NS;
        for (unsigned i = 0; i < used; i++)
            if (world[i].entry.state == THREAD_LIVE)
                do_something(i, wall_ns);
        pass(wall_ns);
        uint64_t charged_ns = sum_at(ANY, ANY).charged_ns + pending_charge();
        uint64_t rounded_ns = COURSE * COURSE_THREADS;
        assert_in_range(charged_ns, idle_ns > rounded_ns ? idle_ns - rounded_ns : 0, idle_ns);
    }
    uint64_t charged_us = sum_at(ANY, ANY).charged_ns / 1000;
    uint64_t rounded_us = 3 * COURSE * used;
    assert_in_range(logged_us(), charged_us > rounded_us ? charged_us - rounded_us : 0, charged_us);
}

static void test_any_course(void **state)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        check_course(seed);
        assert_int_equal(close_all(state), 0);
        assert_int_equal(open_all(state), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_sleep),
        CASE(test_causes),
        CASE(test_half_way_between_places),
        CASE(test_short_waits_are_noise),
        CASE(test_threads_without_python),
        CASE(test_main_outside),
        CASE(test_ready_ones),
        CASE(test_those_outside),
        CASE(test_nobody_outside),
        CASE(test_a_traced_line),
        CASE(test_a_line_that_joins),
        CASE(test_requests),
        CASE(test_a_better_claim),
        CASE(test_equal_claims),
        CASE(test_an_old_claim),
        CASE(test_while_another_runs),
        CASE(test_moving),
        CASE(test_never_caught),
        CASE(test_no_stack),
        CASE(test_starved),
        CASE(test_stolen),
        CASE(test_starved_is_told_once),
        CASE(test_one_that_comes_and_goes),
        CASE(test_ready_after_running),
        CASE(test_native_owner),
        CASE(test_many_stand_still),
        CASE(test_many_share_idle_time),
        CASE(test_one_of_many_moves),
        CASE(test_one_of_many_ends),
        CASE(test_many_that_move),
        CASE(test_one_that_comes_and_goes),
        CASE(test_ended),
        CASE(test_ended_unseen),
        CASE(test_entry_used_again_at_once),
        CASE(test_begins_in_a_pass),
        CASE(test_ends_in_the_middle),
        CASE(test_switched_off),
        CASE(test_another_sampler),
        CASE(test_ended_between_samplers),
        CASE(test_any_course),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
