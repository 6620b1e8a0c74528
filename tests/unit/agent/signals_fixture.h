/*
 * A program with the agent's handlers in place, looked at from both sides: what it is told, by the
 * functions in front of libc's, and what the kernel knows, by bare system calls.  Include it once,
 * after <cmocka.h>.
 */
#ifndef TESTS_SIGNALS_FIXTURE_H
#define TESTS_SIGNALS_FIXTURE_H

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/kin.h"
#include "agent/core/threads.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/hooks/signals.h"
#include "arena_fixture.h"
#include "os/os.h"

#include <signal.h>
#include <sys/syscall.h>

struct agent agent;

enum { SHARED = 4, OTHER = SIGUSR2, VALUE = 1234, TIMER = 77 };

static struct wire_control control;
static int shared[SHARED];
static int sample; /* the timers' signal */
static pid_t own_pid;

/* ---- stand-ins ---- */

static _Atomic unsigned ticks, armed;
static void (*in_tick)(void);
static char forged_mark;

void forks_check(void)
{
}

bool forks_is_guest(void)
{
    return getpid() != own_pid;
}

void owner_begin(struct thread *thread)
{
    (void)thread;
}

void kin_begin(struct thread *thread)
{
    (void)thread;
}

void kin_leave(const struct thread *thread, uint64_t cpu_ns)
{
    (void)thread;
    (void)cpu_ns;
}

void tick_sample(struct thread *thread, const void *ucontext)
{
    ticks += thread == threads_self() && ucontext;
    if (in_tick)
        in_tick();
}

bool __wrap_os_timer_create(pid_t tid, int *timer);
void __wrap_os_timer_arm(int timer, uint64_t after_ns);
void __wrap_os_timer_delete(int timer);
bool __wrap_os_timer_is_ours(const void *siginfo);

bool __wrap_os_timer_create(pid_t tid, int *timer)
{
    (void)tid;
    *timer = TIMER;
    return true;
}

void __wrap_os_timer_arm(int timer, uint64_t after_ns)
{
    armed += timer == TIMER && after_ns > 0;
}

void __wrap_os_timer_delete(int timer)
{
    (void)timer;
}

bool __wrap_os_timer_is_ours(const void *siginfo)
{
    const siginfo_t *info = siginfo;
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &forged_mark;
}

/* Where no memory is. */
static volatile uint64_t *volatile nowhere = (uint64_t *)16;

/* ---- what the kernel knows ---- */

struct kernel_action {
    sighandler_t handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static uint64_t bit(int number)
{
    return (uint64_t)1 << (number - 1);
}

static struct kernel_action kernel_action(int number)
{
    struct kernel_action action = {0};
    syscall(SYS_rt_sigaction, number, NULL, &action, sizeof action.mask);
    return action;
}

static sighandler_t kernel_handler(int number)
{
    return kernel_action(number).handler;
}

static uint64_t kernel_mask(void)
{
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask;
}

static void set_kernel_mask(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

static sighandler_t ours[SHARED]; /* what we installed there */

static void assert_ours(void)
{
    for (int i = 0; i < SHARED; i++)
        assert_ptr_equal(kernel_handler(shared[i]), ours[i]);
}

/* ---- the program ---- */

static sigset_t set_of(uint64_t mask)
{
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number <= 64; number++)
        if (mask & bit(number))
            sigaddset(&set, number);
    return set;
}

static uint64_t bits_of(const sigset_t *set)
{
    uint64_t mask = 0;
    for (int number = 1; number <= 64; number++)
        if (sigismember(set, number) == 1)
            mask |= bit(number);
    return mask;
}

static uint64_t told_mask(void)
{
    sigset_t set;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &set), 0);
    return bits_of(&set);
}

static void change_mask(int how, uint64_t mask)
{
    sigset_t set = set_of(mask);
    assert_int_equal(pthread_sigmask(how, &set, NULL), 0);
}

static struct seen {
    unsigned calls;
    int code, value;
    uint64_t mask;
    pid_t tid;
} seen;

static void on_signal(int number, siginfo_t *info, void *context)
{
    seen.calls++;
    seen.code = info->si_code;
    seen.value = info->si_value.sival_int;
    seen.mask = kernel_mask() | (context ? 0 : bit(number));
    seen.tid = os_gettid();
}

static void on_plain_signal(int number)
{
    seen.calls++;
    seen.mask = kernel_mask();
    seen.value = number;
}

static void handle(int number, int flags, uint64_t mask)
{
    struct sigaction action = {.sa_flags = flags, .sa_mask = set_of(mask)};
    if (flags & SA_SIGINFO)
        action.sa_sigaction = on_signal;
    else
        action.sa_handler = on_plain_signal;
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

static void set_handler(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

static struct sigaction told_action(int number)
{
    struct sigaction now;
    assert_int_equal(sigaction(number, NULL, &now), 0);
    return now;
}

static void send(int number)
{
    assert_int_equal(sigqueue(getpid(), number, (union sigval){VALUE}), 0);
}

static int fresh(void **state)
{
    (void)state;
    seen = (struct seen){0};
    ticks = armed = 0;
    in_tick = NULL;
    change_mask(SIG_SETMASK, 0);
    set_handler(sample, SIG_DFL);
    return 0;
}

/* The program is started with the timers' signal blocked. */
static bool fixture_begin(void)
{
    own_pid = getpid();
    agent.control = &control;
    control.on = 1;
    control.cpu_interval_ns = 10000000;
    sample = os_sample_signal();
    const int numbers[SHARED] = {sample, SIGSEGV, SIGBUS, SIGILL};
    memcpy(shared, numbers, sizeof shared);
    set_kernel_mask(bit(sample));
    signals_init();
    if (!fixture_open(&agent.arena) || !threads_init() || !signals_install())
        return false;
    for (int i = 0; i < SHARED; i++)
        ours[i] = kernel_handler(shared[i]);
    agent.active = true;
    threads_add_main();
    return true;
}

static int fixture_run(const struct CMUnitTest *tests, size_t count)
{
    if (!fixture_begin())
        return 1;
    int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    agent.active = false;
    return fixture_close(&agent.arena) || failed;
}

#endif
