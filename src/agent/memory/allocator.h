/*
 * CPython's allocators, as PyMem_GetAllocator() gives and PyMem_SetAllocator()
 * takes them: PyMemAllocatorEx, the same since 3.5.
 */
#ifndef AGENT_MEMORY_ALLOCATOR_H
#define AGENT_MEMORY_ALLOCATOR_H

#include <stddef.h>

enum { ALLOCATOR_DOMAINS = 2 /* that objects come from: MEM and OBJ */ };

struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};

#endif
