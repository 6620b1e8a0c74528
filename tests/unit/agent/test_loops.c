/*
 * Event loops of threads whose clock, stack and interpreter are made up: what is idle, what is busy
 * and who blocks, to the nanosecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/awaits.h"
#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>

struct agent agent;

enum { US = 1000, MS = 1000000, FD = 7, LEAST_NS = 5 * MS };

/* ---- the world ---- */

static struct wire_control control;
static struct wire_filter filter = {.directories = {"/p"}};
static struct thread thread;
static __thread struct thread *self;
static _Atomic uint64_t now_ns;
static struct registry_loop running; /* what the interpreter says */
static bool is_ready;
static _Atomic unsigned asked, fork_checks;
static struct fake_object *base_code, *user_code, *tstate, *cframe;
static uint32_t inside, inside_too, outside; /* stacks */
static struct loop *poll_of;

uint64_t __wrap_os_mono_ns(void);

uint64_t __wrap_os_mono_ns(void)
{
    return now_ns;
}

void registry_init(void)
{
}

void registry_in_child(void)
{
}

struct registry_loop registry_ask(void)
{
    asked++;
    errno = EPERM;
    return running;
}

bool registry_ready(enum registry_kind kind)
{
    (void)kind;
    return is_ready;
}

struct thread *threads_self(void)
{
    return self;
}

/* It may find that this is another process. */
static bool is_other_process;

void forks_check(void)
{
    fork_checks++;
    if (is_other_process) {
        atomic_store(&agent.active, false);
        self = NULL;
        errno = ENOENT;
    }
}

static void *current_tstate(void)
{
    return tstate;
}

static void stand_at(struct fake_object *frame)
{
    fake_put(cframe, agent.layout.cframe_current, (uintptr_t)frame);
}

static uint32_t node_at(uint32_t parent, struct fake_object *code, int at)
{
    uint32_t id = tables_code(&agent.tables, &agent.layout, (uintptr_t)code);
    return tables_node(&agent.tables, parent, WIRE_FRAME_PYTHON, id, at, 0);
}

static int open_all(void **state)
{
    faults_install(state);
    control = (struct wire_control){.on = 1};
    agent = (struct agent){.active = true,
                           .control = &control,
                           .has_layout = true,
                           .code_type = fake_code_type,
                           .current_tstate = current_tstate};
    if (!layout_select(&agent.layout, 0x030c01f0, 0, 0) || !fixture_open(&agent.arena) ||
        !tables_init(&agent.tables, &agent.arena))
        return -1;
    agent.tables.filter = &filter;
    base_code = fake_code(&agent.layout, "/l/asyncio/base_events.py", "Loop.run_forever", 1);
    user_code = fake_code(&agent.layout, "/p/a.py", "f", 1);
    struct fake_object *outer = fake_frame(&agent.layout, user_code, 2, NULL, 0);
    tstate = fake_thread(&agent.layout, outer, 1);
    uintptr_t address;
    memcpy(&address, (char *)tstate + agent.layout.ts_cframe, sizeof address);
    cframe = (struct fake_object *)address;
    stand_at(fake_frame(&agent.layout, base_code, 8, outer, 0));
    outside = node_at(0, user_code, 2);
    uint32_t base = node_at(outside, base_code, 6);
    inside = node_at(base, user_code, 10);
    inside_too = node_at(base, user_code, 20);
    now_ns = (uint64_t)5000 * MS;
    thread = (struct thread){.state = THREAD_LIVE, .serial = 1, .poll_fd = -1};
    self = &thread;
    running = (struct registry_loop){REGISTRY_ASYNCIO, 0x1000, 0};
    is_ready = true;
    asked = fork_checks = 0;
    is_other_process = false;
    poll_of = NULL;
    loops_in_child(true);
    awaits_in_child(true);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static void begin_poll(void)
{
    poll_of = loops_enter(FD);
}

static void end_poll(void)
{
    loops_leave(poll_of);
}

static void poll_for(uint64_t ns)
{
    begin_poll();
    now_ns += ns;
    end_poll();
}

static void work(uint64_t ns)
{
    now_ns += ns;
}

/* The sampler finds the thread waiting there; 0: it runs. */
static void pass_at(uint32_t node)
{
    thread.placed = node != 0;
    thread.wait_node = node;
    loops_pass(now_ns);
}

static const struct wire_async *header(void)
{
    return &agent.arena.header->async;
}

static const struct wire_await *blocks(uint32_t node)
{
    static const struct wire_await none;
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_AWAIT].used; id++) {
        const struct wire_await *await = arena_record(&agent.arena, WIRE_AWAIT, id);
        if (await->kind == WIRE_AWAIT_BLOCKS && await->node == node)
            return await;
    }
    return &none;
}

