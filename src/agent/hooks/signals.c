#include "agent/hooks/signals.h"

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/lock.h"
#include "agent/cpu/tick.h"
#include "os/guard.h"
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * What the program wants for a signal of ours.  Two copies, so that a handler
 * reads a complete one while another thread changes it.
 */
struct wish {
    int signal;
    _Atomic unsigned current;
    struct sigaction copies[2];
};

static struct wish wishes[SIGNALS_SHARED];
static _Atomic bool installed;
static struct lock changing;
static __thread bool wants_blocked __attribute__((tls_model("initial-exec")));
static __thread struct {
    pid_t pid;
    bool wants_blocked;
} guest __attribute__((tls_model("initial-exec"))); /* the thread's last vfork() child */
static __thread bool is_sampler __attribute__((tls_model("initial-exec")));

static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static sighandler_t (*real_signal)(int, sighandler_t);
static int (*real_pthread_sigmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigprocmask)(int, const sigset_t *, sigset_t *);
static int (*real_sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);

void signals_init(void)
{
    *(void **)&real_sigaction = dlsym(RTLD_NEXT, "sigaction");
    *(void **)&real_signal = dlsym(RTLD_NEXT, "signal");
    *(void **)&real_pthread_sigmask = dlsym(RTLD_NEXT, "pthread_sigmask");
    *(void **)&real_sigprocmask = dlsym(RTLD_NEXT, "sigprocmask");
    *(void **)&real_sigtimedwait = dlsym(RTLD_NEXT, "sigtimedwait");
    const int numbers[SIGNALS_SHARED] = {os_sample_signal(), SIGSEGV, SIGBUS, SIGILL};
    for (int i = 0; i < SIGNALS_SHARED; i++)
        wishes[i].signal = numbers[i];
}

void signals_in_sampler(void)
{
    is_sampler = true;
}

/* Where it stands whether the caller wants the timers' signal blocked.  A vfork() child begins with
 * its parent's wish, and what it wishes then is its own. */
static bool *blocked_wish(void)
{
    if (!forks_is_guest())
        return &wants_blocked;
    if (guest.pid != getpid()) {
        guest.pid = getpid();
        guest.wants_blocked = wants_blocked;
    }
    return &guest.wants_blocked;
}

bool signals_sample_is_blocked(void)
{
    return atomic_load_explicit(&installed, memory_order_relaxed) && *blocked_wish();
}

void signals_inherit(bool blocked)
{
    wants_blocked = blocked;
}

static struct wish *wish_for(int signal)
{
    if (!atomic_load_explicit(&installed, memory_order_acquire))
        return NULL;
    for (int i = 0; i < SIGNALS_SHARED; i++)
        if (wishes[i].signal == signal)
            return &wishes[i];
    return NULL;
}

void signals_block(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    real_pthread_sigmask(SIG_SETMASK, &all, before);
}

void signals_restore(const sigset_t *before)
{
    real_pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void get_wish(const struct wish *wish, struct sigaction *now)
{
    *now = wish->copies[atomic_load(&wish->current)];
}

/* With signals blocked, so that no handler of this thread waits for itself. */
static void change_wish(struct wish *wish, const struct sigaction *to, struct sigaction *was)
{
    sigset_t before;
    signals_block(&before);
    lock_take(&changing);
    if (was)
        get_wish(wish, was);
    unsigned other = !atomic_load(&wish->current);
    wish->copies[other] = *to;
    atomic_store(&wish->current, other);
    lock_give(&changing);
    signals_restore(&before);
}

void signals_in_child(bool is_recorded)
{
    (void)is_recorded;
    lock_give(&changing);
}

/* Let the signal have its default effect on this thread, as if we had never been there. */
static void default_effect(int signal, siginfo_t *info)
{
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    real_sigaction(signal, &standard, NULL);
    /* A fault happens again on return; a signal that was sent has to be sent again. */
    if (info->si_code <= 0)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), os_gettid(), signal, info);
}

