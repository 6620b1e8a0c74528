/*
 * The sampler's thread: a real one, which sleeps until the test lets it make a pass, on clocks that
 * are made up.  What a pass finds is test_pass.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/async.h"
#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/core/timeline.h"
#include "agent/hooks/signals.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"
#include "agent/waits/pass.h"
#include "agent/waits/sampler.h"
#include "arena_fixture.h"
#include "os/os.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

struct agent agent;

enum { MS = 1000000, INTERVAL_NS = 10 * MS };

/* ---- the world ---- */

static struct wire_control control;
static struct thread thread;
static unsigned thread_count;
static _Atomic uint64_t mono_ns, program_ns, sampler_ns; /* sampler_ns: of all there were */
static _Atomic uint64_t ended_ns;                        /* of those that have ended */
static _Atomic unsigned sleeps, allowed;                 /* passes */
static _Atomic uint64_t asked_ns;                        /* the last sleep */
static _Atomic uint64_t pass_cost_ns, async_cost_ns;     /* CPU time of a pass; of its tasks */
static _Atomic bool has_loop;
static _Atomic bool moves, waits; /* what passes find */

static struct {
    unsigned begun, looked, skipped, compacted, async_on, async_off;
    uint64_t begun_at_ns, wall_ns, idle_ns, last_now_ns;
} seen;

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_process_cpu_ns(void);
uint64_t __wrap_os_thread_cpu_ns(void);
void __wrap_os_sleep(uint64_t ns, _Atomic uint32_t *word);

uint64_t __wrap_os_mono_ns(void)
{
    return mono_ns;
}

uint64_t __wrap_os_process_cpu_ns(void)
{
    return program_ns + sampler_ns;
}

uint64_t __wrap_os_thread_cpu_ns(void)
{
    return sampler_ns - ended_ns; /* only the sampler asks */
}

void __wrap_os_sleep(uint64_t ns, _Atomic uint32_t *word)
{
    asked_ns = ns;
    sleeps++;
    while (!allowed && !*word)
        sched_yield();
    allowed = 0;
}

void duty_sleep(uint64_t sleep_ns)
{
    sampler_pause(sleep_ns);
}

void pass_begin(uint64_t now_ns, bool may_keep_descriptors)
{
    seen.begun += may_keep_descriptors;
    seen.begun_at_ns = now_ns;
}

void pass_look(struct pass *pass)
{
    seen.looked++;
    sampler_ns += pass_cost_ns;
    seen.wall_ns += pass->wall_ns;
    seen.idle_ns += pass->idle_ns;
    seen.last_now_ns = pass->now_ns;
    pass->any_moved = moves;
    pass->any_waited = waits;
}

void pass_skip(uint64_t now_ns)
{
    seen.skipped++;
    seen.last_now_ns = now_ns;
}

uint64_t async_pass(uint64_t now_ns, bool is_on)
{
    (void)now_ns;
    seen.async_on += is_on;
    seen.async_off += !is_on;
    sampler_ns += async_cost_ns;
    return async_cost_ns;
}

bool async_is_wanted(void)
{
    return has_loop;
}

void timeline_compact(void)
{
    seen.compacted++;
}

struct thread *threads_at(unsigned index)
{
    (void)index;
    return &thread;
}

unsigned threads_used(void)
{
    return thread_count;
}

void memory_disown(void)
{
}

void memory_pass(void)
{
}

void forks_check(void)
{
}

void signals_in_sampler(void)
{
}

void signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int open_all(void **state)
{
    (void)state;
    control = (struct wire_control){.on = 1, .wait_interval_ns = INTERVAL_NS};
    agent.control = &control;
    if (!fixture_open(&agent.arena))
        return -1;
    struct wire_header *header = agent.arena.header;
    mono_ns = header->start_mono_ns = header->beat_mono_ns = (uint64_t)5000 * MS;
    program_ns = header->start_cpu_ns = header->beat_cpu_ns = 70 * MS;
    sampler_ns = ended_ns = 0;
    sampler_in_child(false); /* as if nothing had been */
    thread.state = THREAD_LIVE;
    thread_count = 1;
    sleeps = allowed = 0;
    moves = waits = true;
    pass_cost_ns = async_cost_ns = 0;
    has_loop = false;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    sampler_stop();
    return fixture_close(&agent.arena);
}