/* The place of an instruction; 0: there is none. */
static uint32_t place_at(int at)
{
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_PLACE].used; id++)
        if (((struct wire_place *)arena_record(&agent.arena, WIRE_PLACE, id))->at == at)
            return id;
    return 0;
}

static const struct wire_place *place_of(int at)
{
    assert_int_not_equal(place_at(at), 0);
    return arena_record(&agent.arena, WIRE_PLACE, place_at(at));
}

/* The longest stretch that a place led, */
static uint64_t longest_us(int at)
{
    return place_of(at)->longest_us;
}

/* and another's part in it. */
static uint64_t part_us(int at, int other)
{
    for (int i = 0; i < WIRE_PARTS_MAX; i++)
        if (place_of(at)->parts[i].place == place_at(other))
            return place_of(at)->parts[i].us;
    return 0;
}

/* ---- idle and busy ---- */

static void test_exact(void **state)
{
    faults_install(state);
    work(1000 * MS); /* before the first poll there is no loop */
    poll_for(3 * MS + 7);
    work(2 * MS + 1);
    poll_for(40 * MS);
    work(LEAST_NS - 1);
    poll_for(1 * MS);
    pass_at(0);
    assert_int_equal(header()->idle_us, 44 * MS / US);
    assert_int_equal(header()->busy_us, 7 * MS / US);
    assert_int_equal(header()->blocked_us, 0);
    assert_int_equal(header()->loops, 1);
    assert_int_equal(header()->state, WIRE_ASYNC_OK);
    begin_poll();
    work(100 * MS); /* a poll that goes on counts up to now, */
    pass_at(0);
    assert_int_equal(header()->idle_us, 144 * MS / US);
    work(20 * MS);
    end_poll();
    pass_at(0);
    assert_int_equal(header()->idle_us, 164 * MS / US); /* and once */
    /* Parts of a microsecond are not lost. */
    for (int i = 0; i < 1000; i++) {
        poll_for(1500);
        work(300);
        pass_at(0);
    }
    assert_int_equal(header()->idle_us, 164 * MS / US + 1500);
    poll_for(0);
    pass_at(0);
    assert_in_range(header()->busy_us, 7 * MS / US + 300, 7 * MS / US + 301);
    assert_int_equal(asked, 1);
}

static void test_least(void **state)
{
    faults_install(state);
    poll_for(MS);
    work(LEAST_NS - 1);
    pass_at(inside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(header()->busy_us, LEAST_NS / US - 1);
    assert_int_equal(header()->blocked_us, 0);
    work(LEAST_NS);
    loops_see(&thread, inside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(header()->blocked_us, LEAST_NS / US);
    assert_in_range(header()->busy_us, 2 * LEAST_NS / US - 1, 2 * LEAST_NS / US);
    assert_int_equal(blocks(inside)->us, LEAST_NS / US);
    assert_int_equal(blocks(inside)->count, 1);
}

/* ---- who blocks ---- */

static void test_charged(void **state)
{
    faults_install(state);
    poll_for(MS);
    for (int i = 0; i < 3; i++) {
        work(10 * MS);
        pass_at(inside);
    }
    assert_int_equal(blocks(inside)->us, 30 * MS / US);
    assert_int_equal(header()->longest_us, 30 * MS / US);
    work(10 * MS);
    pass_at(inside_too);
    work(4 * MS); /* what comes after the last pass is where it was last seen */
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside)->us, 30 * MS / US);
    assert_int_equal(blocks(inside)->count, 1);
    assert_int_equal(blocks(inside_too)->us, 14 * MS / US);
    assert_int_equal(blocks(inside_too)->count, 0); /* one stretch, counted where it began */
    assert_int_equal(header()->blocked_us, 44 * MS / US);
    assert_int_equal(header()->busy_us, 44 * MS / US);
    assert_int_equal(header()->longest_us, 44 * MS / US);
    assert_int_equal(header()->longest_node, inside);
    assert_int_equal(longest_us(10), 44 * MS / US);
    assert_int_equal(part_us(10, 10), 30 * MS / US);
    assert_int_equal(part_us(10, 20), 14 * MS / US);
    assert_int_equal(longest_us(20), 0); /* it led none */
    /* A shorter one changes nothing of that. */
    work(20 * MS);
    pass_at(inside_too);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside_too)->us, 34 * MS / US);
    assert_int_equal(blocks(inside_too)->count, 1);
    assert_int_equal(header()->longest_us, 44 * MS / US);
    assert_int_equal(header()->longest_node, inside);
    assert_int_equal(longest_us(20), 20 * MS / US);
}

