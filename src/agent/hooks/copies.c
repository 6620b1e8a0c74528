/*
 * Copy volume: memcpy() and memmove(), interposed.  Bytes are counted down as
 * for allocations (memory.h); large copies are recorded exactly.
 *
 * These are called before anything of ours is set up, so until the constructor
 * has found libc's own they are done by an instruction; the agent's own copies
 * come through here too.
 */
#include "agent/hooks/copies.h"
#include "agent/core/agent.h"
#include "agent/hooks/heap.h"
#include "agent/memory/gaps.h"

#include <dlfcn.h>
#include <string.h>

static void *plain_move(void *to, const void *from, size_t size)
{
    char *out = to;
    const char *in = from;
    if (out <= in || out >= in + size) {
#if defined(__x86_64__)
        __asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(size) : : "memory");
#else
        while (size--)
            *(volatile char *)out++ = *in++;
#endif
    } else {
        while (size--)
            ((volatile char *)out)[size] = in[size];
    }
    return to;
}

static void *(*next_memcpy)(void *, const void *, size_t) = plain_move;
static void *(*next_memmove)(void *, const void *, size_t) = plain_move;

void copies_init(void)
{
    void *copy = dlsym(RTLD_NEXT, "memcpy"), *move = dlsym(RTLD_NEXT, "memmove");
    if (copy)
        *(void **)&next_memcpy = copy;
    if (move)
        *(void **)&next_memmove = move;
}

/* A block grows: objects.c and wrapped.c ask how large it was, and know where to or where from. */
static void tell_growth(const void *to, const void *from, size_t size)
{
    struct memory_promotion *promotion = &memory_self.promotion;
    if (promotion->source) {
        /* Debug hooks have a head in front of it, and an object's own head may be copied apart. */
        intptr_t offset = (intptr_t)from - (intptr_t)promotion->source;
        bool is_it = offset > -MEMORY_HEAD_MAX && offset < MEMORY_HEAD_MAX;
        if (is_it && (intptr_t)size + offset > (intptr_t)promotion->copied_bytes)
            promotion->copied_bytes = size + (size_t)offset;
    } else if (to == promotion->block && !promotion->copied_bytes) {
        promotion->copied_bytes = size;
    }
}

static void record(const void *to, const void *from, size_t size, const void *caller)
{
    struct memory_sample sample = {.kind = WIRE_SITE_COPY, .caller = caller};
    if (memory_self.promotion.is_growth) {
        tell_growth(to, from, size);
    } else if (heap_is_allocator(caller)) {
        /* It may hold locks that a forking thread waits for, which has the recorder's. */
        if (size < WIRE_LARGE_LEAST)
            memory_self.copies.left_bytes += (int64_t)size;
    } else if (memory_is_ready()) {
        if (gaps_choose(&memory_self.copies, size, size, &sample))
            memory_record_copy(&sample);
    } else if (memory_self.copies.left_bytes < 0) {
        gaps_postpone(&memory_self.copies);
    }
}

/*
 * Most copies are of a few bytes, and for these the way to libc's is longer than
 * the work.  All is read before anything is written, so they may overlap.
 */
enum { FEW_BYTES = 32 };

static inline void *copy_few(char *to, const char *from, size_t size)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
#define ENDS(type)                                                                                 \
    do {                                                                                           \
        type first, last;                                                                          \
        __builtin_memcpy(&first, from, sizeof first);                                              \
        __builtin_memcpy(&last, from + size - sizeof last, sizeof last);                           \
        __builtin_memcpy(to, &first, sizeof first);                                                \
        __builtin_memcpy(to + size - sizeof last, &last, sizeof last);                             \
    } while (0)
    if (size >= sizeof(pair)) {
        ENDS(pair);
    } else if (size >= sizeof(uint64_t)) {
        ENDS(uint64_t);
    } else if (size >= sizeof(uint32_t)) {
        ENDS(uint32_t);
    } else if (size >= sizeof(uint16_t)) {
        ENDS(uint16_t);
    } else if (size) {
        *to = *from;
    }
#undef ENDS
    return to;
}

/* In tail position, so that the functions below need no stack frame of their own. */
static __attribute__((noinline, cold)) void *sampled_copy(void *to, const void *from, size_t size,
                                                          const void *caller)
{
    record(to, from, size, caller);
    return next_memcpy(to, from, size);
}

static __attribute__((noinline, cold)) void *sampled_move(void *to, const void *from, size_t size,
                                                          const void *caller)
{
    record(to, from, size, caller);
    return next_memmove(to, from, size);
}

static inline bool is_due(size_t size)
{
    return __builtin_expect(size >= WIRE_LARGE_LEAST, 0) ||
           __builtin_expect((memory_self.copies.left_bytes -= (int64_t)size) < 0, 0);
}

AGENT_EXPORT void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    if (is_due(size))
        return sampled_copy(to, from, size, __builtin_return_address(0));
    return size <= FEW_BYTES ? copy_few(to, from, size) : next_memcpy(to, from, size);
}

AGENT_EXPORT void *memmove(void *to, const void *from, size_t size)
{
    if (is_due(size))
        return sampled_move(to, from, size, __builtin_return_address(0));
    return size <= FEW_BYTES ? copy_few(to, from, size) : next_memmove(to, from, size);
}

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);
void *__memmove_chk(void *to, const void *from, size_t size, size_t room);
void __chk_fail(void) __attribute__((noreturn));

AGENT_EXPORT void *__memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    if (__builtin_expect(size > room, 0))
        __chk_fail();
    if (is_due(size))
        return sampled_copy(to, from, size, __builtin_return_address(0));
    return size <= FEW_BYTES ? copy_few(to, from, size) : next_memcpy(to, from, size);
}

AGENT_EXPORT void *__memmove_chk(void *to, const void *from, size_t size, size_t room)
{
    if (__builtin_expect(size > room, 0))
        __chk_fail();
    if (is_due(size))
        return sampled_move(to, from, size, __builtin_return_address(0));
    return size <= FEW_BYTES ? copy_few(to, from, size) : next_memmove(to, from, size);
}
