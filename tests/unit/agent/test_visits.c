/*
 * Passes over tasks made of plain memory, in sets and in lists, with a clock that is made up: who
 * is visited when, and what each visit stands for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/async/awaits.h"
#include "agent/async/lists.h"
#include "agent/async/loops.h"
#include "agent/async/visits.h"
#include "agent/core/agent.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "os/os.h"

#include <math.h>

struct agent agent;
struct registry registry;

enum { MS = 1000000, US = 1000, PASS_NS = 10 * MS, PASS_US = 10000, LOOPS = 3, TASKS_MAX = 12000 };
enum { SLOTS_A_CLOCK = 16, LOOKS_LEAST = 48, SLOTS_LEAST = 1024 };

/* ---- the world ---- */

struct item {
    uintptr_t task[24], coroutine[32], weak[4];
    unsigned visits; /* in this round */
};

static struct item *items;
static unsigned item_count;
static struct loop loops[LOOPS];
static bool is_running[LOOPS];
static unsigned loop_count;
static uintptr_t tstates[LOOPS][64], interpreter[8], current;
static uint64_t now_ns, tick_ns; /* tick_ns: by which the clock advances at each look */
static uint64_t slots, clocks, rounds, most_visits, least_visits;
static bool is_strict; /* each task is visited once a round */
static struct fake_object *codes[2], *futures[2];
static struct wire_filter filter = {.directories = {"/p"}};
static void (*in_the_middle)(struct item *item);

uint64_t __wrap_os_mono_ns(void);
bool __real_tasks_chain(const struct py_layout *layout, const struct py_task_types *types,
                        uintptr_t coroutine, struct py_frame *frames, struct py_walk *walk,
                        bool *runs, bool *has_begun);
bool __wrap_tasks_chain(const struct py_layout *layout, const struct py_task_types *types,
                        uintptr_t coroutine, struct py_frame *frames, struct py_walk *walk,
                        bool *runs, bool *has_begun);
uintptr_t __real_tasks_set_key(const struct py_layout *layout, const struct py_set *set,
                               uint64_t index, bool is_weak);
uintptr_t __wrap_tasks_set_key(const struct py_layout *layout, const struct py_set *set,
                               uint64_t index, bool is_weak);
void __real_awaits_end_round(uint64_t round_us, double scale);
void __wrap_awaits_end_round(uint64_t round_us, double scale);

uint64_t __wrap_os_mono_ns(void)
{
    static uint64_t more_ns;
    clocks++;
    return now_ns + (more_ns += tick_ns);
}

bool __wrap_tasks_chain(const struct py_layout *layout, const struct py_task_types *types,
                        uintptr_t coroutine, struct py_frame *frames, struct py_walk *walk,
                        bool *runs, bool *has_begun)
{
    struct item *item = (struct item *)(coroutine - offsetof(struct item, coroutine));
    item->visits++;
    bool is_read = __real_tasks_chain(layout, types, coroutine, frames, walk, runs, has_begun);
    if (in_the_middle)
        in_the_middle(item);
    return is_read;
}

uintptr_t __wrap_tasks_set_key(const struct py_layout *layout, const struct py_set *set,
                               uint64_t index, bool is_weak)
{
    slots++;
    return __real_tasks_set_key(layout, set, index, is_weak);
}

void __wrap_awaits_end_round(uint64_t round_us, double scale)
{
    rounds++;
    most_visits = 0;
    least_visits = UINT64_MAX;
    for (unsigned i = 0; i < item_count; i++) {
        if (is_strict)
            assert_int_equal(items[i].visits, 1);
        most_visits = items[i].visits > most_visits ? items[i].visits : most_visits;
        least_visits = items[i].visits < least_visits ? items[i].visits : least_visits;
        items[i].visits = 0;
    }
    __real_awaits_end_round(round_us, scale);
}

static void *current_tstate(void)
{
    return (void *)current;
}

bool registry_ready(enum registry_kind kind)
{
    return kind != REGISTRY_NO_LOOP;
}

unsigned loops_used(void)
{
    return loop_count;
}

struct loop *loops_at(unsigned index)
{
    return &loops[index];
}

bool loops_is_running(const struct loop *loop)
{
    return is_running[loop - loops];
}

/* ---- tasks ---- */

static void put_at(uintptr_t base, int32_t offset, uint64_t value)
{
    memcpy((void *)(base + (uintptr_t)offset), &value, sizeof value);
}

static uintptr_t get_at(uintptr_t base, int32_t offset)
{
    uintptr_t value;
    memcpy(&value, (const void *)(base + (uintptr_t)offset), sizeof value);
    return value;
}

static uintptr_t address_of(unsigned i)
{
    return (uintptr_t)items[i].task;
}