/* Who runs is not found waiting: its samples tell where it is, if they are of this stretch. */
static void test_running(void **state)
{
    faults_install(state);
    poll_for(MS);
    loops_see(&thread, inside_too);
    poll_for(MS);
    thread.last_node = outside;
    work(10 * MS);
    pass_at(0);
    assert_int_equal(header()->blocked_us, 0); /* nobody knows where: later */
    assert_true(loops_is_running(loops_at(0)));
    work(10 * MS);
    loops_see(&thread, inside);
    pass_at(0);
    assert_int_equal(blocks(inside)->us, 20 * MS / US);
    assert_int_equal(header()->blocked_us, 20 * MS / US);
    assert_int_equal(blocks(inside_too)->us, 0);
}

/* Short ones that no sample fell into go to the next that is seen. */
static void test_unseen(void **state)
{
    faults_install(state);
    poll_for(MS);
    for (int i = 0; i < 3; i++) {
        work(6 * MS + 100);
        poll_for(MS);
        pass_at(0);
    }
    assert_int_equal(header()->blocked_us, 18 * MS / US);
    assert_int_equal(header()->busy_us, 18 * MS / US);
    assert_int_equal(header()->longest_us, 0);
    assert_int_equal(agent.arena.header->sections[WIRE_AWAIT].used, 1);
    work(7 * MS);
    loops_see(&thread, inside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside)->us, 25 * MS / US);
    assert_int_equal(blocks(inside)->count, 4);
    assert_int_equal(longest_us(10), 7 * MS / US);
    assert_int_equal(header()->blocked_us, 25 * MS / US);
    assert_int_equal(header()->longest_us, 7 * MS / US);
}

/* The machine stood still: the loop was blocked, but not by the line that is seen next. */
static void test_unseen_for_long(void **state)
{
    faults_install(state);
    poll_for(MS);
    work(150 * MS);
    poll_for(MS);
    pass_at(0);
    work(7 * MS);
    loops_see(&thread, inside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside)->us, 7 * MS / US);
    assert_int_equal(header()->blocked_us, 157 * MS / US);
    assert_int_equal(header()->longest_us, 7 * MS / US);
}

/* A pass looked at the stretch, but nobody saw it before it ended. */
static void test_seen_at_its_end(void **state)
{
    faults_install(state);
    poll_for(MS);
    work(10 * MS);
    pass_at(0);
    work(2 * MS);
    loops_see(&thread, inside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside)->us, 12 * MS / US);
    assert_int_equal(header()->blocked_us, 12 * MS / US);
}

/* The sampler comes late: there is no room for all stretches, but their time is not lost. */
static void test_no_room(void **state)
{
    faults_install(state);
    poll_for(MS);
    for (int i = 0; i < LOOP_STRETCHES + 5; i++) {
        work(6 * MS);
        loops_see(&thread, i < LOOP_STRETCHES ? inside : inside_too);
        poll_for(MS);
    }
    pass_at(0);
    assert_int_equal(blocks(inside)->us, LOOP_STRETCHES * 6 * MS / US);
    assert_int_equal(blocks(inside)->count, LOOP_STRETCHES);
    assert_int_equal(blocks(inside_too)->us, 0);
    assert_int_equal(header()->blocked_us, (LOOP_STRETCHES + 5) * 6 * MS / US);
    assert_int_equal(header()->busy_us, (LOOP_STRETCHES + 5) * 6 * MS / US);
    work(6 * MS);
    loops_see(&thread, inside_too);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(blocks(inside_too)->us, 6 * 6 * MS / US);
    assert_int_equal(header()->blocked_us, (LOOP_STRETCHES + 6) * 6 * MS / US);
}

