/* Who allocates: stacks that are remembered, libraries that come and go, sites by their content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/memory/memory.h"
#include "agent/memory/place.h"
#include "arena_fixture.h"
#include "fake_python.h"
#include "faults.h"
#include "os/module.h"

struct agent agent;

/* ---- in place of the recorder, the threads, the interpreter and the loader ---- */

static struct thread main_thread, *calling_thread = &main_thread;
static struct fake_object *tstate;
static bool layout_fits = true;

bool memory_is_locked(void)
{
    return true;
}

struct thread *threads_self(void)
{
    return calling_thread;
}

bool tick_layout_fits(uintptr_t state, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk)
{
    assert_int_equal(state, (uintptr_t)tstate);
    assert_ptr_equal(thread, calling_thread);
    assert_ptr_equal(frames, thread->memory_frames);
    assert_true(walk->count <= PY_FRAMES_MAX);
    return layout_fits;
}

/* For whom threads work, and how often that was asked. */
static uint32_t owner_node;
static unsigned owner_asked;

uint32_t owner_of_native(const struct thread *thread)
{
    assert_ptr_equal(thread, calling_thread);
    return tables_node(&agent.tables, thread->birth_node, WIRE_FRAME_NO_PYTHON, 0, 0, 0);
}

uint32_t owner_of_allocation(struct thread *thread, uint32_t *frames)
{
    assert_ptr_equal(thread, calling_thread);
    memset(thread->memory_frames, 0, sizeof thread->memory_frames);
    owner_asked++;
    *frames += 100;
    return owner_node;
}

uint32_t owner_root(uint32_t owner)
{
    return owner ? tables_node(&agent.tables, owner, WIRE_FRAME_THREAD, 0, 0, 0) : 0;
}

static void *current_tstate(void)
{
    return tstate;
}

/* A library every MODULE_BYTES, from FIRST_MODULE on. */
enum { FIRST_MODULE = 0x10000000, MODULE_BYTES = 0x10000, INTERPRETER = 0x5000000 };
static unsigned loaded, asked;
static char module_name[64];

bool __wrap_module_find(uintptr_t address, struct module *found);
bool __wrap_module_find(uintptr_t address, struct module *found)
{
    asked++;
    unsigned n = (unsigned)((address - FIRST_MODULE) / MODULE_BYTES);
    if (address < FIRST_MODULE || n >= loaded)
        return false;
    found->start = FIRST_MODULE + (uintptr_t)n * MODULE_BYTES;
    found->end = found->start + MODULE_BYTES;
    snprintf(module_name, sizeof module_name, "/lib/number-%u.so", n);
    found->name = module_name;
    return true;
}

static const void *caller_in(unsigned module, unsigned offset)
{
    return (char *)NULL + FIRST_MODULE + module * MODULE_BYTES + offset;
}

/* ---- around each test ---- */

static int open_all(void **state)
{
    static bool has_begun;
    faults_install(state);
    if (!fixture_open(&agent.arena))
        return -1;
    if (has_begun)
        tables_reset(&agent.tables);
    else if (!tables_init(&agent.tables, &agent.arena) || !place_init())
        return -1;
    place_reset();
    has_begun = true;
    calling_thread = &main_thread;
    memset(&main_thread, 0, sizeof main_thread);
    main_thread.is_main = true;
    tstate = NULL;
    layout_fits = true;
    loaded = asked = 0;
    agent.arena.header->stacks_state = WIRE_STACKS_OK;
    agent.has_layout = layout_select(&agent.layout, 0x030c01f0, 0, 0);
    agent.current_tstate = current_tstate;
    agent.code_type = fake_code_type;
    agent.regions.interpreter = (struct py_range){INTERPRETER, INTERPRETER + 0x1000};
    return agent.has_layout ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&agent.arena);
}

static const struct wire_site *site_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_SITE, id);
}

static const struct wire_module *module_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_MODULE, id);
}

static const struct wire_node *node_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_NODE, id);
}

/* ---- sites ---- */

