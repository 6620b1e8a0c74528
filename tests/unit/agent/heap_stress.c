/*
 * Allocator stress: runs with the agent preloaded, every kind of allocation from
 * several threads, blocks handed from one to the other, forks in the middle.
 * Contents, zeroing, alignment and usable sizes are checked; the answer is the
 * exit status.
 *
 *   heap_stress ROUNDS
 *
 * HEAP_STRESS_ALIGNMENTS=4 leaves out those at which Debian's mimalloc itself is wrong.
 */
#include "stand_in.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, FORKS = 4, SHARED = 4096, HELD = 256 };

struct block {
    unsigned char *data;
    size_t size;
    unsigned char mark;
};

/* Where threads leave blocks for others.  Forked children have one of their own: what other threads
 * had locked when they were born stays locked. */
struct exchange {
    struct block blocks[SHARED];
    pthread_mutex_t locks[SHARED];
};
static struct exchange parents, childs;
static struct exchange *shared = &parents;
static unsigned rounds, alignments = 10; /* powers of two from 16 on */

static void fail(const char *what)
{
    fprintf(stderr, "heap_stress: %s\n", what);
    _exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t random_size(uint64_t *state)
{
    uint64_t r = next_random(state);
    switch (r % 16) {
    case 0:
        return r >> 8 & 0x3FFFF; /* up to 256 KiB */
    case 1:
    case 2:
        return 900 + (r >> 8) % 250; /* around the limit of the slots */
    case 3:
    case 4:
        return r >> 8 & 0x7FFF;
    default:
        return r >> 8 & 0x3FF;
    }
}

static void fill(struct block *block, uint64_t *state)
{
    block->mark = (unsigned char)next_random(state);
    memset(block->data, block->mark, block->size);
}

static void check(const struct block *block, size_t size)
{
    for (size_t i = 0; i < size; i += i < 64 ? 1 : 61)
        if (block->data[i] != block->mark)
            fail("contents changed");
    if (size && block->data[size - 1] != block->mark)
        fail("the last byte changed");
}

static void allocate(struct block *block, uint64_t *state)
{
    uint64_t r = next_random(state);
    size_t align = 0;
    block->size = random_size(state);
    switch (r % 6) {
    case 0:
        block->data = calloc(1, block->size);
        for (size_t i = 0; i < block->size; i++)
            if (block->data[i])
                fail("calloc gave dirty memory");
        break;
    case 1:
        align = (size_t)16 << (r >> 8) % alignments;
        if (posix_memalign((void **)&block->data, align, block->size))
            fail("posix_memalign failed");
        break;
    case 2:
        align = (size_t)16 << (r >> 8) % 4;
        block->size = (block->size + align) & ~(align - 1);
        block->data = aligned_alloc(align, block->size);
        break;
    case 3:
        block->data = realloc(NULL, block->size);
        break;
    default:
        block->data = malloc(block->size);
    }
    if (!block->data && block->size)
        fail("no memory");
    /* Allocators other than libc's align small blocks only as far as their size can need. */
    if ((uintptr_t)block->data % (align ? align : block->size < 16 ? 8 : 16))
        fail("badly aligned");
    if (block->data && malloc_usable_size(block->data) < block->size)
        fail("usable size too small");
    fill(block, state);
}

static void resize(struct block *block, uint64_t *state)
{
    size_t size = random_size(state) + 1;
    unsigned char *data =
        next_random(state) % 2 ? realloc(block->data, size) : reallocarray(block->data, size, 1);
    if (!data)
        fail("realloc failed");
    block->data = data;
    check(block, block->size < size ? block->size : size);
    block->size = size;
    fill(block, state);
}

static void *work(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument * 0x9E3779B97F4A7C15u | 1;
    struct block held[HELD] = {{0}};
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t r = next_random(&state);
        struct block *block = &held[r % HELD];
        if (!block->data) {
            allocate(block, &state);
        } else if (r >> 8 & 1) {
            check(block, block->size);
            free(block->data);
            block->data = NULL;
        } else if (r >> 9 & 1) {
            resize(block, &state);
        } else {
            /* Swap with another thread: blocks are freed by others than made them. */
            unsigned at = (r >> 16) % SHARED;
            pthread_mutex_lock(&shared->locks[at]);
            struct block other = shared->blocks[at];
            shared->blocks[at] = *block;
            pthread_mutex_unlock(&shared->locks[at]);
            *block = other;
            if (block->data)
                check(block, block->size);
        }
        if (i % 4096 == 0) {
            size_t size = 128 << 10;
            char *map =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            map = map == MAP_FAILED ? map : mremap(map, size, 2 * size, MREMAP_MAYMOVE);
            if (map == MAP_FAILED || map[2 * size - 1])
                fail("mmap or mremap failed");
            munmap(map, 2 * size);
        }
    }
    for (unsigned i = 0; i < HELD; i++)
        free(held[i].data);
    return NULL;
}