static void wait_at(unsigned i, unsigned code)
{
    const struct py_layout *l = &agent.layout;
    uintptr_t frame = (uintptr_t)items[i].coroutine + (uintptr_t)l->generators.frame;
    put_at(frame, l->fr_code, (uintptr_t)codes[code]);
    put_at(frame, l->fr_instr, (uintptr_t)codes[code] + (uintptr_t)l->code_bytes + 4);
}

/* Of the loop; it waits for a future. */
static void make_task(unsigned i, unsigned loop)
{
    const struct py_layout *l = &agent.layout;
    struct item *item = &items[i];
    memset(item, 0, sizeof *item);
    put_at(address_of(i), l->ob_type, registry.types.task);
    put_at(address_of(i), l->futures.loop, atomic_load(&loops[loop].object));
    put_at(address_of(i), l->futures.waiter, (uintptr_t)futures[0]);
    put_at(address_of(i), l->futures.coroutine, (uintptr_t)item->coroutine);
    put_at((uintptr_t)item->coroutine, l->ob_type, registry.types.coroutine);
    ((int8_t *)item->coroutine)[l->generators.state] = -1;
    put_at((uintptr_t)item->weak, l->head_bytes, address_of(i));
    wait_at(i, 0);
}

static void make_tasks(unsigned count, unsigned loop)
{
    item_count = count;
    for (unsigned i = 0; i < count; i++)
        make_task(i, loop);
}

static void end_task(unsigned i)
{
    uint32_t finished = 2;
    memcpy((char *)items[i].task + agent.layout.futures.state, &finished, sizeof finished);
}

static uintptr_t set_object[8], *table;

static void fill_set(uint64_t size, unsigned from, unsigned to)
{
    free(table);
    table = calloc(size, 2 * sizeof *table);
    assert_non_null(table);
    for (unsigned i = from; i < to; i++) {
        uint64_t at = i * UINT64_C(2654435761) & (size - 1);
        while (table[2 * at])
            at = (at + 1) & (size - 1);
        table[2 * at] = (uintptr_t)items[i].weak;
    }
    put_at((uintptr_t)set_object, agent.layout.head_bytes + 8, to - from);
    put_at((uintptr_t)set_object, agent.layout.head_bytes + 16, size - 1);
    put_at((uintptr_t)set_object, agent.layout.head_bytes + 24, (uintptr_t)table);
    registry.tasks = (uintptr_t)set_object;
}

/* ---- lists ---- */

static uintptr_t link_of(unsigned i)
{
    return address_of(i) + (uintptr_t)agent.layout.futures.node;
}

static uintptr_t head_of(unsigned loop)
{
    return (uintptr_t)tstates[loop] + (uintptr_t)agent.layout.futures.ts_tasks;
}

static void empty_list(unsigned loop)
{
    put_at(head_of(loop), 0, head_of(loop));
    put_at(head_of(loop), 8, head_of(loop));
}

static void push_to(uintptr_t head, unsigned i)
{
    uintptr_t last = get_at(head, 8);
    put_at(link_of(i), 0, head);
    put_at(link_of(i), 8, last);
    put_at(last, 0, link_of(i));
    put_at(head, 8, link_of(i));
}

static void push(unsigned loop, unsigned i)
{
    push_to(head_of(loop), i);
}

static void remove_link(unsigned i)
{
    uintptr_t next = get_at(link_of(i), 0), before = get_at(link_of(i), 8);
    put_at(before, 0, next);
    put_at(next, 8, before);
    put_at(link_of(i), 0, 0);
    put_at(link_of(i), 8, 0);
}

/* As 3.14 has them. */
static void use_lists(void)
{
    static const uint64_t description[16] = {168, 136, 88, 100, 108, 128, 144, 0, 40, 0, 0, 0, 400};
    assert_true(tasks_describe(&agent.layout, description, sizeof description));
    registry.tasks = 0;
    for (unsigned i = 0; i < LOOPS; i++) {
        empty_list(i);
        put_at((uintptr_t)tstates[i], agent.layout.ts_prev,
               i + 1 < LOOPS ? (uintptr_t)tstates[i + 1] : 0);
    }
    agent.main_tstate = current = (uintptr_t)tstates[0];
    registry.tasks_left = (uintptr_t)interpreter + (uintptr_t)agent.layout.futures.interp_tasks;
    put_at(registry.tasks_left, 0, registry.tasks_left);
    put_at(registry.tasks_left, 8, registry.tasks_left);
}

static struct task_list *list_of(unsigned loop)
{
    static struct task_list none;
    for (unsigned i = 0; i < lists_used(); i++)
        if (lists_at(i)->head == head_of(loop))
            return lists_at(i);
    return &none;
}

/* ---- */

