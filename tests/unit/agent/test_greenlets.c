/* Greenlets: the table of those that live, and one that is read, on a Python made of plain memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/greenlets.h"
#include "agent/core/agent.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "py/greenlet.h"
#include "py/tasks.h"
#include "py/tracked.h"

#include <pthread.h>

enum { FRAME_TYPE = 0xF4A3E, MANY = 5000, OBJECT_BYTES = 64 };

struct agent agent;

typedef void *(*make_function)(void *type, void *arguments, void *keywords);
typedef void (*end_function)(void *object);

/* ---- types ---- */

static struct fake_object greenlet_type, subtype, other_subtype;
static void *made, *ended;

static void *make(void *type, void *arguments, void *keywords)
{
    assert_ptr_equal(type, &greenlet_type);
    assert_ptr_equal(arguments, &subtype);
    assert_ptr_equal(keywords, &other_subtype);
    return made;
}

static void *make_other(void *type, void *arguments, void *keywords)
{
    (void)type, (void)arguments, (void)keywords;
    return NULL;
}

static void end(void *object)
{
    ended = object;
}

static uintptr_t *slot(struct fake_object *type, enum py_type_slot which)
{
    return (uintptr_t *)tasks_type_slot(&agent.layout, (uintptr_t)type, which);
}

static void *make_one(void *object)
{
    made = object;
    return ((make_function)*slot(&greenlet_type, PY_TYPE_NEW))(&greenlet_type, &subtype,
                                                               &other_subtype);
}

static void end_one(void *object)
{
    ((end_function)*slot(&greenlet_type, PY_TYPE_DEALLOC))(object);
}

static void fill_type(struct fake_object *type, const char *name, make_function maker)
{
    fake_put(type, agent.layout.head_bytes + 8, (uintptr_t)name);
    *slot(type, PY_TYPE_NEW) = (uintptr_t)maker;
    *slot(type, PY_TYPE_DEALLOC) = (uintptr_t)end;
}

static int set_up(void **state)
{
    (void)state;
    assert_true(layout_select(&agent.layout, 0x030c01f0, 0, 0));
    assert_true(fixture_open(&agent.arena));
    atomic_store(&agent.active, true);
    fill_type(&greenlet_type, "greenlet.greenlet", make);
    fill_type(&subtype, "a.copy", make);
    fill_type(&other_subtype, "its.own", make_other);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

/* ---- the table ---- */

static char objects[MANY][OBJECT_BYTES];

static bool is_listed(const void *object)
{
    uint64_t slots, used, found = 0;
    greenlets_measure(&slots, &used);
    for (uint64_t i = 0; i < slots; i++)
        found += greenlets_at(i) == (uintptr_t)object;
    assert_true(found <= 1);
    return found;
}

static uint64_t count(uint64_t *slots)
{
    uint64_t used, found = 0;
    greenlets_measure(slots, &used);
    for (uint64_t i = 0; i < *slots; i++)
        found += greenlets_at(i) != 0;
    assert_int_equal(found, used);
    return found;
}

static void test_another_type(void **state)
{
    faults_install(state);
    assert_false(greenlets_begin((uintptr_t)&subtype));
    assert_false(greenlets_begin(8)); /* cannot be read */
    assert_int_equal(*slot(&subtype, PY_TYPE_NEW), (uintptr_t)make);
}

/* A subtype with a copy of the pointers has ours too; one with its own keeps it. */
static void test_types(void **state)
{
    (void)state;
    assert_true(greenlets_begin((uintptr_t)&greenlet_type));
    greenlets_watch_type((uintptr_t)&greenlet_type);
    greenlets_watch_type((uintptr_t)&subtype);
    greenlets_watch_type((uintptr_t)&other_subtype);
    assert_int_not_equal(*slot(&greenlet_type, PY_TYPE_NEW), (uintptr_t)make);
    assert_int_equal(*slot(&subtype, PY_TYPE_NEW), *slot(&greenlet_type, PY_TYPE_NEW));
    assert_int_equal(*slot(&other_subtype, PY_TYPE_NEW), (uintptr_t)make_other);
    assert_int_not_equal(*slot(&other_subtype, PY_TYPE_DEALLOC), (uintptr_t)end);
}

static void test_life(void **state)
{
    (void)state;
    uint64_t slots;
    assert_ptr_equal(make_one(objects[0]), objects[0]);
    assert_true(is_listed(objects[0]));
    greenlets_add((uintptr_t)objects[0]); /* known already */
    assert_int_equal(count(&slots), 1);
    assert_null(make_one(NULL)); /* refused */
    assert_int_equal(count(&slots), 1);
    end_one(objects[0]);
    assert_ptr_equal(ended, objects[0]);
    end_one(objects[1]); /* never heard of */
    assert_ptr_equal(ended, objects[1]);
    assert_int_equal(count(&slots), 0);
}

/* It grows and shrinks, and knows each one at any time. */
static void test_many(void **state)
{
    (void)state;
    uint64_t slots;
    for (int i = 0; i < MANY; i++)
        make_one(objects[i]);
    assert_int_equal(count(&slots), MANY);
    assert_true(slots >= 2 * MANY);
    for (int i = 0; i < MANY; i += 2)
        end_one(objects[i]);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(is_listed(objects[i]), i % 2);
    for (int round = 0; round < 20; round++) /* slots of the dead are used again */
        for (int i = 0; i < MANY; i += 2) {
            make_one(objects[i]);
            end_one(objects[i]);
        }
    assert_int_equal(count(&slots), MANY / 2);
    for (int i = 1; i < MANY; i += 2)
        end_one(objects[i]);
    assert_int_equal(count(&slots), 0);
    assert_true(slots < MANY);
}

/* More than it has room for are counted as lost. */
static void test_full(void **state)
{
    (void)state;
    uint64_t slots, used;
    const _Atomic uint64_t *lost = &agent.arena.header->lost[WIRE_LOST_TABLE_FULL];
    uint64_t before = atomic_load(lost);
    uintptr_t next = 1 << 20, first = next;
    for (; atomic_load(lost) == before; next += OBJECT_BYTES)
        greenlets_add(next);
    greenlets_measure(&slots, &used);
    assert_int_equal(used, (next - first) / OBJECT_BYTES - 1);
    for (; first < next; first += OBJECT_BYTES)
        end_one((void *)first);
    assert_int_equal(count(&slots), 0);
}

/* The sampler meets greenlets, or nothing. */
static _Atomic bool is_over;

static void *look(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        uint64_t slots, used;
        greenlets_measure(&slots, &used);
        for (uint64_t i = 0; i < slots; i++) {
            uintptr_t found = greenlets_at(i);
            assert_true(!found ||
                        (found >= (uintptr_t)objects && found < (uintptr_t)(objects + MANY)));
        }
    }
    return NULL;
}

