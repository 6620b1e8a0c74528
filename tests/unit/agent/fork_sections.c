/*
 * A program that forks while another of its threads is in the middle of something
 * of the agent's.  The agent is linked in; functions that are called in the middle
 * (__wrap_NAME) stop the thread there.
 *
 *   fork_sections SECTION fork|clone     one child, from inside that section
 *   fork_sections stress COUNT           as many, while all sections are in use
 *
 * Status 0 when every child and, afterwards, the parent could use everything.
 */
#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/lock.h"
#include "agent/core/threads.h"
#include "agent/core/timeline.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/memory/blocks.h"
#include "agent/memory/duty.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/waits/sampler.h"
#include "os/os.h"
#include "stand_in.h"
#include "stand_in_heap.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_SEC = 20, INTERVAL_NS = 10000000 };

/* With write(), since stdio's locks may be held for ever in a child. */
static _Noreturn void fail_at(const char *what, int line)
{
    char text[200];
    int length = snprintf(text, sizeof text, "fork_sections: line %d: %s\n", line, what);
    ssize_t ignored = write(2, text, (size_t)length);
    (void)ignored;
    syscall(SYS_exit_group, 1);
    __builtin_unreachable();
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_at(#condition, __LINE__);                                                         \
    } while (0)

/* ---- to stop inside ---- */

enum point {
    NOWHERE,
    LOCK,       /* any struct lock */
    LOG,        /* an entry of the timeline has been counted in */
    COMPACTION, /* of the timeline */
    NODE,       /* of the call tree, reserved and not yet known */
    THREAD,     /* an entry that is taken and not yet live */
    LOOP,       /* an entry that is taken and not yet live */
    GROWTH,     /* of the arena, by the sampler */
    SLOT,       /* these three have the recorder's lock */
    SITE,
    RECORD,
    WINDOW, /* half of the allocator's functions are switched, by the sampler */
};

static __thread bool is_main;
static pid_t parent;
static _Atomic enum point wanted;
static _Atomic bool is_inside, may_leave;

static void reach(enum point point)
{
    enum point expected = point;
    if (is_main || !atomic_compare_exchange_strong(&wanted, &expected, NOWHERE))
        return;
    is_inside = true;
    while (!may_leave)
        sched_yield();
}

static void wait_until(_Atomic bool *flag)
{
    while (!*flag)
        sched_yield();
}

void __real_lock_take(struct lock *lock);
uint32_t __real_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count);
void *__real_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id);
void __real_arena_grow(struct arena *arena, int fd);
void *__real_blocks_take(size_t size_bytes, size_t align_bytes);
uint32_t __real_place_site(uint32_t node, enum wire_site_kind kind, const void *caller);
bool __real_records_add(const void *block, uint32_t site, struct memory_sample *sample);
void __real_os_yield(void);
void __wrap_lock_take(struct lock *lock);
uint32_t __wrap_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count);
void *__wrap_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id);
void __wrap_arena_grow(struct arena *arena, int fd);
void *__wrap_blocks_take(size_t size_bytes, size_t align_bytes);
uint32_t __wrap_place_site(uint32_t node, enum wire_site_kind kind, const void *caller);
bool __wrap_records_add(const void *block, uint32_t site, struct memory_sample *sample);
void __wrap_os_yield(void);
struct registry_loop __wrap_registry_ask(void);
void __wrap_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t tstate,
                        struct py_frame *frames, struct py_walk *walk);

void __wrap_lock_take(struct lock *lock)
{
    __real_lock_take(lock);
    reach(LOCK);
}

uint32_t __wrap_arena_append(struct arena *arena, enum wire_section_id section, uint32_t count)
{
    uint32_t id = __real_arena_append(arena, section, count);
    if (section == WIRE_LOG)
        reach(LOG);
    else if (section == WIRE_NODE)
        reach(NODE);
    else if (section == WIRE_THREAD)
        reach(THREAD);
    return id;
}

void *__wrap_arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id)
{
    if (section == WIRE_LOG)
        reach(COMPACTION);
    return __real_arena_record(arena, section, id);
}

