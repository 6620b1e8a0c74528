#include "os/guard.h"

#include <ucontext.h>

struct guard_entry {
    int32_t instruction, recovery; /* each relative to its own address */
};

extern const struct guard_entry __start_guard_table[] __attribute__((visibility("hidden")));
extern const struct guard_entry __stop_guard_table[] __attribute__((visibility("hidden")));

bool guard_copy(void *to, uintptr_t from, size_t length)
{
#if defined(__x86_64__)
    unsigned failed = 0;
    __asm__ volatile("1: rep movsb\n2:\n"
                     ".pushsection guard_table,\"a\"\n.long 1b-.,3f-.\n.popsection\n"
                     ".pushsection .text.guard,\"ax\"\n3: movl $1,%3\n jmp 2b\n.popsection"
                     : "+D"(to), "+S"(from), "+c"(length), "+r"(failed)
                     :
                     : "memory");
    return !failed;
#else
    unsigned bad = 0;
    for (size_t i = 0; i < length && !bad; i++)
        ((volatile uint8_t *)to)[i] = guard_u8(from + i, &bad);
    return !bad;
#endif
}

#if defined(__x86_64__)
#define CONTEXT_PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define CONTEXT_SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
#else
#define CONTEXT_PC(context) ((context)->uc_mcontext.pc)
#define CONTEXT_SP(context) ((context)->uc_mcontext.sp)
#endif

bool guard_recover(void *ucontext)
{
    ucontext_t *context = ucontext;
    uintptr_t pc = (uintptr_t)CONTEXT_PC(context);
    for (const struct guard_entry *e = __start_guard_table; e < __stop_guard_table; e++) {
        if ((uintptr_t)&e->instruction + (uintptr_t)(intptr_t)e->instruction == pc) {
            uintptr_t recovery = (uintptr_t)&e->recovery + (uintptr_t)(intptr_t)e->recovery;
            CONTEXT_PC(context) = (__typeof__(CONTEXT_PC(context)))recovery;
            return true;
        }
    }
    return false;
}

uintptr_t guard_context_pc(const void *ucontext)
{
    return (uintptr_t)CONTEXT_PC((const ucontext_t *)ucontext);
}

uintptr_t guard_context_sp(const void *ucontext)
{
    return (uintptr_t)CONTEXT_SP((const ucontext_t *)ucontext);
}