static int open_all(void **state)
{
    faults_install(state);
    agent = (struct agent){
        .has_layout = true, .code_type = fake_code_type, .current_tstate = current_tstate};
    if (!layout_select(&agent.layout, 0x030c01f0, 0, 0) || !fixture_open(&agent.arena) ||
        !tables_init(&agent.tables, &agent.arena))
        return -1;
    agent.tables.filter = &filter;
    fixture_grow_fully(&agent.arena);
    items = calloc(TASKS_MAX, sizeof *items);
    registry = (struct registry){.types = {.code = fake_code_type,
                                           .coroutine = (uintptr_t)fake_alloc(),
                                           .text = fake_str_type,
                                           .task = (uintptr_t)fake_alloc(),
                                           .future = (uintptr_t)fake_alloc()}};
    memset(loops, 0, sizeof loops);
    for (unsigned i = 0; i < LOOPS; i++) {
        loops[i].kind = REGISTRY_ASYNCIO;
        loops[i].object = 0x1000 * (i + 1);
        loops[i].tstate = (uintptr_t)tstates[i];
        loops[i].turn = 1;
        is_running[i] = true;
    }
    loop_count = 1;
    codes[0] = fake_code(&agent.layout, "/p/a.py", "f", 1);
    codes[1] = fake_code(&agent.layout, "/p/b.py", "g", 1);
    for (int i = 0; i < 2; i++)
        futures[i] = fake_new(&agent.layout, registry.types.future);
    now_ns = agent.arena.header->start_mono_ns = (uint64_t)5000 * MS;
    is_strict = true;
    item_count = 0;
    tick_ns = 0;
    in_the_middle = NULL;
    awaits_in_child(true);
    visits_reset();
    slots = clocks = rounds = 0;
    return items ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    free(items);
    free(table);
    table = NULL;
    return fixture_close(&agent.arena);
}

static void pass(void)
{
    now_ns += PASS_NS;
    visits_pass(now_ns, PASS_NS);
}

static void passes(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        pass();
}

static const struct wire_async *header(void)
{
    return &agent.arena.header->async;
}

struct sum {
    uint64_t us, count;
    double square_us2;
};

/* Of all stacks that end in this code; -1: in any. */
static struct sum sum_of(enum wire_await_kind kind, int code)
{
    struct sum sum = {0};
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_AWAIT].used; id++) {
        const struct wire_await *await = arena_record(&agent.arena, WIRE_AWAIT, id);
        const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, await->node);
        const struct wire_code *record = arena_record(&agent.arena, WIRE_CODE, node->ref);
        if (await->kind != kind || (code >= 0 && record->address != (uintptr_t)codes[code]))
            continue;
        sum.us += await->us;
        sum.count += await->count;
        sum.square_us2 += await->square_us2;
    }
    return sum;
}

static uint32_t peak_of(unsigned code)
{
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_PLACE].used; id++) {
        const struct wire_place *place = arena_record(&agent.arena, WIRE_PLACE, id);
        const struct wire_code *record = arena_record(&agent.arena, WIRE_CODE, place->code);
        if (record->address == (uintptr_t)codes[code])
            return place->peak;
    }
    return 0;
}

/* ---- all in one pass ---- */

static void test_exact(void **state)
{
    faults_install(state);
    static const struct {
        uint64_t size;
        unsigned tasks;
    } cases[] = {{8, 3}, {1024, 300}, {32768, TASKS_MAX}};
    uint64_t us = 0, looks = 0;
    double square_us2 = 0, before = 0;
    for (unsigned i = 0; i < 3; i++) {
        make_tasks(cases[i].tasks, 0);
        fill_set(cases[i].size, 0, cases[i].tasks);
        passes(10);
        us += (uint64_t)10 * cases[i].tasks * PASS_US;
        looks += (uint64_t)10 * cases[i].tasks;
        assert_int_equal(rounds, 10 * (i + 1));
        assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, us);
        assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).count, looks);
        assert_int_equal(header()->looks, looks);
        assert_int_equal(header()->tasks_peak, cases[i].tasks);
        assert_int_equal(peak_of(0), cases[i].tasks);
        assert_int_equal(header()->passes, 10 * (i + 1));
        /* As long as they stay the same, their time is known. */
        square_us2 += (cases[i].tasks - before) * (cases[i].tasks - before) / 2 * PASS_US * PASS_US;
        before = cases[i].tasks;
        assert_true(sum_of(WIRE_AWAIT_WAITS, 0).square_us2 ==
                    square_us2 + before * before / 2 * PASS_US * PASS_US);
    }
    assert_int_equal(header()->rejected, 0);
    const struct wire_place *place = arena_record(&agent.arena, WIRE_PLACE, 1);
    assert_int_equal(place->present_us, 30 * PASS_US);
}