/* Between two runs of a loop the thread has other things to do. */
static void test_outside(void **state)
{
    faults_install(state);
    poll_for(MS);
    work(10 * MS);
    pass_at(inside);
    poll_for(MS);
    pass_at(0);
    for (int i = 0; i < 50; i++) {
        work(10 * MS);
        pass_at(outside);
        assert_false(loops_is_running(loops_at(0)));
    }
    assert_int_equal(header()->blocked_us, 10 * MS / US);
    poll_for(MS);
    pass_at(0);
    assert_true(loops_is_running(loops_at(0)));
    assert_int_equal(header()->blocked_us, 10 * MS / US);
    assert_int_equal(header()->busy_us, 10 * MS / US);
    assert_int_equal(blocks(outside)->us, 0);
    /* One that no pass fell into. */
    work(8 * MS);
    loops_see(&thread, outside);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(header()->blocked_us, 10 * MS / US);
    /* Outside first, and then inside: from then on. */
    work(300 * MS);
    pass_at(outside);
    work(10 * MS);
    pass_at(inside);
    assert_int_equal(header()->blocked_us, 20 * MS / US);
    assert_int_equal(blocks(inside)->us, 20 * MS / US);
    assert_int_equal(header()->longest_us, 10 * MS / US);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(header()->blocked_us, 20 * MS / US);
}

/* A loop that is not written in Python: the call that began it is on the stack while it runs. */
static void test_base_is_a_call(void **state)
{
    faults_install(state);
    struct fake_object *frame = fake_frame(&agent.layout, user_code, 2, NULL, 0);
    stand_at(frame);
    poll_for(MS);
    work(10 * MS);
    pass_at(node_at(0, user_code, 4));
    assert_int_equal(header()->blocked_us, 0);
    poll_for(MS);
    pass_at(0);
    work(10 * MS);
    pass_at(node_at(outside, user_code, 30));
    assert_int_equal(header()->blocked_us, 10 * MS / US);
}

static void test_skip(void **state)
{
    faults_install(state);
    poll_for(MS);
    work(10 * MS);
    pass_at(inside);
    loops_skip(now_ns);
    work(100 * MS);
    loops_skip(now_ns);
    work(20 * MS);
    pass_at(inside_too);
    assert_int_equal(header()->blocked_us, 30 * MS / US);
    assert_int_equal(blocks(inside_too)->us, 20 * MS / US);
    assert_int_equal(blocks(inside_too)->count, 1);
    assert_int_equal(header()->longest_us, 20 * MS / US); /* as far as it was watched */
    assert_int_equal(header()->longest_node, inside_too);
    poll_for(MS);
    pass_at(0);
    /* What ends while it is off is gone, and so is what was idle. */
    for (int i = 0; i < LOOP_STRETCHES + 3; i++) {
        work(6 * MS);
        poll_for(50 * MS);
    }
    work(MS);
    begin_poll();
    work(50 * MS);
    loops_skip(now_ns);
    work(5 * MS);
    end_poll();
    pass_at(0);
    assert_int_equal(header()->idle_us, 7 * MS / US);
    assert_int_equal(header()->busy_us, 30 * MS / US);
    assert_int_equal(header()->blocked_us, 30 * MS / US);
}

/* ---- loops come and go ---- */

static void test_thread_ends(void **state)
{
    faults_install(state);
    poll_for(3 * MS);
    work(10 * MS);
    loops_see(&thread, inside);
    poll_for(2 * MS);
    assert_int_equal(loops_used(), 1);
    thread.state = THREAD_ENDED;
    pass_at(0);
    assert_int_equal(header()->idle_us, 5 * MS / US);
    assert_int_equal(blocks(inside)->us, 10 * MS / US);
    assert_int_equal(loops_at(0)->state, LOOP_FREE);
    /* The entry of the thread is another one's, which has a loop too. */
    thread = (struct thread){.state = THREAD_LIVE, .serial = 2, .poll_fd = -1};
    work(50 * MS);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(loops_used(), 1);
    assert_int_equal(header()->loops, 2);
    assert_int_equal(header()->idle_us, 6 * MS / US);
    assert_int_equal(header()->busy_us, 10 * MS / US);
    /* That one was never seen to end. */
    thread.serial = 3;
    pass_at(0);
    assert_int_equal(loops_at(0)->state, LOOP_FREE);
}

