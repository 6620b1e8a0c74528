/*
 * The CPU sample on a Python made of plain memory (tests/unit/agent), so that
 * callgrind can count the instructions of tick_sample() alone, without an
 * interpreter around it.  bench/handler_cost.sh runs it and prints the table.
 *
 *   handler_cost DEPTH SAMPLES
 */
#include "agent/async/loops.h"
#include "agent/core/agent.h"
#include "agent/core/forks.h"
#include "agent/cpu/tick.h"
#include "agent/memory/runners.h"
#include "fake_python.h"

#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

struct agent agent;
static struct wire_control control;
static struct fake_object *tstate;

static void *fake_current(void)
{
    return tstate;
}

/* Nobody forks here. */
void runners_ran(uint32_t node, bool is_native, uint64_t ns)
{
    (void)node;
    (void)is_native;
    (void)ns;
}

void loops_see(struct thread *thread, uint32_t node)
{
    (void)thread;
    (void)node;
}

void forks_check(void)
{
}

bool forks_is_guest(void)
{
    return false;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int depth = atoi(argv[1]), samples = atoi(argv[2]);
    char directory[] = "/tmp/handler-cost-XXXXXX";
    if (!mkdtemp(directory) || !layout_select(&agent.layout, 0x030c01f0, 0, 0) ||
        !arena_create(&agent.arena, directory, false, 1) ||
        !tables_init(&agent.tables, &agent.arena))
        return 1;
    control.on = 1;
    control.cpu_interval_ns = 10000000;
    agent.control = &control;
    agent.has_layout = true;
    agent.active = true;
    agent.code_type = fake_code_type;
    agent.str_type = fake_str_type;
    agent.current_tstate = fake_current;

    struct fake_object *frame = NULL;
    for (int i = 0; i < depth; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        frame = fake_frame(&agent.layout, fake_code(&agent.layout, "/a.py", name, 1), 4, frame, 0);
    }
    struct thread *thread = calloc(1, sizeof *thread);
    thread->ident = pthread_self();
    thread->random = 1;
    tstate = fake_thread(&agent.layout, frame, (uintptr_t)thread->ident);
    ucontext_t context;
    getcontext(&context);
    for (int i = 0; i < samples; i++)
        tick_sample(thread, &context);
    bool counted =
        agent.arena.header->handler_count == (uint64_t)samples &&
        ((struct wire_cell *)arena_record(&agent.arena, WIRE_CELL, 1))->count == (uint64_t)samples;
    unlink(agent.arena.path);
    rmdir(directory);
    return counted ? 0 : 1;
}