static void test_kinds(void **state)
{
    faults_install(state);
    make_tasks(5, 0);
    fill_set(8, 0, 5);
    const struct py_layout *l = &agent.layout;
    put_at(address_of(0), l->futures.waiter, 0);             /* ready */
    put_at(address_of(1), l->futures.waiter, address_of(2)); /* waits for a task */
    ((int8_t *)items[2].coroutine)[l->generators.state] = 0; /* runs */
    end_task(3);
    put_at(address_of(4), l->futures.name, (uintptr_t)fake_str(l, "four"));
    put_at(address_of(0), l->futures.name, (uintptr_t)fake_str(l, "zero"));
    is_strict = false;
    pass();
    assert_int_equal(sum_of(WIRE_AWAIT_READY, 0).us, PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_TASKS, 0).us, PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, PASS_US);
    assert_int_equal(header()->tasks_peak, 4);
    assert_int_equal(header()->looks, 4);
    assert_int_equal(peak_of(0), 2);
    assert_int_equal(agent.arena.header->sections[WIRE_NAME].used, 2); /* of who waits */
    const struct wire_crowd *point = arena_record(&agent.arena, WIRE_CROWD, 1);
    assert_int_equal(point->tasks, 4);
    assert_int_equal(point->ready, 1);
    assert_int_equal(point->at_ns, PASS_NS);
}

static void test_busy(void **state)
{
    faults_install(state);
    make_tasks(2, 0);
    fill_set(8, 0, 2);
    pass();
    loops[0].turn = 2; /* it runs something */
    pass();
    const struct wire_await *await = arena_record(&agent.arena, WIRE_AWAIT, 1);
    assert_int_equal(await->us, 4 * PASS_US);
    assert_int_equal(await->busy_us, 2 * PASS_US);
}

/* ---- a part in each pass ---- */

enum { PART_TICK_NS = 10 * US };

/* What the budget allows: the clock is looked at every so many slots. */
static uint64_t slots_a_pass(void)
{
    const uint64_t budget_ns = PASS_NS / 160;
    return (budget_ns / PART_TICK_NS + 2) * SLOTS_A_CLOCK;
}

static void test_parts(void **state)
{
    faults_install(state);
    enum { PASSES = 5000 };
    make_tasks(TASKS_MAX, 0);
    for (unsigned i = 0; i < TASKS_MAX; i += 4) /* a quarter of them is elsewhere */
        wait_at(i, 1);
    fill_set(32768, 0, TASKS_MAX);
    tick_ns = PART_TICK_NS;
    for (unsigned i = 0; i < PASSES; i++) {
        uint64_t slots_before = slots, looks_before = header()->looks;
        pass();
        assert_in_range(slots - slots_before, 1, slots_a_pass() + 2 * LOOKS_LEAST * SLOTS_A_CLOCK);
        assert_in_range(header()->looks - looks_before, LOOKS_LEAST,
                        slots_a_pass() + 2 * LOOKS_LEAST * SLOTS_A_CLOCK);
    }
    assert_true(rounds >= 10);
    /* Each pass gives out the time of all tasks, to the microsecond ... */
    struct sum all = sum_of(WIRE_AWAIT_WAITS, -1), quarter = sum_of(WIRE_AWAIT_WAITS, 1);
    const double expected_us = (double)PASSES * PASS_US * TASKS_MAX;
    assert_true(fabs((double)all.us - expected_us) <= PASSES);
    /* ... and to each place as much as there are, but for chance. */
    double share = (double)quarter.us / (double)all.us;
    double deviation = sqrt(0.25 * 0.75 / (double)header()->looks);
    assert_true(fabs(share - 0.25) < 5 * deviation);
    /* That is what readers are told, and it is no more than chance would make of single looks. */
    double bar = sqrt(quarter.square_us2) / (double)quarter.us;
    assert_true(fabs(share - 0.25) < 0.25 * bar);
    assert_in_range((uint64_t)(1000 * bar * sqrt((double)quarter.count)), 1, 1300);
    assert_int_equal(header()->tasks_peak / (TASKS_MAX / 10), 10);
    assert_in_range(peak_of(0), TASKS_MAX * 3 / 4, TASKS_MAX);
}

/* What a pass costs does not depend on how many tasks there are, nor on how many there were. */
static void test_cost(void **state)
{
    faults_install(state);
    is_strict = false;
    tick_ns = PART_TICK_NS;
    make_tasks(TASKS_MAX, 0);
    uint64_t looks[2];
    for (unsigned i = 0; i < 2; i++) {
        fill_set(i ? 16384 : 2048, 0, i ? 8000 : 1000);
        visits_reset();
        uint64_t before = header()->looks;
        passes(200);
        looks[i] = header()->looks - before;
    }
    assert_in_range(looks[1], looks[0] * 9 / 10, looks[0] * 11 / 10);
    /* A few tasks in a large table, and finished ones that somebody keeps. */
    const uint64_t most = SLOTS_LEAST + slots_a_pass();
    fill_set(32768, 0, 5);
    visits_reset();
    for (unsigned i = 0; i < 100; i++) {
        uint64_t before = slots;
        pass();
        assert_true(slots - before <= most);
    }
    for (unsigned i = 0; i < TASKS_MAX; i++)
        end_task(i);
    fill_set(32768, 0, TASKS_MAX);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t before = slots;
        pass();
        assert_true(slots - before <= most);
    }
}

