/*
 * The signals shared with the program, looked at from both sides: what the program is told, by
 * the functions in front of libc's, and what the kernel knows, by bare system calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/cpu/tick.h"
#include "agent/hooks/signals.h"
#include "arena_fixture.h"
#include "os/guard.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

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

/* As a timer of ours would, to the calling thread. */
static void send_tick(void)
{
    siginfo_t info = {.si_signo = sample, .si_code = SI_TIMER};
    info.si_value.sival_ptr = &forged_mark;
    assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), os_gettid(), sample, &info), 0);
}

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

/* How a child that calls `act` ends. */
static int status_of(void (*act)(int), int number)
{
    pid_t pid = fork();
    if (!pid) {
        own_pid = getpid();
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        act(number);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- what the program asked for, and is told ---- */

/* The program was started with the timers' signal blocked (main). */
static void test_mask_at_the_start(void **state)
{
    (void)state;
    assert_true(told_mask() & bit(sample));
    assert_false(kernel_mask() & bit(sample));
}

static void test_actions_are_told(void **state)
{
    (void)state;
    for (int i = 0; i < SHARED; i++) {
        struct sigaction was = told_action(shared[i]), to = {.sa_handler = on_plain_signal};
        to.sa_flags = SA_RESTART | SA_NODEFER;
        to.sa_mask = set_of(bit(SIGUSR1) | bit(SIGHUP));
        struct sigaction both = to, *volatile same = &both; /* in and out may be the same */
        assert_int_equal(sigaction(shared[i], &both, same), 0);
        assert_ptr_equal(both.sa_handler, was.sa_handler);
        was = told_action(shared[i]);
        assert_ptr_equal(was.sa_handler, on_plain_signal);
        assert_int_equal(was.sa_flags, to.sa_flags);
        assert_int_equal(bits_of(&was.sa_mask), bits_of(&to.sa_mask));
        assert_ptr_equal(signal(shared[i], SIG_IGN), on_plain_signal);
        assert_ptr_equal(signal(shared[i], SIG_DFL), SIG_IGN);
        assert_int_equal(sigaction(shared[i], NULL, NULL), 0);
        assert_ptr_equal(told_action(shared[i]).sa_handler, SIG_DFL);
    }
    assert_ours();
    set_handler(SIGUSR1, on_plain_signal); /* others are the kernel's */
    assert_ptr_equal(kernel_handler(SIGUSR1), on_plain_signal);
    set_handler(SIGUSR1, SIG_DFL);
}

static void test_signal_is_told_as_by_libc(void **state)
{
    (void)state;
    signal(OTHER, on_plain_signal);
    struct sigaction libcs = told_action(OTHER);
    for (int i = 0; i < SHARED; i++) {
        signal(shared[i], on_plain_signal);
        struct sigaction now = told_action(shared[i]);
        assert_int_equal(now.sa_flags & SA_RESTART, libcs.sa_flags & SA_RESTART);
        assert_int_equal(sigismember(&now.sa_mask, shared[i]), sigismember(&libcs.sa_mask, OTHER));
        assert_int_equal(sigismember(&now.sa_mask, SIGHUP), 0);
    }
    signal(OTHER, SIG_DFL);
}

/* ---- delivery ---- */

/* What a program can see of one signal that it sends itself.  Its own bit is bit 0. */
struct outcome {
    unsigned calls;
    int value, code, flags_after;
    uint64_t mask_inside, mask_after;
    bool is_default_after;
};

static struct outcome outcome_of(int number, int flags)
{
    seen = (struct seen){0};
    handle(number, flags, bit(SIGUSR1) | bit(SIGTERM));
    send(number);
    struct sigaction after = told_action(number);
    struct outcome outcome = {
        .calls = seen.calls,
        .code = seen.code,
        .value = flags & SA_SIGINFO ? seen.value : seen.value == number,
        .mask_inside = (seen.mask & ~bit(number)) << 1 | !!(seen.mask & bit(number)),
        .mask_after = told_mask(),
        .is_default_after = after.sa_handler == SIG_DFL,
        .flags_after = after.sa_flags & (SA_SIGINFO | SA_RESETHAND | SA_NODEFER | SA_RESTART),
    };
    set_handler(number, SIG_IGN);
    return outcome;
}

/* All combinations, against a signal that is the kernel's business alone. */
static void test_delivery_as_by_the_kernel(void **state)
{
    (void)state;
    static const int some[] = {SA_SIGINFO, (int)SA_RESETHAND, SA_NODEFER, SA_RESTART};
    for (unsigned choice = 0; choice < 16; choice++) {
        int flags = 0;
        for (unsigned i = 0; i < 4; i++)
            flags |= choice >> i & 1 ? some[i] : 0;
        struct outcome wanted = outcome_of(OTHER, flags);
        assert_int_equal(wanted.calls, 1);
        for (int i = 0; i < SHARED; i++) {
            struct outcome is = outcome_of(shared[i], flags);
            assert_int_equal(is.calls, wanted.calls);
            assert_int_equal(is.code, wanted.code);
            assert_int_equal(is.value, wanted.value);
            assert_int_equal(is.mask_inside, wanted.mask_inside);
            assert_int_equal(is.mask_after, wanted.mask_after);
            assert_int_equal(is.is_default_after, wanted.is_default_after);
            assert_int_equal(is.flags_after, wanted.flags_after);
        }
    }
    assert_ours();
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < SHARED; i++) {
        handle(shared[i], 0, 0);
        errno = ENOTTY;
        send(shared[i]);
        assert_int_equal(errno, ENOTTY);
    }
}

static void send_ignored(int number)
{
    set_handler(number, SIG_IGN);
    sigqueue(getpid(), number, (union sigval){VALUE});
}

static void send_default(int number)
{
    set_handler(number, SIG_DFL);
    sigqueue(getpid(), number, (union sigval){VALUE});
}

static void send_twice_to_once(int number)
{
    handle(number, (int)SA_RESETHAND, 0);
    sigqueue(getpid(), number, (union sigval){VALUE});
    sigqueue(getpid(), number, (union sigval){VALUE});
}

static void test_default_and_ignored(void **state)
{
    (void)state;
    for (int i = 0; i < SHARED; i++) {
        assert_int_equal(status_of(send_ignored, shared[i]), 0);
        int status = status_of(send_default, shared[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), shared[i]);
        status = status_of(send_twice_to_once, shared[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), shared[i]);
    }
}

/* ---- faults ---- */

static volatile uint64_t *volatile nowhere = (uint64_t *)16;
static sigjmp_buf way_out;
static void *fault_address;

static void leave(int number, siginfo_t *info, void *context)
{
    seen.calls += number == SIGSEGV && context;
    fault_address = info->si_addr;
    siglongjmp(way_out, 1);
}

static void test_faults_of_the_program(void **state)
{
    (void)state;
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        if (!sigsetjmp(way_out, 1))
            *nowhere = 1;
        assert_int_equal(seen.calls, i);
        assert_ptr_equal(fault_address, (const void *)nowhere);
        assert_int_equal(kernel_mask(), 0);
    }
    set_handler(SIGSEGV, SIG_DFL);
}

