/* Layout selection and the frame walk, on a Python made of plain memory. */
#include "fake_python.h"
#include "faults.h"
#include "py/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct py_layout layout;
static struct py_frame frames[PY_FRAMES_MAX];

static int set_up(void **state)
{
    assert_true(layout_select(&layout, 0x030c01f0, 0, 0));
    (void)state;
    return 0;
}

static struct py_walk walk(struct fake_object *tstate)
{
    struct py_walk result;
    frames_walk(&layout, fake_code_type, (uintptr_t)tstate, frames, &result);
    return result;
}

static void test_select(void **state)
{
    (void)state;
    struct py_layout l;
    const uint32_t known[] = {0x03080000, 0x03090000, 0x030a0000, 0x030b0000, 0x030c0000};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(layout_select(&l, known[i] | 0x1f0, 0, 0));
    assert_false(layout_select(&l, 0x020712f0, 0, 0));
    assert_false(layout_select(&l, 0x030712f0, 0, 0));
    assert_false(layout_select(&l, 0x031000f0, 0, 0)); /* 3.16: not known */
    assert_false(layout_select(&l, 0x030d00f0, 0, 0)); /* 3.13 without its own description */
}

/* 3.13 and later describe themselves; a description that makes no sense is refused. */
static void test_described(void **state)
{
    (void)state;
    uint64_t runtime[128] = {0};
    struct py_layout l;
    memcpy(runtime, "xdebugpy", 8);
    runtime[1] = 0x030d00f0;
    runtime[184 / 8] = 72; /* thread_state.current_frame */
    runtime[560 / 8] = 40; /* unicode.asciiobject_size */
    assert_true(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, sizeof runtime));
    assert_int_equal(l.ts_frame, 72);
    assert_int_equal(l.str_compact, 56);
    assert_int_equal(l.ts_cframe, PY_ABSENT);
    assert_false(l.free_threaded);
    assert_int_equal(l.ts_state, PY_ABSENT);
    runtime[216 / 8] = 32; /* thread_state.status */
    runtime[2] = 1;        /* free_threaded */
    assert_true(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, sizeof runtime));
    assert_true(l.free_threaded);
    assert_int_equal(l.ts_state, 40);
    runtime[2] = 0;
    runtime[184 / 8] = 1 << 20;
    assert_false(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, sizeof runtime));
    runtime[184 / 8] = 72;
    assert_false(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, 64)); /* too small */
    runtime[1] = 0x030e00f0;                                             /* says it is 3.14 */
    assert_false(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, sizeof runtime));
    runtime[1] = 0x030d00f0;
    runtime[0]++;
    assert_false(layout_select(&l, 0x030d03f0, (uintptr_t)runtime, sizeof runtime));
}

static void test_walk(void **state)
{
    (void)state;
    struct fake_object *code = fake_code(&layout, "/a.py", "f", 10);
    struct fake_object *outer = fake_frame(&layout, code, 20, NULL, 0);
    struct fake_object *shim = fake_frame(&layout, NULL, 0, outer, 3);
    struct fake_object *middle = fake_frame(&layout, code, 8, shim, 0);
    struct fake_object *leaf = fake_frame(&layout, code, 4, middle, 1);
    ((uint8_t *)code)[layout.code_bytes + 4] = 171;
    struct py_walk w = walk(fake_thread(&layout, leaf, 7));
    assert_int_equal(w.count, 3);
    assert_false(w.bad || w.truncated);
    assert_int_equal(w.leaf_opcode, 171);
    assert_int_equal(frames[0].at, 4);
    assert_int_equal(frames[1].at, 8);
    assert_int_equal(frames[2].at, 20);
    assert_true(frames[0].direct);  /* by the caller's own call instruction */
    assert_false(frames[1].direct); /* through C: the shim says so */
    assert_false(frames[2].direct);
    assert_int_equal(w.root, (uintptr_t)outer);
}

