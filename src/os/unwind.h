/*
 * The native call stack of an interrupted thread, frame by frame, by the call
 * frame information (.eh_frame) every compiled module carries: exact, without
 * frame pointers.  The rule of a program counter is worked out when it is met
 * and kept in a lock-free cache; nothing is prepared when modules are loaded.
 *
 * unwind_begin() and unwind_step() are for the signal handler: no lock, no
 * allocation, errno untouched, some 500 bytes of stack, every read of foreign
 * memory guarded (so guard_recover() must be reachable from the SIGSEGV and
 * SIGBUS handlers, see guard.h).  A wrong stack pointer or damaged frame
 * information ends the walk, nothing worse.
 *
 *     struct unwind_cursor cursor;
 *     unwind_begin(&cursor, ucontext);
 *     do
 *         take(cursor.pc, cursor.sp);
 *     while (--room && unwind_step(&cursor));
 *
 * The caller bounds the depth: a damaged stack can be a ring.  Code without
 * call frame information (hand-written assembler, JIT) ends the walk, with
 * `root` false.
 *
 * x86-64 only.  On other processors the cursor gives the leaf and
 * unwind_step() is false.
 */
#ifndef OS_UNWIND_H
#define OS_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

struct unwind_cursor {
    uintptr_t pc;        /* leaf: the interrupted instruction; callers: the return address */
    uintptr_t sp;        /* the stack pointer in this frame: the frame is [sp, next frame's sp) */
    uintptr_t rbp, rbx;  /* as they are in this frame; 0 where unknown */
    uintptr_t registers; /* interrupted frames: where the kernel saved all of them; else 0 */
    bool root;           /* after unwind_step() said false: this frame is the thread's first */
};

/* Once, before any handler can run; not from a handler. */
void unwind_init(void);

/* The cursor refers to `ucontext`: use it within that handler only. */
void unwind_begin(struct unwind_cursor *cursor, const void *ucontext);

/* The same of a thread that is blocked in a system call: other registers are unknown, which is
 * enough to leave libc. */
void unwind_begin_at(struct unwind_cursor *cursor, uintptr_t pc, uintptr_t sp);

/* To the caller.  False: the cursor stays where it is, there is no more to know. */
bool unwind_step(struct unwind_cursor *cursor);

/* Modules were unloaded: call after each dlclose(), from any thread; what is cached is void. */
void unwind_forget(void);

#endif