static void wait_for_sleep(unsigned number)
{
    while (sleeps < number)
        sched_yield();
}

static void start(void)
{
    unsigned before = sleeps;
    sampler_start();
    wait_for_sleep(before + 1);
}

static void stop(void)
{
    assert_true(sampler_stop());
    ended_ns = sampler_ns;
}

static void pass_time(uint64_t wall_ns, uint64_t cpu_ns, uint64_t own_ns)
{
    mono_ns += wall_ns;
    program_ns += cpu_ns;
    sampler_ns += own_ns;
}

static void pass(uint64_t wall_ns, uint64_t cpu_ns, uint64_t own_ns)
{
    unsigned before = sleeps;
    pass_time(wall_ns, cpu_ns, own_ns);
    allowed = 1;
    wait_for_sleep(before + 1);
}

static unsigned tasks(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static unsigned long mapped_pages(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages;
}

/* ---- one thread, or none ---- */

static void test_starting_and_stopping(void **state)
{
    (void)state;
    unsigned others = tasks();
    assert_false(sampler_stop());
    start();
    assert_true(agent.has_sampler);
    assert_int_equal(tasks(), others + 1);
    sampler_start(); /* there is one */
    assert_int_equal(tasks(), others + 1);
    unsigned long pages = mapped_pages();
    for (int i = 0; i < 200; i++) {
        stop();
        assert_int_equal(tasks(), others); /* at once: the program is to be alone */
        assert_false(agent.has_sampler);
        start();
    }
    assert_int_equal(seen.begun, 201);
    assert_true(mapped_pages() < pages + 1000); /* no stack of 16 pages and more is left */
}

static void *start_and_stop(void *argument)
{
    for (int i = 0; i < 200; i++) {
        sampler_start();
        sampler_stop();
    }
    return argument;
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned others = tasks();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sampler_start();
    assert_true(sampler_stop());
    while (tasks() > others) /* those that were joined */
        sched_yield();
    assert_false(agent.has_sampler);
}

/* All threads of the program have ended: the process must not live on for us. */
static void test_left_alone(void **state)
{
    (void)state;
    unsigned others = tasks();
    start();
    thread.state = THREAD_TAKEN; /* one is about to begin */
    pass(INTERVAL_NS, 0, 0);
    thread.state = THREAD_ENDED;
    allowed = 1;
    while (tasks() > others)
        sched_yield();
    assert_int_equal(seen.looked, 1);
    assert_true(sampler_stop());
}

static void test_own_descriptors(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    start(); /* it has the arena open */
    int now = dup(0);
    close(now);
    assert_int_equal(now, before);
    assert_int_equal(seen.begun, 1);
}

static void test_in_child(void **state)
{
    (void)state;
    start();
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        pid_t pid = fork();
        if (!pid) {
            unsigned before = sleeps;
            sampler_in_child(is_recorded);
            if (is_recorded)
                wait_for_sleep(before + 1);
            _exit(tasks() == 1 + (unsigned)is_recorded && agent.has_sampler == is_recorded ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

/* ---- clocks ---- */

static void test_clocks(void **state)
{
    (void)state;
    pass_time(2 * MS, 2 * MS, 0); /* the program began before the sampler */
    start();
    assert_int_equal(seen.begun_at_ns, agent.arena.header->start_mono_ns);
    for (int i = 0; i < 10; i++)
        pass(10 * MS, 4 * MS, MS);
    assert_int_equal(seen.looked, 10);
    assert_int_equal(seen.compacted, 10);
    assert_int_equal(seen.wall_ns, 102 * MS);
    assert_int_equal(control.cpu_ns, program_ns); /* without its own */
    assert_int_equal(seen.last_now_ns, mono_ns);
    const struct wire_header *header = agent.arena.header;
    assert_int_equal(header->on_ns, 102 * MS);
    assert_int_equal(header->beat_mono_ns, mono_ns);
    assert_int_equal(header->beat_cpu_ns, program_ns + sampler_ns);
    assert_int_equal(header->sampler_cpu_ns, 10 * MS);
}

/* What nobody used of the time. */
static void test_idle(void **state)
{
    (void)state;
    pass_time(2 * MS, MS, 0); /* the program began before the sampler */
    start();
    assert_int_equal(control.late_cpu_ns, program_ns); /* its start-up: others hear of it late */
    for (int i = 0; i < 10; i++)
        pass(10 * MS, 4 * MS, MS);
    assert_int_equal(seen.idle_ns, MS + 10 * 6 * MS);
    control.cpu_ns += 3 * MS; /* another process of the session has run meanwhile */
    pass(10 * MS, 4 * MS, 0);
    assert_int_equal(seen.idle_ns, MS + 10 * 6 * MS + 3 * MS);
}

/* Two that run at the same time leave nothing idle, and nothing owed; one that was heard of only
 * when it ended does. */
static void test_owed(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 20; i++)
        pass(10 * MS, 0, 0);
    uint64_t before_ns = seen.idle_ns;
    control.cpu_ns += 30 * MS;
    pass(10 * MS, 10 * MS, 0);
    pass(10 * MS, 0, 0);
    assert_int_equal(seen.idle_ns - before_ns, 10 * MS);
    before_ns = seen.idle_ns;
    control.cpu_ns += 25 * MS;
    control.late_cpu_ns += 25 * MS;
    for (int i = 0; i < 3; i++)
        pass(10 * MS, 0, 0);
    assert_int_equal(seen.idle_ns - before_ns, 5 * MS);
}

static void test_farewell(void **state)
{
    (void)state;
    start();
    pass(10 * MS, 4 * MS, MS);
    uint64_t late_ns = control.late_cpu_ns;
    pass_time(MS, MS, 0);
    assert_int_equal(control.claims[0].pid, getpid());
    sampler_farewell();
    sampler_farewell();
    assert_int_equal(control.cpu_ns, program_ns);
    assert_int_equal(control.late_cpu_ns - late_ns, MS);
    assert_int_equal(control.claims[0].pid, 0);
}

/* No time and no CPU is lost, or counted twice, while it steps aside. */
static void test_clocks_while_stepping_aside(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 5; i++) {
        pass(10 * MS, 10 * MS, MS);
        pass_time(4 * MS, 4 * MS, MS / 2); /* since the last pass */
        stop();
        pass_time(MS, MS, 0);
        start();
        pass(5 * MS, 5 * MS, MS);
    }
    assert_int_equal(seen.wall_ns, 100 * MS);
    assert_int_equal(control.cpu_ns, program_ns);
    assert_int_equal(agent.arena.header->on_ns, 100 * MS);
    assert_int_equal(agent.arena.header->sampler_cpu_ns, sampler_ns);
}

static void test_off(void **state)
{
    (void)state;
    start();
    pass(10 * MS, 3 * MS, MS);
    control.on = 0;
    pass(10 * MS, 4 * MS, MS);
    pass(10 * MS, 5 * MS, MS);
    control.on = 1;
    pass(10 * MS, 6 * MS, MS);
    assert_int_equal(seen.looked, 2);
    assert_int_equal(seen.skipped, 2);
    assert_int_equal(seen.async_on, 2);
    assert_int_equal(seen.async_off, 2);
    assert_int_equal(seen.wall_ns, 20 * MS);
    assert_int_equal(agent.arena.header->on_ns, 20 * MS);
    assert_int_equal(agent.arena.header->off_cpu_ns, 11 * MS); /* all that the process used */
}

static void test_virtual_time(void **state)
{
    (void)state;
    control.flags = WIRE_FLAG_VIRTUAL_TIME;
    start();
    pass(10 * MS, 3 * MS, 0);
    assert_int_equal(seen.looked, 0);
    assert_int_equal(seen.skipped, 0);
    assert_int_equal(agent.arena.header->on_ns, 10 * MS);
}

/* ---- how often ---- */

static void test_pauses(void **state)
{
    (void)state;
    start();
    assert_int_equal(asked_ns, INTERVAL_NS);
    for (int i = 0; i < 30; i++)
        pass(10 * MS, 5 * MS, 0);
    assert_int_equal(asked_ns, INTERVAL_NS);
    waits = false; /* it does nothing but compute */
    for (int i = 0; i < 8; i++)
        pass(10 * MS, 10 * MS, 0);
    assert_int_equal(asked_ns, 2 * INTERVAL_NS);
    for (int i = 0; i < 30; i++)
        pass(10 * MS, 10 * MS, 0);
    assert_int_equal(asked_ns, 2 * INTERVAL_NS);
    waits = true;
    moves = false; /* it sleeps */
    pass(10 * MS, 0, 0);
    assert_int_equal(asked_ns, INTERVAL_NS);
    for (int i = 0; i < 100; i++)
        pass(10 * MS, 0, 0);
    assert_int_equal(asked_ns, 4 * INTERVAL_NS);
    moves = true;
    pass(10 * MS, 1, 0);
    assert_int_equal(asked_ns, INTERVAL_NS);
}

static void sleep_and_pass(unsigned passes)
{
    for (unsigned i = 0; i < passes; i++)
        pass(asked_ns, 5 * MS, 0);
}

/* What it uses of a processor's time is bounded, whatever it is used for: passes that cost much are
 * far between. */
static void test_cost(void **state)
{
    (void)state;
    thread_count = 200;
    start();
    uint64_t began_ns = mono_ns;
    pass_cost_ns = MS / 25; /* the first follow each other as if they cost nothing */
    sleep_and_pass(100);
    assert_int_equal(asked_ns, INTERVAL_NS);
    sleep_and_pass(400);
    assert_in_range(asked_ns, 19 * MS, 21 * MS);
    assert_true(sampler_ns < (mono_ns - began_ns) * 3 / 1000);
    pass_cost_ns = MS / 2;
    sleep_and_pass(100);
    assert_in_range(asked_ns, 245 * MS, 255 * MS);
    pass_cost_ns = MS / 100; /* cheap ones again */
    sleep_and_pass(100);
    assert_int_equal(asked_ns, INTERVAL_NS);
}

/* A single costly pass is made up for slowly, and waits are looked at often enough, whatever that
 * costs. */
static void test_cost_of_one(void **state)
{
    (void)state;
    thread_count = 200;
    start();
    pass_cost_ns = MS / 25;
    sleep_and_pass(500);
    pass_cost_ns = 50 * MS;
    sleep_and_pass(1);
    pass_cost_ns = MS / 25;
    sleep_and_pass(1);
    assert_in_range(asked_ns, 100 * MS, 130 * MS);
    sleep_and_pass(100);
    assert_in_range(asked_ns, 19 * MS, 21 * MS);
    pass_cost_ns = 5 * MS;
    sleep_and_pass(60);
    assert_int_equal(asked_ns, 350 * MS);
    thread_count = 26;
    sleep_and_pass(1);
    assert_int_equal(asked_ns, 58 * MS);
    thread_count = 16;
    sleep_and_pass(1);
    assert_int_equal(asked_ns, 40 * MS);
    waits = false; /* nobody to look at */
    sleep_and_pass(7);
    assert_int_equal(asked_ns, 40 * MS);
    sleep_and_pass(1);
    assert_int_equal(asked_ns, 80 * MS);
    has_loop = true; /* its tasks wait */
    sleep_and_pass(1);
    assert_in_range(asked_ns, 30 * MS, 40 * MS);
    has_loop = false;
    waits = true;
    sleep_and_pass(1);
    assert_int_equal(asked_ns, 40 * MS);
}

/* Sleeping counts as well. */
static void test_cost_of_waking(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 400; i++)
        pass(asked_ns, 5 * MS, MS / 25);
    assert_in_range(asked_ns, 19 * MS, 21 * MS);
}

/* A sampler that takes another's place has no more than that one had. */
static void test_cost_while_stepping_aside(void **state)
{
    (void)state;
    start();
    pass_cost_ns = MS / 25;
    sleep_and_pass(400);
    stop();
    start();
    sleep_and_pass(1);
    assert_in_range(asked_ns, 15 * MS, 23 * MS);
}

/* Reading tasks has a budget of its own. */
static void test_cost_of_tasks(void **state)
{
    (void)state;
    start();
    pass_cost_ns = MS / 100;
    async_cost_ns = 5 * MS;
    for (int i = 0; i < 200; i++)
        pass(10 * MS, 5 * MS, 0);
    assert_int_equal(asked_ns, INTERVAL_NS);
}

/* Beside an event loop passes are denser: it may be blocked for some milliseconds. */
static void test_cost_beside_loop(void **state)
{
    (void)state;
    start();
    has_loop = true;
    pass_cost_ns = MS / 20;
    sleep_and_pass(400);
    /* Not at the same pace all the time, which may be that of its tasks. */
    uint64_t sum_ns = 0, most_ns = 0, least_ns = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        sleep_and_pass(1);
        assert_in_range(asked_ns, INTERVAL_NS * 3 / 4, INTERVAL_NS);
        sum_ns += asked_ns;
        most_ns = asked_ns > most_ns ? asked_ns : most_ns;
        least_ns = asked_ns < least_ns ? asked_ns : least_ns;
    }
    assert_in_range(sum_ns / 200, INTERVAL_NS * 17 / 20, INTERVAL_NS * 18 / 20);
    assert_true(most_ns - least_ns > INTERVAL_NS * 9 / 40);
    pass_cost_ns = MS / 5;
    sleep_and_pass(400);
    assert_in_range(asked_ns, 25 * MS * 3 / 4, 35 * MS);
    has_loop = false;
    sleep_and_pass(400);
    assert_in_range(asked_ns, 40 * MS, 43 * MS);
}

