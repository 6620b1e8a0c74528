/*
 * Where another thread is that does not run: its system call and its Python
 * frames.  Read without stopping it, so what was read is true only if it did not run
 * meanwhile: look_held().  By the sampler (pass.c), and for an allocation by a thread that works
 * for the other one (owner.c).
 */
#ifndef AGENT_WAITS_LOOK_H
#define AGENT_WAITS_LOOK_H

#include "agent/core/threads.h"
#include "os/os.h"

enum look_finding {
    LOOK_BLOCKED,
    LOOK_RUNNABLE, /* on a processor, or ready for one */
    LOOK_NATIVE,   /* a thread without Python code, or whose stacks cannot be read */
};

struct look {
    uintptr_t tstate;
    bool knows_wait; /* else the system call cannot be read */
    struct os_wait wait;
    uint32_t node; /* its stack; 0: it has no frames, or they cannot be read now */
    uint8_t leaf_opcode;
};

/* What it does, without its stack.  `fd` is kept open for the next time if `keep`. */
enum look_finding look_at(const struct thread *thread, int *fd, bool keep, struct look *look);

/* And its stack, unless it is LOOK_NATIVE.  `frames` has room for PY_FRAMES_MAX. */
void look_stack(struct look *look, struct py_frame *frames);

/* Has it not run since its CPU clock said that? */
bool look_held(const struct thread *thread, uint64_t cpu_ns);

#endif