static void sites_are_found_again(void **state)
{
    (void)state;
    enum { NODES = 50, MODULES = 4 };
    static const enum wire_site_kind kinds[] = {WIRE_SITE_PYTHON, WIRE_SITE_NATIVE,
                                                WIRE_SITE_MAPPED, WIRE_SITE_COPY};
    static uint32_t ids[NODES][4][MODULES];
    loaded = MODULES;
    for (int again = 0; again < 2; again++)
        for (uint32_t node = 0; node < NODES; node++)
            for (int kind = 0; kind < 4; kind++)
                for (unsigned module = 0; module < MODULES; module++) {
                    uint32_t id = place_site(node, kinds[kind], caller_in(module, node));
                    assert_int_not_equal(id, 0);
                    if (again)
                        assert_int_equal(id, ids[node][kind][module]);
                    ids[node][kind][module] = id;
                    assert_int_equal(site_at(id)->node, node);
                    assert_int_equal(site_at(id)->kind, kinds[kind]);
                    bool has_module = kind == 1 || kind == 2;
                    assert_int_equal(site_at(id)->module, has_module ? module + 1 : 0);
                }
    /* Objects and copies have no library: those are the same wherever the call came from. */
    assert_int_equal(agent.arena.header->sections[WIRE_SITE].used, 1 + NODES * (2 + 2 * MODULES));
    assert_int_equal(asked, MODULES);
}

/* Memory the interpreter asks for is Python's. */
static void the_interpreters_own(void **state)
{
    (void)state;
    const void *caller = (char *)NULL + INTERPRETER + 8;
    uint32_t id = place_site(7, WIRE_SITE_NATIVE, caller);
    assert_int_equal(site_at(id)->kind, WIRE_SITE_PYTHON);
    assert_int_equal(site_at(id)->module, 0);
    assert_int_equal(place_site(7, WIRE_SITE_PYTHON, NULL), id);
    uint32_t mapped = place_site(7, WIRE_SITE_MAPPED, caller);
    assert_int_equal(site_at(mapped)->kind, WIRE_SITE_MAPPED);
}

static void no_more_room_for_sites(void **state)
{
    (void)state;
    struct wire_section *s = &agent.arena.header->sections[WIRE_SITE];
    uint32_t node = 0;
    while (place_site(node, WIRE_SITE_PYTHON, NULL))
        node++;
    assert_int_equal(node, s->committed - 1);
    for (uint32_t more = node; more < node + 1000; more++)
        assert_int_equal(place_site(more, WIRE_SITE_PYTHON, NULL), 0);
    assert_int_equal(s->used, s->committed);
    for (uint32_t old = 0; old < node; old++) /* those that are there still are */
        assert_int_equal(site_at(place_site(old, WIRE_SITE_PYTHON, NULL))->node, old);
    s->committed++; /* the sampler made room; it is backed up to the page's end */
    uint32_t id = place_site(node, WIRE_SITE_PYTHON, NULL);
    assert_int_equal(site_at(id)->node, node);
}

/* ---- libraries ---- */

static void a_library_is_recorded_once(void **state)
{
    (void)state;
    loaded = 2;
    for (unsigned offset = 0; offset < MODULE_BYTES; offset += 4093)
        place_site(offset, WIRE_SITE_NATIVE, caller_in(1, offset));
    assert_int_equal(asked, 1);
    assert_int_equal(agent.arena.header->sections[WIRE_MODULE].used, 2);
    const struct wire_module *module = module_at(1);
    assert_int_equal(module->start, (uintptr_t)caller_in(1, 0));
    assert_int_equal(module->end, (uintptr_t)caller_in(2, 0));
    assert_int_equal(module->path.bytes, strlen("/lib/number-1.so"));
    assert_memory_equal(arena_record(&agent.arena, WIRE_BLOB, module->path.offset),
                        "/lib/number-1.so", module->path.bytes);
    /* An address in none has none, and is asked for again: one may be loaded there. */
    assert_int_equal(site_at(place_site(1, WIRE_SITE_NATIVE, caller_in(2, 0)))->module, 0);
    loaded = 3;
    assert_int_equal(site_at(place_site(1, WIRE_SITE_NATIVE, caller_in(2, 0)))->module, 2);
}

