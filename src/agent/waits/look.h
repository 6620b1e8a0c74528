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

struct look {
    uintptr_t tstate;
    uint32_t node;       /* its stack; 0: it has no frames, or they cannot be read now */
    uint32_t frames;     /* how many it has */
    uint8_t leaf_opcode; /* what its innermost one is at */
    struct os_wait wait; /* its system call, */
    bool knows_wait;     /* unless that cannot be read */
};

/* False: a thread without Python code, or whose stacks cannot be read. */
bool look_begin(const struct thread *thread, struct look *look);

/* `frames` has room for PY_FRAMES_MAX. */
void look_stack(struct look *look, struct py_frame *frames);

/* `fd` is kept open for the next time if `keep`.  False: it is on a processor, or ready for one. */
bool look_wait(const struct thread *thread, int *fd, bool keep, struct look *look);

/* Has it not run since its CPU clock said that? */
bool look_held(const struct thread *thread, uint64_t cpu_ns);

#endif
