#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POOL_BLOCK_BYTES = 64 * 1024 };

struct pool_block {
    struct pool_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

static _Noreturn void mem_exhausted(void)
{
    static const char text[] = "scalene: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(71);
}

void *mem_alloc(size_t size_bytes)
{
    void *block = malloc(size_bytes ? size_bytes : 1);
    if (!block)
        mem_exhausted();
    return block;
}

void *mem_zalloc(size_t count, size_t size_bytes)
{
    void *block = calloc(count ? count : 1, size_bytes ? size_bytes : 1);
    if (!block)
        mem_exhausted();
    return block;
}

void *mem_resize(void *block, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total))
        mem_exhausted();
    block = realloc(block, total ? total : 1);
    if (!block)
        mem_exhausted();
    return block;
}

void *mem_copy(const void *block, size_t size_bytes)
{
    void *copy = mem_alloc(size_bytes);
    if (size_bytes)
        memcpy(copy, block, size_bytes);
    return copy;
}

char *mem_strndup(const char *text, size_t length)
{
    char *copy = mem_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_strndup(text, strlen(text));
}

char *mem_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        mem_exhausted();
    return text;
}

void *pool_alloc(struct pool *pool, size_t size_bytes)
{
    size_t need = (size_bytes + 15) & ~(size_t)15;
    struct pool_block *block = pool->blocks;
    if (!block || block->size - block->used < need) {
        size_t size = need > POOL_BLOCK_BYTES ? need : POOL_BLOCK_BYTES;
        block = mem_zalloc(1, sizeof *block + size);
        block->size = size;
        block->next = pool->blocks;
        pool->blocks = block;
    }
    void *result = block->data + block->used;
    block->used += need;
    return result;
}

char *pool_strndup(struct pool *pool, const char *text, size_t length)
{
    char *copy = pool_alloc(pool, length + 1);
    memcpy(copy, text, length);
    return copy;
}

void pool_release(struct pool *pool)
{
    struct pool_block *block = pool->blocks;
    while (block) {
        struct pool_block *next = block->next;
        free(block);
        block = next;
    }
    pool->blocks = NULL;
}
