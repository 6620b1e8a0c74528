#include "agent/memory/wrapped.h"

#include "agent/memory/blocks.h"
#include "agent/memory/gaps.h"

enum {
    WORD = sizeof(void *),
    EXACT_WORDS = 8, /* up to so many words the allocator rounds to two of them, */
    STEPS_SHIFT = 2, /* and beyond to so many steps (as a power of two) of each doubling */
};
#define SLOW   __attribute__((noinline, cold))
#define FORCED (INT64_MIN / 2)

static struct allocator originals[ALLOCATOR_DOMAINS];

/* Large ones are not counted down: gaps_choose() sees to them. */
static inline bool is_due(struct memory_gap *gap, size_t size)
{
    return __builtin_expect(size >= WIRE_LARGE_LEAST, 0) ||
           __builtin_expect((gap->left_bytes -= (int64_t)size) < 0, 0);
}

static bool choose(struct memory_gap *gap, size_t size, struct memory_sample *sample)
{
    if (memory_is_ready())
        return gaps_choose(gap, size, size, sample);
    if (gap->left_bytes < 0)
        gaps_postpone(gap);
    return false;
}

/* ---- allocating ---- */

static SLOW void *sampled(void *block, size_t size)
{
    struct memory_sample sample = {.kind = WIRE_SITE_PYTHON};
    if (block && choose(&memory_self.objects, size, &sample))
        memory_record(block, &sample);
    return block;
}

/* ---- changing size ---- */

/* What the allocator makes of a size.  If it is another allocator, growth counts a little wrong. */
static size_t rounded(size_t size)
{
    size_t words = (size + WORD - 1) / WORD;
    if (words <= EXACT_WORDS)
        return ((words + 1) & ~(size_t)1) * WORD;
    unsigned shift = 63 - (unsigned)__builtin_clzl(words - 1) - STEPS_SHIFT;
    return (((words - 1) >> shift) + 1) * WORD << shift;
}

/* A realloc, and how much of the old block was copied to its new place: 0 if that is the old one.
 * Between the two may be CPython's debug hooks, which copy a little of it by themselves. */
static void *move(const struct allocator *original, void *block, size_t size, size_t *copied_bytes)
{
    struct memory_promotion *notice = &memory_self.promotion;
    int64_t copies_left_bytes = memory_self.copies.left_bytes;
    *notice = (struct memory_promotion){.is_growth = true, .source = block};
    memory_self.copies.left_bytes = FORCED;
    void *moved = original->realloc(original->ctx, block, size);
    memory_self.copies.left_bytes = copies_left_bytes;
    notice->is_growth = false;
    *copied_bytes = moved != block ? notice->copied_bytes : 0;
    return moved;
}

/* A block chosen by its whole size is a sample if the chosen byte of it is new. */
static void sample_growth(void *block, size_t size, size_t old, struct memory_sample *sample)
{
    if (old >= size)
        return;
    if (sample->exact) {
        sample->from = old;
        sample->bytes = size - old;
    } else {
        uint64_t chosen = sample->from + (rounded(size) - size); /* `old` is rounded too */
        if (chosen < old)
            return;
        sample->from = chosen < size ? chosen : size - 1;
    }
    memory_record(block, sample);
}

static SLOW void *resized(const struct allocator *original, void *block, size_t size, bool due)
{
    struct memory_sample sample = {.kind = WIRE_SITE_PYTHON};
    uint32_t records = 0;
    size_t old = 0;
    bool is_chosen = due && choose(&memory_self.growth, size, &sample);
    /* Its records go first: the old address may be another thread's as soon as it is given up. */
    if (blocks_has(block) && !memory_detach(block, &records))
        memory_forget_foreign(block);
    void *moved = is_chosen ? move(original, block, size, &old)
                            : original->realloc(original->ctx, block, size);
    memory_attach(moved ? moved : block, records, moved ? size : SIZE_MAX);
    if (moved && old)
        sample_growth(moved, size, old, &sample);
    return moved;
}

/* ---- the functions ---- */

static inline bool is_known(const void *block)
{
    return __builtin_expect(blocks_has(block), 0) && block;
}

#define FUNCTIONS(name, domain)                                                                    \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        if (is_due(&memory_self.objects, size))                                                    \
            return sampled(originals[domain].malloc(ctx, size), size);                             \
        return originals[domain].malloc(ctx, size);                                                \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t size)                               \
    {                                                                                              \
        size_t all;                                                                                \
        if (!__builtin_mul_overflow(count, size, &all) && is_due(&memory_self.objects, all))       \
            return sampled(originals[domain].calloc(ctx, count, size), all);                       \
        return originals[domain].calloc(ctx, count, size);                                         \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t size)                               \
    {                                                                                              \
        bool due = is_due(block ? &memory_self.growth : &memory_self.objects, size);               \
        if (due && !block)                                                                         \
            return sampled(originals[domain].realloc(ctx, NULL, size), size);                      \
        if (due || is_known(block))                                                                \
            return resized(&originals[domain], block, size, due);                                  \
        return originals[domain].realloc(ctx, block, size);                                        \
    }                                                                                              \
    static void name##_free(void *ctx, void *block)                                                \
    {                                                                                              \
        if (is_known(block)) /* not memory_forget(): that may free it later, by libc */            \
            memory_forget_foreign(block);                                                          \
        originals[domain].free(ctx, block);                                                        \
    }
FUNCTIONS(mem, 0)
FUNCTIONS(obj, 1)

struct allocator wrapped_around(int domain, const struct allocator *original)
{
    originals[domain] = *original;
    return domain
               ? (struct allocator){original->ctx, obj_malloc, obj_calloc, obj_realloc, obj_free}
               : (struct allocator){original->ctx, mem_malloc, mem_calloc, mem_realloc, mem_free};
}
