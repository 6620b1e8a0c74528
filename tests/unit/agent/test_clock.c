/* How old blocks are, by what their threads allocate: threads that come, tell, and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/threads.h"
#include "agent/memory/clock.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"

#include <pthread.h>

enum { WINDOW = 1 << 20, INTERVAL = 1 << 16, MANY = 3000 };

__thread struct memory_thread memory_self;
static __thread struct thread *self;
static uint64_t missed_bytes;
static struct thread first, second;

struct thread *threads_self(void)
{
    return self;
}

uint64_t duty_missed_bytes(uint64_t now_mono_ns)
{
    return now_mono_ns ? missed_bytes : 0;
}

static bool has_passed(uint64_t born)
{
    return clock_has_passed(born, WINDOW, INTERVAL, 1);
}

static int begin(void **state)
{
    (void)state;
    missed_bytes = 0;
    first = second = (struct thread){.state = THREAD_LIVE, .serial = 7};
    self = &first;
    memory_self = (struct memory_thread){0};
    clock_begin();
    return 0;
}

/* What runs in another thread, which was born with a block and allocates so much after it. */
struct other {
    struct thread *thread;
    uint64_t before_bytes, after_bytes, born;
};

static void *be_other(void *argument)
{
    struct other *other = argument;
    self = other->thread;
    memory_self.heap.given_bytes = other->before_bytes;
    other->born = clock_born(1);
    memory_self.objects.left_bytes -= (int64_t)other->after_bytes;
    if (other->after_bytes)
        clock_born(1); /* it tells */
    return NULL;
}

static uint64_t born_elsewhere(struct thread *thread, uint64_t before_bytes, uint64_t after_bytes)
{
    struct other other = {thread, before_bytes, after_bytes, 0};
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, be_other, &other), 0);
    pthread_join(id, NULL);
    return other.born;
}

static void all_that_a_thread_asks_for_counts(void **state)
{
    (void)state;
    uint64_t born = clock_born(1);
    memory_self.heap.left_bytes -= WINDOW / 2;        /* counted down by malloc(), */
    memory_self.objects.left_bytes -= WINDOW / 2 - 1; /* in front of CPython's allocator */
    assert_false(has_passed(born));
    memory_self.heap.given_bytes++; /* and what is large */
    assert_true(has_passed(born));
    memory_self.growth.left_bytes -= 10 * WINDOW; /* by their whole size: not all of it is new */
    memory_self.copies.left_bytes -= 10 * WINDOW;
    assert_false(has_passed(clock_born(1)));
}

static void a_new_gap_is_not_asked_for(void **state)
{
    (void)state;
    uint64_t born = clock_born(1);
    memory_self.heap.left_bytes += 5 * WINDOW;
    memory_self.heap.given_bytes += 5 * WINDOW;
    assert_false(has_passed(born));
}

static void what_nobody_looked_at_counts(void **state)
{
    (void)state;
    uint64_t born = clock_born(1);
    missed_bytes = WINDOW - 1;
    assert_false(has_passed(born));
    missed_bytes = WINDOW;
    assert_true(has_passed(born));
    born = clock_born(1);
    missed_bytes -= 100; /* the estimate was too high */
    assert_false(has_passed(born));
}

/* Of another thread what it told last is known, and half an interval more is likely. */
static void another_thread_s_block(void **state)
{
    (void)state;
    uint64_t young = born_elsewhere(&second, 5 * WINDOW, WINDOW - INTERVAL / 2 - 1);
    memory_self.heap.given_bytes += 10 * WINDOW; /* is not its thread's */
    assert_false(has_passed(young));
    uint64_t old = born_elsewhere(&second, 5 * WINDOW, WINDOW - INTERVAL / 2);
    assert_true(has_passed(old));
}

static void the_clock_of_an_ended_thread_goes_on(void **state)
{
    (void)state;
    uint64_t born = born_elsewhere(&second, 0, 0);
    memory_self.heap.given_bytes += WINDOW;
    assert_false(has_passed(born)); /* it lives: that is not its own */
    second.state = THREAD_ENDED;
    assert_true(has_passed(born));
}

/* From when it last told on: what was before that is not counted twice. */
static void an_ended_thread_s_own_counts_once(void **state)
{
    (void)state;
    uint64_t born = born_elsewhere(&second, 0, WINDOW / 2);
    second.state = THREAD_ENDED;
    memory_self.heap.given_bytes += WINDOW / 2 - INTERVAL / 2 - 1;
    assert_false(has_passed(born));
    memory_self.heap.given_bytes++;
    assert_true(has_passed(born));
}

static void an_entry_that_has_a_new_thread_is_an_ended_one(void **state)
{
    (void)state;
    uint64_t born = born_elsewhere(&second, 0, 0);
    second.serial++;
    memory_self.heap.given_bytes += WINDOW;
    assert_true(has_passed(born));
}

/* The clock of one that ended is another thread's now: for its blocks it does not go back. */
static void a_clock_that_is_taken_over(void **state)
{
    (void)state;
    uint64_t born = born_elsewhere(&second, 0, 0);
    second.state = THREAD_ENDED;
    memory_self.heap.given_bytes += WINDOW;
    clock_born(1);
    struct thread third = {.state = THREAD_LIVE, .serial = 7};
    for (int i = 0; i < MANY; i++)
        born_elsewhere(&third, 0, 0);
    assert_true(has_passed(born));
}

/* More than there are clocks: some have one together, and each knows its own. */
static void many_threads(void **state)
{
    (void)state;
    uint64_t born = clock_born(1);
    for (int i = 0; i < MANY; i++)
        born_elsewhere(&second, 100, 0);
    memory_self.heap.given_bytes += WINDOW / 2;
    assert_false(has_passed(born));
    memory_self.heap.given_bytes += WINDOW / 2;
    assert_true(has_passed(born));
}

/* Threads that the profiler does not know have one clock, which never ends. */
static void unknown_threads(void **state)
{
    (void)state;
    self = NULL;
    uint64_t born = clock_born(1);
    memory_self.heap.given_bytes += WINDOW - 1;
    assert_false(has_passed(born));
    memory_self.heap.given_bytes++;
    assert_true(has_passed(born));
}

/* The number has 48 bits for bytes. */
static void clocks_may_wrap(void **state)
{
    (void)state;
    memory_self.heap.given_bytes = ((uint64_t)1 << 48) - WINDOW / 2;
    uint64_t born = clock_born(1);
    memory_self.heap.given_bytes += WINDOW - 1;
    assert_false(has_passed(born));
    memory_self.heap.given_bytes++;
    assert_true(has_passed(born));
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_that_a_thread_asks_for_counts),
        TEST(a_new_gap_is_not_asked_for),
        TEST(what_nobody_looked_at_counts),
        TEST(another_thread_s_block),
        TEST(the_clock_of_an_ended_thread_goes_on),
        TEST(an_ended_thread_s_own_counts_once),
        TEST(an_entry_that_has_a_new_thread_is_an_ended_one),
        TEST(a_clock_that_is_taken_over),
        TEST(many_threads),
        TEST(unknown_threads),
        TEST(clocks_may_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
