/*
 * Tasks and chains of coroutines made of plain memory, as each version of Python has them; good
 * ones, and what is left of them when somebody frees them meanwhile.
 */
#include "fake_python.h"
#include "faults.h"
#include "py/symbols.h"
#include "py/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

static struct py_layout layout;
static struct py_task_types types;
static struct py_frame frames[PY_FRAMES_MAX];

enum { CHAIN_MAX = 64 };

/* ---- memory ---- */

static void put_at(uintptr_t base, int32_t offset, uint64_t value)
{
    memcpy((void *)(base + (uintptr_t)offset), &value, sizeof value);
}

static void put_u32(uintptr_t base, int32_t offset, uint32_t value)
{
    memcpy((void *)(base + (uintptr_t)offset), &value, sizeof value);
}

static void put_u8(uintptr_t base, int32_t offset, uint8_t value)
{
    memcpy((void *)(base + (uintptr_t)offset), &value, sizeof value);
}

static uintptr_t fresh(uintptr_t type)
{
    return (uintptr_t)fake_new(&layout, type);
}

/* One page that can be read, and one behind it that cannot. */
static uintptr_t page_before_nothing(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    return (uintptr_t)at + page;
}

/* ---- versions ---- */

/* Of _Py_DebugOffsets: where, and what. */
struct word {
    uint16_t at, value;
};

static const struct word words_3_13[] = {
    {232, 8},   {240, 0}, {248, 56}, {264, 70}, {280, 112}, {296, 128}, {304, 136}, {312, 68},
    {344, 200}, {360, 8}, {520, 16}, {528, 32}, {544, 32},  {552, 16},  {560, 40},
};
static const struct word words_3_14[] = {
    {256, 8},   {264, 0},   {272, 56}, {288, 74},  {296, 64}, {320, 112},
    {336, 128}, {344, 136}, {352, 68}, {384, 208}, {408, 8},  {600, 16},
    {608, 32},  {624, 32},  {632, 16}, {640, 40},  {680, 72}, {688, 67},
};
static const struct word words_3_15[] = {
    {320, 8},   {328, 0},  {336, 56},  {352, 74}, {360, 64}, {384, 112}, {400, 128},
    {408, 136}, {416, 68}, {448, 208}, {472, 8},  {696, 16}, {704, 32},  {720, 32},
    {728, 16},  {736, 40}, {744, 56},  {808, 72}, {816, 67},
};