static void test_sampler_looks(void **state)
{
    (void)state;
    pthread_t thread;
    uint64_t slots;
    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < MANY; i++)
            make_one(objects[i]);
        for (int i = 0; i < MANY; i++)
            end_one(objects[i]);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    assert_int_equal(count(&slots), 0);
}

/* ---- one greenlet ---- */

/* States as the package has them, up to where the frame is: so many words before it. */
enum { STACK = 9, FRAME = STACK + 6, MAIN = FRAME + 9, PARENT = MAIN + 2 };

static struct fake_object *fake_greenlet(struct fake_object **greenlet)
{
    struct fake_object *held = fake_alloc();
    *greenlet = fake_new(&agent.layout, (uintptr_t)&greenlet_type);
    (*greenlet)->words[4] = (uintptr_t)held;
    return held;
}

static struct fake_object *fake_frame_object(struct fake_object *frame)
{
    struct fake_object *object = fake_new(&agent.layout, FRAME_TYPE);
    fake_put(object, agent.layout.fo_frame, (uintptr_t)frame);
    return object;
}

static struct fake_object *main_object, *main_state, *hub, *hub_state;

static void make_pair(void)
{
    main_state = fake_greenlet(&main_object);
    hub_state = fake_greenlet(&hub);
    main_state->words[STACK] = 0x1000;
    main_state->words[STACK + 1] = UINTPTR_MAX;
    main_state->words[FRAME] = (uintptr_t)fake_frame_object(NULL);
    hub_state->words[STACK + 1] = 0x900;
    hub_state->words[MAIN] = hub_state->words[PARENT] = (uintptr_t)main_object;
}

static bool fit(struct py_greenlets *at)
{
    *at = (struct py_greenlets){.frame_type = FRAME_TYPE};
    return greenlet_fit(&agent.layout, (uintptr_t)main_object, (uintptr_t)hub,
                        (uintptr_t)main_object, at);
}

static void test_fit(void **state)
{
    faults_install(state);
    struct py_greenlets at;
    make_pair();
    assert_true(fit(&at));
    assert_int_equal(at.frame, 8 * FRAME);
    assert_int_equal(at.main_object, 8 * MAIN);
    main_state->words[STACK + 1] = 0x2000; /* a main one's stack has no end */
    assert_false(fit(&at));
    main_state->words[STACK + 1] = UINTPTR_MAX;
    main_state->words[STACK + 3] = 16; /* something is kept, but nowhere */
    assert_false(fit(&at));
    main_state->words[STACK + 3] = 0;
    hub_state->words[PARENT] = 0;
    assert_false(fit(&at));
    hub_state->words[PARENT] = (uintptr_t)main_object;
    main_state->words[FRAME] = (uintptr_t)hub; /* no frame object anywhere */
    assert_false(fit(&at));
    main_object->words[4] = 8;
    assert_false(fit(&at));
}

