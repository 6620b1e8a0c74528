#include "agent/waits/still.h"

#include "os/os.h"

enum {
    FEW_THREADS = 32,
    PASSES = 4,      /* so many it has not run */
    SLACK_NS = 2000, /* between two clocks that are read in turn; a thread that wakes uses more */
};

/* By index, apart from struct thread, which takes some pages each. */
static struct {
    uint8_t passes; /* that it has stood still; PASSES: it is set apart */
    uint8_t rank;
} entries[THREADS_MAX];
static unsigned count; /* of those set apart */
static struct claims claims;
static uint64_t theirs_ns; /* of the process's clock, with a constant */
static uint32_t seen_joined;

void still_clear(void)
{
    for (unsigned i = 0; i < THREADS_MAX; i++)
        entries[i].passes = 0;
    count = 0;
    claims = (struct claims){{0}};
}

bool still_is(unsigned index)
{
    return entries[index].passes == PASSES;
}

unsigned still_rank(unsigned index)
{
    return entries[index].rank;
}

const struct claims *still_claims(void)
{
    return &claims;
}

static void set_apart(const struct thread *thread)
{
    entries[thread->index].rank = thread->rank;
    if (thread->rank < WIRE_RANKS)
        claims.threads[thread->rank]++;
    theirs_ns += thread->pass_cpu_ns;
    count++;
}

static void take_back(const struct thread *thread)
{
    unsigned rank = entries[thread->index].rank;
    if (rank < WIRE_RANKS)
        claims.threads[rank]--;
    theirs_ns -= thread->pass_cpu_ns;
    count--;
}

void still_note(const struct thread *thread, bool stood)
{
    uint8_t *passes = &entries[thread->index].passes;
    if (*passes == PASSES)
        take_back(thread);
    if (!stood)
        *passes = 0;
    else if (*passes < PASSES - 1 || (*passes < PASSES && threads_used() > FEW_THREADS))
        ++*passes;
    if (*passes == PASSES)
        set_apart(thread);
}

/* The clock of a thread that runs on another processor is at its last tick in the process's clock,
 * unless it has just been asked for. */
static uint64_t clock_of_theirs(void)
{
    uint64_t others_ns = 0, cpu_ns;
    for (unsigned i = 0, used = threads_used(); i < used; i++) {
        if (still_is(i))
            continue;
        const struct thread *thread = threads_at(i);
        if (atomic_load(&thread->state) == THREAD_LIVE && os_thread_cpu_of(thread->tid, &cpu_ns))
            others_ns += cpu_ns;
    }
    others_ns += os_thread_cpu_ns();
    return os_process_cpu_ns() - others_ns;
}

bool still_hold(void)
{
    if (!count)
        return true;
    uint64_t before_ns = theirs_ns;
    uint32_t joined = claims_joined();
    bool is_new = joined != seen_joined;
    theirs_ns = clock_of_theirs();
    seen_joined = joined;
    return !is_new && theirs_ns - before_ns + SLACK_NS <= 2 * (uint64_t)SLACK_NS;
}