/* Few tasks in a large table: most passes find none, and yet all time is given out. */
static void test_sparse(void **state)
{
    faults_install(state);
    enum { PASSES = 3000, FEW = 5 };
    make_tasks(FEW, 0);
    fill_set(32768, 0, FEW);
    tick_ns = PART_TICK_NS;
    passes(PASSES);
    assert_true(rounds >= 50);
    struct sum all = sum_of(WIRE_AWAIT_WAITS, -1);
    const double expected_us = (double)PASSES * PASS_US * FEW;
    /* The last tasks may have been seen a while ago: a round, at most. */
    assert_true((double)all.us <= expected_us);
    assert_true((double)all.us >= expected_us * (1 - 1.5 / (double)rounds));
    assert_int_equal(header()->tasks_peak, FEW);
}

/* A pass that was late does not leave all later ones in the middle of a round. */
static void test_late_pass(void **state)
{
    faults_install(state);
    make_tasks(300, 0);
    fill_set(1024, 0, 300);
    tick_ns = PART_TICK_NS;
    pass();
    assert_int_equal(rounds, 0);
    tick_ns = 0;
    pass();
    assert_int_equal(rounds, 2); /* the rest, and a whole one */
    struct sum before = sum_of(WIRE_AWAIT_WAITS, 0);
    assert_in_range(before.us, 2 * 300 * PASS_US - 1, 2 * 300 * PASS_US + 1);
    pass();
    struct sum after = sum_of(WIRE_AWAIT_WAITS, 0);
    assert_int_equal(rounds, 3);
    assert_int_equal(after.count - before.count, 300);
    assert_int_equal(after.us - before.us, 300 * PASS_US);
    assert_true(after.square_us2 == before.square_us2); /* exact */
}

static void test_resized(void **state)
{
    faults_install(state);
    is_strict = false;
    tick_ns = PART_TICK_NS;
    make_tasks(TASKS_MAX, 0);
    fill_set(16384, 0, 6000);
    passes(20);
    assert_int_equal(rounds, 0);
    fill_set(32768, 0, TASKS_MAX);
    pass();
    assert_int_equal(rounds, 1); /* it ends there, and nobody was visited twice in it */
    assert_int_equal(most_visits, 1);
    is_strict = true;
    uint64_t before = sum_of(WIRE_AWAIT_WAITS, -1).us;
    passes(1000);
    assert_true(rounds >= 3);
    uint64_t us = sum_of(WIRE_AWAIT_WAITS, -1).us - before;
    const double expected_us = (double)1000 * PASS_US * TASKS_MAX;
    assert_true(fabs((double)us - expected_us) <= 1000);
    assert_in_range(header()->tasks_peak, TASKS_MAX, TASKS_MAX * 11 / 10);
    /* Between two rounds it is no matter. */
    tick_ns = 0;
    passes(2);
    fill_set(16384, 0, TASKS_MAX);
    uint64_t rounds_before = rounds;
    pass();
    assert_int_equal(rounds, rounds_before + 1);
}

/* It can be freed, too. */
static void test_set_is_gone(void **state)
{
    faults_install(state);
    is_strict = false;
    make_tasks(300, 0);
    fill_set(1024, 0, 300);
    tick_ns = PART_TICK_NS;
    pass();
    put_at((uintptr_t)set_object, agent.layout.head_bytes + 24, 0x1000);
    passes(3);
    put_at((uintptr_t)set_object, agent.layout.head_bytes + 16, 1000);
    passes(3);
    tick_ns = 0;
    fill_set(1024, 0, 300);
    pass();
    is_strict = true;
    uint64_t before = rounds;
    passes(2);
    assert_int_equal(rounds, before + 2);
}

/* Many at once are noticed before each of them was visited. */
static void test_early_peak(void **state)
{
    faults_install(state);
    make_tasks(TASKS_MAX, 0);
    fill_set(32768, 0, TASKS_MAX);
    tick_ns = PART_TICK_NS;
    passes(100);
    assert_int_equal(rounds, 0);
    assert_int_equal(header()->tasks_peak, TASKS_MAX); /* all that were found are unfinished */
    assert_int_equal(peak_of(0), TASKS_MAX);
    assert_true(header()->looks < TASKS_MAX);
}

/* ---- lists ---- */

static void test_list(void **state)
{
    faults_install(state);
    use_lists();
    passes(2);
    assert_int_equal(header()->looks, 0);
    make_tasks(200, 0);
    for (unsigned i = 0; i < 200; i++)
        push(0, i);
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 10 * 200 * PASS_US);
    assert_true(sum_of(WIRE_AWAIT_WAITS, 0).square_us2 == 200. * 200 * PASS_US * PASS_US);
    assert_int_equal(header()->tasks_peak, 200);
    assert_int_equal(rounds, 10);
    /* Emptied: there is nothing to give time to; and filled again. */
    is_strict = false;
    empty_list(0);
    passes(3);
    assert_int_equal(header()->looks, 2000);
    for (unsigned i = 0; i < 50; i++)
        push(0, i);
    pass();
    assert_int_equal(header()->looks, 2050);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 2050 * PASS_US);
}

