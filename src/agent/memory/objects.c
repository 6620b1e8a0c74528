#include "agent/memory/objects.h"

#include "agent/core/agent.h"
#include "agent/memory/blocks.h"
#include "agent/memory/duty.h"
#include "agent/memory/gaps.h"
#include "agent/memory/memory.h"
#include "agent/memory/wrapped.h"

#include <dlfcn.h>

enum {
    DOMAINS = ALLOCATOR_DOMAINS,
    SMALL_MAX = 512, /* what CPython's allocator serves itself */
    SMALL_UNIT = 16, /* and in steps of what */
    PROBE_BYTES = 64,
    PROBES = 3,
};
#define SLOW   __attribute__((noinline, cold))
#define FORCED (INT64_MIN / 2)

static const int domains[DOMAINS] = {1, 2}; /* PyMemAllocatorDomain: MEM, OBJ */

static void (*get_allocator)(int domain, struct allocator *);
static void (*set_allocator)(int domain, struct allocator *);
static struct allocator originals[DOMAINS], in_front[DOMAINS];
static bool is_wrapped; /* by wrapped.c, instead of what is in this file */

/* ---- samples ---- */

static void expect(size_t size, const struct memory_sample *sample)
{
    memory_self.promotion = (struct memory_promotion){
        .is_due = true,
        .size_bytes = size,
        .weight_bytes = sample->bytes,
        .from = sample->from,
        .count = sample->count,
        .hits = sample->hits,
        .factor = sample->factor,
        .heap_left_bytes = memory_self.heap.left_bytes,
    };
    memory_self.heap.left_bytes = FORCED;
}

/* Did it come to malloc()? */
static bool arrived(void)
{
    struct memory_promotion *promotion = &memory_self.promotion;
    if (!promotion->is_due)
        return true;
    promotion->is_due = false;
    memory_self.heap.left_bytes = promotion->heap_left_bytes;
    return false;
}

static void *pass_on(int which, size_t size, bool zeroed)
{
    const struct allocator *original = &originals[which];
    return zeroed ? original->calloc(original->ctx, 1, size)
                  : original->malloc(original->ctx, size);
}

/* Is it a sample?  Where there are windows, gaps are as much shorter as a window stands for more.
 */
static bool choose(struct memory_gap *gap, size_t size, struct memory_sample *sample)
{
    if (!memory_is_ready()) {
        gaps_postpone(gap);
        return false;
    }
    if (!gaps_choose(gap, size, size, sample))
        return false;
    uint32_t factor = atomic_load_explicit(&duty_factor, memory_order_relaxed);
    uint32_t drawn = gap->factor ? gap->factor : 1;
    duty_count(sample->count / drawn, sample->bytes / drawn);
    gaps_set(gap, gap->left_bytes / factor);
    gap->factor = factor;
    sample->factor = factor > 1 ? factor : 0;
    sample->bytes = sample->bytes / drawn * factor;
    sample->count = (sample->count * factor + drawn - 1) / drawn;
    return true;
}

static SLOW void *sampled(int which, size_t size, bool zeroed)
{
    struct memory_sample sample;
    if (!choose(&memory_self.objects, size, &sample))
        return pass_on(which, size, zeroed);
    expect(size, &sample);
    void *block = pass_on(which, MEMORY_PROMOTED_LEAST, zeroed);
    arrived();
    return block;
}

/*
 * A small block becomes `size` large.  From what, only the allocator knows: it is
 * asked for a larger block, and the copy it makes tells (copies.c).  Of reallocs
 * chosen by their whole size those are samples in which the share that grew is.
 */
static SLOW void *grown(int which, void *block, size_t size)
{
    const struct allocator *original = &originals[which];
    struct memory_promotion *promotion = &memory_self.promotion;
    struct memory_sample sample = {0};
    bool is_slot = blocks_is_slot(block);
    if (is_slot) /* realloc() sees to its growth itself */
        memory_self.growth.left_bytes += (int64_t)size;
    if (is_slot || !choose(&memory_self.growth, size, &sample))
        return original->realloc(original->ctx, block, size);
    expect(size, &(struct memory_sample){0});
    promotion->copies_left_bytes = memory_self.copies.left_bytes;
    promotion->is_growth = true;
    memory_self.copies.left_bytes = FORCED;
    void *moved = original->realloc(original->ctx, block, MEMORY_PROMOTED_LEAST);
    memory_self.copies.left_bytes = promotion->copies_left_bytes;
    promotion->is_growth = false;
    if (!arrived() || moved != promotion->block || !promotion->copied_bytes)
        return moved;
    uint64_t now = (size + SMALL_UNIT - 1) / SMALL_UNIT * SMALL_UNIT;
    *blocks_slot_size(moved) = (uint32_t)size;
    if (promotion->copied_bytes + gaps_random() % size >= now)
        return moved; /* not by the part that grew */
    sample.kind = WIRE_SITE_PYTHON;
    memory_record(moved, &sample);
    return moved;
}

static inline bool is_due(struct memory_gap *gap, size_t size)
{
    return size <= SMALL_MAX && __builtin_expect((gap->left_bytes -= (int64_t)size) < 0, 0);
}

