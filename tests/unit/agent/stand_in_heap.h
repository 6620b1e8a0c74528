/* The allocators of a Python that is none; see stand_in_heap.c. */
#ifndef TESTS_STAND_IN_HEAP_H
#define TESTS_STAND_IN_HEAP_H

#include <stddef.h>

enum { STAND_IN_PAGE = 4096, STAND_IN_MEM = 1, STAND_IN_OBJ = 2 };

/* PyMemAllocatorEx. */
struct stand_in_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

void PyMem_GetAllocator(int domain, struct stand_in_allocator *allocator);
void PyMem_SetAllocator(int domain, struct stand_in_allocator *allocator);

/* A domain's functions, at the start of a page. */
struct stand_in_allocator *stand_in_domain(int domain);

#endif
