/* Actions of the signals shared with the program: what it asked for, what it is told, what happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "os/guard.h"
#include "signals_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

#define CASE(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_actions_are_told),
        CASE(test_signal_is_told_as_by_libc),
        CASE(test_delivery_as_by_the_kernel),
        CASE(test_errno_is_kept),
        CASE(test_default_and_ignored),
        CASE(test_faults_of_the_program),
        CASE(test_faults_of_guarded_loads),
        CASE(test_deadly_faults),
        CASE(test_switch),
    };
    return fixture_run(tests, sizeof tests / sizeof *tests);
}
