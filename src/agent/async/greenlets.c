#include "agent/async/greenlets.h"

#include "agent/core/agent.h"
#include "os/guard.h"
#include "os/os.h"
#include "py/tasks.h"

#include <string.h>

enum {
    SLOTS_LEAST = 256,
    SLOTS_MAX = 1 << 19,
    LIVING_MAX = SLOTS_MAX / 8 * 3, /* a table of the greatest size has room left to work with */
    GONE = 1,                       /* in a slot: go on looking behind it */
    SPARSE = 16,                    /* with fewer than one in so many used, it becomes smaller */
};

/* Two tables; when one has no more room, what lives is put into the other. */
static struct memory {
    _Atomic uintptr_t slots[2][SLOTS_MAX];
} * memory;
static _Atomic uint64_t current; /* slots << 1 | which of the two */
static _Atomic uint64_t living;
static uint64_t filled; /* slots that are not 0; with the GIL, as all that follows */

static uint64_t size_of(uint64_t table)
{
    return table >> 1;
}

static _Atomic uintptr_t *slot_at(uint64_t table, uint64_t index)
{
    return &memory->slots[table & 1][index & (size_of(table) - 1)];
}

static uintptr_t load(uint64_t table, uint64_t index)
{
    return atomic_load_explicit(slot_at(table, index), memory_order_relaxed);
}

static void store(uint64_t table, uint64_t index, uintptr_t value)
{
    atomic_store_explicit(slot_at(table, index), value, memory_order_relaxed);
}

static uint64_t first_index(uintptr_t greenlet)
{
    return (greenlet * 0x9E3779B97F4A7C15u) >> 40;
}

static uint64_t living_now(void)
{
    return atomic_load_explicit(&living, memory_order_relaxed);
}

/* Into the other table, of a size that fits. */
static void renew(void)
{
    uint64_t old = atomic_load(&current), size = SLOTS_LEAST;
    while (size < 4 * living_now() && size < SLOTS_MAX)
        size *= 2;
    uint64_t table = size << 1 | (~old & 1);
    for (uint64_t i = 0; i < size; i++)
        store(table, i, 0);
    for (uint64_t i = 0; i < size_of(old); i++) {
        uintptr_t greenlet = load(old, i);
        if (greenlet <= GONE)
            continue;
        uint64_t at = first_index(greenlet);
        while (load(table, at))
            at++;
        store(table, at, greenlet);
    }
    filled = living_now();
    atomic_store_explicit(&current, table, memory_order_release);
}

void greenlets_add(uintptr_t greenlet)
{
    if (living_now() == LIVING_MAX) {
        if (atomic_load(&agent.active))
            arena_lost(&agent.arena, WIRE_LOST_TABLE_FULL);
        return;
    }
    if (2 * filled >= size_of(atomic_load(&current)))
        renew();
    uint64_t table = atomic_load_explicit(&current, memory_order_relaxed);
    uint64_t at = first_index(greenlet), free_at = UINT64_MAX;
    for (uintptr_t found; (found = load(table, at)); at++) {
        if (found == greenlet)
            return;
        if (found == GONE && free_at == UINT64_MAX)
            free_at = at;
    }
    filled += free_at == UINT64_MAX;
    store(table, free_at == UINT64_MAX ? at : free_at, greenlet);
    atomic_store_explicit(&living, living_now() + 1, memory_order_relaxed);
}

static void drop(uintptr_t greenlet)
{
    uint64_t table = atomic_load_explicit(&current, memory_order_relaxed);
    uint64_t at = first_index(greenlet);
    uintptr_t found;
    while ((found = load(table, at)) && found != greenlet)
        at++;
    if (!found)
        return;
    bool is_last = !load(table, at + 1);
    store(table, at, is_last ? 0 : GONE);
    filled -= is_last;
    atomic_store_explicit(&living, living_now() - 1, memory_order_relaxed);
    if (size_of(table) > SLOTS_LEAST && living_now() * SPARSE < size_of(table))
        renew();
}

/* ---- functions of the type ---- */

static void *(*real_new)(void *type, void *arguments, void *keywords);
static void (*real_dealloc)(void *object);

static void *on_new(void *type, void *arguments, void *keywords)
{
    void *made = real_new(type, arguments, keywords);
    if (made)
        greenlets_add((uintptr_t)made);
    return made;
}

/* A greenlet that is still suspended runs to its end in there, and others meanwhile. */
static void on_dealloc(void *object)
{
    drop((uintptr_t)object);
    real_dealloc(object);
}

static _Atomic uintptr_t *slot_of(uintptr_t type, enum py_type_slot slot)
{
    return (_Atomic uintptr_t *)tasks_type_slot(&agent.layout, type, slot);
}

void greenlets_watch_type(uintptr_t type)
{
    _Atomic uintptr_t *make = slot_of(type, PY_TYPE_NEW), *end = slot_of(type, PY_TYPE_DEALLOC);
    if (atomic_load(make) == (uintptr_t)real_new)
        atomic_store(make, (uintptr_t)on_new);
    if (atomic_load(end) == (uintptr_t)real_dealloc)
        atomic_store(end, (uintptr_t)on_dealloc);
}

bool greenlets_begin(uintptr_t type)
{
    static const char expected[] = "greenlet.greenlet";
    char name[sizeof expected];
    if (!guard_copy(name, tasks_type_name(&agent.layout, type), sizeof name) ||
        memcmp(name, expected, sizeof name) != 0)
        return false;
    memory = os_reserve(sizeof *memory);
    uintptr_t make = *slot_of(type, PY_TYPE_NEW), end = *slot_of(type, PY_TYPE_DEALLOC);
    if (!memory || !make || !end)
        return false;
    atomic_store(&current, SLOTS_LEAST << 1);
    *(void **)&real_new = (void *)make;
    *(void **)&real_dealloc = (void *)end;
    return true;
}

/* ---- in the sampler ---- */

void greenlets_measure(uint64_t *slots, uint64_t *used)
{
    *slots = size_of(atomic_load_explicit(&current, memory_order_acquire));
    *used = living_now();
}

uintptr_t greenlets_at(uint64_t slot)
{
    uintptr_t found = load(atomic_load_explicit(&current, memory_order_acquire), slot);
    return found > GONE ? found : 0;
}
