#include "agent/hooks/heap.h"

#include "agent/core/agent.h"
#include "agent/memory/blocks.h"
#include "agent/memory/gaps.h"
#include "os/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SLOW        __attribute__((noinline, cold))
#define CALLER      __builtin_return_address(0)

enum { BOOTSTRAP_BYTES = 16384, IDLE_BYTES = 1 << 20 };
#define LOOK_AT_NONE (SIZE_MAX / 2)

/* libc's, under names that nobody interposes. */
void *__libc_malloc(size_t);
void __libc_free(void *);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/*
 * The allocator the program has without us.  It is looked up by the first call
 * of all, before any block was handed out: blocks of two allocators must never
 * be mixed up.
 */
static void *first_malloc(size_t);
static void first_free(void *);
static void *first_calloc(size_t, size_t);
static void *first_realloc(void *, size_t);
static void *first_memalign(size_t, size_t);

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    size_t (*usable_size)(void *);
    bool is_foreign;  /* not glibc's: a block's size is not in front of it */
    size_t look_from; /* chunks larger than this may have records */
    struct py_range code;
} next = {first_malloc, first_free,   first_calloc, first_realloc, first_memalign, NULL,
          false,        LOOK_AT_NONE, {0}};

/* ---- finding the allocator ---- */

static char bootstrap[BOOTSTRAP_BYTES] __attribute__((aligned(16)));
static size_t bootstrap_used;
static bool resolving;

/* dlsym() itself may want a little memory while we look.  Such a block has the header of an
 * impossibly large chunk, so that free() looks at it twice. */
static void *bootstrap_take(size_t size_bytes)
{
    size_t need = ((size_bytes + 15) & ~(size_t)15) + 16;
    if (need < size_bytes || BOOTSTRAP_BYTES - bootstrap_used < need)
        return NULL;
    size_t *block = (size_t *)(void *)(bootstrap + bootstrap_used + 16);
    bootstrap_used += need;
    block[-1] = SIZE_MAX & ~(size_t)7;
    return block;
}

static bool is_bootstrap(const void *block)
{
    return (uintptr_t)block - (uintptr_t)bootstrap < BOOTSTRAP_BYTES;
}

/* Sizes of these blocks are not kept: as much as there can be. */
static size_t bootstrap_bytes(const void *block)
{
    return (uintptr_t)bootstrap + BOOTSTRAP_BYTES - (uintptr_t)block;
}

static void use_libc(void)
{
    next.free = __libc_free;
    next.calloc = __libc_calloc;
    next.realloc = __libc_realloc;
    next.memalign = __libc_memalign;
    next.malloc = __libc_malloc;
}

/* By the module it is in: other allocators define the __libc names as well. */
static bool is_libc(void *function)
{
    Dl_info its, libc;
    return !function || (dladdr(function, &its) && dladdr((void *)gnu_get_libc_version, &libc) &&
                         its.dli_fbase == libc.dli_fbase);
}

