/* The walk and its cache of rules: see unwind.h. */
#include "os/unwind.h"

#include "os/guard.h"
#include "os/module.h"
#include "os/os.h"
#include "os/unwind_cfi.h"

#include <stdatomic.h>
#include <stddef.h>
#include <ucontext.h>

#if defined(__x86_64__)

/* A larger frame, or an instruction in the first page or the kernel's half, is nonsense. */
enum { CACHE_BITS = 13, ADDRESS_BITS = 47, CODE_LOWEST = 4096 };
#define FRAME_BYTES_MAX ((uintptr_t)64 << 20)
#define HASH_FACTOR     0x9E3779B97F4A7C15u

/*
 * Written by any thread at any time without a lock.  `check` is the key mixed
 * with the rule, so that halves of two writes do not pass for an entry.
 */
struct cached {
    _Atomic uint64_t check, rule;
};

static struct cached *cache;

/* In the bits of a key above the address; never 0, so that an empty entry is no key's. */
static _Atomic uint64_t generation = (uint64_t)1 << ADDRESS_BITS;

/* DWARF's numbers to the kernel's order in the ucontext. */
static const uint8_t context_index[16] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* Apart from rule_at(), whose common way must not pay for the stack of this one. */
static __attribute__((noinline)) union unwind_rule rule_compute(uintptr_t pc, uint64_t key,
                                                                struct cached *entry)
{
    union unwind_rule rule = {.word = 0};
    struct module module = {0};
    uintptr_t table = module_find(pc, &module) ? module.unwind_table : 0;
    /* Not kept: a module may be loaded there later, and nobody would tell. */
    if (!table || !unwind_cfi_rule(table, pc, &rule))
        return rule;
    if (entry) {
        atomic_store_explicit(&entry->rule, rule.word, memory_order_relaxed);
        atomic_store_explicit(&entry->check, key ^ rule.word * HASH_FACTOR, memory_order_relaxed);
    }
    return rule;
}

static union unwind_rule rule_at(uintptr_t pc)
{
    union unwind_rule rule = {.word = 0};
    struct cached *entry = NULL;
    if (pc >> ADDRESS_BITS)
        return rule;
    uint64_t key = pc | atomic_load_explicit(&generation, memory_order_relaxed);
    if (cache) {
        entry = &cache[pc * HASH_FACTOR >> (64 - CACHE_BITS)];
        uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
        rule.word = atomic_load_explicit(&entry->rule, memory_order_relaxed);
        if ((check ^ rule.word * HASH_FACTOR) == key)
            return rule;
    }
    return rule_compute(pc, key, entry);
}

static uintptr_t register_of(const struct unwind_cursor *cursor, unsigned reg, unsigned *bad)
{
    switch (reg) {
    case UNWIND_RSP:
        return cursor->sp;
    case UNWIND_RBP:
        return cursor->rbp;
    case UNWIND_RBX:
        return cursor->rbx;
    default: /* known where the thread was interrupted, nowhere else */
        if (reg >= 16 || !cursor->registers) {
            *bad = 1;
            return 0;
        }
        return guard_ptr(cursor->registers + sizeof(greg_t) * context_index[reg], bad);
    }
}

/* From the kernel's signal trampoline to what the signal interrupted, maybe on another stack. */
static bool step_signal(struct unwind_cursor *cursor)
{
    unsigned bad = 0;
    struct unwind_cursor to = {.registers = cursor->sp + offsetof(ucontext_t, uc_mcontext.gregs)};
    to.pc = guard_ptr(to.registers + sizeof(greg_t) * REG_RIP, &bad);
    to.sp = guard_ptr(to.registers + sizeof(greg_t) * REG_RSP, &bad);
    to.rbp = guard_ptr(to.registers + sizeof(greg_t) * REG_RBP, &bad);
    to.rbx = guard_ptr(to.registers + sizeof(greg_t) * REG_RBX, &bad);
    if (bad || !to.pc)
        return false;
    *cursor = to;
    return true;
}

