/* What the processes of a session tell each other about who waits. */
#include "agent/core/agent.h"
#include "agent/waits/claims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

struct agent agent;

static struct wire_control control;
enum { MS = 1000000, SEC = 1000 };
static const uint64_t now_ns = (uint64_t)100 * SEC * MS;

static int begin(void **state)
{
    (void)state;
    control = (struct wire_control){0};
    agent.control = &control;
    claims_in_child(true);
    return 0;
}

static void put(unsigned at, int32_t pid, int32_t ppid, enum wire_rank rank, uint64_t beat_ns)
{
    control.claims[at].pid = pid;
    control.claims[at].ppid = ppid;
    control.claims[at].beat_mono_ns = beat_ns;
    control.claims[at].threads[rank] = 2;
}

static void test_best(void **state)
{
    (void)state;
    unsigned sharers;
    assert_int_equal(claims_settle(&(struct claims){{0}}, now_ns, &sharers), WIRE_RANKS);
    struct claims own = {{[WIRE_RANK_OUTSIDE] = 1, [WIRE_RANK_MAIN] = 1}};
    assert_int_equal(claims_settle(&own, now_ns, &sharers), WIRE_RANK_OUTSIDE);
    assert_int_equal(sharers, 1);
    put(1, 1000001, 1, WIRE_RANK_OUTSIDE, now_ns);
    assert_int_equal(claims_settle(&own, now_ns, &sharers), WIRE_RANK_OUTSIDE);
    assert_int_equal(sharers, 3);
    put(2, 1000002, 1, WIRE_RANK_STARVED, now_ns);
    assert_int_equal(claims_settle(&own, now_ns, &sharers), WIRE_RANK_STARVED);
    assert_int_equal(sharers, 2);
    put(2, 1000002, 1, WIRE_RANK_STARVED, now_ns - (uint64_t)SEC * MS); /* killed */
    assert_int_equal(claims_settle(&own, now_ns, &sharers), WIRE_RANK_OUTSIDE);
    assert_int_equal(sharers, 3);
}

static void test_coming_and_going(void **state)
{
    (void)state;
    claims_join(now_ns);
    assert_int_equal(control.claims[0].pid, getpid());
    assert_int_equal(control.claims[0].ppid, getppid());
    claims_leave();
    claims_leave();
    assert_int_equal(control.claims[0].pid, 0);
    for (unsigned i = 0; i < WIRE_CLAIMS_MAX; i++)
        put(i, 1000001, 1, WIRE_RANK_MAIN, now_ns);
    claims_join(now_ns); /* there is no room: it claims nothing */
    claims_leave();
    for (unsigned i = 0; i < WIRE_CLAIMS_MAX; i++)
        assert_int_equal(control.claims[i].pid, 1000001);
    control.claims[7].beat_mono_ns -= (uint64_t)6 * SEC * MS; /* killed long ago */
    claims_join(now_ns);
    assert_int_equal(control.claims[7].pid, getpid());
    assert_int_equal(control.claims[7].threads[WIRE_RANK_MAIN], 0);
}

/* Somebody who was stopped finds its entry taken. */
static void test_taken_away(void **state)
{
    (void)state;
    unsigned sharers;
    claims_join(now_ns);
    put(0, 1000001, 1, WIRE_RANK_OUTSIDE, now_ns);
    struct claims own = {{[WIRE_RANK_OUTSIDE] = 1}};
    claims_settle(&own, now_ns, &sharers);
    assert_int_equal(sharers, 3);
    assert_int_equal(control.claims[1].pid, getpid());
    claims_leave();
    assert_int_equal(control.claims[0].pid, 1000001);
}

static void test_who_is_ours(void **state)
{
    (void)state;
    unsigned sharers, at = 0;
    put(0, 1000001, getpid(), WIRE_RANK_MAIN, now_ns);
    put(1, 1000002, 1, WIRE_RANK_MAIN, now_ns);
    put(2, 1000003, 1, WIRE_RANK_MAIN, now_ns - (uint64_t)SEC * MS);
    claims_settle(&(struct claims){{0}}, now_ns, &sharers);
    assert_true(claims_is_ours(1000001, now_ns) && claims_is_ours(1000002, now_ns));
    assert_false(claims_is_ours(1000003, now_ns) || claims_is_ours(1000004, now_ns));
    assert_true(claims_is_ours(-1, now_ns));
    control.claims[0].ppid = 1;
    assert_false(claims_is_ours(-1, now_ns));
    assert_int_equal(claims_next(&at, now_ns), 1000001);
    assert_int_equal(claims_next(&at, now_ns), 1000002);
    assert_int_equal(claims_next(&at, now_ns), getpid());
    assert_int_equal(claims_next(&at, now_ns), 0);
}

#define CASE(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_best),
        CASE(test_coming_and_going),
        CASE(test_taken_away),
        CASE(test_who_is_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