/* The frame that stands on the stack is read from where that was put; what is at its address now is
 * another greenlet's. */
static void test_moved_stack(void **state)
{
    faults_install(state);
    const struct py_layout *l = &agent.layout;
    struct py_greenlets at;
    struct py_greenlet read;
    struct py_walk walk;
    static struct py_frame frames[PY_FRAMES_MAX];
    make_pair();
    assert_true(fit(&at));
    struct fake_object *code = fake_code(l, "/a.py", "f", 1);
    struct fake_object *outer = fake_frame(l, code, 20, NULL, 0);
    struct fake_object *stack = fake_alloc(), *copy = fake_frame(l, NULL, 0, outer, 3);
    memset(stack, 0xAA, sizeof *stack);
    struct fake_object *inner = fake_frame(l, code, 10, stack, 0);
    struct fake_object *waiter, *held = fake_greenlet(&waiter);
    assert_true(greenlet_read(l, &at, (uintptr_t)waiter, &read));
    assert_int_equal(read.frame, 0); /* not begun */
    held->words[STACK] = (uintptr_t)stack;
    held->words[STACK + 2] = (uintptr_t)copy;
    held->words[STACK + 3] = sizeof *copy;
    held->words[FRAME] = (uintptr_t)fake_frame_object(inner);
    held->words[MAIN] = (uintptr_t)main_object;
    assert_true(greenlet_read(l, &at, (uintptr_t)waiter, &read));
    assert_int_equal(read.main_object, (uintptr_t)main_object);
    frames_walk_suspended(l, fake_code_type, read.frame, &read.stack, frames, &walk);
    assert_false(walk.bad);
    assert_int_equal(walk.count, 2);
    assert_int_equal(frames[0].at, 10);
    assert_int_equal(frames[1].at, 20);
    read.stack.bytes = 0; /* without the copy, what was read up to there is kept */
    frames_walk_suspended(l, fake_code_type, read.frame, &read.stack, frames, &walk);
    assert_true(walk.bad);
    assert_int_equal(walk.count, 1);
    held->words[FRAME] = (uintptr_t)code; /* no frame object */
    assert_false(greenlet_read(l, &at, (uintptr_t)waiter, &read));
    waiter->words[4] = 8;
    assert_false(greenlet_read(l, &at, (uintptr_t)waiter, &read));
}

/* ---- objects there are ---- */

struct link {
    uintptr_t next, previous;
    uint64_t object[2];
};
struct generation {
    uintptr_t next, previous;
    uint64_t limits;
};
static struct generation generations[3];
static struct link links[6];
static void *visited[8];
static unsigned visited_count, visits_most;

static int visit(void *object, void *data)
{
    assert_ptr_equal(data, links);
    visited[visited_count++] = object;
    return visited_count < visits_most;
}

static void append(struct generation *generation, struct link *link)
{
    uintptr_t last = generation->previous;
    link->next = (uintptr_t)generation;
    link->previous = last | 2; /* a mark */
    ((struct link *)last)->next = (uintptr_t)link;
    generation->previous = (uintptr_t)link;
}

static unsigned visit_all(unsigned most)
{
    visited_count = 0;
    visits_most = most;
    tracked_visit((uintptr_t)links[1].object, visit, links);
    return visited_count;
}

static void test_tracked(void **state)
{
    faults_install(state);
    for (int i = 0; i < 3; i++)
        generations[i].next = generations[i].previous = (uintptr_t)&generations[i];
    append(&generations[0], &links[0]);
    append(&generations[0], &links[1]);
    for (int i = 2; i < 6; i++)
        append(&generations[2], &links[i]);
    assert_int_equal(visit_all(100), 6);
    for (int i = 0; i < 6; i++)
        assert_ptr_equal(visited[i], links[i].object);
    assert_int_equal(visit_all(3), 3);
    links[4].previous = (uintptr_t)&links[2]; /* broken */
    assert_int_equal(visit_all(100), 4);
    links[0].next = 8;
    assert_int_equal(visit_all(100), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_type), cmocka_unit_test(test_types),
        cmocka_unit_test(test_life),         cmocka_unit_test(test_many),
        cmocka_unit_test(test_full),         cmocka_unit_test(test_sampler_looks),
        cmocka_unit_test(test_fit),          cmocka_unit_test(test_moved_stack),
        cmocka_unit_test(test_tracked),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