static uintptr_t frame_address(const struct unwind_cursor *cursor, union unwind_rule rule,
                               unsigned *bad)
{
    uintptr_t base;
    switch (rule.type) {
    case UNWIND_REG:
        return register_of(cursor, rule.reg, bad) + (uintptr_t)(intptr_t)rule.off;
    case UNWIND_DEREF:
        base = register_of(cursor, rule.reg, bad) + (uintptr_t)(intptr_t)rule.off;
        return guard_ptr(base, bad) + rule.add;
    case UNWIND_PLT:
        return cursor->sp + ((cursor->pc & 15) >= rule.add ? 16 : 8);
    default:
        *bad = 1;
        return 0;
    }
}

bool unwind_step(struct unwind_cursor *cursor)
{
    /* A return address may be past the end of a function that calls one that never returns. */
    union unwind_rule rule = rule_at(cursor->registers ? cursor->pc : cursor->pc - 1);
    if (rule.type == UNWIND_SIGNAL)
        return step_signal(cursor);
    if (rule.type == UNWIND_END) {
        cursor->root = true;
        return false;
    }
    unsigned bad = 0;
    uintptr_t cfa = frame_address(cursor, rule, &bad);
    if (bad || cfa <= cursor->sp || cfa - cursor->sp > FRAME_BYTES_MAX || cfa & 7)
        return false;
    uintptr_t pc = guard_ptr(cfa - 8, &bad);
    /*
     * "Saved relative to itself" is what gcc says up to the end of a function
     * that realigns its stack, although the last instructions run with the
     * caller's rbp already: then it is outside the frame, and right as it is.
     */
    uintptr_t rbp = cursor->rbp, rbx = cursor->rbx;
    intptr_t rbp_off = (intptr_t)rule.rbp_off * 8;
    if (rule.rbp_saved == UNWIND_AT_CFA)
        rbp = guard_ptr(cfa + (uintptr_t)rbp_off, &bad);
    else if (rule.rbp_saved == UNWIND_AT_RBP && rbp - cursor->sp < cfa - cursor->sp)
        rbp = guard_ptr(rbp + (uintptr_t)rbp_off, &bad);
    else if (rule.rbp_saved == UNWIND_LOST)
        rbp = 0;
    if (rule.rbx_slot == UNWIND_RBX_LOST)
        rbx = 0;
    else if (rule.rbx_slot)
        rbx = guard_ptr(cfa - 8 * rule.rbx_slot, &bad);
    if (bad || pc >> ADDRESS_BITS)
        return false;
    if (pc < CODE_LOWEST) {
        cursor->root = !pc;
        return false;
    }
    *cursor = (struct unwind_cursor){.pc = pc, .sp = cfa, .rbp = rbp, .rbx = rbx};
    return true;
}

void unwind_begin(struct unwind_cursor *cursor, const void *ucontext)
{
    const greg_t *saved = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
    *cursor = (struct unwind_cursor){
        .pc = (uintptr_t)saved[REG_RIP],
        .sp = (uintptr_t)saved[REG_RSP],
        .rbp = (uintptr_t)saved[REG_RBP],
        .rbx = (uintptr_t)saved[REG_RBX],
        .registers = (uintptr_t)saved,
    };
}

void unwind_begin_at(struct unwind_cursor *cursor, uintptr_t pc, uintptr_t sp)
{
    *cursor = (struct unwind_cursor){.pc = pc, .sp = sp};
}

void unwind_init(void)
{
    module_init();
    cache = os_reserve(sizeof(struct cached) << CACHE_BITS); /* none: every rule is worked out */
}

void unwind_forget(void)
{
    const uint64_t one = (uint64_t)1 << ADDRESS_BITS;
    uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed), next;
    do
        next = now + one == 0 ? one : now + one;
    while (!atomic_compare_exchange_weak_explicit(&generation, &now, next, memory_order_relaxed,
                                                  memory_order_relaxed));
}

#else

void unwind_init(void)
{
}

void unwind_begin(struct unwind_cursor *cursor, const void *ucontext)
{
    *cursor = (struct unwind_cursor){
        .pc = guard_context_pc(ucontext),
        .sp = guard_context_sp(ucontext),
    };
}

void unwind_begin_at(struct unwind_cursor *cursor, uintptr_t pc, uintptr_t sp)
{
    *cursor = (struct unwind_cursor){.pc = pc, .sp = sp};
}

bool unwind_step(struct unwind_cursor *cursor)
{
    return false;
}

void unwind_forget(void)
{
}

#endif