static const struct version {
    uint32_t hex;
    const struct word *words;
    size_t count;
} versions[] = {
    {0x030812f0, NULL, 0},
    {0x030912f0, NULL, 0},
    {0x030a0df0, NULL, 0},
    {0x030b07f0, NULL, 0},
    {0x030c01f0, NULL, 0},
    {0x030d00f0, words_3_13, sizeof words_3_13 / sizeof *words_3_13},
    {0x030e00f0, words_3_14, sizeof words_3_14 / sizeof *words_3_14},
    {0x030f00f0, words_3_15, sizeof words_3_15 / sizeof *words_3_15},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* As asyncio describes itself. */
static const uint64_t description[16] = {160, 136, 88, 100, 108, 128, 144, 0, 10880, 0, 0, 0, 400};

static uintptr_t new_type(uintptr_t base)
{
    uintptr_t type = (uintptr_t)fake_alloc();
    put_at(type, 256, base); /* tp_base */
    return type;
}

/* As CPython names it, with room behind: names are compared in one piece. */
static uintptr_t named_type(const char *name)
{
    char *text = (char *)fake_alloc();
    uintptr_t type = new_type(0);
    strcpy(text, name);
    put_at(type, 24, (uintptr_t)text); /* tp_name */
    return type;
}

static void select_version(const struct version *version)
{
    static uint64_t runtime[128];
    memset(runtime, 0, sizeof runtime);
    memcpy(runtime, "xdebugpy", 8);
    runtime[1] = version->hex;
    for (size_t i = 0; i < version->count; i++)
        runtime[version->words[i].at / 8] = version->words[i].value;
    assert_true(layout_select(&layout, version->hex, (uintptr_t)runtime, sizeof runtime));
    if (layout.futures.is_described)
        assert_true(tasks_describe(&layout, description, sizeof description));
    uintptr_t root = new_type(0);
    types = (struct py_task_types){
        .code = fake_code_type,
        .coroutine = new_type(root),
        .generator = new_type(root),
        .async_generator = new_type(root),
        .integer = new_type(root),
        .text = new_type(root),
        .none = (uintptr_t)fake_alloc(),
        .future = new_type(root),
    };
    types.task = new_type(types.future);
    types.gathering = new_type(types.future);
}

/* ---- coroutines ---- */

enum doing { CREATED, RUNS, YIELDS, AWAITS };

static uintptr_t new_code(void)
{
    uintptr_t code = fresh(fake_code_type);
    if (layout.code_bytes_ref >= 0)
        put_at(code, layout.code_bytes_ref, fresh(1));
    return code;
}

static uintptr_t bytecode_of(uintptr_t code)
{
    uintptr_t bytes;
    if (layout.code_bytes_ref < 0)
        return code + (uintptr_t)layout.code_bytes;
    memcpy(&bytes, (const void *)(code + (uintptr_t)layout.code_bytes_ref), sizeof bytes);
    return bytes + (uintptr_t)layout.bytes_data;
}

static uintptr_t frame_of(uintptr_t generator)
{
    const struct py_generators *at = &layout.generators;
    uintptr_t frame;
    if (at->frame >= 0)
        return generator + (uintptr_t)at->frame;
    memcpy(&frame, (const void *)(generator + (uintptr_t)at->frame_ref), sizeof frame);
    return frame;
}

static void put_instruction(uintptr_t frame, uintptr_t code, int32_t at)
{
    if (layout.instruction == PY_INSTR_POINTER)
        put_at(frame, layout.fr_instr, bytecode_of(code) + (uintptr_t)(intptr_t)at);
    else
        put_u32(frame, layout.fr_instr,
                (uint32_t)(at >= 0 && layout.instruction == PY_LASTI_UNITS ? at / 2 : at));
}

static void put_state(uintptr_t generator, uintptr_t frame, enum doing doing)
{
    const struct py_generators *at = &layout.generators;
    int state = doing == CREATED  ? at->created
                : doing == RUNS   ? at->executing
                : doing == AWAITS ? at->awaits_first
                                  : -2;
    if (at->await != PY_AWAIT_STATE && doing >= YIELDS)
        state = -1; /* suspended */
    if (at->await == PY_AWAIT_STATE && doing == YIELDS)
        state = at->awaits_first - 1;
    if (at->running >= 0)
        put_u8(generator, at->running, doing == RUNS);
    else if (at->state >= 0)
        put_u8(generator, at->state, (uint8_t)state);
    else
        put_u8(frame, at->frame_state, (uint8_t)state);
}

/* With three more values below. */
static void put_awaited(uintptr_t frame, uintptr_t awaited)
{
    const struct py_generators *at = &layout.generators;
    enum { DEPTH = 4 };
    uintptr_t values = at->stack >= 0 ? frame + (uintptr_t)at->stack : (uintptr_t)fake_alloc();
    if (at->stack_end >= 0) {
        if (layout.instruction == PY_INSTR_POINTER)
            values = frame + 80;
        put_at(frame, at->stack_end, values + DEPTH * 8);
    } else {
        put_u32(frame, at->stack_depth, DEPTH);
        if (at->stack < 0)
            put_at(frame, at->stack_ref, values);
    }
    uintptr_t tag = ~at->value_mask & 1;
    put_at(values, (DEPTH - at->awaited) * 8, awaited ? awaited | tag : 0);
}

static uintptr_t new_generator(uintptr_t type, uintptr_t code, int32_t at, enum doing doing,
                               uintptr_t awaited)
{
    const struct py_generators *g = &layout.generators;
    uintptr_t generator = fresh(type);
    if (g->frame < 0)
        put_at(generator, g->frame_ref, (uintptr_t)fake_alloc());
    uintptr_t frame = frame_of(generator);
    put_at(frame, layout.fr_code, code);
    put_instruction(frame, code, doing == CREATED ? -2 : at);
    if (doing == CREATED && layout.instruction != PY_INSTR_POINTER)
        put_u32(frame, layout.fr_instr, (uint32_t)-1);
    put_state(generator, frame, doing);
    put_u8(bytecode_of(code), at + 2, doing == AWAITS ? g->opcodes[0] : 1);
    put_u8(bytecode_of(code), at + 3, 3);
    put_awaited(frame, awaited);
    return generator;
}

static uintptr_t in_front(uintptr_t type, uintptr_t generator)
{
    uintptr_t object = fresh(type);
    put_at(object, layout.head_bytes, generator);
    return object;
}

static struct py_walk walk;
static bool runs, has_begun;

static bool chain(uintptr_t coroutine)
{
    memset(frames, 0, sizeof frames);
    return tasks_chain(&layout, &types, coroutine, frames, &walk, &runs, &has_begun);
}

static void check_chain(void)
{
    uintptr_t codes[3] = {new_code(), new_code(), new_code()};
    uintptr_t future = fresh(types.future);
    uintptr_t leaf = new_generator(types.generator, codes[2], 30, AWAITS, future);
    uintptr_t middle = new_generator(types.async_generator, codes[1], 20, AWAITS,
                                     in_front(named_type("coroutine_wrapper"), leaf));
    uintptr_t outer =
        new_generator(types.coroutine, codes[0], 10, AWAITS,
                      in_front(named_type("anext_awaitable"),
                               in_front(named_type("async_generator_asend"), middle)));
    assert_true(chain(outer));
    assert_int_equal(walk.count, 3);
    assert_false(walk.truncated || walk.bad || runs || !has_begun);
    for (unsigned i = 0; i < 3; i++) { /* innermost first */
        assert_int_equal(frames[i].code, codes[2 - i]);
        assert_int_equal(frames[i].at, 30 - 10 * (int)i);
        assert_false(frames[i].direct);
    }
    assert_int_equal(tasks_awaited(&layout, &types, leaf), future);
    assert_int_equal(tasks_awaited(&layout, &types, future), 0);
}

static void check_states(void)
{
    uintptr_t code = new_code(), inner_code = new_code();
    uintptr_t inner = new_generator(types.coroutine, inner_code, 6, RUNS, 0);
    assert_true(chain(inner));
    assert_true(runs && has_begun);
    assert_true(chain(new_generator(types.coroutine, code, 10, AWAITS, inner)));
    assert_true(runs);
    assert_int_equal(walk.count, 2);
    /* A generator that yields does not await what is on its stack. */
    assert_true(chain(new_generator(types.coroutine, new_code(), 10, YIELDS, inner)));
    assert_false(runs);
    assert_int_equal(walk.count, 1);
    uintptr_t created = new_generator(types.coroutine, new_code(), 4, CREATED, 0);
    assert_true(chain(created));
    assert_false(has_begun || runs);
    assert_int_equal(walk.count, 1);
    assert_int_equal(frames[0].at, -1);
    assert_int_equal(tasks_awaited(&layout, &types, created), 0);
    /* It is awaited: the one outside has begun. */
    assert_true(chain(new_generator(types.coroutine, new_code(), 10, AWAITS, created)));
    assert_true(has_begun);
    assert_int_equal(walk.count, 2);
    assert_false(chain(fresh(types.future)));
    assert_false(chain(0));
}

/* More coroutines than are kept: those that matter are at the inner end. */
static void check_long_chain(void)
{
    uintptr_t code = new_code();
    for (unsigned links = CHAIN_MAX - 1; links <= 2 * CHAIN_MAX + 3; links += 33) {
        uintptr_t coroutine = 0;
        for (unsigned i = 0; i < links; i++)
            coroutine =
                new_generator(types.coroutine, code, 2 * (int32_t)(i % 60), AWAITS, coroutine);
        for (int i = 0; i < 60; i++) { /* they all wrote their next instruction there */
            put_u8(bytecode_of(code), 2 * i, layout.generators.opcodes[0]);
            put_u8(bytecode_of(code), 2 * i + 1, 3);
        }
        assert_true(chain(coroutine));
        assert_int_equal(walk.truncated, links > CHAIN_MAX);
        assert_int_equal(walk.count, links > CHAIN_MAX ? CHAIN_MAX : links);
        for (unsigned i = 0; i < walk.count; i++)
            assert_int_equal(frames[i].at, 2 * (i % 60));
    }
}

/* Whatever is freed, and by whom it is used next: no fault. */
static void check_torn(void)
{
    uintptr_t nothing = page_before_nothing(), code = new_code();
    assert_false(chain(nothing));
    /* It ends where it cannot be read; who reads it twice finds out. */
    assert_true(chain(new_generator(types.coroutine, code, 10, AWAITS, nothing)));
    assert_int_equal(walk.count, 1);
    assert_true(chain(new_generator(types.coroutine, code, 10, AWAITS,
                                    in_front(named_type("async_generator_athrow"), nothing))));
    assert_int_equal(walk.count, 1);
    /* Its type can be read and its frame cannot. */
    uintptr_t half = nothing - (uintptr_t)layout.ob_type - 8;
    put_at(half, layout.ob_type, types.coroutine);
    assert_false(chain(half));
    assert_int_equal(tasks_awaited(&layout, &types, half), 0);
    assert_false(chain(new_generator(types.coroutine, code, 10, AWAITS, half)));
    /* No code, or something else in its place. */
    uintptr_t coroutine = new_generator(types.coroutine, code, 10, AWAITS, 0);
    put_at(frame_of(coroutine), layout.fr_code, nothing);
    assert_false(chain(coroutine));
    put_at(frame_of(coroutine), layout.fr_code, fresh(types.text));
    assert_false(chain(coroutine));
    put_at(frame_of(coroutine), layout.fr_code, code);
    assert_true(chain(coroutine));
    if (layout.generators.frame < 0) {
        put_at(coroutine, layout.generators.frame_ref, 0); /* it has ended */
        assert_false(chain(coroutine));
        put_at(coroutine, layout.generators.frame_ref, nothing);
        assert_false(chain(coroutine));
    }
    /* A circle. */
    coroutine = new_generator(types.coroutine, code, 10, AWAITS, 0);
    put_awaited(frame_of(coroutine), coroutine);
    assert_true(chain(coroutine));
    assert_true(walk.truncated);
    /* The depth of its stack makes no sense. */
    if (layout.generators.stack_depth >= 0) {
        const uint32_t depths[] = {0, (uint32_t)-1, 10001, UINT32_MAX / 2};
        for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
            put_u32(frame_of(coroutine), layout.generators.stack_depth, depths[i]);
            assert_true(chain(coroutine));
            assert_int_equal(walk.count, 1);
        }
    }
    munmap((void *)(nothing - (uintptr_t)sysconf(_SC_PAGESIZE)), 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- tasks ---- */

static uintptr_t new_task(uintptr_t type, uint32_t state, uintptr_t waiter, uintptr_t coroutine)
{
    const struct py_futures *at = &layout.futures;
    uintptr_t task = fresh(type);
    put_at(task, at->loop, 0x1007);
    put_u32(task, at->state, state);
    put_at(task, at->waiter, waiter);
    put_at(task, at->coroutine, coroutine);
    return task;
}

static struct py_task task;

static bool reads(uintptr_t address)
{
    return tasks_read(&layout, &types, address, &task);
}

static void check_tasks(void)
{
    uintptr_t coroutine = new_generator(types.coroutine, new_code(), 2, YIELDS, 0);
    uintptr_t future = fresh(types.future), done = fresh(types.future);
    put_u32(done, layout.futures.state, 2);
    assert_true(reads(new_task(types.task, 0, future, coroutine)));
    assert_int_equal(task.state, PY_TASK_WAITS);
    assert_int_equal(task.waiter, future);
    assert_int_equal(task.coroutine, coroutine);
    assert_int_equal(task.loop, 0x1007);
    assert_true(reads(new_task(new_type(types.task), 0, future, coroutine))); /* derived from it */
    assert_true(reads(new_task(types.task, 0, fresh(new_type(types.future)), coroutine)));
    assert_int_equal(task.state, PY_TASK_WAITS);
    assert_true(
        reads(new_task(types.task, 0, fresh(new_type(0)), coroutine))); /* of another make */
    assert_int_equal(task.state, PY_TASK_WAITS);
    for (uint32_t state = 1; state <= 2; state++) { /* cancelled, finished */
        assert_true(reads(new_task(types.task, state, 0, coroutine)));
        assert_int_equal(task.state, PY_TASK_ENDED);
    }
    assert_true(reads(new_task(types.task, 0, 0, 0)));
    assert_int_equal(task.state, PY_TASK_ENDED);
    assert_true(reads(new_task(types.task, 0, 0, coroutine)));
    assert_int_equal(task.state, PY_TASK_READY);
    assert_true(reads(new_task(types.task, 0, done, coroutine)));
    assert_int_equal(task.state, PY_TASK_READY);
    assert_true(reads(new_task(types.task, 0, new_task(types.task, 0, 0, coroutine), coroutine)));
    assert_int_equal(task.state, PY_TASK_WAITS_FOR_TASK);
    assert_true(reads(new_task(types.task, 0, fresh(types.gathering), coroutine)));
    assert_int_equal(task.state, PY_TASK_WAITS_FOR_TASK);
    assert_false(reads(future));
    assert_false(reads(0));
}

static void check_torn_tasks(void)
{
    uintptr_t nothing = page_before_nothing();
    uintptr_t coroutine = new_generator(types.coroutine, new_code(), 2, YIELDS, 0);
    assert_false(reads(nothing));
    uintptr_t half = nothing - (uintptr_t)layout.ob_type - 8;
    put_at(half, layout.ob_type, types.task);
    assert_false(reads(half));
    /* It waits for something of which nothing is known, not for tasks. */
    types.gathering = 0;
    assert_true(reads(new_task(types.task, 0, nothing, coroutine)));
    assert_int_equal(task.state, PY_TASK_WAITS);
    put_at(half, layout.ob_type, types.future); /* a future whose state is gone */
    assert_false(reads(new_task(types.task, 0, half, coroutine)));
    /* A type whose bases are a circle, or cannot be read. */
    uintptr_t circle = new_type(0);
    put_at(circle, 256, circle);
    assert_false(reads(new_task(circle, 0, 0, coroutine)));
    assert_false(reads(new_task(new_type(nothing), 0, 0, coroutine)));
    assert_false(tasks_is_a(&layout, coroutine, 0));
    munmap((void *)(nothing - (uintptr_t)sysconf(_SC_PAGESIZE)), 2 * (size_t)sysconf(_SC_PAGESIZE));
}

static void for_each_version(void **state, void (*check)(void))
{
    faults_install(state);
    for (unsigned i = 0; i < VERSIONS; i++) {
        select_version(&versions[i]);
        check();
    }
}

static void test_chain(void **state)
{
    for_each_version(state, check_chain);
}

static void test_states(void **state)
{
    for_each_version(state, check_states);
}

static void test_long_chain(void **state)
{
    for_each_version(state, check_long_chain);
}

static void test_torn(void **state)
{
    for_each_version(state, check_torn);
}

static void test_tasks(void **state)
{
    for_each_version(state, check_tasks);
}

static void test_torn_tasks(void **state)
{
    for_each_version(state, check_torn_tasks);
}

/* Trio's tasks are objects of Python's own. */
static void test_slots(void **state)
{
    faults_install(state);
    select_version(&versions[4]);
    const struct py_slots slots = {.type = new_type(0), .coroutine = 40, .abort = 48, .name = 56};
    uintptr_t coroutine = fresh(types.coroutine), object = fresh(slots.type);
    assert_false(tasks_read_slots(&layout, &types, &slots, object, &task)); /* no coroutine */
    put_at(object, slots.coroutine, coroutine);
    put_at(object, slots.abort, types.none);
    assert_true(tasks_read_slots(&layout, &types, &slots, object, &task));
    assert_int_equal(task.state, PY_TASK_READY);
    assert_int_equal(task.coroutine, coroutine);
    put_at(object, slots.abort, fresh(types.text));
    assert_true(tasks_read_slots(&layout, &types, &slots, object, &task));
    assert_int_equal(task.state, PY_TASK_WAITS);
    assert_false(tasks_read_slots(&layout, &types, &slots, coroutine, &task));
    uintptr_t nothing = page_before_nothing();
    uintptr_t half = nothing - 16;
    put_at(half, layout.ob_type, slots.type);
    assert_false(tasks_read_slots(&layout, &types, &slots, half, &task));
    assert_false(tasks_read_slots(&layout, &types, &slots, nothing, &task));
}

/* ---- names ---- */

static uintptr_t new_integer(uint64_t digits, uint32_t low, uint32_t high)
{
    uintptr_t integer = fresh(types.integer);
    put_at(integer, layout.head_bytes, digits << 3 | !digits);
    put_u32(integer, layout.head_bytes + 8, low);
    put_u32(integer, layout.head_bytes + 12, high);
    return integer;
}

static void test_names(void **state)
{
    faults_install(state);
    select_version(&versions[4]);
    uintptr_t text;
    uint64_t number;
    uintptr_t string = fresh(types.text);
    assert_true(tasks_name(&layout, &types, string, &text, &number));
    assert_int_equal(text, string);
    assert_true(tasks_name(&layout, &types, new_integer(1, 17, 99), &text, &number));
    assert_int_equal(text, 0);
    assert_int_equal(number, 17);
    assert_true(tasks_name(&layout, &types, new_integer(2, 5, 3), &text, &number));
    assert_int_equal(number, UINT64_C(3) << 30 | 5);
    assert_true(tasks_name(&layout, &types, new_integer(0, 7, 0), &text, &number));
    assert_int_equal(number, 0);
    assert_false(tasks_name(&layout, &types, new_integer(3, 5, 3), &text, &number));
    assert_false(tasks_name(&layout, &types, fresh(types.future), &text, &number));
    assert_false(tasks_name(&layout, &types, 0, &text, &number));
    uintptr_t nothing = page_before_nothing();
    assert_false(tasks_name(&layout, &types, nothing, &text, &number));
    put_at(nothing - 16, layout.ob_type, types.integer);
    assert_false(tasks_name(&layout, &types, nothing - 16, &text, &number));
}

/* ---- sets ---- */

static void test_set(void **state)
{
    faults_install(state);
    select_version(&versions[4]);
    uintptr_t object = fresh(types.future), table = (uintptr_t)fake_alloc();
    uintptr_t weak = fresh(1), dead = fresh(1), nothing = page_before_nothing();
    put_at(weak, layout.head_bytes, object);
    put_at(dead, layout.head_bytes, 0); /* CPython has None there: no task either */
    put_at(table, 0, weak);
    put_at(table, 32, dead);
    put_at(table, 48, nothing);
    uintptr_t set = fresh(1);
    put_at(set, layout.head_bytes, 4);     /* fill: with dummies */
    put_at(set, layout.head_bytes + 8, 3); /* used */
    put_at(set, layout.head_bytes + 16, 7);
    put_at(set, layout.head_bytes + 24, table);
    struct py_set read_set;
    assert_true(tasks_set(&layout, set, &read_set));
    assert_int_equal(read_set.mask, 7);
    assert_int_equal(read_set.used, 3);
    assert_int_equal(read_set.table, table);
    assert_int_equal(tasks_set_key(&layout, &read_set, 0, true), object);
    assert_int_equal(tasks_set_key(&layout, &read_set, 0, false), weak);
    assert_int_equal(tasks_set_key(&layout, &read_set, 1, true), 0);
    assert_int_equal(tasks_set_key(&layout, &read_set, 2, true), 0);
    assert_int_equal(tasks_set_key(&layout, &read_set, 3, true), 0);
    static const struct {
        uint64_t used, mask;
    } absurd[] = {{3, 6}, {8, 7}, {0, UINT64_MAX}, {1, (UINT64_C(1) << 40) - 1}};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        put_at(set, layout.head_bytes + 8, absurd[i].used);
        put_at(set, layout.head_bytes + 16, absurd[i].mask);
        assert_false(tasks_set(&layout, set, &read_set));
    }
    put_at(set, layout.head_bytes + 8, 3);
    put_at(set, layout.head_bytes + 16, 7);
    put_at(set, layout.head_bytes + 24, 0);
    assert_false(tasks_set(&layout, set, &read_set));
    assert_false(tasks_set(&layout, nothing, &read_set));
    read_set = (struct py_set){.table = nothing, .mask = 7};
    assert_int_equal(tasks_set_key(&layout, &read_set, 0, true), 0);
}

/* ---- descriptions ---- */

static void test_describe(void **state)
{
    (void)state;
    select_version(&versions[6]);
    assert_int_equal(layout.futures.task_bytes, 160);
    assert_int_equal(layout.futures.loop, layout.head_bytes);
    assert_int_equal(layout.futures.state, 96);
    assert_int_equal(layout.futures.waiter, 120);
    assert_int_equal(layout.futures.coroutine, 128);
    assert_int_equal(layout.futures.name, 136);
    assert_int_equal(layout.futures.node, 144);
    assert_int_equal(layout.futures.ts_tasks, 400);
    assert_int_equal(layout.futures.interp_tasks, 10880);
    const struct py_futures before = layout.futures;
    uint64_t words[16];
    static const bool is_used[13] = {true, true, true, true, [5] = true, [6] = true, [12] = true};
    for (unsigned i = 0; i < 13; i++) { /* others may be large: the size of an interpreter */
        memcpy(words, description, sizeof words);
        words[i] = 65536;
        assert_int_equal(tasks_describe(&layout, words, sizeof words), !is_used[i]);
    }
    memcpy(words, description, sizeof words);
    words[8] = 1 << 20; /* without that, tasks of ended threads are not seen, but others are */
    assert_true(tasks_describe(&layout, words, sizeof words));
    assert_int_equal(layout.futures.interp_tasks, PY_ABSENT);
    assert_false(tasks_describe(&layout, description, 12 * sizeof *description));
    assert_true(tasks_describe(&layout, description, 13 * sizeof *description));
    memcpy(words, description, sizeof words);
    words[3]++; /* a state of another size */
    assert_false(tasks_describe(&layout, words, sizeof words));
    assert_memory_equal(&before, &layout.futures, sizeof before);
}

/* What a type tells of itself. */
static void test_types(void **state)
{
    faults_install(state);
    select_version(&versions[4]);
    uintptr_t type = new_type(0);
    put_at(type, 32, 176);
    put_at(type, 48, (uintptr_t)&test_types);
    assert_int_equal(tasks_type_bytes(&layout, type), 176);
    assert_int_equal(tasks_type_code(&layout, type), (uintptr_t)&test_types);
    assert_int_equal(tasks_type_bytes(&layout, page_before_nothing()), 0);
}

/* A section of this very program. */
__attribute__((section(".FakeDebug"), used)) static const uint64_t fake_section[] = {11, 22, 33};

static void test_section(void **state)
{
    (void)state;
    size_t bytes = 0;
    uintptr_t here = (uintptr_t)&test_section;
    assert_ptr_equal(symbols_section(here, ".FakeDebug", &bytes), fake_section);
    assert_int_equal(bytes, sizeof fake_section);
    assert_null(symbols_section(here, ".FakeDebu", &bytes));
    assert_null(symbols_section(here, ".FakeDebugs", &bytes));
    assert_null(symbols_section(here, ".symtab", &bytes)); /* it is not in memory */
    assert_null(symbols_section(0x1000, ".FakeDebug", &bytes));
    uint64_t here_too = 0;
    assert_null(symbols_section((uintptr_t)&here_too, ".FakeDebug", &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),      cmocka_unit_test(test_states),
        cmocka_unit_test(test_long_chain), cmocka_unit_test(test_torn),
        cmocka_unit_test(test_tasks),      cmocka_unit_test(test_torn_tasks),
        cmocka_unit_test(test_slots),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_set),        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_types),      cmocka_unit_test(test_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