static void test_loops_of_a_thread(void **state)
{
    faults_install(state);
    poll_for(MS);
    assert_int_equal(loops_first_ns(), (uint64_t)5000 * MS);
    running.object = 0x2000; /* another loop, whose epoll has the same number */
    loops_made_epoll();
    work(20 * MS);
    poll_for(MS);
    pass_at(0);
    assert_int_equal(header()->loops, 2);
    assert_int_equal(header()->busy_us, 0); /* in between there was none */
    assert_int_equal(header()->idle_us, 2 * MS / US);
    running = (struct registry_loop){REGISTRY_NO_LOOP, 0, 0};
    loops_made_epoll();
    work(5 * MS);
    begin_poll();
    assert_null(poll_of);
    pass_at(0);
    assert_false(loops_is_running(loops_at(0)));
    running = (struct registry_loop){REGISTRY_TRIO, 0, 0x3000};
    assert_ptr_equal(loops_enter(FD + 1), loops_at(0));
    assert_int_equal(loops_at(0)->tasks, 0x3000);
    assert_int_equal(loops_used(), 1);
    assert_int_equal(header()->loops, 3);
}

/* Asked again until there is a task: each time when it begins, for it may soon wait for long, and
 * now and then later. */
static void test_asked_again(void **state)
{
    faults_install(state);
    is_ready = false;
    for (unsigned i = 1; i <= 32; i++) {
        poll_for(US);
        assert_int_equal(asked, i);
    }
    for (int i = 0; i < 1000; i++)
        poll_for(5 * MS);
    assert_in_range(asked, 32 + 1000 / 5, 32 + 1000 / 4);
    assert_int_equal(header()->state, WIRE_ASYNC_UNSEEN);
    is_ready = true;
    asked = 0;
    for (int i = 0; i < 1000; i++)
        poll_for(MS);
    assert_int_equal(asked, 1);
    assert_int_equal(header()->state, WIRE_ASYNC_OK);
    assert_int_equal(header()->loops, 1);
}

/* Who polls one epoll and another by turns has a loop in the first; it is not asked each time. */
static void test_by_turns(void **state)
{
    faults_install(state);
    for (int i = 0; i < 1000; i++) {
        loops_leave(loops_enter(FD + i % 2));
        work(MS / 10);
    }
    assert_in_range(asked, 32, 32 + 1000 / 40 + 1);
}

static void test_all_taken(void **state)
{
    faults_install(state);
    static struct thread threads[LOOPS_MAX + 1];
    for (int i = 0; i <= LOOPS_MAX; i++) {
        threads[i] = (struct thread){.state = THREAD_LIVE, .poll_fd = -1};
        self = &threads[i];
        begin_poll();
        assert_int_equal(poll_of != NULL, i < LOOPS_MAX);
        end_poll();
    }
    assert_int_equal(loops_used(), LOOPS_MAX);
}

static void test_no_loop(void **state)
{
    faults_install(state);
    running.kind = REGISTRY_NO_LOOP;
    for (int i = 0; i < 10; i++)
        poll_for(MS);
    assert_int_equal(asked, 1);
    assert_int_equal(loops_used(), 0);
    running.kind = REGISTRY_ASYNCIO;
    control.flags = WIRE_FLAG_NO_ASYNC;
    assert_null(loops_enter(FD + 1));
    control.flags = WIRE_FLAG_VIRTUAL_TIME;
    assert_null(loops_enter(FD + 1));
    control.flags = 0;
    self = NULL;
    loops_made_epoll();
    assert_null(loops_enter(FD + 1));
    assert_int_equal(asked, 1);
}

static void test_errno(void **state)
{
    faults_install(state);
    errno = EINTR;
    begin_poll();
    assert_int_equal(errno, EINTR);
    end_poll();
    assert_int_equal(errno, EINTR);
    assert_int_equal(asked, 1);
}

