/*
 * What the malloc family promises, one case at a time, with the agent preloaded:
 *
 *   heap_cases CASE
 *
 * Each case does its calls often enough that the densest sampling takes many of
 * its blocks.  The answer is the exit status; a case that has a figure to compare
 * prints it: threads and processes what they allocated in all, in bytes.
 */
#include "stand_in.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail_at(const char *what, int line)
{
    fprintf(stderr, "heap_cases: line %d: %s\n", line, what);
    _exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail_at(#condition, __LINE__))

static void check_filled(const unsigned char *data, unsigned char mark, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != mark)
            fail_at("contents changed", __LINE__);
}

static const size_t sizes[] = {1, 24, 100, 512, 513, 1000, 4000, 4096, 4097, 65536, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes, REPEATS = 40 };

/* ---- alignment, and every way to free ---- */

typedef void free_sized_function(void *, size_t);
typedef void free_aligned_sized_function(void *, size_t, size_t);

static void release(void *block, size_t align, size_t size, unsigned turn)
{
    /* C23's, which the C library may not have yet. */
    static free_sized_function *sized;
    static free_aligned_sized_function *aligned_sized;
    if (!sized) {
        *(void **)&sized = dlsym(RTLD_DEFAULT, "free_sized");
        *(void **)&aligned_sized = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    }
    if (turn % 2 && align && aligned_sized)
        aligned_sized(block, align, size);
    else if (turn % 2 && !align && sized)
        sized(block, size);
    else
        free(block);
}

static void check_block(unsigned char *block, size_t align, size_t size, unsigned turn)
{
    CHECK(block && (uintptr_t)block % align == 0);
    CHECK(malloc_usable_size(block) >= size);
    memset(block, (int)turn, size);
    check_filled(block, (unsigned char)turn, size);
    release(block, align, size, turn);
}

static void alignments(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned turn = 0; turn < REPEATS; turn++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_t size = sizes[i];
            for (size_t align = sizeof(void *); align <= 1 << 17; align *= 2) {
                void *block = NULL;
                CHECK(!posix_memalign(&block, align, size));
                check_block(block, align, size, turn);
                check_block(memalign(align, size), align, size, turn);
                size_t rounded = (size + align - 1) & ~(align - 1);
                check_block(aligned_alloc(align, rounded), align, rounded, turn);
            }
            check_block(valloc(size), page, size, turn);
            check_block(pvalloc(size), page, (size + page - 1) & ~(page - 1), turn);
            release(malloc(size), 0, size, turn);
        }
    void *block = &block;
    CHECK(posix_memalign(&block, 24, 8) && posix_memalign(&block, 4, 8) && block == &block);
}

/* ---- sizes: all that malloc_usable_size() gives may be used, and is kept ---- */

static void usable_sizes(void)
{
    CHECK(malloc_usable_size(NULL) == 0);
    for (unsigned turn = 0; turn < REPEATS * 10; turn++)
        for (unsigned i = 0; i < SIZES; i++) {
            unsigned char mark = (unsigned char)(turn + i);
            unsigned char *block = malloc(sizes[i]);
            size_t usable = malloc_usable_size(block);
            memset(block, mark, usable);
            if (turn % 2 && usable < 1 << 16)
                CHECK(realloc(block, usable) == block); /* it is that large already */
            unsigned char *grown = reallocarray(block, usable + 1, 2);
            check_filled(grown, mark, usable);
            unsigned char *shrunk = realloc(grown, usable / 2 + 1);
            check_filled(shrunk, mark, usable / 2 + 1);
            free(shrunk);
        }
}

/* What comes of realloc(block, 0) is the allocator's choice, but always the same. */
static void empty_blocks(void)
{
    enum { TURNS = 100000 };
    unsigned given = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        void *block = realloc(malloc(sizes[turn % SIZES]), 0);
        given += block != NULL;
        free(block);
        CHECK(turn == 0 || given == 0 || given == turn + 1);
    }
    printf("%u\n", given != 0);
}

