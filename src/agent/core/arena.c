#include "agent/core/arena.h"

#include "agent/core/check.h"
#include "os/os.h"
#include "wire/control.h"
#include "wire/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A section's place has room for all it may hold (about 18 MB, 11 more with memory), or for a part
 * of that; first: what is backed at once. */
static const struct section_plan {
    uint32_t first;
    bool memory;
} plans[WIRE_SECTIONS] = {
    [WIRE_BLOB] = {128 << 10, false}, [WIRE_CODE] = {512, false}, [WIRE_NODE] = {8192, false},
    [WIRE_CELL] = {1024, false},      [WIRE_LOG] = {2048, false}, [WIRE_THREAD] = {128, false},
    [WIRE_AWAIT] = {128, false},      [WIRE_PLACE] = {64, false}, [WIRE_NAME] = {128, false},
    [WIRE_CROWD] = {128, false},      [WIRE_MODULE] = {64, true}, [WIRE_SITE] = {1024, true},
    [WIRE_BLOCK] = {8192, true},      [WIRE_FOOT] = {8192, true},
};

enum { PAGE_BYTES = 4096, NAME_TRIES = 64 };

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static char *append(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

static char *append_number(char *at, unsigned value)
{
    char digits[12];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

/* PID-N.arena with the first N that is free: the same pid may exec several Pythons. */
static int create_file(struct arena *arena, const char *directory)
{
    if (strlen(directory) + 48 > sizeof arena->path)
        return -1;
    for (unsigned n = 0; n < NAME_TRIES; n++) {
        char *at = append(append(arena->path, directory), "/");
        at = append(append_number(at, (unsigned)getpid()), "-");
        *append(append_number(at, n), WIRE_ARENA_SUFFIX) = '\0';
        int fd = open(arena->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

bool arena_create(struct arena *arena, const char *directory, bool with_memory, unsigned part)
{
    uint64_t offsets[WIRE_SECTIONS], total = WIRE_HEADER_BYTES;
    int sections = 0;
    for (int i = 0; i < WIRE_SECTIONS && (with_memory || !plans[i].memory); i++) {
        offsets[i] = total;
        total += page_up((uint64_t)wire_limits[i].records_max / part * wire_limits[i].record_bytes);
        sections++;
    }
    /* Beyond RLIMIT_FSIZE the kernel would send SIGXFSZ: rather do without. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < total)
        return false;
    int fd = create_file(arena, directory);
    if (fd < 0)
        return false;
    bool ok = !ftruncate(fd, (off_t)total) && !posix_fallocate(fd, 0, WIRE_HEADER_BYTES);
    for (int i = 0; i < sections && ok; i++)
        ok = !posix_fallocate(fd, (off_t)offsets[i],
                              (off_t)plans[i].first * wire_limits[i].record_bytes);
    void *memory = MAP_FAILED;
    if (ok)
        memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) {
        unlink(arena->path);
        return false;
    }
    struct wire_header *header = memory;
    header->version = WIRE_ARENA_VERSION;
    header->header_bytes = WIRE_HEADER_BYTES;
    for (int i = 0; i < sections; i++)
        header->sections[i] = (struct wire_section){
            .offset = offsets[i],
            .record_bytes = wire_limits[i].record_bytes,
            .capacity = wire_limits[i].records_max / part,
            .committed = plans[i].first,
            .used = 1, /* 0 means "none" */
        };
    header->log_stride = header->memory.foot_stride = 1;
    atomic_store(&arena->is_hungry, 0);
    arena->header = header;
    arena->mapped_bytes = total;
    return true;
}

void arena_unmap(struct arena *arena)
{
    if (arena->header)
        munmap(arena->header, arena->mapped_bytes);
    arena->header = NULL;
}

int arena_open_again(const struct arena *arena)
{
    return open(arena->path, O_RDWR | O_CLOEXEC);
}

static bool wants_more(const struct wire_section *s)
{
    uint32_t committed = atomic_load_explicit(&s->committed, memory_order_relaxed);
    return committed < s->capacity &&
           atomic_load_explicit(&s->used, memory_order_relaxed) >= committed / 2;
}

bool arena_wants_more(const struct arena *arena)
{
    for (int i = 0; i < WIRE_SECTIONS; i++)
        if (wants_more(&arena->header->sections[i]))
            return true;
    return false;
}

/* To twice its size. */
static bool grow(struct wire_section *s, int fd)
{
    uint32_t committed = atomic_load(&s->committed);
    uint32_t more = committed <= s->capacity / 2 ? committed : s->capacity - committed;
    uint64_t from = s->offset + (uint64_t)committed * s->record_bytes;
    if (fd < 0 || posix_fallocate(fd, (off_t)from, (off_t)more * s->record_bytes))
        return false;
    CHECK_CHEAP(more <= s->capacity - committed);
    atomic_store(&s->committed, committed + more);
    return true;
}

void arena_grow(struct arena *arena, int fd)
{
    atomic_store(&arena->is_hungry, 0);
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        struct wire_section *s = &arena->header->sections[i];
        while (wants_more(s)) {
            if (!grow(s, fd)) {
                arena_lost(arena, WIRE_LOST_GROW);
                break;
            }
        }
    }
}

uint32_t arena_append(struct arena *arena, enum wire_section_id section, uint32_t count)
{
    CHECK_CHEAP(section < WIRE_SECTIONS && count);
    struct wire_section *s = &arena->header->sections[section];
    uint32_t committed = atomic_load_explicit(&s->committed, memory_order_acquire);
    CHECK_CHEAP(committed <= s->capacity);
    uint32_t id = atomic_load_explicit(&s->used, memory_order_relaxed);
    do {
        if (id > committed || committed - id < count) {
            atomic_fetch_add(&s->dropped, 1);
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&s->used, &id, id + count));
    /* Whoever takes the half wakes up the sampler: what a burst needs, a pass may be too late for.
     */
    if (id < committed / 2 && id + count >= committed / 2 && committed < s->capacity) {
        atomic_store(&arena->is_hungry, 1);
        os_wake(&arena->is_hungry);
    }
    return id;
}

void *arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id)
{
    const struct wire_section *s = &arena->header->sections[section];
    CHECK_CHEAP(id && id < atomic_load_explicit(&s->used, memory_order_relaxed));
    CHECK_DEBUG(s->offset + ((uint64_t)id + 1) * s->record_bytes <= arena->mapped_bytes);
    return (char *)arena->header + s->offset + (uint64_t)id * s->record_bytes;
}

void arena_lost(struct arena *arena, enum wire_loss loss)
{
    atomic_fetch_add_explicit(&arena->header->lost[loss], 1, memory_order_relaxed);
}