/* Whoever polls has an event loop. */
struct registry_loop __wrap_registry_ask(void)
{
    return (struct registry_loop){REGISTRY_ASYNCIO, 0x1000, 0};
}

/* No Python is there to be walked through: only who meets a loop comes here. */
void __wrap_frames_walk(const struct py_layout *layout, uintptr_t code_type, uintptr_t tstate,
                        struct py_frame *frames, struct py_walk *walk)
{
    (void)layout;
    (void)code_type;
    (void)tstate;
    (void)frames;
    reach(LOOP);
    *walk = (struct py_walk){0};
}

void __wrap_arena_grow(struct arena *arena, int fd)
{
    reach(GROWTH);
    __real_arena_grow(arena, fd);
}

void *__wrap_blocks_take(size_t size_bytes, size_t align_bytes)
{
    reach(SLOT);
    return __real_blocks_take(size_bytes, align_bytes);
}

uint32_t __wrap_place_site(uint32_t node, enum wire_site_kind kind, const void *caller)
{
    reach(SITE);
    return __real_place_site(node, kind, caller);
}

bool __wrap_records_add(const void *block, uint32_t site, struct memory_sample *sample)
{
    reach(RECORD);
    return __real_records_add(block, site, sample);
}

/* fork() waits for the recorder's lock: by now it does. */
void __wrap_os_yield(void)
{
    if (is_main && is_inside)
        may_leave = true;
    __real_os_yield();
}

/* The page that was made read-only is written to. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char *page = (char *)stand_in_domain(STAND_IN_OBJ);
    CHECK((uintptr_t)info->si_addr - (uintptr_t)page < STAND_IN_PAGE);
    if (getpid() == parent)
        reach(WINDOW);
    mprotect(page, STAND_IN_PAGE, PROT_READ | PROT_WRITE);
}

/* ---- what the other thread does to get there ---- */

static void change_handler(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
    CHECK(!sigaction(SIGILL, &ignore, NULL) && !sigaction(SIGILL, &standard, NULL));
}

static void run_shell(void)
{
    CHECK(system("true") == 0);
}

static void restart_sampler(void)
{
    if (sampler_stop())
        sampler_start();
}

static void log_something(void)
{
    static __thread struct timeline_cursor cursor;
    static _Atomic uint32_t node;
    timeline_add(&cursor, 0, ++node, WIRE_CPU_PYTHON, os_mono_ns(), INTERVAL_NS);
}

static void fill_log(void)
{
    struct wire_section *section = &agent.arena.header->sections[WIRE_LOG];
    uint32_t few = 64; /* so that it is soon full */
    section->capacity = section->committed = few;
    atomic_store(&section->used, few - 1);
}

/* The sampler's own work, which it must not do at the same time. */
static void compact(void)
{
    sampler_stop();
    fill_log();
    timeline_compact();
    sampler_start();
}

static void add_node(void)
{
    static _Atomic uint32_t number;
    tables_node(&agent.tables, 0, WIRE_FRAME_UNKNOWN, ++number, 0, 0);
}

static void *do_nothing(void *argument)
{
    return argument;
}

static void run_thread(void)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, do_nothing, NULL) && !pthread_join(thread, NULL));
}

static void poll_something(void)
{
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    CHECK(fd >= 0 && !epoll_wait(fd, &event, 1, 0) && !close(fd));
}

static void want_growth(void)
{
    const struct wire_section *section = &agent.arena.header->sections[WIRE_BLOB];
    arena_append(&agent.arena, WIRE_BLOB, section->committed / 2);
    wait_until(&is_inside);
}

static void allocate_times(size_t count)
{
    enum { HELD = 32 };
    void *held[HELD] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t size = 1 + i * i * 37 % (i % 400 ? 3000 : 100000);
        void **block = &held[i % HELD];
        free(i % 3 ? *block : NULL);
        *block = i % 3 ? malloc(size) : realloc(*block, size);
        CHECK(*block);
        memset(*block, (int)i, size);
    }
    for (size_t i = 0; i < HELD; i++)
        free(held[i]);
}

