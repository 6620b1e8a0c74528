/*
 * Allocation for the launcher and the viewer.  These never return NULL: when
 * memory is exhausted the process says so and ends with status 71.  That is
 * the one place where the library zone ends the process; checking every small
 * allocation would hide the logic, and nothing is lost by ending: the samples
 * are in the session's files, not in our heap.
 *
 * `struct pool` is a bump allocator: everything in it dies together.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t count, size_t size_bytes);
void *mem_resize(void *block, size_t count, size_t size_bytes);
void *mem_copy(const void *block, size_t size_bytes); /* NULL is as good as an empty one */
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t length);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Make room in a growing array for one more element: VEC_PUSH(v->items, v->count, v->cap) = x; */
#define VEC_PUSH(items, count, cap)                                                                \
    *(((count) == (cap)                                                                            \
           ? ((items) = mem_resize((items), (cap) = (cap) ? (cap)*2 : 16, sizeof *(items)))        \
           : (items)),                                                                             \
      &(items)[(count)++])

struct pool {
    struct pool_block *blocks;
};

void *pool_alloc(struct pool *pool, size_t size_bytes); /* zeroed, 16-byte aligned */
char *pool_strndup(struct pool *pool, const char *text, size_t length);
void pool_release(struct pool *pool);

#endif