static void libraries_are_forgotten(void **state)
{
    (void)state;
    loaded = 1;
    uint32_t before = place_site(1, WIRE_SITE_NATIVE, caller_in(0, 16));
    place_forget_modules(); /* dlclose(); another library at the same addresses */
    uint32_t after = place_site(1, WIRE_SITE_NATIVE, caller_in(0, 16));
    assert_int_not_equal(before, after);
    assert_int_not_equal(site_at(before)->module, site_at(after)->module);
    place_forget_modules();
    loaded = 0;
    assert_int_equal(site_at(place_site(1, WIRE_SITE_NATIVE, caller_in(0, 16)))->module, 0);
}

static void more_libraries_than_there_is_room(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    unsigned known = 0;
    loaded = MANY;
    fixture_grow_fully(&agent.arena);
    for (unsigned i = 0; i < MANY; i++) {
        uint32_t id = place_site(1, WIRE_SITE_NATIVE, caller_in(i, 4));
        assert_int_not_equal(id, 0); /* without a library, but recorded */
        known += site_at(id)->module != 0;
    }
    assert_int_equal(known, 512);
    place_forget_modules();
    assert_int_not_equal(site_at(place_site(1, WIRE_SITE_NATIVE, caller_in(600, 4)))->module, 0);
}

/* ---- stacks ---- */

static struct fake_object *codes[8];

static void make_stack(unsigned depth, int at)
{
    struct fake_object *frame = NULL;
    for (unsigned i = 0; i < depth; i++)
        frame = fake_frame(&agent.layout, codes[i], at, frame, 0);
    tstate = fake_thread(&agent.layout, frame, 7);
}

static void make_codes(void)
{
    for (int i = 0; i < 8; i++)
        codes[i] = fake_code(&agent.layout, "/a.py", "f", i + 1);
}

static void stacks_are_nodes(void **state)
{
    (void)state;
    uint32_t frames;
    make_codes();
    make_stack(5, 12);
    uint32_t node = place_node(&frames);
    assert_int_equal(frames, 5);
    for (unsigned i = 5; i-- > 0; node = node_at(node)->parent) {
        const struct wire_code *code = arena_record(&agent.arena, WIRE_CODE, node_at(node)->ref);
        assert_int_equal(code->address, (uintptr_t)codes[i]);
        assert_int_equal(node_at(node)->at, 12);
    }
    assert_int_equal(node, 0);
}

/* Remembered for a moment, and then looked up anew: a code object may be replaced. */
static void stacks_are_remembered_until_they_expire(void **state)
{
    (void)state;
    uint32_t frames;
    make_codes();
    make_stack(3, 12);
    uint32_t node = place_node(&frames);
    assert_int_equal(place_node(&frames), node);
    int other_line = 77;
    memcpy((char *)codes[2] + agent.layout.code_first_line, &other_line, sizeof other_line);
    assert_int_equal(place_node(&frames), node);
    place_expire();
    uint32_t replaced = place_node(&frames);
    assert_int_not_equal(replaced, node);
    const struct wire_code *code = arena_record(&agent.arena, WIRE_CODE, node_at(replaced)->ref);
    assert_int_equal(code->first_line, 77);
    /* Another instruction of the same code is another stack at once. */
    make_stack(3, 14);
    uint32_t later = place_node(&frames);
    assert_int_not_equal(later, replaced);
    assert_int_equal(node_at(later)->at, 14);
}

static void threads_without_frames(void **state)
{
    (void)state;
    uint32_t frames = 99;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_INTERPRETER);
    assert_int_equal(frames, 0);
    main_thread.is_main = false;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_NO_PYTHON);
    calling_thread = NULL;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_NO_PYTHON);
    make_codes();
    make_stack(2, 4);
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_UNKNOWN);
    calling_thread = &main_thread;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_PYTHON);
    layout_fits = false;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_UNKNOWN);
    layout_fits = true;
    agent.arena.header->stacks_state = WIRE_STACKS_UNKNOWN_PYTHON;
    assert_int_equal(node_at(place_node(&frames))->frame, WIRE_FRAME_UNKNOWN);
}

