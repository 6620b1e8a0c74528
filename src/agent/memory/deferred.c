#include "agent/memory/deferred.h"

#include <stdatomic.h>
#include <stdint.h>

static _Atomic(void *) blocks[DEFERRED_MAX];
static _Atomic bool has_some;

bool deferred_put(void *block)
{
    for (size_t i = 0; i < DEFERRED_MAX; i++) {
        void *expected = NULL;
        if (atomic_compare_exchange_strong(&blocks[i], &expected, block)) {
            atomic_store(&has_some, true);
            return true;
        }
    }
    return false;
}

size_t deferred_take(void *taken[static DEFERRED_MAX])
{
    size_t count = 0;
    if (!atomic_load_explicit(&has_some, memory_order_acquire))
        return 0;
    atomic_store(&has_some, false);
    for (size_t i = 0; i < DEFERRED_MAX; i++) {
        void *block = atomic_exchange(&blocks[i], NULL);
        if (block)
            taken[count++] = block;
    }
    return count;
}
