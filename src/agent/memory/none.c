/*
 * The agent without memory, libscalene-cpu.so: in place of memory.c and all the
 * functions that stand in front of libc's (heap.c, copies.c, mappings.c), so that
 * `--cpu-only` does not cost a single instruction in malloc() or memcpy().
 */
#include "agent/hooks/copies.h"
#include "agent/hooks/heap.h"
#include "agent/hooks/mappings.h"
#include "agent/memory/duty.h"
#include "agent/memory/memory.h"
#include "agent/memory/runners.h"
#include "agent/waits/sampler.h"

void copies_init(void)
{
}

void heap_init(void)
{
}

void mappings_init(void)
{
}

void memory_prepare(void)
{
}

void memory_start(void)
{
}

void memory_before_fork(void)
{
}

void memory_in_parent(void)
{
}

void memory_in_child(bool is_recorded)
{
    (void)is_recorded;
}

void memory_stop(void)
{
}

void memory_end(void)
{
}

void memory_disown(void)
{
}

void memory_pass(void)
{
}

void runners_ran(uint32_t node, bool is_native, uint64_t ns)
{
    (void)node;
    (void)is_native;
    (void)ns;
}

void memory_forget_modules(void)
{
}

void duty_sleep(uint64_t sleep_ns)
{
    sampler_pause(sleep_ns);
}
