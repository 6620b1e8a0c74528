#include "agent/waits/sampler.h"

#include "agent/async/async.h"
#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/lock.h"
#include "agent/core/threads.h"
#include "agent/core/timeline.h"
#include "agent/hooks/signals.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"
#include "agent/waits/claims.h"
#include "agent/waits/pass.h"
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

enum {
    ALIKE_PASSES = 8, /* after so many in which nothing ran, or nothing waited, passes are spread */
    SPREAD_IDLE_MAX = 4, /* out a little, at most so far */
    SPREAD_BUSY_MAX = 2,
    COST_SHARE = 500,         /* this thread may use one part in so many of a processor's time, */
    LOOP_SHARE = 150,         /* or, beside an event loop, in so many, */
    AHEAD_NS = 2500000,       /* and so much at once, as at the start; */
    FEW_THREADS = 16,         /* but of so few the next pass is no later than after so many times */
    PAUSE_WAITS = 4,          /* the interval, where some of them wait, or */
    PAUSE_COMPUTES = 8,       /* where none has for a while; */
    PAUSE_MORE_NS = 1800000,  /* for each one more, so much later, and never later than that: */
    PAUSE_MAX_NS = 350000000, /* else waits are missed */
    SMOOTHING = 8,            /* passes, that the mean cost is taken over */
    SLOWLY = 16,              /* passes, over which it makes up for what a single one used, */
    OWED_MOST_NS = 3000000,   /* up to that */
    STACK_BYTES = 64 * 1024,
    RSS_EVERY = 16, /* passes */
};

static struct lock starting; /* one starts or ends the thread at a time */
static pthread_t thread_ident;
static _Atomic pid_t thread_tid;
static _Atomic uint32_t is_asked_to_end;
static int arena_fd = -1;            /* kept open; -1: it cannot be */
static _Atomic uint64_t reported_ns; /* of this process's CPU time, to the session */
static uint64_t earlier_own_ns;      /* CPU time of samplers that this process had before */

/* What this thread may use now, and when that was reckoned.  With all it does: waking up costs more
 * than most passes. */
static struct {
    int64_t share;   /* COST_SHARE or LOOP_SHARE */
    int64_t left_ns; /* negative: it used too much */
    int64_t mean_ns; /* from one pass to the next */
    uint64_t at_ns, own_ns;
} budget;

/* The process's CPU time, our own thread's, and the difference: what the program used. */
struct clocks {
    uint64_t process_ns, own_ns, program_ns;
};

static struct clocks read_clocks(void)
{
    struct clocks clocks = {.own_ns = earlier_own_ns + os_thread_cpu_ns(),
                            .process_ns = os_process_cpu_ns()};
    clocks.program_ns = clocks.process_ns - clocks.own_ns;
    return clocks;
}

static void beat(uint64_t now_ns, uint64_t wall_ns, const struct clocks *clocks, bool on)
{
    struct wire_header *header = agent.arena.header;
    if (on)
        atomic_fetch_add(&header->on_ns, wall_ns);
    else
        atomic_fetch_add(&header->off_cpu_ns,
                         clocks->process_ns - atomic_load(&header->beat_cpu_ns));
    atomic_store(&header->beat_mono_ns, now_ns);
    atomic_store(&header->beat_cpu_ns, clocks->process_ns);
    atomic_store(&header->sampler_cpu_ns, clocks->own_ns);
}

static void grow_arena(void)
{
    if (!arena_wants_more(&agent.arena))
        return;
    int fd = arena_fd >= 0 ? arena_fd : arena_open_again(&agent.arena);
    arena_grow(&agent.arena, fd);
    if (arena_fd < 0)
        os_close(&fd);
}

/* A process whose threads have all ended, as one does that was forked off in a thread, ends with
 * the last of them: that must not be us. */
static bool is_alone(void)
{
    for (unsigned i = 0; i < threads_used(); i++) {
        uint32_t state = atomic_load(&threads_at(i)->state);
        if (state == THREAD_LIVE || state == THREAD_TAKEN)
            return false;
    }
    return true;
}

static unsigned spread_for(unsigned passes, unsigned most)
{
    unsigned spread = 1 + passes / ALIKE_PASSES;
    return spread < most ? spread : most;
}

/* What is known from pass to pass. */
struct course {
    uint64_t last_ns, last_session_ns, last_late_ns;
    uint64_t owed_ns; /* idle time charged although somebody ran, of whom we heard later */
    unsigned passes, idle_passes, busy_passes;
};

/* Tell the session what this process has used.  Its first and last word come late: others may have
 * seen nobody run meanwhile. */
static void report_cpu(uint64_t program_ns, bool is_last)
{
    uint64_t before_ns = atomic_load(&reported_ns);
    do { /* two clocks, read in turn: may seem to go back */
        if (program_ns <= before_ns)
            return;
    } while (!atomic_compare_exchange_weak(&reported_ns, &before_ns, program_ns));
    atomic_fetch_add(&agent.control->cpu_ns, program_ns - before_ns);
    if (is_last || !before_ns)
        atomic_fetch_add(&agent.control->late_cpu_ns, program_ns - before_ns);
}

