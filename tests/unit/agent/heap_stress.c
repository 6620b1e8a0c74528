/*
 * Allocator stress: runs with the agent preloaded, every kind of allocation from
 * several threads, blocks handed from one to the other, a fork in the middle.
 * Contents, zeroing, alignment and usable sizes are checked; the answer is the
 * exit status.  Made to look like a Python: what the agent asks of one is here.
 *
 *   heap_stress ROUNDS
 *
 * HEAP_STRESS_ALIGNMENTS=4 leaves out those at which Debian's mimalloc itself is wrong,
 * HEAP_STRESS_NO_FORK=1 the fork: not every allocator can be forked amid threads.
 */
#include <dlfcn.h>
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

enum { THREADS = 4, SHARED = 4096, HELD = 256 };

struct block {
    unsigned char *data;
    size_t size;
    unsigned char mark;
};

static struct block shared[SHARED];
static pthread_mutex_t locks[SHARED];
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
        return 4000 + (r >> 8) % 200; /* around the limit of the slots */
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
            pthread_mutex_lock(&locks[at]);
            struct block other = shared[at];
            shared[at] = *block;
            pthread_mutex_unlock(&locks[at]);
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

static void run_threads(unsigned seed)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(seed + i)))
            fail("no thread");
    if (seed == 1 && !getenv("HEAP_STRESS_NO_FORK")) {
        pid_t pid = fork();
        if (!pid) {
            work((void *)99);
            _exit(0);
        }
        int status = -1;
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
            fail("the forked child failed");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
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

/* What the agent looks for in a process.  The hook is called when the program begins. */
typedef int (*audit_hook)(const char *, void *, void *);
struct entry {
    struct entry *next;
    audit_hook hook;
    void *data;
};
struct runtime {
    struct entry *hooks;
    char rest[1024];
};
struct runtime _PyRuntime;
char PyCode_Type[512], PyUnicode_Type[512];
int PySys_AddAuditHook(audit_hook hook, void *data);
const char *Py_GetVersion(void);
void *PyGILState_GetThisThreadState(void);

int PySys_AddAuditHook(audit_hook hook, void *data)
{
    static struct entry entry;
    entry = (struct entry){NULL, hook, data};
    _PyRuntime.hooks = &entry;
    return 0;
}

const char *Py_GetVersion(void)
{
    return "3.0.0"; /* of no known layout */
}

void *PyGILState_GetThisThreadState(void)
{
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? (unsigned)atoi(argv[argc - 1]) : 20000;
    if (getenv("HEAP_STRESS_ALIGNMENTS"))
        alignments = (unsigned)atoi(getenv("HEAP_STRESS_ALIGNMENTS"));
    for (unsigned i = 0; i < SHARED; i++)
        pthread_mutex_init(&locks[i], NULL);
    struct block early = {0};
    uint64_t state = 42;
    allocate(&early, &state);
    bool is_followed = _PyRuntime.hooks != NULL;
    if (is_followed)
        _PyRuntime.hooks->hook("cpython.run_file", NULL, NULL);
    copies();
    for (unsigned seed = 1; seed < 4 * THREADS; seed += THREADS)
        run_threads(seed);
    check(&early, early.size);
    free(early.data);
    for (unsigned i = 0; i < SHARED; i++) {
        if (shared[i].data)
            check(&shared[i], shared[i].size);
        free(shared[i].data);
    }
    puts(is_followed ? "followed" : "plain");
    return 0;
}