static void test_faults_of_guarded_loads(void **state)
{
    (void)state;
    handle(SIGSEGV, SA_SIGINFO, 0);
    handle(SIGBUS, SA_SIGINFO, 0);
    unsigned bad = 0;
    assert_int_equal(guard_u64((uintptr_t)nowhere, &bad), 0);
    assert_int_equal(bad, 1);
    FILE *file = tmpfile(); /* without a byte: SIGBUS */
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    bad = 0;
    assert_int_equal(guard_u64((uintptr_t)page, &bad), 0);
    assert_int_equal(bad, 1);
    munmap(page, 4096);
    fclose(file);
    assert_int_equal(seen.calls, 0);
}

static void fault_default(int number)
{
    set_handler(number, SIG_DFL);
    *nowhere = 1;
}

static void fault_ignored(int number)
{
    set_handler(number, SIG_IGN);
    *nowhere = 1;
}

/* The kernel does not let a fault be ignored. */
static void test_deadly_faults(void **state)
{
    (void)state;
    int status = status_of(fault_default, SIGSEGV);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    status = status_of(fault_ignored, SIGSEGV);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- the switch ---- */

static void test_switch(void **state)
{
    (void)state;
    control.on = 0;
    uint32_t generation = control.generation;
    set_handler(SIGILL, SIG_DFL);
    set_handler(SIGBUS, SIG_DFL);
    kill(getpid(), SIGILL);
    assert_int_equal(control.on, 1);
    kill(getpid(), SIGBUS);
    assert_int_equal(control.on, 0);
    assert_int_equal(control.generation, generation + 2);
    handle(SIGILL, SA_SIGINFO, 0); /* a program that has a use of its own for it */
    kill(getpid(), SIGILL);
    set_handler(SIGILL, SIG_IGN);
    kill(getpid(), SIGILL);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(control.on, 0);
    assert_int_equal(control.generation, generation + 2);
    control.on = 1;
}

/* ---- masks ---- */

static uint32_t random_below(uint32_t limit)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % limit;
}