static void pass_on(struct wish *wish, siginfo_t *info, void *ucontext)
{
    struct sigaction action;
    get_wish(wish, &action);
    if (action.sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
        default_effect(wish->signal, info);
        return;
    }
    if (action.sa_flags & SA_RESETHAND) {
        struct sigaction standard = action;
        standard.sa_handler = SIG_DFL;
        change_wish(wish, &standard, NULL);
    }
    sigset_t own, before;
    sigemptyset(&own);
    sigaddset(&own, wish->signal);
    /* On the way here the timers' signal is blocked, the others are not. */
    real_pthread_sigmask(action.sa_flags & SA_NODEFER ? SIG_UNBLOCK : SIG_BLOCK, &own, &before);
    real_pthread_sigmask(SIG_BLOCK, &action.sa_mask, NULL);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(wish->signal, info, ucontext);
    else
        action.sa_handler(wish->signal);
    real_pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_wished(const struct wish *wish, sighandler_t handler)
{
    struct sigaction action;
    get_wish(wish, &action);
    return action.sa_handler == handler;
}

/* The kernel lets a thread forge the sender's details to itself alone, unless they say "queued". */
static void make_sendable(siginfo_t *info)
{
    if (info->si_code == SI_USER)
        info->si_code = SI_QUEUE;
}

/*
 * A signal sent to the process landed in our sampler, where no handler of the
 * program has any business: the kernel takes any thread that does not block it
 * when the main thread does.  There it becomes pending.
 */
static bool hand_to_main(int signal, siginfo_t *info)
{
    make_sendable(info);
    return !syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), signal, info);
}

static void on_fault(int signal, siginfo_t *info, void *ucontext)
{
    if (info->si_code > 0 && guard_recover(ucontext))
        return;
    int saved = errno;
    struct wish *wish = wish_for(signal);
    /* Sent by `scalene.profile` to a program that has no use of its own for the signal. */
    if (info->si_code == SI_USER && signal != SIGSEGV && is_wished(wish, SIG_DFL)) {
        atomic_store(&agent.control->on, signal == SIGILL);
        atomic_fetch_add(&agent.control->generation, 1);
    } else if (!is_sampler || info->si_code > 0 || !hand_to_main(signal, info)) {
        pass_on(wish, info, ucontext);
    }
    errno = saved;
}

/*
 * Guarded loads need the fault signals, which a thread may have blocked together
 * with all others.  False when one of them is pending: to let it through would
 * be to deliver what the program holds back.
 */
static bool let_faults_through(const ucontext_t *context)
{
    const sigset_t *mask = &context->uc_sigmask;
    if (!sigismember(mask, SIGSEGV) && !sigismember(mask, SIGBUS))
        return true;
    sigset_t faults, pending;
    if (sigpending(&pending) || sigismember(&pending, SIGSEGV) || sigismember(&pending, SIGBUS))
        return false;
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    real_pthread_sigmask(SIG_UNBLOCK, &faults, NULL); /* undone by the return */
    return true;
}

/* No sample now: the time counts with the next one. */
static void put_off(struct thread *thread)
{
    if (thread && thread->has_timer)
        os_timer_arm(thread->timer, threads_next_interval_ns(thread));
}

/*
 * The program sent itself the timers' signal, which it believes to be blocked.
 * So block it, from the return on, and send it again: it is pending then.  The
 * thread goes without samples until it unblocks the signal.
 */
static void hold_back(int signal, siginfo_t *info, ucontext_t *context)
{
    sigaddset(&context->uc_sigmask, signal);
    if (info->si_code == SI_TKILL) {
        syscall(SYS_rt_tgsigqueueinfo, getpid(), os_gettid(), signal, info);
    } else {
        if (os_gettid() != getpid())
            make_sendable(info);
        syscall(SYS_rt_sigqueueinfo, getpid(), signal, info);
    }
}

static void on_sample(int signal, siginfo_t *info, void *ucontext)
{
    int saved = errno;
    struct thread *thread = threads_self();
    if (!os_timer_is_ours(info)) {
        if (wants_blocked)
            hold_back(signal, info, ucontext);
        else
            pass_on(wish_for(signal), info, ucontext);
    } else if (thread && let_faults_through(ucontext)) {
        tick_sample(thread, ucontext);
    } else {
        put_off(thread);
    }
    errno = saved;
}

static bool install(struct wish *wish, struct sigaction *was)
{
    struct sigaction action;
    bool is_fault = wish != &wishes[0];
    memset(&action, 0, sizeof action);
    action.sa_sigaction = is_fault ? on_fault : on_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | (is_fault ? SA_NODEFER : 0);
    return !real_sigaction(wish->signal, &action, was);
}

/* A program may be started with the timers' signal blocked: it is to look so, and not to be so. */
static void take_over_mask(void)
{
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, os_sample_signal());
    real_pthread_sigmask(SIG_UNBLOCK, &ours, &before);
    wants_blocked = sigismember(&before, os_sample_signal()) == 1;
}

bool signals_install(void)
{
    bool ok = true;
    atomic_store(&installed, false);
    for (int i = 0; i < SIGNALS_SHARED; i++) {
        ok &= install(&wishes[i], &wishes[i].copies[0]);
        atomic_store(&wishes[i].current, 0);
    }
    take_over_mask();
    atomic_store_explicit(&installed, true, memory_order_release);
    return ok;
}

