/* Blocks that are set aside: each comes back once, whoever puts and takes at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/memory/deferred.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static void *address(uintptr_t n)
{
    return (char *)NULL + 16 * (n + 1);
}

static void what_was_put_is_taken(void **state)
{
    (void)state;
    static struct deferred taken[DEFERRED_MAX];
    assert_int_equal(deferred_take(taken), 0);
    for (uintptr_t i = 0; i < DEFERRED_MAX; i++)
        assert_true(deferred_put(address(i), i % 3 == 0));
    assert_false(deferred_put(address(DEFERRED_MAX), false)); /* no room */
    assert_int_equal(deferred_take(taken), DEFERRED_MAX);
    for (uintptr_t i = 0; i < DEFERRED_MAX; i++) {
        assert_ptr_equal(taken[i].block, address(i));
        assert_int_equal(taken[i].is_foreign, i % 3 == 0);
    }
    assert_int_equal(deferred_take(taken), 0);
    assert_true(deferred_put(address(7), true));
    assert_int_equal(deferred_take(taken), 1);
}

enum { PUTTERS = 3, EACH = 40000 };
static _Atomic unsigned finished;
static unsigned char times_taken[PUTTERS * EACH]; /* by the taker alone */

static void *put_many(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    for (uintptr_t i = 0; i < EACH; i++)
        while (!deferred_put(address(me * EACH + i), i % 2))
            sched_yield();
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static size_t take_all(void)
{
    static struct deferred taken[DEFERRED_MAX];
    size_t count = deferred_take(taken);
    for (size_t i = 0; i < count; i++) {
        uintptr_t n = (uintptr_t)taken[i].block / 16 - 1;
        assert_true(n < PUTTERS * EACH);
        assert_int_equal(taken[i].is_foreign, n % EACH % 2);
        assert_int_equal(times_taken[n]++, 0);
    }
    return count;
}

static void each_is_taken_once(void **state)
{
    (void)state;
    pthread_t putters[PUTTERS];
    size_t taken = 0;
    for (uintptr_t i = 0; i < PUTTERS; i++)
        assert_int_equal(pthread_create(&putters[i], NULL, put_many, (void *)i), 0);
    while (atomic_load(&finished) < PUTTERS)
        taken += take_all();
    for (int i = 0; i < PUTTERS; i++)
        pthread_join(putters[i], NULL);
    taken += take_all();
    assert_int_equal(taken, PUTTERS * EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_taken),
        cmocka_unit_test(each_is_taken_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