static void begin(struct course *course)
{
    atomic_store(&thread_tid, os_gettid());
    signals_in_sampler();
    memory_disown();
    os_private_directory();
    bool may_keep = os_private_descriptors();
    const struct wire_header *header = agent.arena.header;
    struct clocks clocks = read_clocks();
    uint64_t beat_ns = atomic_load(&header->beat_cpu_ns) - atomic_load(&header->sampler_cpu_ns);
    report_cpu(clocks.program_ns, false);
    *course = (struct course){
        /* from the last beat on, whoever noted it */
        .last_ns = atomic_load(&header->beat_mono_ns),
        .last_session_ns = atomic_load(&agent.control->cpu_ns) - (clocks.program_ns - beat_ns),
        .last_late_ns = atomic_load(&agent.control->late_cpu_ns),
    };
    arena_fd = may_keep ? arena_open_again(&agent.arena) : -1;
    if (!budget.at_ns) {
        budget.left_ns = AHEAD_NS;
        budget.mean_ns = 0;
        budget.at_ns = os_mono_ns();
    }
    claims_join(os_mono_ns());
    pass_begin(course->last_ns, may_keep);
}

void sampler_farewell(void)
{
    uint64_t own_ns = atomic_load(&agent.arena.header->sampler_cpu_ns);
    uint64_t process_ns = os_process_cpu_ns();
    report_cpu(process_ns > own_ns ? process_ns - own_ns : 0, true);
    claims_leave();
}

/* How much of the time since the last pass nobody used. */
static uint64_t idle_since(struct course *course, uint64_t wall_ns)
{
    uint64_t session_ns = atomic_load(&agent.control->cpu_ns);
    uint64_t late_ns = atomic_load(&agent.control->late_cpu_ns);
    uint64_t cpu_ns = session_ns - course->last_session_ns;
    uint64_t late = late_ns - course->last_late_ns;
    course->last_session_ns = session_ns;
    course->last_late_ns = late_ns;
    if (cpu_ns >= wall_ns) {
        uint64_t surplus_ns = cpu_ns - wall_ns;
        course->owed_ns += surplus_ns < late ? surplus_ns : late;
        return 0;
    }
    uint64_t idle_ns = wall_ns - cpu_ns;
    uint64_t paid_ns = idle_ns < course->owed_ns ? idle_ns : course->owed_ns;
    course->owed_ns -= paid_ns;
    return idle_ns - paid_ns;
}

static struct pass next_pass(struct course *course, const struct clocks *clocks)
{
    struct pass pass = {.now_ns = os_mono_ns()};
    pass.wall_ns = pass.now_ns - course->last_ns;
    course->last_ns = pass.now_ns;
    report_cpu(clocks->program_ns, false);
    pass.idle_ns = idle_since(course, pass.wall_ns);
    return pass;
}

