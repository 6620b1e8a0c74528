/*
 * Anonymous memory that code of the program maps by itself: mmap(), munmap() and
 * mremap(), interposed.  libc's allocator and thread stacks do not come through
 * here, so nothing is counted twice; mappings of CPython's object allocator and
 * of another malloc in the process are left out for that reason.  Address space
 * that is only reserved is not memory yet and does not count.
 */
#undef _FILE_OFFSET_BITS /* it would make mmap() another name of mmap64(): both are defined here   \
                          */
#include "agent/hooks/mappings.h"
#include "agent/core/agent.h"
#include "agent/hooks/heap.h"
#include "agent/memory/blocks.h"
#include "agent/memory/memory.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Until the constructor has found whom we stand in front of, the kernel is asked directly. */
static void *ask_mmap(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static int ask_munmap(void *address, size_t size)
{
    return (int)syscall(SYS_munmap, address, size);
}

static void *ask_mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *wanted = va_arg(rest, void *);
    va_end(rest);
    return (void *)syscall(SYS_mremap, old, old_size, new_size, flags, wanted);
}

static void *(*next_mmap)(void *, size_t, int, int, int, off64_t) = ask_mmap;
static int (*next_munmap)(void *, size_t) = ask_munmap;
static void *(*next_mremap)(void *, size_t, size_t, int, ...) = ask_mremap;

void mappings_init(void)
{
    void *found[] = {dlsym(RTLD_NEXT, "mmap64"), dlsym(RTLD_NEXT, "munmap"),
                     dlsym(RTLD_NEXT, "mremap")};
    if (found[0])
        *(void **)&next_mmap = found[0];
    if (found[1])
        *(void **)&next_munmap = found[1];
    if (found[2])
        *(void **)&next_mremap = found[2];
}

static void record(const void *block, size_t grown, size_t size, const void *caller)
{
    struct memory_sample sample = {
        .kind = WIRE_SITE_MAPPED,
        .caller = caller,
        .bytes = grown,
        .from = size - grown,
        .count = 1,
        .exact = true,
    };
    memory_record(block, &sample);
}

/* Is this the program's own memory, which nobody else counts? */
static bool is_followed(size_t size, int protection, int flags, const void *caller)
{
    return size >= WIRE_LARGE_LEAST && (flags & MAP_ANONYMOUS) && !(flags & MAP_NORESERVE) &&
           (protection & PROT_WRITE) && memory_is_ready() &&
           !py_range_has(&agent.regions.interpreter, (uintptr_t)caller) &&
           !heap_is_allocator(caller);
}

/* A mapping that is given back piece by piece counts as gone with its first page. */
static void forget_at(void *address)
{
    if (blocks_has(address))
        memory_forget_mapping(address);
}

static void *map_followed(void *address, size_t size, int protection, int flags, int fd,
                          off64_t offset, const void *caller)
{
    void *block = next_mmap(address, size, protection, flags, fd, offset);
    if (block != MAP_FAILED)
        record(block, size, size, caller);
    return block;
}

/* All others are passed on as if we were not there, by a jump: whoever is next sees the caller. */
AGENT_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
                          off64_t offset)
{
    if (flags & MAP_FIXED) /* takes the place of what was there */
        forget_at(address);
    if (is_followed(size, protection, flags, __builtin_return_address(0)))
        return map_followed(address, size, protection, flags, fd, offset,
                            __builtin_return_address(0));
    return next_mmap(address, size, protection, flags, fd, offset);
}

AGENT_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED) /* takes the place of what was there */
        forget_at(address);
    if (is_followed(size, protection, flags, __builtin_return_address(0)))
        return map_followed(address, size, protection, flags, fd, offset,
                            __builtin_return_address(0));
    return next_mmap(address, size, protection, flags, fd, offset);
}

AGENT_EXPORT int munmap(void *address, size_t size)
{
    forget_at(address);
    return next_munmap(address, size);
}

AGENT_EXPORT void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
    void *wanted = NULL;
    if (flags & MREMAP_FIXED) {
        va_list rest;
        va_start(rest, flags);
        wanted = va_arg(rest, void *);
        va_end(rest);
    }
    uint32_t records = 0;
    if (blocks_has(old) && !memory_detach(old, &records))
        memory_forget_mapping(old); /* it is no longer known where it goes */
    void *block = next_mremap(old, old_size, new_size, flags, wanted);
    if (!records)
        return block;
    bool moved = block != MAP_FAILED;
    memory_attach(moved ? block : old, records, moved ? new_size : old_size);
    if (moved && new_size > old_size && memory_is_ready())
        record(block, new_size - old_size, new_size, __builtin_return_address(0));
    return block;
}