static uint64_t after(int how, uint64_t mask, uint64_t change)
{
    return how == SIG_BLOCK ? mask | change : how == SIG_UNBLOCK ? mask & ~change : change;
}

static void test_any_masks(void **state)
{
    (void)state;
    static const int hows[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK};
    const uint64_t some[] = {bit(sample), bit(SIGUSR1), bit(SIGSEGV), bit(SIGHUP)};
    uint64_t expected = 0;
    for (int i = 0; i < 20000; i++) {
        int how = hows[random_below(3)];
        uint64_t change = 0;
        for (int k = 0; k < 4; k++)
            change |= random_below(2) ? some[k] : 0;
        sigset_t set = set_of(change), was;
        bool is_question = random_below(4) == 0, wants_old = random_below(2);
        int (*call)(int, const sigset_t *, sigset_t *) =
            random_below(2) ? pthread_sigmask : sigprocmask;
        assert_int_equal(call(how, is_question ? NULL : &set, wants_old ? &was : NULL), 0);
        if (wants_old)
            assert_int_equal(bits_of(&was), expected);
        if (!is_question)
            expected = after(how, expected, change);
        assert_int_equal(told_mask(), expected);
        assert_int_equal(kernel_mask(), expected & ~bit(sample));
        assert_int_equal(signals_sample_is_blocked(), !!(expected & bit(sample)));
    }
}

static void test_wrong_masks(void **state)
{
    (void)state;
    sigset_t set = set_of(bit(sample) | bit(SIGUSR1));
    assert_int_equal(pthread_sigmask(99, &set, NULL), EINVAL);
    assert_int_equal(sigprocmask(99, &set, NULL), -1);
    assert_int_equal(told_mask(), 0);
}

static void test_inactive(void **state)
{
    (void)state;
    agent.active = false;
    change_mask(SIG_BLOCK, bit(sample));
    uint64_t mask = kernel_mask();
    change_mask(SIG_UNBLOCK, bit(sample));
    agent.active = true;
    assert_true(mask & bit(sample));
    assert_false(kernel_mask() & bit(sample));
}

static void *tell_mask(void *argument)
{
    uint64_t told = told_mask();
    change_mask(SIG_SETMASK, argument ? bit(sample) : 0); /* its own */
    return (void *)(uintptr_t)told;
}

static uint64_t mask_in_new_thread(bool blocks_itself)
{
    pthread_t thread;
    void *told;
    assert_int_equal(pthread_create(&thread, NULL, tell_mask, blocks_itself ? &thread : NULL), 0);
    pthread_join(thread, &told);
    return (uintptr_t)told;
}

static void test_threads_inherit(void **state)
{
    (void)state;
    assert_int_equal(mask_in_new_thread(true), 0);
    assert_int_equal(told_mask(), 0);
    change_mask(SIG_BLOCK, bit(sample) | bit(SIGUSR1));
    assert_int_equal(mask_in_new_thread(false), bit(sample) | bit(SIGUSR1));
    assert_int_equal(told_mask(), bit(sample) | bit(SIGUSR1));
}