static void start(pthread_t *thread, uintptr_t seed)
{
    if (pthread_create(thread, NULL, work, (void *)seed))
        fail("no thread");
}

static void release(struct block *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (blocks[i].data)
            check(&blocks[i], blocks[i].size);
        free(blocks[i].data);
    }
}

/* Blocks from before are the child's too, to free once more. */
static void run_child(struct block *inherited, uintptr_t seed)
{
    pthread_t thread;
    shared = &childs;
    rounds /= FORKS;
    start(&thread, seed);
    release(inherited, HELD / 2);
    work((void *)(seed + 1));
    pthread_join(thread, NULL);
    release(inherited + HELD / 2, HELD / 2);
    release(shared->blocks, SHARED);
    _exit(0);
}

static void fork_amid_threads(uintptr_t seed)
{
    struct block inherited[HELD];
    uint64_t state = seed;
    for (unsigned i = 0; i < HELD; i++)
        allocate(&inherited[i], &state);
    pid_t pid = fork();
    if (!pid)
        run_child(inherited, seed);
    release(inherited, HELD);
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        fail("the forked child failed");
}

static void run_threads(unsigned seed)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        start(&threads[i], seed + i);
    for (unsigned i = 0; i < FORKS; i++)
        fork_amid_threads(100 * seed + i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The agent copies a few bytes by itself, and memmove's may overlap. */
static void small_copies(void)
{
    enum { ROOM = 160, MIDDLE = 40, FURTHEST = 36, SIZES = 80 };
    unsigned char before[ROOM], after[ROOM];
    for (size_t i = 0; i < ROOM; i++)
        before[i] = (unsigned char)(i * 11 + 3);
    for (size_t size = 0; size < SIZES; size++)
        for (size_t at = MIDDLE - FURTHEST; at <= MIDDLE + FURTHEST; at++) {
            memcpy(after, before, ROOM);
            void *end = memmove(after + at, after + MIDDLE, size);
            for (size_t i = 0; i < ROOM; i++) {
                bool is_moved = i - at < size;
                if (after[i] != before[is_moved ? i - at + MIDDLE : i] || end != after + at)
                    fail("moved wrongly");
            }
            memset(after, 0, ROOM);
            memcpy(after + at, before, size);
            for (size_t i = 0; i < ROOM; i++)
                if (after[i] != (i - at < size ? before[i - at] : 0))
                    fail("copied a few bytes wrongly");
        }
}

static void copies(void)
{
    static unsigned char from[300000], to[300000];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7);
    for (size_t size = 1; size < sizeof from; size = size * 3 + 1) {
        memcpy(to, from, size);
        memmove(to + 1, to, size - 1);
        if (to[0] != from[0] || (size > 1 && memcmp(to + 1, from, size - 1)))
            fail("copied wrongly");
    }
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? (unsigned)atoi(argv[argc - 1]) : 20000;
    if (getenv("HEAP_STRESS_ALIGNMENTS"))
        alignments = (unsigned)atoi(getenv("HEAP_STRESS_ALIGNMENTS"));
    for (unsigned i = 0; i < SHARED; i++) {
        pthread_mutex_init(&parents.locks[i], NULL);
        pthread_mutex_init(&childs.locks[i], NULL);
    }
    struct block early = {0};
    uint64_t state = 42;
    allocate(&early, &state);
    bool is_followed = stand_in_begin();
    copies();
    small_copies();
    for (unsigned seed = 1; seed < 4 * THREADS; seed += THREADS)
        run_threads(seed);
    release(&early, 1);
    release(shared->blocks, SHARED);
    puts(is_followed ? "followed" : "plain");
    return 0;
}
