/* A native library with threads of its own: they compute while their caller waits for them. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { THREADS = 2 };

static int64_t cpu_ns;

int64_t pool_compute(int milliseconds);

static void *compute(void *argument)
{
    int64_t end_ns = *(const int *)argument * INT64_C(1000000);
    struct timespec now;
    volatile uint64_t sum = 0;
    do {
        for (int i = 0; i < 100000; i++)
            sum += (uint64_t)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end_ns);
    __atomic_add_fetch(&cpu_ns, now.tv_sec * INT64_C(1000000000) + now.tv_nsec, __ATOMIC_RELAXED);
    return NULL;
}

/* Returns the CPU nanoseconds of its threads in all calls so far. */
int64_t pool_compute(int milliseconds)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, compute, &milliseconds))
            return -1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return cpu_ns;
}