/* ---- samples ---- */

static unsigned tick_bad;

static void load_nowhere(void)
{
    guard_u64((uintptr_t)nowhere, &tick_bad);
}

static void test_samples(void **state)
{
    (void)state;
    handle(sample, SA_SIGINFO, 0);
    send_tick();
    assert_int_equal(ticks, 1);
    assert_int_equal(seen.calls, 0);
    change_mask(SIG_BLOCK, ~UINT64_C(0)); /* all that can be */
    in_tick = load_nowhere;
    send_tick();
    assert_int_equal(ticks, 2);
    assert_int_equal(tick_bad, 1);
    assert_true(kernel_mask() & bit(SIGSEGV)); /* again */
    assert_true(kernel_mask() & bit(SIGBUS));
    handle(SIGSEGV, SA_SIGINFO, 0);
    send(SIGSEGV);
    send_tick(); /* loads would deliver what the program holds back */
    assert_int_equal(ticks, 2);
    assert_int_equal(armed, 1);
    assert_int_equal(seen.calls, 0);
    change_mask(SIG_SETMASK, 0);
    assert_int_equal(seen.calls, 1);
}

/* ---- what is sent while the program believes the timers' signal to be blocked ---- */

static void by_queue(int number)
{
    sigqueue(getpid(), number, (union sigval){VALUE});
}

static void by_kill(int number)
{
    kill(getpid(), number);
}

static void by_thread(int number)
{
    pthread_kill(pthread_self(), number);
}

static bool is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number);
}

static struct seen held_back(int number, void (*by)(int))
{
    seen = (struct seen){0};
    handle(number, SA_SIGINFO, 0);
    change_mask(SIG_BLOCK, bit(number));
    by(number);
    assert_int_equal(seen.calls, 0);
    assert_true(is_pending(number));
    assert_int_equal(told_mask(), bit(number));
    change_mask(SIG_UNBLOCK, bit(number));
    assert_false(is_pending(number));
    assert_int_equal(told_mask(), 0);
    assert_int_equal(kernel_mask(), 0);
    seen.mask = 0;
    return seen;
}

static void test_held_back(void **state)
{
    (void)state;
    void (*const ways[])(int) = {by_queue, by_kill, by_thread};
    for (int i = 0; i < 3; i++) {
        struct seen wanted = held_back(SIGRTMIN + 5, ways[i]);
        struct seen is = held_back(sample, ways[i]);
        assert_int_equal(wanted.calls, 1);
        assert_memory_equal(&is, &wanted, sizeof is);
    }
    signal(SIGRTMIN + 5, SIG_DFL);
}

static void test_held_back_for_a_wait(void **state)
{
    (void)state;
    handle(sample, SA_SIGINFO, 0);
    change_mask(SIG_BLOCK, bit(sample));
    send(sample);
    sigset_t set = set_of(bit(sample));
    siginfo_t info;
    assert_int_equal(sigwaitinfo(&set, &info), sample);
    assert_int_equal(info.si_value.sival_int, VALUE);
    assert_int_equal(seen.calls, 0);
}

/* ---- waiting for signals ---- */

static void test_waits_skip_samples(void **state)
{
    (void)state;
    sigset_t set = set_of(bit(sample) | bit(SIGUSR1));
    const struct timespec at_once = {0};
    siginfo_t info;
    int number = 0;
    set_kernel_mask(bit(sample) | bit(SIGUSR1));
    send_tick();
    send_tick();
    send(sample);
    assert_int_equal(sigwaitinfo(&set, &info), sample);
    assert_int_equal(info.si_value.sival_int, VALUE);
    assert_int_equal(info.si_code, SI_QUEUE);
    assert_int_equal(armed, 2); /* those samples come later */
    send_tick();
    errno = 0;
    assert_int_equal(sigtimedwait(&set, NULL, &at_once), -1);
    assert_int_equal(errno, EAGAIN);
    send_tick();
    send(SIGUSR1);
    errno = ENOTTY;
    assert_int_equal(sigwait(&set, &number), 0);
    assert_int_equal(number, SIGUSR1);
    assert_int_equal(errno, ENOTTY);
    send_tick();
    send(sample);
    assert_int_equal(sigwait(&set, &number), 0);
    assert_int_equal(number, sample);
    assert_int_equal(ticks, 0);
    set_kernel_mask(0);
}

