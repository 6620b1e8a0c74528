/*
 * A program with an allocator linked in, which stands in front of the agent's
 * functions.  What it does not define itself must still fit to it: the C
 * library's reallocarray() calls the program's realloc(), and what is aligned
 * comes back to the program's free().
 */
#include "stand_in.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

/* A header that only these functions know of, but for blocks of the C library's. */
enum { HEADER_BYTES = 16, MARK = 0x5ca1e };

void *malloc(size_t size)
{
    size_t *block = __libc_malloc(size + HEADER_BYTES);
    if (!block)
        return NULL;
    block[1] = MARK;
    return (char *)block + HEADER_BYTES;
}

void free(void *block)
{
    size_t *header = (size_t *)block - 2;
    if (!block)
        return;
    if (header[1] != MARK) {
        __libc_free(block);
        return;
    }
    header[1] = 0;
    __libc_free(header);
}

void *calloc(size_t count, size_t size)
{
    void *block = malloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

void *realloc(void *block, size_t size)
{
    size_t *header = block ? __libc_realloc((size_t *)block - 2, size + HEADER_BYTES)
                           : __libc_malloc(size + HEADER_BYTES);
    if (!header)
        return NULL;
    header[1] = MARK;
    return header + 2;
}

int main(void)
{
    bool is_followed = stand_in_begin();
    for (size_t i = 0; i < 200000; i++) {
        unsigned char *block = malloc(100), *grown;
        void *aligned = NULL;
        memset(block, (int)i, 100);
        grown = reallocarray(block, 3, 100);
        if (!grown || grown[99] != (unsigned char)i || posix_memalign(&aligned, 64, 100))
            _exit(1);
        free(grown);
        free(aligned);
    }
    puts(is_followed ? "followed" : "plain");
    return 0;
}
