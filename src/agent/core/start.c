/*
 * How the agent comes to life: the constructor looks whether this is a Python,
 * an audit hook tells when its program begins.  Forked children: forks.c.
 */
#include "agent/core/start.h"

#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/ending.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/hooks/confine.h"
#include "agent/hooks/copies.h"
#include "agent/hooks/environment.h"
#include "agent/hooks/heap.h"
#include "agent/hooks/mappings.h"
#include "agent/hooks/polls.h"
#include "agent/hooks/signals.h"
#include "agent/hooks/sockets.h"
#include "agent/memory/memory.h"
#include "agent/waits/sampler.h"
#include "os/os.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUNTIME_BYTES_MAX = 1 << 20 };

struct agent agent;

typedef int (*audit_hook)(const char *event, void *arguments, void *data);
typedef int (*add_audit_hook)(audit_hook hook, void *data);

/* CPython's list entry of an audit hook: the layout has been this one since hooks exist. */
struct audit_entry {
    struct audit_entry *next;
    audit_hook hook;
    void *data;
};

static struct audit_entry **hook_link; /* the word of _PyRuntime that points to our entry */

static bool map_control(void)
{
    char path[PATH_MAX];
    size_t length = strlen(agent.session);
    if (length + sizeof "/" WIRE_CONTROL_NAME > sizeof path)
        return false;
    memcpy(path, agent.session, length);
    memcpy(path + length, "/" WIRE_CONTROL_NAME, sizeof "/" WIRE_CONTROL_NAME);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct wire_control *control =
        mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (control == MAP_FAILED)
        return false;
    if (control->magic != WIRE_CONTROL_MAGIC || control->version != WIRE_CONTROL_VERSION ||
        atomic_load(&control->closed)) {
        munmap(control, sizeof *control);
        return false;
    }
    agent.control = control;
    return true;
}

/* "3.12.1 (main, ..." -> 0x030c01f0; the release level does not matter here. */
static uint32_t parse_version(const char *text)
{
    unsigned parts[3] = {0};
    for (int i = 0; i < 3; i++) {
        while (*text >= '0' && *text <= '9')
            parts[i] = parts[i] * 10 + (unsigned)(*text++ - '0');
        if (*text++ != '.')
            break;
    }
    return parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | 0xF0;
}

static void find_runtime(void)
{
    void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!runtime || !dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    agent.runtime = (uintptr_t)runtime;
    agent.runtime_bytes = symbol->st_size;
}

static void fill_command(struct wire_header *header)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, header->command, sizeof header->command);
    header->command_bytes = n > 0 ? (uint32_t)n : 0;
    close(fd);
}

/*
 * What we take of the process's address space.  Where that is limited (ulimit -v) the
 * program comes first: what is left is the program's but for a part, and if that is too little
 * for all, there are smaller tables, or memory is not followed, or nothing is recorded.
 */
static const struct plan {
    uint64_t bytes; /* mapped, about */
    bool with_memory;
    unsigned part; /* of what the arena could hold */
} plans[] = {
    {40 << 20, true, 1},
    {20 << 20, false, 1},
    {15 << 20, true, 8},
    {5 << 20, false, 8},
};
enum { PLANS = sizeof plans / sizeof *plans, ROOM_PART = 8 };
static const struct plan *plan; /* NULL: none fits */

static void choose_plan(void)
{
    bool is_wanted = agent.control->allocation_window_bytes != 0;
    uint64_t room = os_address_room() / ROOM_PART;
    for (int i = 0; i < PLANS && !plan; i++) {
        bool fits = plans[i].bytes <= room;
        /* Rather all of memory in small tables than none in large ones. */
        if (fits && (plans[i].with_memory == is_wanted || (is_wanted && plans[i].part > 1)))
            plan = &plans[i];
    }
    agent.with_memory = plan && plan->with_memory;
}