static void test_broken_chains(void **state)
{
    faults_install(state);
    struct fake_object *code = fake_code(&layout, "/a.py", "f", 10);
    struct fake_object *leaf = fake_frame(&layout, code, 4, (struct fake_object *)0x1234, 0);
    struct py_walk w = walk(fake_thread(&layout, leaf, 7));
    assert_int_equal(w.count, 1); /* what could be read is kept */
    assert_true(w.bad);
    leaf = fake_frame(&layout, fake_str(&layout, "no code"), 4, NULL, 0);
    assert_true(walk(fake_thread(&layout, leaf, 7)).bad);
    leaf = fake_frame(&layout, code, 4, NULL, 77); /* no such owner */
    assert_true(walk(fake_thread(&layout, leaf, 7)).bad);
    fake_put(leaf, layout.fr_back, (uintptr_t)leaf); /* a ring */
    assert_true(walk(fake_thread(&layout, leaf, 7)).bad);
    struct py_walk none;
    frames_walk(&layout, fake_code_type, 0x5000, frames, &none);
    assert_true(none.bad);
    assert_int_equal(none.count, 0);
    assert_int_equal(walk(fake_thread(&layout, NULL, 7)).count, 0);
}

static void test_deep(void **state)
{
    (void)state;
    struct fake_object *code = fake_code(&layout, "/a.py", "f", 10), *frame = NULL;
    for (int i = 0; i < PY_FRAMES_MAX + 10; i++)
        frame = fake_frame(&layout, code, i % 50, frame, 0);
    struct py_walk w = walk(fake_thread(&layout, frame, 7));
    assert_true(w.truncated);
    assert_int_equal(w.count, PY_FRAMES_MAX);
}

/* A thread entering the eval loop has published a C frame that is still garbage. */
static void test_half_linked(void **state)
{
    faults_install(state);
    struct fake_object *code = fake_code(&layout, "/a.py", "f", 10);
    struct fake_object *leaf = fake_frame(&layout, code, 4, NULL, 0);
    struct fake_object *tstate = fake_thread(&layout, leaf, 7);
    uintptr_t good = tstate->words[layout.ts_cframe / 8];
    struct fake_object *cframe = fake_alloc();
    fake_put(cframe, layout.cframe_current, 0xBAD0);
    fake_put(cframe, layout.cframe_previous, good);
    fake_put(tstate, layout.ts_cframe, (uintptr_t)cframe);
    struct py_walk w = walk(tstate);
    assert_int_equal(w.count, 1);
    assert_false(w.bad);
}

static void test_threads(void **state)
{
    faults_install(state);
    struct fake_object *first = fake_thread(&layout, NULL, 1),
                       *second = fake_thread(&layout, NULL, 2);
    fake_put(first, layout.ts_prev, (uintptr_t)second);
    assert_int_equal(frames_find_thread(&layout, (uintptr_t)first, 2), (uintptr_t)second);
    assert_int_equal(frames_find_thread(&layout, (uintptr_t)first, 3), 0);
    fake_put(second, layout.ts_prev, (uintptr_t)first); /* a ring ends too */
    assert_int_equal(frames_find_thread(&layout, (uintptr_t)first, 3), 0);
}

static void test_code(void **state)
{
    faults_install(state);
    struct fake_object *code = fake_code(&layout, "/a.py", "f", 10);
    struct py_code one, other;
    assert_true(code_read(&layout, (uintptr_t)code, &one));
    assert_int_equal(one.first_line, 10);
    assert_int_equal(one.line_table_bytes, 4);
    uintptr_t data;
    uint32_t bytes;
    uint8_t width;
    assert_true(code_text(&layout, one.file, &data, &bytes, &width));
    assert_int_equal(bytes, 5);
    assert_memory_equal((const void *)data, "/a.py", 5);
    /* A code object that reuses the address is another one. */
    ((uint8_t *)one.line_table)[layout.bytes_data] = 0x90;
    assert_true(code_read(&layout, (uintptr_t)code, &other));
    assert_true(one.fingerprint != other.fingerprint);
    assert_false(code_read(&layout, 0x2000, &other));
    assert_false(code_text(&layout, (uintptr_t)code, &data, &bytes, &width));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select),  cmocka_unit_test(test_described),
        cmocka_unit_test(test_walk),    cmocka_unit_test(test_broken_chains),
        cmocka_unit_test(test_deep),    cmocka_unit_test(test_half_linked),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_code),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
