/*
 * The allocators of a Python that is none, in a library of their own as libpython is: the agent
 * looks for its functions in the data of the module that they come from.
 *
 * Small blocks come from a pool, others from malloc(), as CPython's do.  Each domain's functions
 * stand on a page of their own, which a test can make read-only.
 */
#include "stand_in_heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DOMAINS = 3, SMALL_MAX = 512, POOL_BYTES = 16 << 20 };

static _Alignas(16) char pool[POOL_BYTES];
static _Atomic size_t pool_used;

static bool is_pooled(const void *block)
{
    return (uintptr_t)block - (uintptr_t)pool < sizeof pool;
}

/* Never used again: no program here makes so many. */
static void *take(size_t size)
{
    size_t bytes = (size + 15) & ~(size_t)15, at = pool_used;
    if (size > SMALL_MAX || at + bytes > POOL_BYTES)
        return malloc(size);
    return pool + __atomic_fetch_add((size_t *)&pool_used, bytes, __ATOMIC_RELAXED);
}

static void *stand_in_malloc(void *context, size_t size)
{
    (void)context;
    return take(size);
}

static void *stand_in_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    void *block = take(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

static void *stand_in_realloc(void *context, void *block, size_t size)
{
    (void)context;
    if (!is_pooled(block))
        return realloc(block, size);
    void *moved = take(size);
    return moved ? memcpy(moved, block, size < 16 ? size : 16) : NULL;
}

static void stand_in_free(void *context, void *block)
{
    (void)context;
    if (!is_pooled(block))
        free(block);
}

static struct {
    _Alignas(STAND_IN_PAGE) struct stand_in_allocator functions;
} domains[DOMAINS] = {
    {{NULL, stand_in_malloc, stand_in_calloc, stand_in_realloc, stand_in_free}},
    {{NULL, stand_in_malloc, stand_in_calloc, stand_in_realloc, stand_in_free}},
    {{NULL, stand_in_malloc, stand_in_calloc, stand_in_realloc, stand_in_free}},
};

void PyMem_GetAllocator(int domain, struct stand_in_allocator *allocator)
{
    *allocator = domains[domain].functions;
}

void PyMem_SetAllocator(int domain, struct stand_in_allocator *allocator)
{
    domains[domain].functions = *allocator;
}

struct stand_in_allocator *stand_in_domain(int domain)
{
    return &domains[domain].functions;
}