static void resolve(void)
{
    resolving = true;
    void *found = dlsym(RTLD_NEXT, "malloc");
    if (is_libc(found)) {
        use_libc();
    } else {
        *(void **)&next.free = dlsym(RTLD_NEXT, "free");
        *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
        *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
        *(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
        if (!next.memalign)
            *(void **)&next.memalign = dlsym(RTLD_NEXT, "aligned_alloc");
        next.is_foreign = true;
        *(void **)&next.malloc = found;
    }
    *(void **)&next.usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    resolving = false;
}

static void *first_malloc(size_t size)
{
    if (resolving)
        return bootstrap_take(size);
    resolve();
    return next.malloc(size);
}

static void first_free(void *block)
{
    if (resolving)
        return;
    resolve();
    next.free(block);
}

static void *first_calloc(size_t count, size_t size)
{
    if (resolving)
        return bootstrap_take(count * size);
    resolve();
    return next.calloc(count, size);
}

static void *first_realloc(void *block, size_t size)
{
    if (resolving)
        return bootstrap_take(size);
    resolve();
    return next.realloc(block, size);
}

static void *first_memalign(size_t align, size_t size)
{
    if (resolving)
        return NULL;
    resolve();
    return next.memalign(align, size);
}

/*
 * A program may define malloc() by itself and stand in front of us; what we hand
 * out under other names then comes back to its free(), which knows no slots of
 * ours.  Addresses do not tell: an executable may have a stub of its own for malloc.
 */
static bool is_bypassed;

void heap_init(void)
{
    int64_t before = memory_self.heap.left_bytes = IDLE_BYTES;
    void *block = malloc(1);
    is_bypassed = memory_self.heap.left_bytes == before;
    free(block);
}

bool heap_is_allocator(const void *caller)
{
    return py_range_has(&next.code, (uintptr_t)caller);
}

void heap_follow(void)
{
    struct module found;
    if (next.is_foreign && module_find((uintptr_t)next.malloc, &found))
        next.code = (struct py_range){found.start, found.end};
    next.look_from = BLOCKS_SLOT_MAX;
}

void heap_free_untracked(void *block)
{
    next.free(block);
}

/* ---- sizes ---- */

/* The size of glibc's chunk stands in front of the block, with three flags; free() reads it too. */
static inline size_t chunk_bytes(const void *block)
{
    return ((const size_t *)block)[-1] & ~(size_t)7;
}

static size_t usable_bytes(void *block)
{
    if (blocks_is_slot(block))
        return blocks_slot_bytes(block);
    /* 2: mapped by itself.  How much of that is usable differs between versions of glibc: it is
     * asked. */
    if (!next.is_foreign && !(((const size_t *)block)[-1] & 2))
        return chunk_bytes(block) - 8;
    if (is_bootstrap(block))
        return bootstrap_bytes(block);
    return next.usable_size ? next.usable_size(block) : 0;
}

/* Can a record of a block be found again when it is freed? */
static bool is_watched(void *block)
{
    return next.is_foreign || chunk_bytes(block) > BLOCKS_SLOT_MAX;
}

/* ---- allocating ---- */

enum how { PLAIN, ZEROED, ALIGNED };

static void *allocate(enum how how, size_t size, size_t align)
{
    if (how == ZEROED)
        return next.calloc(1, size);
    return how == ALIGNED ? next.memalign(align, size) : next.malloc(size);
}

static void *take_slot(enum how how, size_t size, size_t align)
{
    void *slot = memory_take_slot(size, how == ALIGNED ? align : 16);
    if (slot && how == ZEROED)
        memset(slot, 0, size);
    return slot;
}

/*
 * A call while an object that objects.c has chosen is on its way: is this it?
 * Only the object's own size is needed, unless a debug hook has put something of
 * its own around, or CPython's allocator will copy into it what it thinks fits.
 */
static void *promoted(enum how how, size_t size, size_t align, const void *caller)
{
    struct memory_promotion *promotion = &memory_self.promotion;
    if (size < MEMORY_PROMOTED_LEAST || size > MEMORY_PROMOTED_MOST ||
        !py_range_has(&agent.regions.interpreter, (uintptr_t)caller)) /* a signal handler's */
        return allocate(how, size, align);
    promotion->is_due = false;
    memory_self.heap.left_bytes = promotion->heap_left_bytes;
    if (promotion->weight_bytes && size == MEMORY_PROMOTED_LEAST)
        size = promotion->size_bytes;
    if (promotion->weight_bytes || promotion->is_growth)
        promotion->block = take_slot(how, size, align);
    if (!promotion->block)
        return allocate(how, size, align);
    struct memory_sample sample = {
        .kind = WIRE_SITE_PYTHON,
        .bytes = promotion->weight_bytes,
        .from = promotion->from,
        .count = promotion->count,
        .size_bytes = promotion->size_bytes,
        .hits = promotion->hits,
        .factor = promotion->factor,
    };
    if (sample.bytes)
        memory_record(promotion->block, &sample);
    return promotion->block;
}

static SLOW void *sampled(enum how how, size_t size, size_t align, const void *caller)
{
    struct memory_sample sample = {.kind = WIRE_SITE_NATIVE, .caller = caller};
    if (is_bypassed)
        return allocate(how, size, align);
    if (memory_self.promotion.is_due)
        return promoted(how, size, align, caller);
    if (!memory_is_ready()) {
        gaps_postpone(&memory_self.heap);
        return allocate(how, size, align);
    }
    if (!gaps_choose(&memory_self.heap, size, size, &sample))
        return allocate(how, size, align);
    void *block = NULL;
    if (size <= BLOCKS_SLOT_MAX && align <= BLOCKS_SLOT_MAX) {
        block = take_slot(how, size, align);
        if (!block)
            return allocate(how, size, align);
    } else {
        /* So aligned a block takes more room anyway: large enough to be watched. */
        size_t watched = size > BLOCKS_SLOT_MAX ? size : BLOCKS_SLOT_MAX + 1;
        block = allocate(how, watched, align);
        if (!block || !is_watched(block))
            return block;
    }
    memory_record(block, &sample);
    return block;
}

static inline bool is_due(size_t size)
{
    return UNLIKELY(size >= WIRE_LARGE_LEAST) ||
           UNLIKELY((memory_self.heap.left_bytes -= (int64_t)size) < 0);
}

AGENT_EXPORT void *malloc(size_t size)
{
    if (is_due(size))
        return sampled(PLAIN, size, 0, CALLER);
    return next.malloc(size);
}

AGENT_EXPORT void *calloc(size_t count, size_t size)
{
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &total)))
        return next.calloc(count, size);
    if (is_due(total))
        return sampled(ZEROED, total, 0, CALLER);
    return next.calloc(count, size);
}

