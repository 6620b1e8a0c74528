/*
 * Loads that may fault.  The memory of a running interpreter is read without
 * its cooperation, so any pointer may be stale; a guarded load of an unmapped
 * address gives 0 and sets *bad instead of killing the program.
 *
 * How: each load is one instruction whose address stands, with the address of
 * its recovery code, in the section `guard_table`.  guard_recover(), called
 * first by our SIGSEGV/SIGBUS handler (agent/hooks/signals.c), looks the interrupted
 * instruction up there and moves the thread to the recovery code.  A load that
 * does not fault costs nothing extra.
 *
 * Callable from a signal handler and from any thread, provided SIGSEGV and
 * SIGBUS are not blocked in it.  The processor-specific part is all here and in
 * guard.c.
 */
#ifndef OS_GUARD_H
#define OS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define GUARD_RECOVERY "3: xorl %k0,%k0\n movl $1,%1\n jmp 2b\n"
#define GUARD_LOAD_64  "movq (%2),%0"
#define GUARD_LOAD_32  "movl (%2),%k0"
#define GUARD_LOAD_8   "movzbl (%2),%k0"
#elif defined(__aarch64__)
#define GUARD_RECOVERY "3: mov %0,#0\n mov %w1,#1\n b 2b\n"
#define GUARD_LOAD_64  "ldr %0,[%2]"
#define GUARD_LOAD_32  "ldr %w0,[%2]"
#define GUARD_LOAD_8   "ldrb %w0,[%2]"
#else
#error "guarded loads are written for x86-64 and aarch64: add this processor here and in guard.c"
#endif

#define GUARD_LOAD(name, type, instruction)                                                        \
    static inline type name(uintptr_t address, unsigned *bad)                                      \
    {                                                                                              \
        uint64_t value;                                                                            \
        unsigned failed = 0;                                                                       \
        __asm__ volatile("1: " instruction "\n2:\n"                                                \
                         ".pushsection guard_table,\"a\"\n.long 1b-.,3f-.\n.popsection\n"          \
                         ".pushsection .text.guard,\"ax\"\n" GUARD_RECOVERY ".popsection"          \
                         : "=&r"(value), "+r"(failed)                                              \
                         : "r"(address)                                                            \
                         : "memory");                                                              \
        *bad |= failed;                                                                            \
        return (type)value;                                                                        \
    }
GUARD_LOAD(guard_u64, uint64_t, GUARD_LOAD_64)
GUARD_LOAD(guard_u32, uint32_t, GUARD_LOAD_32)
GUARD_LOAD(guard_u8, uint8_t, GUARD_LOAD_8)

static inline uintptr_t guard_ptr(uintptr_t address, unsigned *bad)
{
    return (uintptr_t)guard_u64(address, bad);
}

/* False when any byte could not be read; what was copied before stays in `to`. */
bool guard_copy(void *to, uintptr_t from, size_t length);

/* The handler's part: true when the fault was ours and the context now points to its recovery. */
bool guard_recover(void *ucontext);

/* Where the interrupted thread was. */
uintptr_t guard_context_pc(const void *ucontext);
uintptr_t guard_context_sp(const void *ucontext);

#endif
