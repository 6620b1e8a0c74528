/*
 * How to get from one frame to its caller, in one word, so that the cache of
 * unwind.c can store and check it without a lock.  Made by unwind_cfi.c, obeyed
 * by unwind.c.  Registers have their DWARF numbers.
 *
 * Enough for every row but 8 of 6 million in 26 libraries: a frame is found
 * from rsp, rbp or (the dynamic linker's trampoline alone) rbx, so these are
 * the registers carried from frame to frame.
 */
#ifndef OS_UNWIND_RULE_H
#define OS_UNWIND_RULE_H

#include <stdint.h>

enum unwind_rule_type {
    UNWIND_UNKNOWN, /* no rule, or one that does not fit here */
    UNWIND_REG,     /* CFA = reg + off */
    UNWIND_DEREF,   /* CFA = *(reg + off) + add: realigned frames */
    UNWIND_PLT,     /* CFA = rsp + 8, and 8 more from byte `add` of the 16-byte stub on */
    UNWIND_SIGNAL,  /* all registers lie in the ucontext at rsp */
    UNWIND_END,     /* has no caller */
};

enum unwind_saved {
    UNWIND_SAME,   /* not changed */
    UNWIND_AT_CFA, /* saved at CFA + offset */
    UNWIND_AT_RBP, /* saved at rbp + offset */
    UNWIND_LOST,
};

enum { UNWIND_RBX = 3, UNWIND_RBP = 6, UNWIND_RSP = 7, UNWIND_RA = 16 };

enum { UNWIND_RBX_LOST = 255 };

union unwind_rule {
    uint64_t word;
    struct {
        uint64_t type : 3, reg : 5;
        int64_t off : 24;
        uint64_t add : 6, rbp_saved : 2;
        int64_t rbp_off : 16;  /* in 8 bytes */
        uint64_t rbx_slot : 8; /* saved at CFA - 8 * slot; 0: not changed */
    };
};
_Static_assert(sizeof(union unwind_rule) == 8, "one word, for the cache");

#endif