static inline void *aligned(size_t align, size_t size, const void *caller)
{
    bool is_power = align && !(align & (align - 1));
    if (!size)
        size = 1; /* not every allocator aligns nothing */
    if (is_due(size) && is_power)
        return sampled(ALIGNED, size, align, caller);
    return next.memalign(align, size);
}

AGENT_EXPORT void *memalign(size_t align, size_t size)
{
    return aligned(align, size, CALLER);
}

AGENT_EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return aligned(align, size, CALLER);
}

AGENT_EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
    if (align % sizeof(void *) || !align || align & (align - 1))
        return EINVAL;
    int saved = errno;
    void *block = aligned(align, size, CALLER);
    errno = saved;
    if (!block)
        return ENOMEM;
    *out = block;
    return 0;
}

AGENT_EXPORT void *valloc(size_t size)
{
    return aligned((size_t)sysconf(_SC_PAGESIZE), size, CALLER);
}

AGENT_EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t rounded = (size + page - 1) & ~(page - 1);
    if (rounded < size) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned(page, rounded ? rounded : page, CALLER);
}

/* ---- freeing ---- */

static SLOW void free_slot(void *slot)
{
    memory_give_slot(slot);
}

static SLOW void free_watched(void *block)
{
    if (UNLIKELY(is_bootstrap(block)))
        return;
    if (blocks_has(block) && !memory_forget(block))
        return;
    next.free(block);
}

AGENT_EXPORT void free(void *block)
{
    if (UNLIKELY(blocks_is_slot(block)))
        free_slot(block);
    else if (UNLIKELY(!block))
        return;
    else if (UNLIKELY(next.is_foreign) || UNLIKELY(chunk_bytes(block) > next.look_from))
        free_watched(block);
    else
        next.free(block);
}

/* C23's; older C libraries do not declare them. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t align, size_t size);

AGENT_EXPORT void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

AGENT_EXPORT void free_aligned_sized(void *block, size_t align, size_t size)
{
    (void)align;
    (void)size;
    free(block);
}

/* ---- changing size ---- */

/* Small blocks that are to have a record move into a slot. */
static void *move_to_slot(void *block, size_t size)
{
    void *slot = memory_take_slot(size, 16);
    if (!slot)
        return block;
    size_t old = usable_bytes(block);
    memcpy(slot, block, old < size ? old : size);
    next.free(block);
    return slot;
}

/* `block` grew to `size` by `grown`: record it if it is a sample.  It may move. */
static void *sample_growth(void *block, size_t size, size_t grown, const void *caller)
{
    struct memory_sample sample = {.kind = WIRE_SITE_NATIVE, .caller = caller};
    if (memory_self.promotion.is_due || is_bypassed)
        return block;
    if (!memory_is_ready()) {
        if (memory_self.heap.left_bytes < 0)
            gaps_postpone(&memory_self.heap);
        return block;
    }
    if (!gaps_choose(&memory_self.heap, grown, size, &sample))
        return block;
    if (!blocks_is_slot(block) && !is_watched(block)) {
        block = move_to_slot(block, size);
        if (!blocks_is_slot(block))
            return block;
    }
    memory_record(block, &sample);
    return block;
}

