#include "agent/memory/place.h"

#include "agent/core/agent.h"
#include "agent/core/check.h"
#include "agent/core/threads.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/memory/memory.h"
#include "os/module.h"
#include "os/os.h"
#include "wire/limits.h"

#include <string.h>

enum { SITE_ENTRIES = 2 * WIRE_SITES_MAX, PROBES_MAX = 64, MODULES_MAX = 512 };
_Static_assert(!(SITE_ENTRIES & (SITE_ENTRIES - 1)), "a mask finds the entry");

struct known_module {
    uintptr_t start, end;
    uint32_t id;
};

static uint32_t *sites; /* open addressing; entries are record ids */
static const size_t sites_bytes = SITE_ENTRIES * sizeof *sites;
static struct known_module modules[MODULES_MAX];
static unsigned module_count;
static _Atomic uint32_t stack_epoch = 1;
static _Atomic bool has_begun; /* the main thread was seen in a frame: no longer compiling */

bool place_init(void)
{
    sites = os_reserve(sites_bytes);
    return sites != NULL;
}

void place_reset(void)
{
    os_discard(sites, sites_bytes);
    module_count = 0;
    place_expire();
}

void place_expire(void)
{
    atomic_fetch_add(&stack_epoch, 1);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/*
 * Programs allocate with the same few stacks again and again.  What a stack was
 * found to be is remembered for a moment, by all its code objects and
 * instructions; not for longer, since code objects can be replaced.
 */
static uint32_t stack_node(struct thread *thread, uint32_t owner, const struct py_walk *walk)
{
    uint64_t hash = walk->count + (walk->bad ? 1000 : 0) + (walk->truncated ? 2000 : 0);
    hash = mix(hash, owner);
    for (uint32_t i = 0; i < walk->count; i++) {
        const struct py_frame *frame = &thread->memory_frames[i];
        hash = mix(hash, frame->code ^ (uint64_t)(uint32_t)frame->at << 40 ^ frame->direct);
    }
    struct known_stack *known = &thread->known_stacks[hash >> 32 & (KNOWN_STACKS - 1)];
    uint32_t epoch = atomic_load_explicit(&stack_epoch, memory_order_relaxed);
    if (known->hash == hash && known->epoch == epoch && known->node)
        return known->node;
    uint32_t node =
        tables_stack(&agent.tables, &agent.layout, owner_root(owner), thread->memory_frames, walk);
    *known = (struct known_stack){hash, node, epoch};
    return node;
}

static uint32_t root(enum wire_frame frame)
{
    return tables_node(&agent.tables, 0, frame, 0, 0, 0);
}

/* A Python thread's stack, below `owner`; see place_node(). */
static uint32_t python_node(struct thread *thread, uintptr_t tstate, uint32_t owner,
                            uint32_t *frames)
{
    struct py_walk walk;
    frames_walk(&agent.layout, agent.code_type, tstate, thread->memory_frames, &walk);
    *frames += walk.count;
    if (!tick_layout_fits(tstate, thread, thread->memory_frames, &walk))
        return root(WIRE_FRAME_UNKNOWN);
    if (!walk.count)
        return walk.bad
                   ? root(WIRE_FRAME_UNKNOWN)
                   : tables_node(&agent.tables, owner_root(owner), WIRE_FRAME_INTERPRETER, 0, 0, 0);
    if (thread->is_main)
        atomic_store_explicit(&has_begun, true, memory_order_relaxed);
    return stack_node(thread, owner, &walk);
}

uint32_t place_node(uint32_t *frames)
{
    *frames = 0;
    struct thread *thread = threads_self();
    uintptr_t tstate = (uintptr_t)agent.current_tstate();
    uint32_t state = atomic_load_explicit(&agent.arena.header->stacks_state, memory_order_relaxed);
    if (!tstate && thread && !thread->is_main)
        return owner_of_native(thread);
    if (!tstate)
        return root(thread ? WIRE_FRAME_INTERPRETER : WIRE_FRAME_NO_PYTHON);
    if (!thread || state == WIRE_STACKS_UNKNOWN_PYTHON || state == WIRE_STACKS_SELFCHECK)
        return root(WIRE_FRAME_UNKNOWN);
    if (!thread->birth_node) /* no line started it: it works for none */
        return python_node(thread, tstate, 0, frames);
    /* Frames without a traced one among them come below the line they work for.  Whether there is
     * one is known afterwards; mostly it is as the last time. */
    for (int attempt = 0;; attempt++) {
        uint32_t owner = thread->allocates_for_others ? owner_of_allocation(thread, frames) : 0;
        uint32_t node = python_node(thread, tstate, owner, frames);
        bool for_others = node && tables_traced(&agent.tables, node) == owner;
        if (attempt || for_others == thread->allocates_for_others)
            return node;
        thread->allocates_for_others = for_others;
    }
}

bool place_has_ended(void)
{
    const struct thread *thread = threads_self();
    if (!thread || !thread->is_main || !agent.has_layout ||
        !atomic_load_explicit(&has_begun, memory_order_relaxed))
        return false;
    /* Not the current thread state: that may be a subinterpreter's, which ends before the program.
     */
    return !agent.current_tstate() || !frames_any(&agent.layout, agent.main_tstate);
}

/* ---- libraries ---- */

static uint32_t new_module(const struct module *module)
{
    const char *path = module->name;
    size_t length = strlen(path);
    if (length > WIRE_PATH_BYTES_MAX)
        length = WIRE_PATH_BYTES_MAX;
    uint32_t id = arena_append(&agent.arena, WIRE_MODULE, 1);
    uint32_t text = length ? arena_append(&agent.arena, WIRE_BLOB, (uint32_t)length) : 0;
    if (!id)
        return 0;
    struct wire_module *record = arena_record(&agent.arena, WIRE_MODULE, id);
    record->start = module->start;
    record->end = module->end;
    if (text) {
        char *to = arena_record(&agent.arena, WIRE_BLOB, text);
        for (size_t i = 0; i < length; i++)
            to[i] = path[i];
        record->path = (struct wire_span){text, (uint32_t)length};
    }
    return id;
}

static uint32_t module_of(uintptr_t address)
{
    for (unsigned i = 0; i < module_count; i++)
        if (address - modules[i].start < modules[i].end - modules[i].start)
            return modules[i].id;
    struct module module;
    if (module_count == MODULES_MAX || !module_find(address, &module))
        return 0;
    CHECK_CHEAP(address - module.start < module.end - module.start);
    uint32_t id = new_module(&module);
    modules[module_count++] = (struct known_module){module.start, module.end, id};
    return id;
}

void place_forget_modules(void)
{
    module_count = 0;
}

/* ---- sites ---- */

static bool is_site(const struct wire_site *site, uint32_t node, enum wire_site_kind kind,
                    uint32_t module)
{
    return site->node == node && site->module == module && atomic_load(&site->kind) == kind;
}

/* For checks: no site is there twice. */
static bool has_site(uint32_t node, enum wire_site_kind kind, uint32_t module)
{
    uint32_t used = atomic_load(&agent.arena.header->sections[WIRE_SITE].used);
    for (uint32_t id = 1; id < used; id++)
        if (is_site(arena_record(&agent.arena, WIRE_SITE, id), node, kind, module))
            return true;
    return false;
}

static uint32_t new_site(uint32_t node, enum wire_site_kind kind, uint32_t module)
{
    CHECK_COSTLY(!has_site(node, kind, module));
    uint32_t id = arena_append(&agent.arena, WIRE_SITE, 1);
    if (!id)
        return 0;
    struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, id);
    site->node = node;
    site->module = module;
    atomic_store_explicit(&site->kind, kind, memory_order_release);
    return id;
}

uint32_t place_site(uint32_t node, enum wire_site_kind kind, const void *caller)
{
    CHECK_CHEAP(memory_is_locked() && kind > WIRE_SITE_NONE && kind < WIRE_SITE_KINDS);
    uintptr_t address = (uintptr_t)caller;
    uint32_t module = 0;
    if (kind == WIRE_SITE_NATIVE && py_range_has(&agent.regions.interpreter, address))
        kind = WIRE_SITE_PYTHON;
    else if (kind == WIRE_SITE_NATIVE || kind == WIRE_SITE_MAPPED)
        module = module_of(address);
    uint64_t hash = mix(mix(0, (uint64_t)node << 32 | module), kind) >> 16;
    for (int probe = 0; probe < PROBES_MAX; probe++, hash++) {
        uint32_t *entry = &sites[hash & (SITE_ENTRIES - 1)];
        if (!*entry)
            return *entry = new_site(node, kind, module);
        if (is_site(arena_record(&agent.arena, WIRE_SITE, *entry), node, kind, module))
            return *entry;
    }
    return 0;
}