static void allocate(void)
{
    allocate_times(1500);
}

static void allocate_little(void)
{
    allocate_times(100);
}

/* Blocks of the parent's, which a child frees: they are not on its books. */
static void *kept[200];

static void keep_blocks(void)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK((kept[i] = malloc(i % 20 ? 40 * i + 1 : 100000)));
}

static void free_kept(void)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        free(kept[i]);
}

static void map(void)
{
    enum { BYTES = 1 << 20 };
    char *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    pages[0] = 1;
    CHECK(!mprotect(pages, BYTES / 2, PROT_READ | PROT_WRITE));
    CHECK(!madvise(pages, BYTES / 4, MADV_DONTNEED) && !pages[0]);
    pages[BYTES / 2] = 2;
    char *moved = mremap(pages, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved[BYTES / 2] == 2);
    CHECK(!munmap(moved + BYTES, BYTES) && !munmap(moved, BYTES));
}

/* Small ones, and some that their allocator asks malloc() for. */
static void use_objects(void)
{
    for (int domain = STAND_IN_MEM; domain <= STAND_IN_OBJ; domain++) {
        struct stand_in_allocator now;
        PyMem_GetAllocator(domain, &now);
        for (size_t i = 0; i < 3000; i++) {
            size_t size = 1 + i % (i % 10 ? 300 : 3000);
            char *block = now.malloc(now.context, size);
            CHECK(block);
            memset(block, 1, size);
            now.free(now.context, block);
        }
    }
}

/* Say that the program makes so many objects that it is looked at in windows. */
static void make_many_objects(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    CHECK(!mprotect(stand_in_domain(STAND_IN_OBJ), STAND_IN_PAGE, PROT_READ));
    while (!is_inside)
        duty_count(10000, 100000);
}

/* For which only a process of one thread may ask; the sampler steps aside. */
static void be_alone(void)
{
    CHECK(!unshare(CLONE_VM));
}

static const struct section {
    const char *name;
    enum point point;
    void (*enter)(void);
    void (*first)(void);     /* what the child does before anything else */
    bool has_recorders_lock; /* for which fork() waits */
} sections[] = {
    {"handlers", LOCK, change_handler, change_handler, false},
    {"shell", LOCK, run_shell, run_shell, false},
    {"sampler", LOCK, restart_sampler, be_alone, false},
    {"log", LOG, log_something, run_shell, false},
    {"compaction", COMPACTION, compact, be_alone, false},
    {"nodes", NODE, add_node, map, false},
    {"threads", THREAD, run_thread, run_thread, false},
    {"loops", LOOP, poll_something, poll_something, false},
    {"growth", GROWTH, want_growth, be_alone, false},
    {"slots", SLOT, allocate, allocate, true},
    {"sites", SITE, allocate, map, true},
    {"records", RECORD, allocate, allocate, true},
    {"windows", WINDOW, make_many_objects, use_objects, false},
};

/* ---- what a child finds, and can do ---- */

static unsigned tasks(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static unsigned live_threads(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < threads_used(); i++)
        count += threads_at(i)->state != THREAD_FREE;
    return count;
}

/* Nothing in the tables may be of the parent's arena.  (A sample may add to them meanwhile.) */
static void check_tables(void)
{
    const struct wire_section *nodes = &agent.arena.header->sections[WIRE_NODE];
    for (_Atomic uint32_t *entry = agent.tables.nodes; entry < agent.tables.cells; entry++) {
        uint32_t id = *entry;
        CHECK(id < nodes->used);
    }
}

