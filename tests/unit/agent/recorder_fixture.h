/*
 * The real recorder over an arena of its own, and what it asks of the hooks, the
 * threads, the interpreter and the loader: a process without Python code, with
 * FIXTURE_MODULES libraries.  Include it once, after <cmocka.h>; `module_find` is to be wrapped.
 */
#ifndef TESTS_RECORDER_FIXTURE_H
#define TESTS_RECORDER_FIXTURE_H

#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/core/threads.h"
#include "agent/cpu/owner.h"
#include "agent/cpu/tick.h"
#include "agent/hooks/heap.h"
#include "agent/memory/blocks.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"
#include "agent/memory/objects.h"
#include "arena_fixture.h"
#include "os/module.h"
#include "os/os.h"

enum { FIXTURE_MODULES = 6, FIXTURE_MODULE_FIRST = 0x10000000, FIXTURE_MODULE_BYTES = 0x10000 };

struct agent agent;
_Atomic uint32_t duty_window = 1;

static struct wire_control control;
static _Atomic unsigned fixture_libc_frees;

void heap_follow(void)
{
}

void heap_free_untracked(void *block)
{
    (void)block;
    atomic_fetch_add(&fixture_libc_frees, 1);
}

void objects_prepare(void)
{
}

bool objects_install(void)
{
    return true;
}

void duty_in_child(void)
{
}

uint64_t duty_missed_bytes(uint64_t now_mono_ns)
{
    (void)now_mono_ns;
    return 0;
}

void forks_check(void)
{
}

struct thread *threads_self(void)
{
    return NULL;
}

bool tick_layout_fits(uintptr_t tstate, const struct thread *thread, const struct py_frame *frames,
                      const struct py_walk *walk)
{
    (void)tstate;
    (void)thread;
    (void)frames;
    (void)walk;
    return false;
}

uint32_t owner_of_native(const struct thread *thread)
{
    (void)thread;
    return 0;
}

uint32_t owner_of_allocation(struct thread *thread, uint32_t *frames)
{
    (void)thread;
    (void)frames;
    return 0;
}

uint32_t owner_root(uint32_t owner)
{
    return owner;
}

static void *fixture_current_tstate(void)
{
    return NULL;
}

bool __wrap_module_find(uintptr_t address, struct module *found);
bool __wrap_module_find(uintptr_t address, struct module *found)
{
    uintptr_t n = (address - FIXTURE_MODULE_FIRST) / FIXTURE_MODULE_BYTES;
    *found = (struct module){.start = FIXTURE_MODULE_FIRST + n * FIXTURE_MODULE_BYTES,
                             .end = FIXTURE_MODULE_FIRST + (n + 1) * FIXTURE_MODULE_BYTES,
                             .name = "/lib/some.so"};
    return n < FIXTURE_MODULES;
}

static inline int recorder_open(void **state)
{
    (void)state;
    if (!fixture_open(&agent.arena) || !tables_init(&agent.tables, &agent.arena))
        return -1;
    fixture_grow_fully(&agent.arena);
    control = (struct wire_control){.allocation_window_bytes = 1 << 20, .on = 1};
    agent.control = &control;
    agent.with_memory = true;
    agent.current_tstate = fixture_current_tstate;
    agent.active = true;
    agent.arena.header->start_mono_ns = os_mono_ns();
    agent.arena.header->start_cpu_ns = os_process_cpu_ns();
    memory_start();
    return 0;
}

static inline int recorder_close(void **state)
{
    (void)state;
    memory_stop();
    blocks_forget(); /* the next test's recorder is a new one */
    return fixture_close(&agent.arena);
}

#endif
