/* Masks, samples and waiting for signals; what children of vfork() do, and what is exec'd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/guard.h"
#include "signals_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

/* ---- masks ---- */

/* The program was started with the timers' signal blocked (main). */
static void test_mask_at_the_start(void **state)
{
    (void)state;
    assert_true(told_mask() & bit(sample));
    assert_false(kernel_mask() & bit(sample));
}

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

/* As a timer of ours would, to the calling thread. */
static void send_tick(void)
{
    siginfo_t info = {.si_signo = sample, .si_code = SI_TIMER};
    info.si_value.sival_ptr = &forged_mark;
    assert_int_equal(syscall(SYS_rt_tgsigqueueinfo, getpid(), os_gettid(), sample, &info), 0);
}

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

#define CASE(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_at_the_start),
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
    return fixture_run(tests, sizeof tests / sizeof *tests);
}
