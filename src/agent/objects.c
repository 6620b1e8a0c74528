#include "agent/objects.h"

#include "agent/agent.h"
#include "agent/memory.h"
#include "os/os.h"

#include <dlfcn.h>
#include <link.h>
#include <time.h>

enum {
    DOMAINS = 2,
    FUNCTIONS = 3,   /* malloc, calloc, realloc */
    SMALL_MAX = 512, /* what CPython's allocator serves itself */
    DUTY = 2,        /* one window in so many is looked at */
    WINDOW_NS = 5000000,
    ALWAYS_NS = 1000000000, /* the first moments are always looked at */
};
/* From how much a second on there are windows, and from how little on none any more. */
#define BUSY_BYTES_PER_SEC 100e6
#define CALM_BYTES_PER_SEC 50e6
#define FORCED             (INT64_MIN / 2)

/* PyMemAllocatorEx and PyMemAllocatorDomain, the same since 3.5. */
struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};
static const int domains[DOMAINS] = {1, 2}; /* MEM, OBJ */

static void (*get_allocator)(int domain, struct allocator *);
static void (*set_allocator)(int domain, struct allocator *);
static struct allocator originals[DOMAINS];
static _Atomic bool installed;
static _Atomic bool is_on;          /* ours are in front now */
static _Atomic uint32_t factor = 1; /* how many windows one that is looked at stands for */
static _Atomic uint64_t seen_bytes; /* by our functions, up to the last sample */
static uint64_t open_ns;            /* how long they were in front since the last look at that */

/* Where the interpreter keeps one of the functions, and what is to stand there. */
struct word {
    _Atomic uintptr_t *place;
    uintptr_t ours, original;
};
static struct word words[DOMAINS * FUNCTIONS];
static bool has_words;

/* Ask the allocator for a block that it must take from malloc(). */
static void *promote(int which, bool zeroed, uint64_t weight_bytes, uint64_t count)
{
    const struct allocator *original = &originals[which];
    struct memory_promotion *promotion = &memory_self.promotion;
    *promotion = (struct memory_promotion){true, weight_bytes, count, memory_self.heap.left_bytes};
    memory_self.heap.left_bytes = FORCED;
    void *block = zeroed ? original->calloc(original->ctx, 1, MEMORY_PROMOTED_LEAST)
                         : original->malloc(original->ctx, MEMORY_PROMOTED_LEAST);
    if (promotion->is_due) { /* it never came to malloc() */
        promotion->is_due = false;
        memory_self.heap.left_bytes = promotion->heap_left_bytes;
    }
    return block;
}

static __attribute__((noinline, cold)) void *sampled(int which, size_t size, bool zeroed)
{
    const struct allocator *original = &originals[which];
    struct memory_sample sample;
    if (!memory_is_ready())
        memory_postpone(&memory_self.objects);
    else if (memory_choose(&memory_self.objects, size, size, &sample)) {
        /* Where there are windows gaps are as much shorter as a window stands for more. */
        uint32_t windows = atomic_load_explicit(&factor, memory_order_relaxed);
        uint32_t drawn = memory_self.object_windows ? memory_self.object_windows : 1;
        atomic_fetch_add_explicit(&seen_bytes, sample.bytes / drawn, memory_order_relaxed);
        memory_self.objects.left_bytes /= windows;
        memory_self.object_windows = windows;
        return promote(which, zeroed, sample.bytes / drawn * windows,
                       (sample.count * windows + drawn - 1) / drawn);
    }
    return zeroed ? original->calloc(original->ctx, 1, size)
                  : original->malloc(original->ctx, size);
}

static inline bool is_due(size_t size)
{
    return size <= SMALL_MAX &&
           __builtin_expect((memory_self.objects.left_bytes -= (int64_t)size) < 0, 0);
}

#define HOOKS(name, which)                                                                         \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        if (is_due(size))                                                                          \
            return sampled(which, size, false);                                                    \
        return originals[which].malloc(ctx, size);                                                 \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t size)                               \
    {                                                                                              \
        if (size && count <= SMALL_MAX / size && is_due(count * size))                             \
            return sampled(which, count * size, true);                                             \
        return originals[which].calloc(ctx, count, size);                                          \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t size)                               \
    {                                                                                              \
        if (!block && is_due(size))                                                                \
            return sampled(which, size, false);                                                    \
        return originals[which].realloc(ctx, block, size);                                         \
    }
HOOKS(mem, 0)
HOOKS(obj, 1)

static struct allocator ours(int which)
{
    struct allocator allocator = originals[which];
    allocator.malloc = which ? obj_malloc : mem_malloc;
    allocator.calloc = which ? obj_calloc : mem_calloc;
    allocator.realloc = which ? obj_realloc : mem_realloc;
    return allocator;
}

/* Does a request beyond 512 bytes come to our malloc()?  Not from CPython's built-in mimalloc. */
static bool reaches_malloc(int which)
{
    const struct allocator *original = &originals[which];
    struct memory_promotion *promotion = &memory_self.promotion;
    *promotion =
        (struct memory_promotion){.is_due = true, .heap_left_bytes = memory_self.heap.left_bytes};
    memory_self.heap.left_bytes = FORCED;
    void *block = original->malloc(original->ctx, MEMORY_PROMOTED_LEAST);
    bool arrived = !promotion->is_due;
    promotion->is_due = false;
    memory_self.heap.left_bytes = promotion->heap_left_bytes;
    original->free(original->ctx, block);
    return arrived;
}

