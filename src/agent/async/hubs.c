#include "agent/async/hubs.h"

#include "agent/async/greenlets.h"
#include "agent/async/python.h"
#include "agent/core/agent.h"
#include "os/os.h"
#include "py/tracked.h"

enum {
    PARENTS_MAX = 64,
    SUBTYPES_DEEP = 8,
    SCAN_MOST_NS = 50000000, /* so long at most the program is held up, once */
    OBJECTS_A_CLOCK = 1024,
};

static uintptr_t greenlet_type, get_current;
static enum { NOT_TRIED, FITS, DOES_NOT } outcome;

static bool is_imported(void)
{
    object module = python_module("gevent.hub");
    python_forget(module);
    return module != NULL;
}

/* Only a hub may be asked who it is: a thread without greenlets would get its first one by that. */
static bool is_hub_here(void)
{
    static struct py_frame frames[PY_FRAMES_MAX];
    struct py_walk walk;
    frames_walk(&agent.layout, agent.code_type, (uintptr_t)agent.current_tstate(), frames, &walk);
    for (uint32_t i = 0; i < walk.count && !walk.bad; i++) {
        uint32_t id = tables_code(&agent.tables, &agent.layout, frames[i].code);
        const struct wire_code *code = id ? arena_record(&agent.arena, WIRE_CODE, id) : NULL;
        if (code && tables_code_is(&agent.tables, code, "run", "/gevent/hub.py"))
            return true;
    }
    return false;
}

/* What follows keeps no reference: a hub, its parents and its type are there while it polls. */

static uintptr_t parent_of(uintptr_t greenlet)
{
    object parent = python_attribute((object)greenlet, "parent");
    python_forget(parent);
    return (uintptr_t)parent == registry.types.none ? 0 : (uintptr_t)parent;
}

/* The one without parent, 0: none. */
static uintptr_t main_of(uintptr_t greenlet)
{
    for (int i = 0; greenlet && i < PARENTS_MAX; i++) {
        uintptr_t parent = parent_of(greenlet);
        if (!parent)
            return greenlet;
        greenlet = parent;
    }
    return 0;
}

static void watch_types(uintptr_t type, int depth)
{
    greenlets_watch_type(type);
    object list_them = depth ? python_attribute((object)type, "__subclasses__") : NULL;
    object subtypes = list_them ? python.call(list_them, NULL) : NULL;
    intptr_t count = subtypes ? python.length(subtypes) : 0;
    for (intptr_t i = 0; i < count; i++) {
        object subtype = python.item(subtypes, i);
        if (subtype)
            watch_types((uintptr_t)subtype, depth - 1);
        python_forget(subtype);
    }
    python.clear();
    python_forget(subtypes);
    python_forget(list_them);
}

struct scan {
    uint64_t deadline_ns, seen;
};

static int look_at(object candidate, void *data)
{
    struct scan *scan = data;
    if (tasks_is_a(&agent.layout, (uintptr_t)candidate, greenlet_type))
        greenlets_add((uintptr_t)candidate);
    return ++scan->seen % OBJECTS_A_CLOCK || os_mono_ns() < scan->deadline_ns;
}

static void find_greenlets(void)
{
    struct scan scan = {.deadline_ns = os_mono_ns() + SCAN_MOST_NS};
    if (python.visit_objects) {
        python.visit_objects(look_at, &scan);
        return;
    }
    object newest = python.new_list(0);
    if (newest)
        tracked_visit((uintptr_t)newest, look_at, &scan);
    python.clear();
    python_forget(newest);
}

/* Can a suspended greenlet be read? */
static bool main_fits(uintptr_t main_object)
{
    static struct py_frame frames[PY_FRAMES_MAX];
    struct py_greenlet read;
    struct py_walk walk;
    if (!greenlet_read(&agent.layout, &registry.greenlets, main_object, &read) || !read.frame)
        return false;
    frames_walk_suspended(&agent.layout, agent.code_type, read.frame, &read.stack, frames, &walk);
    object code = python_attribute((object)read.frame, "f_code");
    python_forget(code);
    return walk.count && !walk.bad && (uintptr_t)code == frames[0].code;
}

static void settle(uintptr_t hub, uintptr_t main_object)
{
    outcome = DOES_NOT;
    if (!greenlet_fit(&agent.layout, main_object, hub, parent_of(hub), &registry.greenlets) ||
        !main_fits(main_object) || !greenlets_begin(greenlet_type))
        return;
    watch_types(greenlet_type, SUBTYPES_DEEP);
    find_greenlets();
    outcome = FITS;
}

static uintptr_t current_greenlet(void)
{
    object current = get_current ? python.call((object)get_current, NULL) : NULL;
    python.clear();
    python_forget(current);
    return (uintptr_t)current;
}

struct registry_loop hubs_ask(void)
{
    struct registry_loop loop = {REGISTRY_NO_LOOP, 0, 0};
    if (agent.layout.free_threaded || outcome == DOES_NOT || !is_imported() || !is_hub_here())
        return loop;
    if (!greenlet_type) {
        greenlet_type = python_kept("greenlet", "greenlet");
        get_current = python_kept("greenlet", "getcurrent");
    }
    uintptr_t hub = greenlet_type ? current_greenlet() : 0, main_object = main_of(hub);
    if (!main_object || main_object == hub)
        return loop;
    if (outcome == NOT_TRIED)
        settle(hub, main_object);
    if (outcome == FITS) {
        greenlets_add(main_object); /* nobody makes it by its type */
        loop = (struct registry_loop){REGISTRY_GEVENT, main_object, hub};
    }
    return loop;
}
