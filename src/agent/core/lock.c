#include "agent/core/lock.h"

#include "agent/core/forks.h"
#include "os/os.h"

enum { SPINS = 200 };

void lock_take(struct lock *lock)
{
    for (unsigned spins = 1; atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire);
         spins++) {
        if (spins % SPINS)
            continue;
        forks_check(); /* in a child nobody told us of, the holder does not exist */
        os_yield();
    }
}

void lock_give(struct lock *lock)
{
    atomic_store_explicit(&lock->is_held, 0, memory_order_release);
}