static void impossible_sizes(void)
{
    volatile size_t half = SIZE_MAX / 2 + 2; /* so that the compiler does not know */
    unsigned char *block = malloc(100);
    memset(block, 7, 100);
    for (unsigned turn = 0; turn < REPEATS * 1000; turn++) {
        CHECK(!malloc(half) && !calloc(half, 2) && !calloc(1, half) && !memalign(64, half));
        CHECK(!realloc(block, half) && !reallocarray(block, half, 2));
        CHECK(!pvalloc(2 * half - 5) && !valloc(half));
        check_filled(block, 7, 100);
        free(NULL);
        void *nothing = malloc(0);
        CHECK(nothing);
        free(nothing);
    }
    free(block);
}

/* ---- pages that nobody touched, and growth without a copy ---- */

static size_t resident_bytes(const void *block, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)block + page - 1) & ~(page - 1);
    size_t pages = ((uintptr_t)block + size - start) / page, resident = 0;
    unsigned char *map =
        mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED && !mincore((void *)start, pages * page, map));
    for (size_t i = 0; i < pages; i++)
        resident += (map[i] & 1) * page;
    munmap(map, pages);
    return resident;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void large_blocks(void)
{
    enum { SIZE = 32 << 20, PAGES = SIZE / 4096 };
    CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)); /* so that a copy is thousands of faults */
    for (int turn = 0; turn < 5; turn++) {
        unsigned char *block = turn % 2 ? calloc(1, SIZE) : calloc(SIZE / 64, 64);
        CHECK(resident_bytes(block, SIZE) < SIZE / 100);
        check_filled(block, 0, SIZE / 2);
        memset(block, 3, SIZE);
        long before = faults();
        for (int i = 2; i <= 4; i++)
            block = realloc(block, (size_t)i * SIZE);
        CHECK(block && faults() - before < PAGES / 10);
        CHECK(resident_bytes(block + SIZE, 3u * SIZE) < SIZE / 10);
        check_filled(block, 3, SIZE);
        block = realloc(block, SIZE / 4);
        CHECK(faults() - before < PAGES / 10);
        check_filled(block, 3, SIZE / 4);
        free(block);
        block = malloc(SIZE);
        CHECK(resident_bytes(block, SIZE) < SIZE / 100);
        free(block);
    }
}

/* ---- mappings ---- */

static void mappings(void)
{
    size_t size = 256 << 10;
    for (unsigned turn = 1; turn < REPEATS; turn++) {
        unsigned char mark = (unsigned char)turn;
        unsigned char *map =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED && resident_bytes(map, size) == 0);
        memset(map, mark, size);
        map = mremap(map, size, 4 * size, MREMAP_MAYMOVE);
        CHECK(map != MAP_FAILED && !map[4 * size - 1]);
        check_filled(map, mark, size);
        unsigned char *room = mmap(NULL, 4 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mremap(map, 4 * size, 2 * size, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room);
        check_filled(room, mark, size);
        CHECK(mmap(room, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == room);
        check_filled(room, 0, size);
        CHECK(!munmap(room, size) && !munmap(room + size, 3 * size));
        CHECK(mremap(room, 2 * size, size, 0) == MAP_FAILED);
    }
}

/* ---- C++ ---- */

static void operators(void)
{
    void *(*new)(size_t), *(*new_array)(size_t), *(*new_aligned)(size_t, size_t);
    void (*delete)(void *), (*delete_sized)(void *, size_t), (*delete_aligned)(void *, size_t);
    CHECK(dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL));
    *(void **)&new = dlsym(RTLD_DEFAULT, "_Znwm");
    *(void **)&new_array = dlsym(RTLD_DEFAULT, "_Znam");
    *(void **)&new_aligned = dlsym(RTLD_DEFAULT, "_ZnwmSt11align_val_t");
    *(void **)&delete = dlsym(RTLD_DEFAULT, "_ZdlPv");
    *(void **)&delete_sized = dlsym(RTLD_DEFAULT, "_ZdaPvm");
    *(void **)&delete_aligned = dlsym(RTLD_DEFAULT, "_ZdlPvSt11align_val_t");
    CHECK(new &&new_array &&new_aligned &&delete &&delete_sized &&delete_aligned);
    for (unsigned turn = 0; turn < REPEATS * 10; turn++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_t size = sizes[i];
            unsigned char *blocks[] = {new (size), new_array(size), new_aligned(size, 64)};
            for (unsigned k = 0; k < 3; k++)
                memset(blocks[k], (int)k, size);
            CHECK((uintptr_t)blocks[2] % 64 == 0);
            for (unsigned k = 0; k < 3; k++)
                check_filled(blocks[k], (unsigned char)k, size);
            delete (blocks[0]);
            delete_sized(blocks[1], size);
            delete_aligned(blocks[2], 64);
        }
}

