/* Tests of src/report/judge.c: what calls into the interpreter are taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_make.h"
#include "report/judge.h"

#include <stdlib.h>
#include <unistd.h>

enum { MS = 1000000, CALL_LINE = 5, SLACK = 6 };

struct fixture {
    struct arena_make make;
    uint32_t code, site;
};

static int set_up(void **state)
{
    static struct fixture f;
    arena_make_init(&f.make, 100);
    f.make.header.caller_slack = SLACK;
    f.code = arena_make_code(&f.make, "/p/main.py", "f", 1, 40);
    f.site = arena_make_frame(&f.make, 0, f.code, CALL_LINE);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_make_release(&f->make);
    return 0;
}

/* Below `caller` a function of this name runs so long. */
static void run_below(struct fixture *f, uint32_t caller, const char *name, bool is_direct,
                      unsigned ms)
{
    uint32_t code = arena_make_code(&f->make, "/p/main.py", name, 50, 60);
    uint32_t node = arena_make_frame(&f->make, caller, code, 51);
    if (is_direct)
        ((struct wire_node *)(void *)f->make.sections[WIRE_NODE].data)[node].flags =
            WIRE_NODE_DIRECT;
    arena_make_cell(&f->make, node, WIRE_CPU_PYTHON, ms, (uint64_t)ms * MS, 0);
}

/* And the call itself so long: what is that? */
static enum wire_kind kind_of_call(struct fixture *f, unsigned ms)
{
    char path[] = "/tmp/scalene-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    arena_make_cell(&f->make, f->site, WIRE_CPU_CALL, ms, (uint64_t)ms * MS, 0);
    arena_make_write(&f->make, path);
    struct recording recording;
    struct err err;
    assert_int_equal(recording_open(&recording, path, &err), 0);
    unlink(path);
    struct judge judge;
    judge_init(&judge, &recording);
    enum wire_kind kind =
        judge_kind(&judge, &(struct recording_cell){.kind = WIRE_CPU_CALL, .node = f->site});
    judge_release(&judge);
    judge_release(&judge);
    recording_release(&recording);
    return kind;
}

static void nothing_else_is_known(void **state)
{
    assert_int_equal(kind_of_call(*state, 100), WIRE_CPU_NATIVE);
}

static void a_function_that_is_called_directly(void **state)
{
    run_below(*state, ((struct fixture *)*state)->site, "work", true, 20);
    assert_int_equal(kind_of_call(*state, 100), WIRE_CPU_PYTHON);
}

static void a_function_called_through_c(void **state)
{
    run_below(*state, ((struct fixture *)*state)->site, "key", false, 100);
    assert_int_equal(kind_of_call(*state, 100), WIRE_CPU_NATIVE);
}

static void instances_are_made(void **state)
{
    run_below(*state, ((struct fixture *)*state)->site, "Point.__init__", false, 10);
    assert_int_equal(kind_of_call(*state, 100), WIRE_CPU_PYTHON);
}

static void an_instance_now_and_then(void **state)
{
    run_below(*state, ((struct fixture *)*state)->site, "Point.__init__", false, 1);
    assert_int_equal(kind_of_call(*state, 100), WIRE_CPU_NATIVE);
}

/* A caller's instruction is then behind the call's own. */
static void the_callee_runs(void **state)
{
    struct fixture *f = *state;
    uint32_t later = arena_make_frame(&f->make, 0, f->code, CALL_LINE + SLACK / 2);
    run_below(f, later, "work", true, 20);
    assert_int_equal(kind_of_call(f, 100), WIRE_CPU_PYTHON);
}

static void the_callee_is_of_another_call(void **state)
{
    struct fixture *f = *state;
    uint32_t later = arena_make_frame(&f->make, 0, f->code, CALL_LINE + SLACK / 2 + 1);
    run_below(f, later, "work", true, 20);
    assert_int_equal(kind_of_call(f, 100), WIRE_CPU_NATIVE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_else_is_known),         TEST(a_function_that_is_called_directly),
        TEST(a_function_called_through_c),   TEST(instances_are_made),
        TEST(an_instance_now_and_then),      TEST(the_callee_runs),
        TEST(the_callee_is_of_another_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
