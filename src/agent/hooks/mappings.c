/*
 * Anonymous memory that code of the program maps by itself: mmap() and what
 * changes a mapping, interposed.  libc's allocator and thread stacks do not come
 * through here, so nothing is counted twice; mappings of CPython's object allocator
 * and of another malloc in the process are left out for that reason.  What of a
 * mapping counts, and for whom, is resident.c's.
 */
#undef _FILE_OFFSET_BITS /* it would make mmap() another name of mmap64(): both are defined here   \
                          */
#include "agent/hooks/mappings.h"
#include "agent/core/agent.h"
#include "agent/hooks/heap.h"
#include "agent/memory/memory.h"
#include "agent/memory/resident.h"

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

static int ask_mprotect(void *address, size_t size, int protection)
{
    return (int)syscall(SYS_mprotect, address, size, protection);
}

static int ask_madvise(void *address, size_t size, int advice)
{
    return (int)syscall(SYS_madvise, address, size, advice);
}

static void *(*next_mmap)(void *, size_t, int, int, int, off64_t) = ask_mmap;
static int (*next_munmap)(void *, size_t) = ask_munmap;
static void *(*next_mremap)(void *, size_t, size_t, int, ...) = ask_mremap;
static int (*next_mprotect)(void *, size_t, int) = ask_mprotect;
static int (*next_madvise)(void *, size_t, int) = ask_madvise;

void mappings_init(void)
{
    void *found[] = {dlsym(RTLD_NEXT, "mmap64"), dlsym(RTLD_NEXT, "munmap"),
                     dlsym(RTLD_NEXT, "mremap"), dlsym(RTLD_NEXT, "mprotect"),
                     dlsym(RTLD_NEXT, "madvise")};
    if (found[0])
        *(void **)&next_mmap = found[0];
    if (found[1])
        *(void **)&next_munmap = found[1];
    if (found[2])
        *(void **)&next_mremap = found[2];
    if (found[3])
        *(void **)&next_mprotect = found[3];
    if (found[4])
        *(void **)&next_madvise = found[4];
}

/* Is this the program's own memory, which nobody else counts? */
static bool is_followed(size_t size, int flags, const void *caller)
{
    return size >= WIRE_LARGE_LEAST && (flags & MAP_ANONYMOUS) && memory_is_ready() &&
           !py_range_has(&agent.regions.interpreter, (uintptr_t)caller) &&
           !heap_is_allocator(caller);
}

static void *map_followed(void *address, size_t size, int protection, int flags, int fd,
                          off64_t offset, const void *caller)
{
    void *block = next_mmap(address, size, protection, flags, fd, offset);
    bool is_open = protection & PROT_WRITE;
    if (block != MAP_FAILED)
        resident_map(block, size, is_open, !is_open || flags & MAP_NORESERVE, caller);
    return block;
}

/* All others are passed on as if we were not there, by a jump: whoever is next sees the caller. */
AGENT_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
                          off64_t offset)
{
    if (flags & MAP_FIXED) /* takes the place of what was there */
        resident_unmap(address, size);
    if (is_followed(size, flags, __builtin_return_address(0)))
        return map_followed(address, size, protection, flags, fd, offset,
                            __builtin_return_address(0));
    return next_mmap(address, size, protection, flags, fd, offset);
}

AGENT_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED) /* takes the place of what was there */
        resident_unmap(address, size);
    if (is_followed(size, flags, __builtin_return_address(0)))
        return map_followed(address, size, protection, flags, fd, offset,
                            __builtin_return_address(0));
    return next_mmap(address, size, protection, flags, fd, offset);
}

AGENT_EXPORT int munmap(void *address, size_t size)
{
    resident_unmap(address, size);
    return next_munmap(address, size);
}

AGENT_EXPORT int mprotect(void *address, size_t size, int protection)
{
    int result = next_mprotect(address, size, protection);
    if (!result && protection & PROT_WRITE)
        resident_open(address, size);
    return result;
}

/* Pages that are only free to be taken (MADV_FREE) are there until the system wants them. */
static bool gives_back(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
}

AGENT_EXPORT int madvise(void *address, size_t size, int advice)
{
    if (gives_back(advice))
        resident_before_discard(address, size);
    int result = next_madvise(address, size, advice);
    if (!result && gives_back(advice))
        resident_discard(address, size);
    return result;
}

AGENT_EXPORT void *mremap(void *old, size_t old_size, size_t new_size, int flags, ...)
{
    void *wanted = NULL;
    if (flags & MREMAP_FIXED) {
        va_list rest;
        va_start(rest, flags);
        wanted = va_arg(rest, void *);
        va_end(rest);
        resident_unmap(wanted, new_size);
    }
    uintptr_t departed = resident_depart(old, old_size);
    void *block = next_mremap(old, old_size, new_size, flags, wanted);
    bool moved = block != MAP_FAILED;
    if (departed)
        resident_arrive(departed, old_size, moved ? block : old, moved ? new_size : old_size,
                        __builtin_return_address(0));
    return block;
}