/* ---- windows ---- */

struct word_search {
    uintptr_t inside; /* an address in the interpreter's code */
    uintptr_t wanted;
    _Atomic uintptr_t *found;
    unsigned count;
};

static void search_segment(struct word_search *search, uintptr_t start, size_t bytes)
{
    start = (start + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
    for (size_t i = 0; i < bytes / sizeof(uintptr_t); i++) {
        _Atomic uintptr_t *word = (_Atomic uintptr_t *)start + i;
        if (atomic_load_explicit(word, memory_order_relaxed) != search->wanted)
            continue;
        search->found = word;
        search->count++;
    }
}

static int search_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct word_search *search = context;
    bool is_it = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            search->inside - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            is_it = true;
    }
    for (int i = 0; i < info->dlpi_phnum && is_it; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W))
            search_segment(search, info->dlpi_addr + segment->p_vaddr, segment->p_memsz);
    }
    return is_it;
}

/*
 * Where the interpreter keeps the functions we have just given it.  To change
 * them from the sampler thread each must be one store: PyMem_SetAllocator()
 * copies the struct in pieces, and a thread that allocates meanwhile would jump
 * to half an address.
 */
static bool find_words(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        struct allocator mine = ours(i);
        const uintptr_t functions[FUNCTIONS][2] = {
            {(uintptr_t)mine.malloc, (uintptr_t)originals[i].malloc},
            {(uintptr_t)mine.calloc, (uintptr_t)originals[i].calloc},
            {(uintptr_t)mine.realloc, (uintptr_t)originals[i].realloc},
        };
        for (int k = 0; k < FUNCTIONS; k++) {
            struct word_search search = {.inside = (uintptr_t)set_allocator,
                                         .wanted = functions[k][0]};
            dl_iterate_phdr(search_module, &search);
            if (search.count != 1)
                return false;
            words[i * FUNCTIONS + k] =
                (struct word){search.found, functions[k][0], functions[k][1]};
        }
    }
    return true;
}

/*
 * Without the GIL: only functions change, the context and `free` are the same in
 * both states.  Acts only on what it knows: somebody else's allocator in front
 * (tracemalloc) has ours, or the original, behind it and is left alone.
 */
static bool put_in_front(bool on)
{
    bool done = true;
    for (int i = 0; i < DOMAINS * FUNCTIONS; i++) {
        uintptr_t from = on ? words[i].original : words[i].ours;
        uintptr_t to = on ? words[i].ours : words[i].original;
        if (!atomic_compare_exchange_strong(words[i].place, &from, to) && from != to)
            done = false;
    }
    return done;
}

static bool is_busy(bool was_busy, uint64_t now_ns)
{
    static uint64_t last_bytes;
    uint64_t bytes = atomic_load_explicit(&seen_bytes, memory_order_relaxed);
    if (!open_ns || now_ns - agent.arena.header->start_mono_ns < ALWAYS_NS)
        return was_busy;
    double rate = (double)(bytes - last_bytes) * 1e9 / (double)open_ns;
    last_bytes = bytes;
    open_ns = 0;
    return rate > (was_busy ? CALM_BYTES_PER_SEC : BUSY_BYTES_PER_SEC);
}

static void open_window(bool on)
{
    if (on != atomic_load(&is_on) && put_in_front(on))
        atomic_store(&is_on, on);
}

static void pause_ns(uint64_t ns)
{
    struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void objects_sleep(uint64_t sleep_ns)
{
    static uint32_t random = 2463534242u, chosen, window;
    static bool busy;
    uint64_t now_ns = os_mono_ns(), end_ns = now_ns + sleep_ns;
    if (!atomic_load(&installed) || !has_words) {
        pause_ns(sleep_ns);
        return;
    }
    busy = is_busy(busy, now_ns);
    atomic_store(&factor, busy ? DUTY : 1);
    while (now_ns < end_ns) {
        if (window++ % DUTY == 0) { /* one of the next DUTY windows */
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            chosen = random % DUTY;
        }
        open_window(!busy || (window - 1) % DUTY == chosen);
        uint64_t left_ns = end_ns - now_ns, before_ns = now_ns;
        pause_ns(busy && left_ns > WINDOW_NS ? WINDOW_NS : left_ns);
        now_ns = os_mono_ns();
        if (atomic_load(&is_on))
            open_ns += now_ns - before_ns;
    }
}

bool objects_install(void)
{
    if (agent.has_layout && agent.layout.free_threaded)
        return false;
    *(void **)&get_allocator = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set_allocator = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    if (!get_allocator || !set_allocator)
        return false;
    for (int i = 0; i < DOMAINS; i++)
        get_allocator(domains[i], &originals[i]);
    if (!reaches_malloc(0) || !reaches_malloc(1))
        return false;
    for (int i = 0; i < DOMAINS; i++) {
        struct allocator allocator = ours(i);
        set_allocator(domains[i], &allocator);
    }
    has_words = find_words();
    atomic_store(&is_on, true);
    atomic_store(&installed, true);
    return true;
}