static void check_recording(void)
{
    const struct wire_header *header = agent.arena.header;
    CHECK(agent.active && agent.has_sampler && header->pid == getpid());
    CHECK(header->flags & WIRE_PROCESS_FORKED && header->flags & WIRE_PROCESS_MEMORY);
    CHECK(live_threads() == 1 && threads_self() && threads_self()->is_main);
    CHECK(!loops_used() && !header->async.loops);
    check_tables();
    tick_sample(threads_self(), NULL);
    const struct wire_node *node = arena_record(&agent.arena, WIRE_NODE, threads_self()->last_node);
    CHECK(node->frame == WIRE_FRAME_NO_PYTHON); /* nobody here is in native code */
    CHECK(tasks() == 2);                        /* and our sampler */
    const struct stand_in_allocator *original = stand_in_domain(0);
    for (int domain = STAND_IN_MEM; domain <= STAND_IN_OBJ; domain++) {
        const struct stand_in_allocator *now = stand_in_domain(domain);
        CHECK(now->malloc != original->malloc && now->calloc != original->calloc &&
              now->realloc != original->realloc);
    }
}

/* Libraries that allocated are known in this recording. */
static void check_sites(void)
{
    const struct wire_section *all = agent.arena.header->sections;
    unsigned by_libraries = 0;
    for (uint32_t id = 1; id < all[WIRE_SITE].used; id++) {
        const struct wire_site *site = arena_record(&agent.arena, WIRE_SITE, id);
        if (!site->module)
            continue;
        CHECK(site->module < all[WIRE_MODULE].used);
        const struct wire_module *module = arena_record(&agent.arena, WIRE_MODULE, site->module);
        CHECK(module->end);
        by_libraries++;
    }
    CHECK(agent.arena.header->memory.samples && by_libraries);
}

/* The records of living blocks are what the total says. */
static void check_blocks(void)
{
    uint64_t bytes = 0;
    for (uint32_t id = 1; id < agent.arena.header->sections[WIRE_BLOCK].used; id++) {
        const struct wire_block *block = arena_record(&agent.arena, WIRE_BLOCK, id);
        bytes += block->site ? block->bytes : 0;
    }
    CHECK(bytes && bytes == agent.arena.header->memory.live_bytes);
}

/* Who polls here has a loop; those of the parent's threads are gone. */
static void check_loops(void)
{
    CHECK(loops_used() == 1 && loops_at(0)->thread == threads_self());
    CHECK(threads_self()->loop == loops_at(0) && agent.arena.header->async.loops == 1);
}

static void check_timeline(void)
{
    struct wire_header *header = agent.arena.header;
    uint32_t before = header->sections[WIRE_LOG].used;
    log_something();
    CHECK(header->sections[WIRE_LOG].used > before);
    sampler_stop(); /* it compacts, too */
    fill_log();
    timeline_compact();
    CHECK(header->log_stride > 1);
    sampler_start();
}

static void fork_once(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        allocate();
        _exit(3);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 3 << 8);
}

static void use_everything(void)
{
    be_alone();
    change_handler();
    run_shell();
    allocate();
    use_objects();
    map();
    run_thread();
    poll_something();
    fork_once();
}

static _Noreturn void be_child(const struct section *section, bool is_known)
{
    setpgid(0, 0);
    wanted = NOWHERE;
    if (is_known)
        check_recording();
    section->first();
    free_kept();
    use_everything();
    keep_blocks();
    if (is_known) {
        check_blocks();
        check_sites();
        check_loops();
        check_timeline();
    } else {
        CHECK(!agent.active && !agent.has_sampler);
    }
    _exit(0);
}

/* ---- one child, from inside ---- */

static void *enter(void *argument)
{
    const struct section *section = argument;
    sigset_t all; /* no sample in here, which would come to the point from elsewhere */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
    section->enter();
    return NULL;
}

/* Signals may be blocked where a child hangs: it is killed, with all that it started. */
static volatile pid_t child;

static void kill_child(int number)
{
    (void)number;
    if (child > 0)
        kill(-child, SIGKILL);
    else
        fail_at("hangs", __LINE__);
}