static SLOW void *realloc_slot(void *slot, size_t size, const void *caller)
{
    size_t old = *blocks_slot_size(slot);
    void *block = slot;
    if (size > blocks_slot_bytes(slot) || memory_self.busy) {
        block = next.malloc(size);
        if (!block)
            return NULL;
        /* All of it: who asked malloc_usable_size() may have used it. */
        size_t room = blocks_slot_bytes(slot);
        memcpy(block, slot, room < size ? room : size);
        uint32_t records = 0;
        bool detached = memory_detach(slot, &records);
        memory_give_slot(slot); /* and its records with it, if they are still there */
        if (!detached)
            return block;
        if (records && !is_watched(block))
            block = move_to_slot(block, size);
        memory_attach(block, records, size);
    } else {
        uint32_t records = 0;
        *blocks_slot_size(slot) = (uint32_t)size;
        if (size < old && memory_detach(slot, &records))
            memory_attach(slot, records, size);
    }
    if (size <= old)
        return block;
    if (size < WIRE_LARGE_LEAST)
        memory_self.heap.left_bytes -= (int64_t)(size - old);
    if (size < WIRE_LARGE_LEAST && memory_self.heap.left_bytes >= 0)
        return block;
    return sample_growth(block, size, size - old, caller);
}

static SLOW void *realloc_watched(void *block, size_t size, size_t old, const void *caller)
{
    if (is_bootstrap(block)) {
        size_t most = bootstrap_bytes(block);
        void *moved = next.malloc(size);
        if (moved)
            memcpy(moved, block, most < size ? most : size);
        return moved;
    }
    /* Its records go first: the old address may be another thread's as soon as it is given up. */
    uint32_t records = 0;
    if (blocks_has(block) &&
        !memory_detach(block, &records)) { /* then it stays where it is known */
        void *copy = next.malloc(size);
        if (!copy)
            return NULL;
        memcpy(copy, block, old < size ? old : size);
        if (memory_forget(block))
            next.free(block);
        return copy;
    }
    void *moved = next.realloc(block, size);
    if (!moved) {
        memory_attach(block, records, old);
        return NULL;
    }
    if (records && !is_watched(moved))
        moved = move_to_slot(moved, size);
    memory_attach(moved, records, size);
    if (size <= old || (size < WIRE_LARGE_LEAST && memory_self.heap.left_bytes >= 0))
        return moved;
    return sample_growth(moved, size, size - old, caller);
}

static inline void *resize(void *block, size_t size, const void *caller)
{
    if (!block)
        return is_due(size) ? sampled(PLAIN, size, 0, caller) : next.malloc(size);
    if (UNLIKELY(!size)) {
        /* libc frees and gives nothing, others give an empty block: as the allocator does. */
        void *other = next.is_foreign ? next.malloc(1) : NULL;
        free(block);
        return other ? next.realloc(other, 0) : NULL;
    }
    if (UNLIKELY(blocks_is_slot(block)))
        return realloc_slot(block, size, caller);
    size_t old = usable_bytes(block);
    bool grows = size > old && size < WIRE_LARGE_LEAST;
    if (grows)
        memory_self.heap.left_bytes -= (int64_t)(size - old);
    if (UNLIKELY(grows && memory_self.heap.left_bytes < 0) || UNLIKELY(size >= WIRE_LARGE_LEAST) ||
        UNLIKELY(next.is_foreign) || UNLIKELY(old >= next.look_from))
        return realloc_watched(block, size, old, caller);
    return next.realloc(block, size);
}

AGENT_EXPORT void *realloc(void *block, size_t size)
{
    return resize(block, size, CALLER);
}

AGENT_EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    if (UNLIKELY(is_bypassed))
        return realloc(block, total);
    return resize(block, total, CALLER);
}

AGENT_EXPORT size_t malloc_usable_size(void *block)
{
    return block ? usable_bytes(block) : 0;
}