/* ---- our own thread ---- */

static _Atomic bool has_come;

static void *be_sampler(void *argument)
{
    signals_in_sampler();
    set_kernel_mask(bit(SIGBUS));
    sigset_t none;
    sigemptyset(&none);
    has_come = true;
    sigsuspend(&none); /* until its handler has run here */
    return argument;
}

/* Main blocks the signal, so the kernel gives it to the sampler; it is main's all the same. */
static void test_signals_that_land_in_the_sampler(void **state)
{
    (void)state;
    pthread_t thread;
    handle(SIGBUS, SA_SIGINFO, 0);
    assert_int_equal(pthread_create(&thread, NULL, be_sampler, NULL), 0);
    while (!has_come)
        sched_yield();
    change_mask(SIG_BLOCK, bit(SIGBUS));
    send(SIGBUS);
    pthread_join(thread, NULL);
    assert_int_equal(seen.calls, 0);
    assert_true(is_pending(SIGBUS));
    change_mask(SIG_UNBLOCK, bit(SIGBUS));
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.tid, os_gettid());
    assert_int_equal(seen.value, VALUE);
}

/* ---- vfork ---- */

/* The line of the first check that fails in a vfork() child; it has no other way to tell. */
#define IN_CHILD(condition)                                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 251 + 1);                                                             \
    } while (0)

static __attribute__((noinline)) pid_t vfork_that(void (*act)(void))
{
    pid_t pid = vfork();
    if (!pid) {
        act();
        _exit(0);
    }
    return pid;
}

static void assert_child_is_right(void (*act)(void))
{
    int status = -1;
    pid_t pid = vfork_that(act);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What subprocess does, and a little more. */
static void reset_in_child(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL}, was;
    for (int i = 0; i < SHARED; i++) {
        IN_CHILD(!sigaction(shared[i], &standard, &was));
        IN_CHILD(was.sa_handler == on_plain_signal);
        IN_CHILD(kernel_handler(shared[i]) == SIG_DFL);
    }
    IN_CHILD(signal(SIGILL, SIG_IGN) == on_plain_signal && kernel_handler(SIGILL) == SIG_IGN);
    sigset_t set = set_of(bit(sample) | bit(SIGUSR1)), now;
    IN_CHILD(!sigprocmask(SIG_BLOCK, &set, &now) && bits_of(&now) == 0);
    IN_CHILD(!sigprocmask(SIG_BLOCK, NULL, &now) && bits_of(&now) == bits_of(&set));
    struct signals_exec exec;
    signals_before_exec(&exec);
    IN_CHILD(kernel_mask() == (bit(sample) | bit(SIGUSR1)));
    signals_after_exec(&exec);
    IN_CHILD(kernel_mask() == bit(SIGUSR1));
}

static void test_vfork(void **state)
{
    (void)state;
    for (int i = 0; i < SHARED; i++)
        handle(shared[i], 0, 0);
    for (int turn = 0; turn < 3; turn++) {
        assert_child_is_right(reset_in_child);
        for (int i = 0; i < SHARED; i++)
            assert_ptr_equal(told_action(shared[i]).sa_handler, on_plain_signal);
        assert_ours();
        assert_int_equal(told_mask(), 0);
        assert_int_equal(kernel_mask(), 0);
    }
}

static void inherit_in_child(void)
{
    sigset_t now;
    IN_CHILD(!pthread_sigmask(SIG_BLOCK, NULL, &now) && bits_of(&now) == bit(sample));
    IN_CHILD(!pthread_sigmask(SIG_UNBLOCK, &now, NULL));
    IN_CHILD(!pthread_sigmask(SIG_BLOCK, NULL, &now) && bits_of(&now) == 0);
}