static void test_long_list(void **state)
{
    faults_install(state);
    enum { PASSES = 2000 };
    use_lists();
    tick_ns = PART_TICK_NS;
    make_tasks(5000, 0);
    for (unsigned i = 0; i < 5000; i++)
        push(0, i);
    for (unsigned i = 0; i < 100 && !list_of(0)->counted_ns; i++) /* it is counted first */
        pass();
    assert_int_equal(list_of(0)->length, 5000);
    uint64_t us = sum_of(WIRE_AWAIT_WAITS, -1).us, looks = header()->looks;
    passes(PASSES);
    assert_true(rounds >= 10);
    us = sum_of(WIRE_AWAIT_WAITS, -1).us - us;
    looks = header()->looks - looks;
    assert_true(fabs((double)us - (double)PASSES * PASS_US * 5000) <= PASSES);
    assert_true(looks <= PASSES * (slots_a_pass() + LOOKS_LEAST));
}

/* Most tasks end at once: those that are left do not stand for them, though a list is counted only
 * now and then. */
static void test_shortened_list(void **state)
{
    faults_install(state);
    use_lists();
    is_strict = false;
    make_tasks(2000, 0);
    for (unsigned i = 0; i < 2000; i++)
        push(0, i);
    passes(10);
    uint64_t before = sum_of(WIRE_AWAIT_WAITS, -1).us;
    for (unsigned i = 3; i < 2000; i++)
        remove_link(i);
    pass();
    assert_in_range(sum_of(WIRE_AWAIT_WAITS, -1).us - before, 3 * PASS_US - 3, 3 * PASS_US);
}

/* A few tasks that were made together are seen all along, not at once in each round. */
static void test_few_in_a_long_list(void **state)
{
    faults_install(state);
    enum { COUNT = 5000, FEW = 10 };
    use_lists();
    make_tasks(COUNT, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        wait_at(i, i < FEW);
        push(0, i);
    }
    tick_ns = PART_TICK_NS;
    while (!rounds)
        pass();
    uint64_t few_us = sum_of(WIRE_AWAIT_WAITS, 1).us, all_us = sum_of(WIRE_AWAIT_WAITS, -1).us;
    unsigned first = (unsigned)((now_ns - agent.arena.header->start_mono_ns) / PASS_NS);
    for (unsigned part = 1; part <= 8; part++) {
        passes(first / 4);
        uint64_t few = sum_of(WIRE_AWAIT_WAITS, 1).us - few_us;
        double share = (double)few / (double)(sum_of(WIRE_AWAIT_WAITS, -1).us - all_us);
        /* A quarter of a round is four walks, each with one in sixteen of them. */
        assert_true(fabs(share * COUNT / FEW - 1) <= 1.0 / part);
    }
}

/* The task at which to go on has ended, and perhaps those before it. */
static void test_links_vanish(void **state)
{
    faults_install(state);
    use_lists();
    is_strict = false;
    make_tasks(2000, 0);
    for (unsigned i = 0; i < 2000; i++)
        push(0, i);
    pass();
    tick_ns = PART_TICK_NS;
    pass();
    list_of(0)->stride = 1; /* one after the other, so that it is known who is next */
    list_of(0)->offset = 0;
    for (unsigned i = 0; i < 2000; i++)
        items[i].visits = 0;
    pass();
    for (unsigned turn = 0; turn < 5; turn++) {
        uintptr_t next = list_of(0)->visiting.next;
        assert_true(next);
        unsigned i = (unsigned)((next - link_of(0)) / sizeof(struct item));
        assert_true(i > turn && items[i - 1].visits && !items[i].visits);
        for (unsigned gone = 0; gone <= turn; gone++)
            remove_link(i - gone);
        pass();
        assert_true(items[i + 1].visits); /* it went on */
        assert_true(!items[0].visits || items[0].visits == 1);
    }
    uint64_t before = rounds;
    while (rounds == before)
        pass();
    assert_in_range(most_visits, 1, 2);
    /* All that could be gone on from is gone: from the beginning. */
    while (!list_of(0)->visiting.next)
        pass();
    empty_list(0);
    for (unsigned i = 0; i < 2000; i++) {
        put_at(link_of(i), 0, 0);
        put_at(link_of(i), 8, 0);
    }
    for (unsigned i = 1990; i < 2000; i++)
        push(0, i);
    tick_ns = 0;
    passes(6); /* lists are counted now and then */
    for (unsigned i = 0; i < 2000; i++)
        items[i].visits = 0;
    before = header()->looks;
    pass();
    assert_int_equal(header()->looks, before + 10);
    assert_int_equal(list_of(0)->length, 10);
}