/* ---- threads ---- */

enum { BLOCKS = 20000, BLOCK_BYTES = 1000, SHORT_THREADS = 2000, SHORT_BLOCKS = 50 };

static void *free_all(void *argument)
{
    void **blocks = argument;
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

/* One thread only allocates, others only free. */
static void free_only_threads(void)
{
    static void *blocks[BLOCKS];
    enum { TURNS = 5 };
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(BLOCK_BYTES);
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, free_all, blocks) && !pthread_join(thread, NULL));
    }
    printf("%d\n", TURNS * BLOCKS * BLOCK_BYTES);
}

static void *allocate_and_end(void *argument)
{
    void **kept = argument;
    for (int i = 0; i < SHORT_BLOCKS; i++)
        kept[i] = calloc(1, BLOCK_BYTES);
    return NULL;
}

/* Each thread allocates less than most gaps between samples and ends.  Its blocks outlive it. */
static void short_threads(void)
{
    void *kept[SHORT_BLOCKS];
    for (int i = 0; i < SHORT_THREADS; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, allocate_and_end, kept) &&
              !pthread_join(thread, NULL));
        for (int k = 0; k < SHORT_BLOCKS; k++)
            free(kept[k]);
    }
    printf("%d\n", SHORT_THREADS * SHORT_BLOCKS * BLOCK_BYTES);
}

/* ---- processes made past the C library ---- */

static _Atomic bool is_over;
static _Atomic uint64_t churned_bytes;

static void *churn(void *argument)
{
    enum { HELD = 64 };
    void *held[HELD] = {0};
    (void)argument;
    for (unsigned i = 0; !is_over; i++) {
        free(held[i % HELD]);
        held[i % HELD] = malloc(200 + i % 5000);
        churned_bytes += 200 + i % 5000;
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    return NULL;
}

/* No fork handler runs in the child, and what other threads had locked stays so.  Their blocks come
 * from other arenas of libc's than the main thread's, which the child goes on using. */
static void raw_forks(void)
{
    enum { CHURNING = 3, FORKS = 300, IN_CHILD = 2000 };
    pthread_t threads[CHURNING];
    void *before[IN_CHILD];
    for (int i = 0; i < CHURNING; i++)
        CHECK(!pthread_create(&threads[i], NULL, churn, NULL));
    for (int turn = 0; turn < FORKS; turn++) {
        for (int i = 0; i < IN_CHILD; i++)
            before[i] = malloc(BLOCK_BYTES);
        pid_t pid = (pid_t)syscall(SYS_fork);
        CHECK(pid >= 0);
        if (!pid) {
            alarm(20); /* ends a child that waits for ever */
            CHECK(malloc(64 << 20));
            for (int i = 0; i < IN_CHILD; i++) {
                free(before[i]);
                memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES);
            }
            syscall(SYS_exit_group, 0);
        }
        for (int i = 0; i < IN_CHILD; i++)
            free(before[i]);
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    is_over = true;
    for (int i = 0; i < CHURNING; i++)
        CHECK(!pthread_join(threads[i], NULL));
    printf("%lu\n", churned_bytes + (uint64_t)FORKS * IN_CHILD * BLOCK_BYTES);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"alignments", alignments},       {"usable_sizes", usable_sizes},
    {"empty_blocks", empty_blocks},   {"impossible_sizes", impossible_sizes},
    {"large_blocks", large_blocks},   {"mappings", mappings},
    {"operators", operators},         {"free_only_threads", free_only_threads},
    {"short_threads", short_threads}, {"raw_forks", raw_forks},
};

int main(int argc, char **argv)
{
    bool is_followed = stand_in_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[argc - 1], cases[i].name)) {
            cases[i].run();
            puts(is_followed ? "followed" : "plain");
            return 0;
        }
    fail_at("no such case", __LINE__);
}