/* A child that was made behind our back has its parent's memory, and that is not to be touched. */
static void test_other_process(void **state)
{
    faults_install(state);
    is_other_process = true;
    errno = EINTR;
    assert_null(loops_enter(FD));
    assert_int_equal(errno, EINTR);
    assert_int_equal(fork_checks, 1);
    assert_int_equal(asked, 0);
    assert_int_equal(thread.polls, 0);
}

/* ---- at the same time ---- */

enum { POLLERS = 3, POLLS = 20000, LIVES = 4, IDLE_NS = 10 * US, BUSY_NS = 100 * US };
enum { LONG_EVERY = 100, LONG_NS = 6 * MS };
static struct thread pollers[POLLERS];
static _Atomic unsigned pollers_left;

static void *poller(void *argument)
{
    self = argument;
    for (unsigned life = 0; life < LIVES; life++) {
        self->loop = NULL;
        self->poll_fd = -1;
        atomic_fetch_add(&self->serial, 1);
        atomic_store(&self->state, THREAD_LIVE);
        for (unsigned i = 0; i < POLLS; i++) {
            struct loop *loop = loops_enter(FD);
            now_ns += IDLE_NS;
            loops_leave(loop);
            if (i % LONG_EVERY == 0)
                loops_see(self, inside);
            now_ns += i % LONG_EVERY ? BUSY_NS : LONG_NS;
        }
        atomic_store(&self->state, THREAD_ENDED);
        while (atomic_load(&self->state) != THREAD_FREE)
            ;
    }
    pollers_left--;
    return NULL;
}

static void sample_pollers(unsigned count)
{
    pthread_t idents[POLLERS];
    pollers_left = count;
    for (unsigned i = 0; i < count; i++) {
        pollers[i] = (struct thread){.state = THREAD_FREE};
        assert_int_equal(pthread_create(&idents[i], NULL, poller, &pollers[i]), 0);
    }
    while (pollers_left) {
        loops_first_ns();
        for (unsigned i = 0; i < count; i++) {
            bool has_ended = atomic_load(&pollers[i].state) == THREAD_ENDED;
            loops_pass(now_ns);
            if (has_ended)
                atomic_store(&pollers[i].state, THREAD_FREE);
        }
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(idents[i], NULL);
    for (unsigned i = 0; i < loops_used(); i++)
        assert_int_equal(loops_at(i)->state, LOOP_FREE);
    assert_in_range(loops_used(), 1, count);
    assert_int_equal(header()->loops, count * LIVES);
}

/* Whatever the sampler sees in the middle, in the end all time is there, and once. */
static void test_one_at_once(void **state)
{
    faults_install(state);
    sample_pollers(1);
    const uint64_t longs = POLLS / LONG_EVERY;
    const uint64_t shorts = POLLS - 1 - longs; /* the last one is not ended by a poll */
    assert_int_equal(header()->idle_us, LIVES * POLLS * (IDLE_NS / US));
    assert_int_equal(header()->busy_us, LIVES * (shorts * (BUSY_NS / US) + longs * (LONG_NS / US)));
    assert_int_equal(header()->blocked_us, LIVES * longs * (LONG_NS / US));
    assert_true(blocks(inside)->us <= header()->blocked_us);
}

/* They have one clock, so that each is idle and busy while others are too. */
static void test_many_at_once(void **state)
{
    faults_install(state);
    uint64_t begin_ns = now_ns;
    sample_pollers(POLLERS);
    uint64_t passed_us = (now_ns - begin_ns) / US;
    assert_in_range(header()->idle_us + header()->busy_us, passed_us / 2, passed_us * POLLERS);
    assert_true(header()->blocked_us <= header()->busy_us);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_exact),
        CASE(test_least),
        CASE(test_charged),
        CASE(test_running),
        CASE(test_unseen),
        CASE(test_unseen_for_long),
        CASE(test_seen_at_its_end),
        CASE(test_no_room),
        CASE(test_outside),
        CASE(test_base_is_a_call),
        CASE(test_skip),
        CASE(test_thread_ends),
        CASE(test_loops_of_a_thread),
        CASE(test_asked_again),
        CASE(test_by_turns),
        CASE(test_all_taken),
        CASE(test_no_loop),
        CASE(test_errno),
        CASE(test_other_process),
        CASE(test_one_at_once),
        CASE(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