void signals_before_exec(struct signals_exec *exec)
{
    struct sigaction now, ignore = {.sa_handler = SIG_IGN};
    exec->is_masked = signals_sample_is_blocked();
    for (int i = 0; i < SIGNALS_SHARED; i++)
        exec->is_ignored[i] = wish_for(wishes[i].signal) && is_wished(&wishes[i], SIG_IGN) &&
                              !real_sigaction(wishes[i].signal, NULL, &now) &&
                              (now.sa_flags & SA_SIGINFO) &&
                              !real_sigaction(wishes[i].signal, &ignore, NULL);
    if (!exec->is_masked)
        return;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, os_sample_signal());
    real_pthread_sigmask(SIG_BLOCK, &ours, &exec->mask);
}

void signals_after_exec(const struct signals_exec *exec)
{
    if (exec->is_masked)
        signals_restore(&exec->mask);
    for (int i = 0; i < SIGNALS_SHARED; i++)
        if (exec->is_ignored[i])
            install(&wishes[i], NULL);
}

static int change_action(struct wish *wish, const struct sigaction *to, struct sigaction *was)
{
    if (!to) {
        if (was)
            get_wish(wish, was);
        return 0;
    }
    struct sigaction copy = *to; /* `was` may be the same object */
    if (forks_is_guest()) {
        if (was)
            get_wish(wish, was);
        return real_sigaction(wish->signal, &copy, NULL);
    }
    change_wish(wish, &copy, was);
    return 0;
}

AGENT_EXPORT int sigaction(int signal, const struct sigaction *to, struct sigaction *was)
{
    if (!real_sigaction)
        signals_init();
    struct wish *wish = wish_for(signal);
    return wish ? change_action(wish, to, was) : real_sigaction(signal, to, was);
}

AGENT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (!real_signal)
        signals_init();
    struct wish *wish = wish_for(number);
    if (!wish)
        return real_signal(number, handler);
    struct sigaction to, was;
    memset(&to, 0, sizeof to);
    to.sa_handler = handler;
    to.sa_flags = SA_RESTART;
    sigaddset(&to.sa_mask, number); /* as libc does */
    return change_action(wish, &to, &was) ? SIG_ERR : was.sa_handler;
}

/*
 * Change the mask as asked, but for the timers' signal, which stays deliverable;
 * the program is told what it would have been.
 */
static int change_mask(int (*real)(int, const sigset_t *, sigset_t *), int how, const sigset_t *set,
                       sigset_t *was)
{
    if (!atomic_load_explicit(&agent.active, memory_order_relaxed))
        return real(how, set, was);
    int ours = os_sample_signal();
    bool *wish = blocked_wish(), was_blocked = *wish;
    sigset_t copy;
    const sigset_t *passed = set;
    if (set && sigismember(set, ours) == 1) {
        if (how == SIG_BLOCK || how == SIG_SETMASK) {
            copy = *set;
            sigdelset(&copy, ours);
            passed = &copy;
            *wish = true;
        } else if (how == SIG_UNBLOCK) {
            *wish = false;
        }
    } else if (set && how == SIG_SETMASK) {
        *wish = false;
    }
    int result = real(how, passed, was);
    if (!result && was && was_blocked)
        sigaddset(was, ours);
    return result;
}

AGENT_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *was)
{
    if (!real_pthread_sigmask)
        signals_init();
    return change_mask(real_pthread_sigmask, how, set, was);
}

AGENT_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *was)
{
    if (!real_sigprocmask)
        signals_init();
    return change_mask(real_sigprocmask, how, set, was);
}

/* Wait as asked, but not for a signal of our timers. */
static int wait_for(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    if (!real_sigtimedwait)
        signals_init();
    for (;;) {
        siginfo_t own;
        int number = real_sigtimedwait(set, &own, timeout);
        if (number == os_sample_signal() && os_timer_is_ours(&own)) {
            put_off(threads_self());
            continue;
        }
        if (number > 0 && info)
            *info = own;
        return number;
    }
}

AGENT_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    return wait_for(set, info, timeout);
}

AGENT_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return wait_for(set, info, NULL);
}

AGENT_EXPORT int sigwait(const sigset_t *set, int *number)
{
    int saved = errno, got;
    do
        got = wait_for(set, NULL, NULL);
    while (got < 0 && errno == EINTR);
    int failure = got < 0 ? errno : 0;
    if (!failure)
        *number = got;
    errno = saved;
    return failure;
}