/* What was freed is a task of another loop's now: its list has another head. */
static void test_astray(void **state)
{
    faults_install(state);
    use_lists();
    is_strict = false;
    loop_count = 2;
    is_running[1] = false;
    make_tasks(2000, 0);
    for (unsigned i = 0; i < 1000; i++)
        push(0, i);
    pass();
    tick_ns = PART_TICK_NS;
    pass();
    unsigned i = (unsigned)((list_of(0)->visiting.next - link_of(0)) / sizeof(struct item));
    assert_true(i > 0 && i < 1000);
    remove_link(i);
    push(1, i);
    for (unsigned k = 1000; k < 1100; k++)
        push(1, k);
    uint64_t before = rounds;
    for (unsigned k = 0; k < 1000 && rounds == before; k++)
        pass();
    assert_int_equal(rounds, before + 1);
    for (unsigned k = 0; k < 2000; k++)
        items[k].visits = 0;
    tick_ns = 0;
    passes(3);
    assert_int_equal(list_of(0)->length, 999);
}

/* ---- several loops ---- */

static void test_two_lists(void **state)
{
    faults_install(state);
    use_lists();
    loop_count = 2;
    item_count = 70;
    for (unsigned i = 0; i < 70; i++) {
        make_task(i, i >= 40);
        wait_at(i, i >= 40);
        push(i >= 40, i);
    }
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 10 * 40 * PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 10 * 30 * PASS_US);
    assert_int_equal(header()->tasks_peak, 70);
    is_strict = false;
    is_running[1] = false; /* it has ended, with tasks left over */
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 20 * 40 * PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 10 * 30 * PASS_US);
    is_running[1] = true;
    pass();
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 11 * 30 * PASS_US);
}

/* A list has the tasks that its thread made, whoever runs them, and one has those of threads that
 * have ended. */
static void test_made_elsewhere(void **state)
{
    faults_install(state);
    use_lists();
    make_tasks(60, 0);
    for (unsigned i = 0; i < 50; i++)
        push(i < 20 ? 1 : 2, i); /* threads without a loop */
    for (unsigned i = 50; i < 60; i++)
        push_to(registry.tasks_left, i);
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 10 * 60 * PASS_US);
    assert_int_equal(header()->tasks_peak, 60);
    assert_int_equal(lists_used(), 3);
    assert_int_equal(lists_first(), address_of(0));
    current = (uintptr_t)tstates[2]; /* its own first */
    assert_int_equal(lists_first(), address_of(20));
    agent.layout.free_threaded = true; /* none of others' */
    assert_int_equal(lists_first(), address_of(20));
    current = (uintptr_t)tstates[0];
    assert_int_equal(lists_first(), 0);
    agent.layout.free_threaded = false;
    /* One of them ends, and the interpreter has its tasks. */
    empty_list(1);
    put_at((uintptr_t)tstates[0], agent.layout.ts_prev, (uintptr_t)tstates[2]);
    for (unsigned i = 0; i < 20; i++)
        push_to(registry.tasks_left, i);
    passes(10); /* lists are counted now and then */
    is_strict = false;
    assert_int_equal(lists_used(), 2);
    uint64_t before = header()->looks;
    pass();
    assert_int_equal(header()->looks, before + 60);
}

/* A thread ends in the middle of a round, and what was its list cannot be read. */
static void test_list_is_gone(void **state)
{
    faults_install(state);
    use_lists();
    is_strict = false;
    make_tasks(2010, 0);
    for (unsigned i = 0; i < 2010; i++)
        push(i < 10 ? 0 : 1, i);
    pass();
    tick_ns = PART_TICK_NS;
    pass();
    assert_true(list_of(1)->visiting.next);
    for (unsigned i = 10; i < 2010; i++) {
        put_at(link_of(i), 0, 0x1000);
        put_at(link_of(i), 8, 0x1000);
    }
    put_at(head_of(1), 0, 0);
    put_at((uintptr_t)tstates[0], agent.layout.ts_prev, 0);
    tick_ns = 0;
    passes(8);
    assert_int_equal(lists_used(), 1);
    uint64_t before = header()->looks;
    pass();
    assert_int_equal(header()->looks, before + 10);
}

static void test_two_in_a_set(void **state)
{
    faults_install(state);
    loop_count = 3;
    make_tasks(30, 0);
    for (unsigned i = 10; i < 30; i++) {
        make_task(i, 1);
        wait_at(i, 1);
    }
    fill_set(64, 0, 30);
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 10 * 10 * PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 10 * 20 * PASS_US);
    is_strict = false;
    is_running[1] = false;
    passes(10);
    atomic_store(&loops[1].object, 0x9000); /* another loop in its thread: these are nobody's */
    is_running[1] = true;
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 30 * 10 * PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 10 * 20 * PASS_US);
}