bool start_arena(uint32_t flags)
{
    agent.main_tstate = (uintptr_t)agent.current_tstate();
    if (atomic_load(&agent.control->closed) || !plan ||
        !arena_create(&agent.arena, agent.session, plan->with_memory, plan->part))
        return false;
    struct wire_header *header = agent.arena.header;
    header->pid = getpid();
    header->ppid = getppid();
    header->python_hex = agent.python_hex;
    header->caller_slack = agent.has_layout ? agent.layout.caller_slack : 0;
    header->stacks_state = agent.has_layout ? WIRE_STACKS_UNTRIED : WIRE_STACKS_UNKNOWN_PYTHON;
    agent.is_first = !(flags & WIRE_PROCESS_FORKED) && getppid() == agent.control->launcher_pid;
    header->flags =
        flags | (agent.is_first ? WIRE_PROCESS_FIRST : 0) |
        (plan->part > 1 ? WIRE_PROCESS_CRAMPED : 0) | (agent.regions.jit ? WIRE_PROCESS_JIT : 0) |
        (agent.has_layout && agent.layout.free_threaded ? WIRE_PROCESS_FREE_THREADED : 0);
    header->start_real_ns = os_real_ns();
    header->start_mono_ns = os_mono_ns();
    header->start_cpu_ns = os_process_cpu_ns();
    header->main_ident = (uint64_t)pthread_self();
    header->beat_mono_ns = header->start_mono_ns;
    header->beat_cpu_ns = header->start_cpu_ns;
    fill_command(header);
    atomic_thread_fence(memory_order_release);
    header->magic = WIRE_ARENA_MAGIC; /* from here on it is an arena */
    return true;
}

static void begin(void)
{
    int saved = errno;
    agent.tables.filter = &agent.control->filter;
    choose_plan();
    if (start_arena(0) && tables_init(&agent.tables, &agent.arena) && threads_init() &&
        signals_install() && forks_init()) {
        atomic_store(&agent.active, true);
        threads_add_main();
        memory_start();
        sampler_start();
        ending_init();
    } else {
        atomic_fetch_add(&agent.control->unrecorded, 1);
        if (agent.arena.header)
            unlink(agent.arena.path);
        arena_unmap(&agent.arena);
    }
    errno = saved;
}

/* Take our entry out of the interpreter's list: a kept one slows every event, and aborts debug
 * builds of the allocator at exit. */
static void unlink_hook(void)
{
    if (hook_link && *hook_link)
        *hook_link = (*hook_link)->next;
    hook_link = NULL;
}

static int on_audit(const char *event, void *arguments, void *data)
{
    (void)arguments;
    (void)data;
    bool ends = !strcmp(event, "cpython._PySys_ClearAuditHooks");
    if (hook_link && (ends || !strncmp(event, "cpython.run_", 12))) {
        unlink_hook();
        if (!ends)
            begin();
    }
    return 0;
}

/*
 * There is no call to remove a hook, so find the word that points to our entry:
 * the one word of the runtime that changed.  If that is not so, undo the change;
 * a hook that cannot be taken out again must not stay.
 */
static bool add_hook(add_audit_hook add)
{
    if (!agent.runtime || agent.runtime_bytes > RUNTIME_BYTES_MAX)
        return false;
    size_t words = agent.runtime_bytes / sizeof(uintptr_t), changed = 0;
    uintptr_t *runtime = (uintptr_t *)agent.runtime;
    uintptr_t *before = os_reserve(agent.runtime_bytes + sizeof(uintptr_t));
    if (!before)
        return false;
    memcpy(before, runtime, words * sizeof *before);
    bool added = !add(on_audit, NULL);
    for (size_t i = 0; i < words; i++)
        if (before[i] != runtime[i]) {
            changed++;
            hook_link = (struct audit_entry **)&runtime[i];
        }
    if (!added || changed != 1 || (*hook_link)->hook != on_audit) {
        memcpy(runtime, before, words * sizeof *before);
        hook_link = NULL;
    }
    munmap(before, agent.runtime_bytes + sizeof(uintptr_t));
    return hook_link != NULL;
}

static bool jit_is_on(void)
{
    const char *setting = getenv("PYTHON_JIT");
    return agent.has_layout && agent.layout.may_jit && setting && *setting && *setting != '0';
}

__attribute__((constructor)) static void load(void)
{
    int saved = errno;
    copies_init();
    heap_init();
    mappings_init();
    signals_init();
    confine_init();
    sockets_init();
    polls_init();
    agent.session = environment_scrub();
    if (agent.session && map_control()) {
        add_audit_hook add;
        const char *(*version)(void);
        *(void **)&add = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
        *(void **)&version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
        *(void **)&agent.current_tstate = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
        agent.code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
        agent.str_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
        if (add && version && agent.current_tstate && agent.code_type && agent.str_type) {
            find_runtime();
            agent.python_hex = parse_version(version());
            agent.has_layout =
                layout_select(&agent.layout, agent.python_hex, agent.runtime, agent.runtime_bytes);
            classify_init(&agent.regions, &agent.layout);
            agent.regions.jit = jit_is_on();
            loops_init();
            if (!add_hook(add))
                atomic_fetch_add(&agent.control->unrecorded, 1);
            else
                memory_prepare();
        }
    }
    errno = saved;
}
