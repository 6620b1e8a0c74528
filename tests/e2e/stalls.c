/*
 * stalls FD: how long the machine's processors stood still for LATE_NS or more at a time, in
 * nanoseconds, as one number in the file that the descriptor is open for.
 *
 * A thread on each processor sleeps for some milliseconds at a time, and comes before everything
 * else when it wakes up: if it is late all the same, nobody ran there, as in a virtual machine
 * whose processor was given to another one.  Ends with the process that started it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000, PAUSE_NS = 10000000, LATE_NS = 40000000 };

static _Atomic uint64_t *stalled_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void *watch(void *processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(uintptr_t)processor, &set);
    sched_setaffinity(0, sizeof set, &set);
    /* Not allowed: then others that want the processor look like a stall, too. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    for (;;) {
        uint64_t due_ns = now_ns() + PAUSE_NS;
        struct timespec due = {(time_t)(due_ns / SECOND_NS), (long)(due_ns % SECOND_NS)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        uint64_t late_ns = now_ns() - due_ns;
        if (late_ns >= LATE_NS)
            atomic_fetch_add(stalled_ns, late_ns);
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count != 2 || prctl(PR_SET_PDEATHSIG, SIGKILL))
        return 1;
    void *shared =
        mmap(NULL, sizeof *stalled_ns, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(words[1]), 0);
    if (shared == MAP_FAILED)
        return 1;
    stalled_ns = shared;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        pthread_t thread;
        if (CPU_ISSET(i, &set) && pthread_create(&thread, NULL, watch, (void *)(uintptr_t)i))
            return 1;
    }
    for (;;)
        pause();
}
