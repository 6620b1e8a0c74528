#include "agent/waits/claims.h"

#include "agent/core/agent.h"

#include <unistd.h>

/* Passes are 350 ms apart at most, unless the machine has no time for the sampler.  Claims older
 * than this are those of a process that was killed or stopped; and after some time more, its entry
 * is somebody else's. */
enum { VALID_MS = 800, GONE_MS = 5000, NS_PER_MS = 1000000 };

static struct wire_claims *_Atomic own;

/* Entries beyond have never been taken. */
static unsigned used(void)
{
    static unsigned count;
    while (count < WIRE_CLAIMS_MAX && atomic_load(&agent.control->claims[count].pid))
        count++;
    return count;
}

static uint64_t age_ns(const struct wire_claims *entry, uint64_t now_ns)
{
    uint64_t beat_ns = atomic_load_explicit(&entry->beat_mono_ns, memory_order_relaxed);
    return now_ns > beat_ns ? now_ns - beat_ns : 0;
}

static bool is_valid(const struct wire_claims *entry, uint64_t now_ns)
{
    return atomic_load_explicit(&entry->pid, memory_order_relaxed) &&
           age_ns(entry, now_ns) < (uint64_t)VALID_MS * NS_PER_MS;
}

static void take_entry(uint64_t now_ns)
{
    struct wire_claims *entries = agent.control->claims;
    int32_t pid = getpid();
    for (unsigned i = 0; i < WIRE_CLAIMS_MAX; i++) {
        int32_t holder = atomic_load(&entries[i].pid);
        if ((holder && holder != pid &&
             age_ns(&entries[i], now_ns) < (uint64_t)GONE_MS * NS_PER_MS) ||
            !atomic_compare_exchange_strong(&entries[i].pid, &holder, pid))
            continue;
        entries[i].ppid = getppid();
        for (int rank = 0; rank < WIRE_RANKS; rank++)
            atomic_store(&entries[i].threads[rank], 0);
        atomic_store(&entries[i].beat_mono_ns, now_ns);
        atomic_store(&own, &entries[i]);
        atomic_fetch_add(&agent.control->joined, 1);
        return;
    }
}

static void publish(const struct claims *claims, uint64_t now_ns)
{
    struct wire_claims *entry = atomic_load(&own);
    if (!entry || atomic_load(&entry->pid) != getpid()) { /* none yet, or taken from a sleeper */
        atomic_store(&own, NULL);
        take_entry(now_ns);
        entry = atomic_load(&own);
    }
    if (!entry)
        return;
    for (int rank = 0; rank < WIRE_RANKS; rank++)
        atomic_store_explicit(&entry->threads[rank], claims->threads[rank], memory_order_relaxed);
    atomic_store(&entry->beat_mono_ns, now_ns);
}

enum wire_rank claims_settle(const struct claims *claims, uint64_t now_ns, unsigned *sharers)
{
    unsigned sums[WIRE_RANKS + 1] = {0};
    publish(claims, now_ns);
    for (unsigned i = 0, end = used(); i < end; i++) {
        const struct wire_claims *entry = &agent.control->claims[i];
        for (int rank = 0; is_valid(entry, now_ns) && rank < WIRE_RANKS; rank++)
            sums[rank] += atomic_load_explicit(&entry->threads[rank], memory_order_relaxed);
    }
    enum wire_rank best = 0;
    while (best < WIRE_RANKS && !sums[best])
        best++;
    *sharers = sums[best];
    return best;
}

void claims_join(uint64_t now_ns)
{
    publish(&(struct claims){{0}}, now_ns);
}

void claims_leave(void)
{
    struct wire_claims *entry = atomic_exchange(&own, NULL);
    int32_t pid = getpid();
    if (entry)
        atomic_compare_exchange_strong(&entry->pid, &pid, 0);
}

void claims_in_child(bool is_recorded)
{
    (void)is_recorded;
    atomic_store(&own, NULL); /* the parent's */
}

uint32_t claims_joined(void)
{
    return atomic_load_explicit(&agent.control->joined, memory_order_relaxed);
}

bool claims_is_ours(pid_t pid, uint64_t now_ns)
{
    pid_t self = getpid();
    for (unsigned i = 0, end = used(); i < end; i++) {
        const struct wire_claims *entry = &agent.control->claims[i];
        int32_t holder = atomic_load_explicit(&entry->pid, memory_order_relaxed);
        if (is_valid(entry, now_ns) && (pid == -1 ? entry->ppid == self : holder == pid))
            return true;
    }
    return false;
}

pid_t claims_next(unsigned *at, uint64_t now_ns)
{
    while (*at < used()) {
        const struct wire_claims *entry = &agent.control->claims[(*at)++];
        if (is_valid(entry, now_ns))
            return atomic_load_explicit(&entry->pid, memory_order_relaxed);
    }
    return 0;
}