/* What it took that is not to be counted: reading tasks keeps a budget of its own. */
static uint64_t one_pass(struct course *course)
{
    struct clocks clocks = read_clocks();
    struct pass pass = next_pass(course, &clocks);
    bool on = atomic_load(&agent.control->on);
    if (!on)
        pass_skip(pass.now_ns);
    else if (!(agent.control->flags & WIRE_FLAG_VIRTUAL_TIME))
        pass_look(&pass);
    /* A program that sleeps, or does nothing but compute, is left alone a little longer. */
    course->idle_passes = pass.any_moved ? 0 : course->idle_passes + 1;
    course->busy_passes = pass.any_waited ? 0 : course->busy_passes + 1;
    uint64_t async_ns = async_pass(pass.now_ns, on);
    beat(pass.now_ns, pass.wall_ns, &clocks, on);
    if (course->passes++ % RSS_EVERY == 0)
        atomic_store(&agent.arena.header->peak_rss_bytes, os_peak_rss_bytes());
    grow_arena();
    memory_pass();
    timeline_compact();
    return async_ns;
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* What the sampler took since this was last called, but for async_ns. */
static void count_cost(uint64_t async_ns)
{
    uint64_t now_ns = os_mono_ns(), own_ns = earlier_own_ns + os_thread_cpu_ns();
    int64_t used_ns = (int64_t)(own_ns - budget.own_ns - async_ns);
    int64_t mean_ns = budget.mean_ns ? budget.mean_ns : used_ns;
    budget.share = async_is_wanted() ? LOOP_SHARE : COST_SHARE;
    budget.left_ns += (int64_t)(now_ns - budget.at_ns) / budget.share;
    budget.left_ns = least(budget.left_ns, AHEAD_NS) - used_ns;
    if (budget.left_ns < -OWED_MOST_NS)
        budget.left_ns = -OWED_MOST_NS;
    /* One that had to do something special, such as to make the arena larger, counts as four. */
    budget.mean_ns = (mean_ns * (SMOOTHING - 1) + least(used_ns, 4 * mean_ns)) / SMOOTHING;
    budget.at_ns = now_ns;
    budget.own_ns = own_ns;
}

/* The pause that pays for a pass, and for a part of what is owed beyond that: if it paid for all at
 * once, a costly pass would keep the next ones away. */
static uint64_t due_pause_ns(const struct course *course)
{
    if (budget.left_ns >= 0)
        return 0;
    int64_t owed_ns = -budget.left_ns;
    int64_t due_ns = (least(owed_ns, budget.mean_ns) + owed_ns / SLOWLY) * budget.share;
    int64_t more = (int64_t)threads_used() - FEW_THREADS;
    bool computes = course->busy_passes >= ALIKE_PASSES && !async_is_wanted(); /* tasks wait */
    int64_t intervals = computes ? PAUSE_COMPUTES : PAUSE_WAITS;
    int64_t most_ns = (int64_t)agent.control->wait_interval_ns * intervals +
                      (more > 0 ? more * PAUSE_MORE_NS : 0);
    return (uint64_t)least(due_ns, least(most_ns, PAUSE_MAX_NS));
}

/* How long to sleep: as told by what the program does, and so long that we take no more than our
 * share of a processor. */
static uint64_t pause_for(const struct course *course)
{
    unsigned spread = course->idle_passes ? spread_for(course->idle_passes, SPREAD_IDLE_MAX)
                                          : spread_for(course->busy_passes, SPREAD_BUSY_MAX);
    uint64_t pause_ns = agent.control->wait_interval_ns * spread;
    uint64_t due_ns = due_pause_ns(course);
    return due_ns > pause_ns ? due_ns : pause_ns;
}

/* Tasks take turns at some pace of their own.  If that is ours, too, each look finds them at the
 * same point of it: so beside an event loop pauses are shorter by chance, by up to a quarter. */
static uint64_t scattered(uint64_t pause_ns)
{
    static uint32_t random;
    if (!async_is_wanted())
        return pause_ns;
    random = random * 1664525u + 1013904223u;
    return pause_ns - pause_ns / 4 * (random >> 16) / UINT16_MAX;
}

static void *sample_forever(void *argument)
{
    (void)argument;
    struct course course;
    begin(&course);
    for (;;) {
        duty_sleep(scattered(pause_for(&course)));
        if (is_alone() || atomic_load(&is_asked_to_end))
            break;
        count_cost(one_pass(&course));
    }
    earlier_own_ns += os_thread_cpu_ns();
    return NULL;
}

/* A section of the arena that fills up meanwhile is made larger at once. */
void sampler_pause(uint64_t ns)
{
    uint64_t began_ns = os_mono_ns(), slept_ns = 0;
    while (!atomic_load(&is_asked_to_end) && slept_ns < ns) {
        os_sleep(ns - slept_ns, &agent.arena.is_hungry);
        if (!atomic_exchange(&agent.arena.is_hungry, 0))
            return;
        grow_arena();
        slept_ns = os_mono_ns() - began_ns;
    }
}

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Without our own pthread_create() in between: it is not the program's thread. */
static bool create(void)
{
    pthread_attr_t attributes;
    size_t stack = STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : (size_t)PTHREAD_STACK_MIN;
    if (!real_create) /* once, and not in a child: the loader's lock may be taken for ever there */
        *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    int failed = real_create(&thread_ident, &attributes, sample_forever, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

void sampler_start(void)
{
    sigset_t before;
    signals_block(&before); /* inherited by the new thread */
    lock_take(&starting);
    if (!atomic_load(&agent.has_sampler)) {
        atomic_store(&is_asked_to_end, 0);
        atomic_store(&thread_tid, 0);
        atomic_store(&agent.has_sampler, true); /* before its first pass */
        if (!create()) {
            atomic_store(&agent.has_sampler, false);
            arena_lost(&agent.arena, WIRE_LOST_SAMPLER);
        }
    }
    lock_give(&starting);
    signals_restore(&before);
}

bool sampler_stop(void)
{
    sigset_t before;
    forks_check(); /* in a child nobody told us of there is none */
    signals_block(&before);
    lock_take(&starting);
    bool was_there = atomic_load(&agent.has_sampler);
    if (was_there) {
        atomic_store(&is_asked_to_end, 1);
        atomic_store(&agent.arena.is_hungry, 1); /* which it sleeps on */
        os_wake(&agent.arena.is_hungry);
        pthread_join(thread_ident, NULL);
        os_wait_for_end(atomic_load(&thread_tid));
        atomic_store(&agent.has_sampler, false);
    }
    lock_give(&starting);
    signals_restore(&before);
    return was_there;
}

void sampler_in_child(bool is_recorded)
{
    lock_give(&starting);
    atomic_store(&agent.has_sampler, false);
    earlier_own_ns = budget.at_ns = budget.own_ns = 0;
    atomic_store(&reported_ns, 0);
    claims_in_child(is_recorded);
    if (is_recorded)
        sampler_start();
}