static void test_growth(void **state)
{
    (void)state;
    struct wire_section *section = &agent.arena.header->sections[WIRE_LOG];
    uint32_t before = section->committed;
    start();
    pass(10 * MS, 0, 0);
    assert_int_equal(section->committed, before);
    section->used = before / 2;
    pass(10 * MS, 0, 0);
    assert_true(section->committed > before);
    /* Where one fills up between two passes, it does not wait for the next. */
    struct wire_section *burst = &agent.arena.header->sections[WIRE_NODE];
    uint32_t first = burst->committed;
    unsigned looked = seen.looked, slept = sleeps;
    while (arena_append(&agent.arena, WIRE_NODE, 1) < first / 2)
        ;
    while (sleeps == slept) /* until it sleeps on */
        sched_yield();
    assert_true(burst->committed > first);
    assert_int_equal(seen.looked, looked);
    pass(10 * MS, 0, 0);
    assert_int_equal(seen.looked, looked + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_starting_and_stopping),
        CASE(test_many_at_once),
        CASE(test_left_alone),
        CASE(test_own_descriptors),
        CASE(test_in_child),
        CASE(test_clocks),
        CASE(test_idle),
        CASE(test_owed),
        CASE(test_farewell),
        CASE(test_clocks_while_stepping_aside),
        CASE(test_off),
        CASE(test_virtual_time),
        CASE(test_pauses),
        CASE(test_cost),
        CASE(test_cost_of_tasks),
        CASE(test_cost_beside_loop),
        CASE(test_cost_of_one),
        CASE(test_cost_of_waking),
        CASE(test_cost_while_stepping_aside),
        CASE(test_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