/* Frames of a library's thread are below the line that it works for at the moment. */
static void a_library_thread_allocates_for_a_line(void **state)
{
    (void)state;
    static struct wire_filter filter = {.directories = {"/p/program"}};
    uint32_t frames;
    make_codes(); /* of a library */
    struct fake_object *traced = fake_code(&agent.layout, "/p/program/a.py", "g", 1);
    agent.tables.filter = &filter;
    uint32_t code = tables_code(&agent.tables, &agent.layout, (uintptr_t)traced);
    uint32_t one = tables_node(&agent.tables, 0, WIRE_FRAME_PYTHON, code, 2, 0);
    uint32_t two = tables_node(&agent.tables, 0, WIRE_FRAME_PYTHON, code, 4, 0);
    main_thread.is_main = false;
    make_stack(3, 12);
    owner_asked = 0;
    assert_int_equal(tables_traced(&agent.tables, place_node(&frames)), 0); /* nobody started it */
    assert_int_equal(owner_asked, 0);
    main_thread.birth_node = owner_node = one;
    uint32_t node = place_node(&frames);
    assert_int_equal(tables_traced(&agent.tables, node), one);
    assert_int_equal(place_node(&frames), node);
    assert_int_equal(owner_asked, 2);
    assert_int_equal(frames, 103);
    for (unsigned i = 3; i-- > 0; node = node_at(node)->parent)
        assert_int_equal(node_at(node)->frame, WIRE_FRAME_PYTHON);
    assert_int_equal(node_at(node)->frame, WIRE_FRAME_THREAD);
    assert_int_equal(node_at(node)->parent, one);
    owner_node = two; /* at once */
    assert_int_equal(tables_traced(&agent.tables, place_node(&frames)), two);
    make_stack(0, 0);
    node = place_node(&frames);
    assert_int_equal(node_at(node)->frame, WIRE_FRAME_INTERPRETER);
    assert_int_equal(tables_traced(&agent.tables, node), two);
    /* A line of its own is its own. */
    tstate = fake_thread(&agent.layout, fake_frame(&agent.layout, traced, 6, NULL, 0), 7);
    node = place_node(&frames);
    assert_int_equal(tables_traced(&agent.tables, node), node);
    assert_int_equal(node_at(node)->parent, 0);
    owner_asked = 0;
    assert_int_equal(place_node(&frames), node);
    assert_int_equal(owner_asked, 0);
    tstate = NULL; /* no Python any more */
    assert_int_equal(node_at(place_node(&frames))->parent, one);
    agent.tables.filter = NULL;
}

static void no_more_room_for_stacks(void **state)
{
    (void)state;
    uint32_t frames;
    make_codes();
    agent.arena.header->sections[WIRE_NODE].committed = 4;
    make_stack(3, 2);
    assert_int_not_equal(place_node(&frames), 0);
    make_stack(5, 4);
    assert_int_equal(place_node(&frames), 0);
    agent.arena.header->sections[WIRE_NODE].committed = 4096;
    assert_int_not_equal(place_node(&frames), 0); /* that there was none is not remembered */
}

/* When the interpreter frees what the program left. */
static void the_end(void **state)
{
    (void)state;
    uint32_t frames;
    make_codes();
    make_stack(0, 0);
    agent.main_tstate = (uintptr_t)tstate;
    assert_false(place_has_ended()); /* the program has not even begun */
    make_stack(2, 4);
    agent.main_tstate = (uintptr_t)tstate;
    place_node(&frames);
    assert_false(place_has_ended());
    make_stack(0, 0);
    agent.main_tstate = (uintptr_t)tstate;
    assert_true(place_has_ended());
    main_thread.is_main = false;
    assert_false(place_has_ended()); /* that is not for another thread to tell */
    main_thread.is_main = true;
    tstate = NULL;
    assert_true(place_has_ended());
    agent.has_layout = false;
    assert_false(place_has_ended());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_end),
        TEST(sites_are_found_again),
        TEST(the_interpreters_own),
        TEST(no_more_room_for_sites),
        TEST(a_library_is_recorded_once),
        TEST(libraries_are_forgotten),
        TEST(more_libraries_than_there_is_room),
        TEST(stacks_are_nodes),
        TEST(stacks_are_remembered_until_they_expire),
        TEST(threads_without_frames),
        TEST(a_library_thread_allocates_for_a_line),
        TEST(no_more_room_for_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
