#include "agent/memory/deferred.h"

#include <stdatomic.h>
#include <stdint.h>

/* Blocks are aligned: the lowest bit is free to say that one is foreign. */
static _Atomic uintptr_t words[DEFERRED_MAX];
static _Atomic bool has_some;

bool deferred_put(void *block, bool is_foreign)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++) {
        uintptr_t expected = 0;
        if (atomic_compare_exchange_strong(&words[i], &expected, (uintptr_t)block | is_foreign)) {
            atomic_store(&has_some, true);
            return true;
        }
    }
    return false;
}

size_t deferred_take(struct deferred taken[static DEFERRED_MAX])
{
    size_t count = 0;
    if (!atomic_load_explicit(&has_some, memory_order_acquire))
        return 0;
    atomic_store(&has_some, false);
    for (size_t i = 0; i < DEFERRED_MAX; i++) {
        uintptr_t word = atomic_exchange(&words[i], 0);
        if (word)
            taken[count++] = (struct deferred){(void *)(word & ~(uintptr_t)1), word & 1};
    }
    return count;
}
