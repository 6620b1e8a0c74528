#include "agent/memory/clock.h"

#include "agent/core/threads.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"

enum { CLOCKS = 1024, BYTES_BITS = 48 };
#define BYTES_MASK (((uint64_t)1 << BYTES_BITS) - 1)

/* Of threads beyond CLOCKS several have one together; the first is that of all threads we do not
 * know. */
static struct clock {
    uint64_t bytes;
    uint64_t told_at; /* all_bytes, when its thread last told */
    const struct thread *thread;
    uint32_t serial;
} clocks[CLOCKS];
static uint32_t threads_seen;
static uint64_t all_bytes; /* of all threads */

void clock_begin(void)
{
    for (unsigned i = 0; i < CLOCKS; i++)
        clocks[i] = (struct clock){0};
    threads_seen = 0;
    all_bytes = 0;
    memory_self.clock = (struct memory_clock){0};
}

static uint64_t asked_for(const struct memory_gap *gap)
{
    return gap->given_bytes - (uint64_t)gap->left_bytes;
}

static bool has_ended(const struct clock *clock)
{
    return clock->thread &&
           (atomic_load_explicit(&clock->thread->state, memory_order_acquire) != THREAD_LIVE ||
            atomic_load_explicit(&clock->thread->serial, memory_order_relaxed) != clock->serial);
}

/* What its thread has asked for; once that has ended, what all have since it last told. */
static uint64_t bytes_of(const struct clock *clock)
{
    return clock->bytes + (has_ended(clock) ? all_bytes - clock->told_at : 0);
}

static void take_clock(void)
{
    const struct thread *thread = threads_self();
    memory_self.clock.is_known = true;
    if (!thread)
        return;
    memory_self.clock.id = (uint16_t)(1 + threads_seen++ % (CLOCKS - 1));
    struct clock *clock = &clocks[memory_self.clock.id];
    clock->bytes = bytes_of(clock); /* if it was another one's */
    clock->thread = thread;
    clock->serial = atomic_load_explicit(&thread->serial, memory_order_relaxed);
}

static void tell(void)
{
    struct memory_clock *self = &memory_self.clock;
    uint64_t now = asked_for(&memory_self.heap) + asked_for(&memory_self.objects);
    if (!self->is_known)
        take_clock();
    clocks[self->id].bytes += now - self->told_bytes;
    all_bytes += now - self->told_bytes;
    clocks[self->id].told_at = all_bytes;
    self->told_bytes = now;
}

uint64_t clock_born(uint64_t now_mono_ns)
{
    tell();
    uint64_t bytes = clocks[memory_self.clock.id].bytes + duty_missed_bytes(now_mono_ns);
    return (uint64_t)memory_self.clock.id << BYTES_BITS | (bytes & BYTES_MASK);
}

bool clock_has_passed(uint64_t born, uint64_t window_bytes, uint64_t interval_bytes,
                      uint64_t now_mono_ns)
{
    unsigned id = (unsigned)(born >> BYTES_BITS);
    tell();
    uint64_t bytes = bytes_of(&clocks[id]) + duty_missed_bytes(now_mono_ns) - born;
    if (id != memory_self.clock.id)
        bytes += interval_bytes / 2;
    /* By its sign: what was missed is an estimate, and may be found to be a little less. */
    int64_t age = (int64_t)(bytes << (64 - BYTES_BITS)) >> (64 - BYTES_BITS);
    return age >= 0 && (uint64_t)age >= window_bytes;
}
