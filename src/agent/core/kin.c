#include "agent/core/kin.h"

#include "agent/core/agent.h"

enum {
    KIN_MAX = 64, /* families; those beyond share the last entry */
    SEEN_MAX = 32,
    SEEN_ENOUGH = 8, /* samples, to choose from */
};

static struct family {
    _Atomic uint32_t birth; /* birth_node of its threads, + 1; 0: not taken */
    _Atomic uint32_t seen_count;
    _Atomic uint64_t seen[SEEN_MAX]; /* node << 8 | kind, of the last samples */
    _Atomic uint64_t left_ns;        /* to be placed when enough was seen */
} families[KIN_MAX];

void kin_begin(struct thread *thread)
{
    unsigned i = 0;
    for (; i < KIN_MAX - 1; i++) {
        uint32_t birth = 0;
        if (atomic_compare_exchange_strong(&families[i].birth, &birth, thread->birth_node + 1) ||
            birth == thread->birth_node + 1)
            break;
    }
    thread->family = (uint16_t)i;
}

void kin_see(const struct thread *thread, uint32_t node, enum wire_kind kind)
{
    struct family *family = &families[thread->family];
    uint32_t at = atomic_fetch_add_explicit(&family->seen_count, 1, memory_order_relaxed);
    atomic_store_explicit(&family->seen[at % SEEN_MAX], (uint64_t)node << 8 | (unsigned)kind,
                          memory_order_relaxed);
}

static uint32_t choices(const struct family *family)
{
    uint32_t count = atomic_load(&family->seen_count);
    return count < SEEN_MAX ? count : SEEN_MAX;
}

static void place(const struct family *family, uint32_t choice, uint64_t ns)
{
    uint64_t seen = atomic_load(&family->seen[choice]);
    if (seen)
        tables_add(&agent.tables, (uint32_t)(seen >> 8), (enum wire_kind)(seen & 0xFF), ns, 0);
}

/* What was left before enough was seen, in equal parts to what was; if nothing was, to the line
 * that started the threads. */
static void place_left(struct family *family)
{
    uint64_t left_ns = atomic_exchange(&family->left_ns, 0);
    uint32_t count = choices(family), birth = atomic_load(&family->birth);
    for (uint32_t i = 0; left_ns && i < count; i++)
        place(family, i, left_ns / count);
    if (left_ns && !count && birth > 1)
        tables_add(&agent.tables, birth - 1, WIRE_CPU_PYTHON, left_ns, 0);
}

void kin_leave(const struct thread *thread, uint64_t cpu_ns)
{
    struct family *family = &families[thread->family];
    uint32_t count = choices(family);
    if (count < SEEN_ENOUGH) {
        atomic_fetch_add(&family->left_ns, cpu_ns);
        return;
    }
    /* Of a thread that was never sampled it is its number, times a constant: odd, and random only
     * in its upper bits. */
    place(family, (thread->random >> 16) % count, cpu_ns);
    if (atomic_load_explicit(&family->left_ns, memory_order_relaxed))
        place_left(family);
}

void kin_settle(void)
{
    for (unsigned i = 0; i < KIN_MAX; i++)
        place_left(&families[i]);
}

void kin_in_child(bool is_recorded)
{
    (void)is_recorded;
    for (unsigned i = 0; i < KIN_MAX; i++) {
        atomic_store(&families[i].birth, 0);
        atomic_store(&families[i].seen_count, 0);
        atomic_store(&families[i].left_ns, 0);
    }
}