/* A loop of trio's beside those of asyncio. */
static void test_trio(void **state)
{
    faults_install(state);
    is_strict = false;
    loop_count = 2;
    make_tasks(6, 0);
    fill_set(8, 0, 4);
    registry.trio = (struct py_slots){
        .type = (uintptr_t)fake_alloc(), .coroutine = 40, .abort = 48, .name = 56};
    static uintptr_t trio_set[8], trio_table[16];
    for (unsigned i = 4; i < 6; i++) {
        uintptr_t coroutine = (uintptr_t)items[i].coroutine;
        memset(items[i].task, 0, sizeof items[i].task);
        put_at(address_of(i), agent.layout.ob_type, registry.trio.type);
        put_at(address_of(i), registry.trio.coroutine, coroutine);
        put_at(address_of(i), registry.trio.abort, (uintptr_t)futures[0]);
        put_at(address_of(i), registry.trio.name, (uintptr_t)fake_str(&agent.layout, "nursery"));
        trio_table[2 * i] = address_of(i);
        wait_at(i, 1);
    }
    put_at((uintptr_t)trio_set, agent.layout.head_bytes + 8, 2);
    put_at((uintptr_t)trio_set, agent.layout.head_bytes + 16, 7);
    put_at((uintptr_t)trio_set, agent.layout.head_bytes + 24, (uintptr_t)trio_table);
    loops[1].kind = REGISTRY_TRIO;
    loops[1].tasks = (uintptr_t)trio_set;
    loops[1].object = 0;
    passes(10);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 0).us, 10 * 4 * PASS_US);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, 1).us, 10 * 2 * PASS_US);
    assert_int_equal(agent.arena.header->sections[WIRE_NAME].used, 2);
}

/* ---- what changes meanwhile ---- */

static void change_waiter(struct item *item)
{
    put_at((uintptr_t)item->task, agent.layout.futures.waiter, (uintptr_t)futures[1]);
}

static void test_rejected(void **state)
{
    faults_install(state);
    make_tasks(3, 0);
    fill_set(8, 0, 3);
    in_the_middle = change_waiter;
    pass();
    assert_int_equal(header()->rejected, 3);
    assert_int_equal(header()->looks, 3);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, -1).us, 0);
    in_the_middle = NULL;
    pass();
    assert_int_equal(header()->rejected, 3);
    assert_int_equal(sum_of(WIRE_AWAIT_WAITS, -1).us, 3 * PASS_US);
    uintptr_t frame = (uintptr_t)items[0].coroutine + (uintptr_t)agent.layout.generators.frame;
    put_at(frame, agent.layout.fr_code, 0x1000);
    pass();
    assert_int_equal(header()->rejected, 4);
}

/* Switched off in the middle of a round: what was seen before is not seen again. */
static void test_reset(void **state)
{
    faults_install(state);
    make_tasks(300, 0);
    fill_set(1024, 0, 300);
    tick_ns = PART_TICK_NS;
    pass();
    is_strict = false;
    visits_reset();
    is_strict = true;
    now_ns += 1000 * (uint64_t)PASS_NS;
    tick_ns = 0;
    passes(2);
    assert_int_equal(peak_of(0), 300);
    const struct wire_place *place = arena_record(&agent.arena, WIRE_PLACE, 1);
    assert_int_equal(place->present_us, 2 * PASS_US);
}

/* ---- the crowd ---- */

static void test_crowd(void **state)
{
    faults_install(state);
    make_tasks(3, 0);
    fill_set(8, 0, 3);
    const struct wire_section *section = &agent.arena.header->sections[WIRE_CROWD];
    passes(128 * 10);
    assert_int_equal(section->used, 1 + 128); /* each 100 ms */
    passes(128 * 20);
    assert_int_equal(section->used, 1 + 256);
    passes(128 * 40);
    assert_int_equal(section->used, 1 + 384);
    uint64_t last_ns = 0;
    for (uint32_t id = 1; id < section->used; id++) {
        const struct wire_crowd *point = arena_record(&agent.arena, WIRE_CROWD, id);
        assert_int_equal(point->published, 1);
        assert_int_equal(point->tasks, 3);
        if (last_ns)
            assert_int_equal(point->at_ns - last_ns, 100 * (uint64_t)MS << (id - 1) / 128);
        last_ns = point->at_ns;
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_exact),          CASE(test_kinds),
        CASE(test_busy),           CASE(test_parts),
        CASE(test_cost),           CASE(test_sparse),
        CASE(test_late_pass),      CASE(test_resized),
        CASE(test_set_is_gone),    CASE(test_early_peak),
        CASE(test_list),           CASE(test_long_list),
        CASE(test_shortened_list), CASE(test_few_in_a_long_list),
        CASE(test_links_vanish),   CASE(test_astray),
        CASE(test_two_lists),      CASE(test_made_elsewhere),
        CASE(test_list_is_gone),   CASE(test_two_in_a_set),
        CASE(test_trio),           CASE(test_rejected),
        CASE(test_reset),          CASE(test_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