#define HOOKS(name, which)                                                                         \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        if (is_due(&memory_self.objects, size))                                                    \
            return sampled(which, size, false);                                                    \
        return originals[which].malloc(ctx, size);                                                 \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t size)                               \
    {                                                                                              \
        if (size && count <= SMALL_MAX / size && is_due(&memory_self.objects, count * size))       \
            return sampled(which, count * size, true);                                             \
        return originals[which].calloc(ctx, count, size);                                          \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t size)                               \
    {                                                                                              \
        if (is_due(block ? &memory_self.growth : &memory_self.objects, size))                      \
            return block ? grown(which, block, size) : sampled(which, size, false);                \
        return originals[which].realloc(ctx, block, size);                                         \
    }
HOOKS(mem, 0)
HOOKS(obj, 1)

/* ---- installing ---- */

static struct allocator ours(int which)
{
    struct allocator allocator = originals[which];
    if (is_wrapped)
        return wrapped_around(which, &originals[which]);
    allocator.malloc = which ? obj_malloc : mem_malloc;
    allocator.calloc = which ? obj_calloc : mem_calloc;
    allocator.realloc = which ? obj_realloc : mem_realloc;
    return allocator;
}

static bool is_in_front(int which)
{
    struct allocator now;
    get_allocator(domains[which], &now);
    return now.malloc == in_front[which].malloc;
}

/* Is the function of ours reached, be it from below another's? */
static bool is_reached(int which)
{
    struct allocator now;
    get_allocator(domains[which], &now);
    memory_self.objects.left_bytes = SMALL_MAX;
    void *block = now.malloc(now.ctx, 1);
    bool reached = memory_self.objects.left_bytes != SMALL_MAX;
    now.free(now.ctx, block);
    return reached;
}

/* Does a request beyond 512 bytes come to our malloc()?  Not from CPython's built-in mimalloc. */
static bool large_reaches_malloc(int which)
{
    const struct allocator *original = &originals[which];
    expect(MEMORY_PROMOTED_LEAST, &(struct memory_sample){0});
    void *block = original->malloc(original->ctx, MEMORY_PROMOTED_LEAST);
    bool reached = arrived();
    original->free(original->ctx, block);
    return reached;
}

/* Do all small ones too (PYTHONMALLOC=malloc)?  Then they are seen there.  CPython's own allocator
 * does it now and then, for its books. */
static bool small_reach_malloc(int which)
{
    const struct allocator *original = &originals[which];
    int64_t left = memory_self.heap.left_bytes;
    int reached = 0;
    for (int i = 0; i < PROBES; i++) {
        memory_self.heap.left_bytes = INT64_MAX;
        void *block = original->malloc(original->ctx, PROBE_BYTES);
        reached += memory_self.heap.left_bytes != INT64_MAX;
        original->free(original->ctx, block);
    }
    memory_self.heap.left_bytes = left;
    return reached == PROBES;
}

static void put_in_front(void)
{
    for (int i = 0; i < DOMAINS; i++) {
        get_allocator(domains[i], &originals[i]);
        in_front[i] = ours(i);
        set_allocator(domains[i], &in_front[i]);
    }
}

static void take_out(void)
{
    for (int i = 0; i < DOMAINS; i++)
        if (is_in_front(i))
            set_allocator(domains[i], &originals[i]);
}

static bool find_functions(void)
{
    is_wrapped = agent.has_layout && agent.layout.free_threaded;
    *(void **)&get_allocator = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set_allocator = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    return get_allocator && set_allocator;
}

void objects_prepare(void)
{
    if (find_functions())
        put_in_front();
}

static void let_switch(void)
{
    struct duty_word words[DOMAINS * DUTY_FUNCTIONS];
    for (int i = 0; i < DOMAINS; i++) {
        const struct allocator *mine = &in_front[i], *original = &originals[i];
        struct duty_word *of_domain = &words[i * DUTY_FUNCTIONS];
        of_domain[0] = (struct duty_word){(uintptr_t)mine->malloc, (uintptr_t)original->malloc, 0};
        of_domain[1] = (struct duty_word){(uintptr_t)mine->calloc, (uintptr_t)original->calloc, 0};
        of_domain[2] =
            (struct duty_word){(uintptr_t)mine->realloc, (uintptr_t)original->realloc, 0};
    }
    duty_init((uintptr_t)set_allocator, words, DOMAINS * DUTY_FUNCTIONS);
}

/* Are objects seen, if not by wrapping?  What is in front for nothing is taken out. */
static bool try_out(void)
{
    bool small = small_reach_malloc(0) && small_reach_malloc(1);
    if (small || !large_reaches_malloc(0) || !large_reaches_malloc(1)) {
        take_out();
        return small;
    }
    if (is_in_front(0) && is_in_front(1))
        let_switch();
    return true;
}

bool objects_install(void)
{
    if (!get_allocator || !set_allocator)
        return false;
    if (!is_reached(0) || !is_reached(1)) /* Python was set up with other allocators */
        put_in_front();
    bool are_seen = is_wrapped || try_out();
    memory_self.objects = memory_self.growth = (struct memory_gap){0};
    return are_seen;
}
