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

#include <time.h>

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

void memory_after_fork(bool is_child)
{
    (void)is_child;
}

void memory_end(void)
{
}

void memory_disown(void)
{
}

void memory_pass(uint64_t now_mono_ns)
{
    (void)now_mono_ns;
}

void memory_forget_modules(void)
{
}

void duty_sleep(uint64_t sleep_ns)
{
    struct timespec pause = {(time_t)(sleep_ns / 1000000000u), (long)(sleep_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}