static pid_t make_child(bool by_fork)
{
    return by_fork ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void fork_inside(const struct section *section, bool by_fork)
{
    pthread_t thread;
    int status = -1;
    CHECK(tasks() == 2); /* libc allocates for that: a library to be known again */
    keep_blocks();
    signal(SIGALRM, kill_child);
    alarm(PATIENCE_SEC);
    wanted = section->point;
    CHECK(!pthread_create(&thread, NULL, enter, (void *)(uintptr_t)section));
    wait_until(&is_inside);
    owner_see(threads_self(), threads_self()->last_node, OWNER_IN_NATIVE);
    uint32_t loops = agent.arena.header->async.loops;
    child = make_child(by_fork);
    CHECK(child >= 0);
    if (!child)
        be_child(section, by_fork);
    CHECK(may_leave == (by_fork && section->has_recorders_lock));
    may_leave = true;
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    child = 0;
    alarm(PATIENCE_SEC);
    if (status)
        fail_at(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the child failed", __LINE__);
    CHECK(agent.arena.header->async.loops == loops); /* the child's are none of ours */
    CHECK(!pthread_join(thread, NULL));
    while (tasks() > 2) /* a thread that was joined is there for some microseconds more */
        sched_yield();
    uint64_t samples = agent.arena.header->memory.samples;
    use_everything();
    CHECK(agent.arena.header->memory.samples > samples);
}

/* ---- very many ---- */

static void say_many_objects(void)
{
    duty_count(1000000, 10000000);
}

/* Held by the parent while a child runs, which else would hardly get a processor. */
static pthread_mutex_t resting = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned long steps;

/* What makes forks slow is not done so often. */
static void *do_everything(void *argument)
{
    static void (*const often[])(void) = {change_handler, log_something,    allocate_little,
                                          add_node,       say_many_objects, poll_something};
    static void (*const seldom[])(void) = {map, restart_sampler, run_thread, run_shell};
    enum { OFTEN = sizeof often / sizeof *often, SELDOM = sizeof seldom / sizeof *seldom };
    for (uintptr_t i = (uintptr_t)argument;; i++) {
        pthread_mutex_lock(&resting);
        pthread_mutex_unlock(&resting);
        steps++;
        often[i % OFTEN]();
        if (i % 64 == 0)
            seldom[i / 64 % SELDOM]();
    }
    return NULL;
}

/* So that children are born at any moment. */
static void let_others_work(unsigned long turn)
{
    for (unsigned long end = steps + turn * 2654435761u / 65536 % 32; steps < end;)
        sched_yield();
}

static void remove_recording(pid_t pid)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%d-0.arena", agent.session, (int)pid);
    unlink(path);
}

static _Noreturn void be_short_child(void)
{
    setpgid(0, 0);
    change_handler();
    allocate_little();
    map();
    poll_something();
    _exit(0);
}

static void stress(unsigned long count)
{
    enum { THREADS = 3 };
    signal(SIGALRM, kill_child);
    fill_log();
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, do_everything, (void *)(100 * i + 1)));
    }
    for (unsigned long i = 0; i < count; i++) {
        int status = -1;
        let_others_work(i);
        alarm(PATIENCE_SEC);
        child = make_child(i % 8);
        if (!child)
            be_short_child();
        pthread_mutex_lock(&resting);
        while (waitpid(child, &status, 0) < 0)
            CHECK(errno == EINTR);
        if (status) {
            fprintf(stderr, "fork_sections: child %lu: status %d\n", i, status);
            syscall(SYS_exit_group, 1);
        }
        pthread_mutex_unlock(&resting);
        remove_recording(child);
        child = 0;
        agent.arena.header->log_stride = 1; /* and is soon thinned out again */
        if ((i + 1) % 1000 == 0) {
            printf("%lu children\n", i + 1);
            fflush(stdout);
        }
    }
    syscall(SYS_exit_group, 0); /* threads are in the middle of everything */
}

int main(int argc, char **argv)
{
    is_main = true;
    parent = getpid();
    CHECK(argc == 3 && stand_in_begin() && agent.active);
    if (!strcmp(argv[1], "stress"))
        stress(strtoul(argv[2], NULL, 10));
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (!strcmp(argv[1], sections[i].name)) {
            fork_inside(&sections[i], !strcmp(argv[2], "fork"));
            return 0;
        }
    fail_at("no such section", __LINE__);
}