static void test_vfork_inherits(void **state)
{
    (void)state;
    change_mask(SIG_BLOCK, bit(sample));
    assert_child_is_right(inherit_in_child);
    assert_int_equal(told_mask(), bit(sample));
    assert_child_is_right(inherit_in_child);
}

/* Its parent ignores the signal, it does not, and an exec that fails changes nothing about that. */
static void fail_to_exec_in_child(void)
{
    struct signals_exec exec;
    IN_CHILD(signal(SIGILL, SIG_DFL) == SIG_IGN);
    for (int turn = 0; turn < 2; turn++) {
        signals_before_exec(&exec);
        IN_CHILD(kernel_handler(SIGILL) == SIG_DFL);
        IN_CHILD(kernel_handler(SIGBUS) == SIG_IGN);
        signals_after_exec(&exec);
        IN_CHILD(kernel_handler(SIGILL) == SIG_DFL);
    }
}

static void test_vfork_and_exec_that_fails(void **state)
{
    (void)state;
    set_handler(SIGILL, SIG_IGN);
    set_handler(SIGBUS, SIG_IGN);
    assert_child_is_right(fail_to_exec_in_child);
    assert_ours();
}

/* ---- exec ---- */

static void test_exec(void **state)
{
    (void)state;
    struct signals_exec exec;
    set_handler(SIGILL, SIG_IGN);
    set_handler(sample, SIG_IGN);
    handle(SIGBUS, 0, 0);
    set_handler(SIGSEGV, SIG_DFL);
    change_mask(SIG_BLOCK, bit(sample) | bit(SIGHUP));
    signals_before_exec(&exec);
    assert_ptr_equal(kernel_handler(SIGILL), SIG_IGN);
    assert_ptr_equal(kernel_handler(sample), SIG_IGN);
    assert_ptr_equal(kernel_handler(SIGBUS), ours[2]); /* becomes the default by itself */
    assert_ptr_equal(kernel_handler(SIGSEGV), ours[1]);
    assert_int_equal(kernel_mask(), bit(sample) | bit(SIGHUP));
    signals_after_exec(&exec);
    assert_ours();
    assert_int_equal(kernel_mask(), bit(SIGHUP));
    assert_int_equal(told_mask(), bit(sample) | bit(SIGHUP));
    assert_true(kernel_action(sample).flags & SA_RESTART);
}

static void test_block_and_restore(void **state)
{
    (void)state;
    sigset_t before;
    change_mask(SIG_BLOCK, bit(SIGUSR1));
    signals_block(&before);
    uint64_t inside = kernel_mask();
    signals_restore(&before);
    assert_false(inside & (bit(SIGSEGV) | bit(SIGBUS)));
    assert_true(inside & bit(sample) && inside & bit(SIGINT));
    assert_int_equal(kernel_mask(), bit(SIGUSR1));
}

static bool begin(void)
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

#define CASE(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_at_the_start),
        CASE(test_actions_are_told),
        CASE(test_signal_is_told_as_by_libc),
        CASE(test_delivery_as_by_the_kernel),
        CASE(test_errno_is_kept),
        CASE(test_default_and_ignored),
        CASE(test_faults_of_the_program),
        CASE(test_faults_of_guarded_loads),
        CASE(test_deadly_faults),
        CASE(test_switch),
        CASE(test_any_masks),
        CASE(test_wrong_masks),
        CASE(test_inactive),
        CASE(test_threads_inherit),
        CASE(test_samples),
        CASE(test_held_back),
        CASE(test_held_back_for_a_wait),
        CASE(test_waits_skip_samples),
        CASE(test_signals_that_land_in_the_sampler),
        CASE(test_vfork),
        CASE(test_vfork_inherits),
        CASE(test_vfork_and_exec_that_fails),
        CASE(test_exec),
        CASE(test_block_and_restore),
    };
    if (!begin())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    agent.active = false;
    return fixture_close(&agent.arena) || failed;
}
