/*
 * Preloaded behind the agent, makes one system call of the agent fail, named by
 * the environment variable FAULT; see test_faults.py.  Calls of the program
 * itself go through.
 *
 * For test_forks.py: makes fork() slow, and has what Python programs cannot do
 * while one of their threads forks, since that one has the interpreter's lock.
 */
#include "wire/control.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Is FAULT this one, and does the agent call? */
static int is_asked(const char *name, const void *caller)
{
    const char *fault = getenv("FAULT");
    Dl_info info;
    return fault && !strcmp(fault, name) && dladdr(caller, &info) && info.dli_fname &&
           strstr(info.dli_fname, "libscalene.so");
}

#define CALLER() __builtin_return_address(0)
#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
    REAL(mmap64);
    if (is_asked("map-arena", CALLER()) && length > WIRE_CONTROL_BYTES) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(address, length, protection, flags, fd, offset);
}

int open64(const char *path, int flags, ...)
{
    REAL(open64);
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (is_asked("open", CALLER()) && (flags & O_CREAT)) {
        errno = EMFILE;
        return -1;
    }
    return real(path, flags, mode);
}

int ftruncate64(int fd, off64_t length)
{
    REAL(ftruncate64);
    if (is_asked("ftruncate", CALLER())) {
        errno = EFBIG;
        return -1;
    }
    return real(fd, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length)
{
    REAL(posix_fallocate64);
    return is_asked("fallocate", CALLER()) ? ENOSPC : real(fd, offset, length);
}

/* Only the sampler thread is made by the agent with such a small stack. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    REAL(pthread_create);
    size_t stack = 0;
    if (attributes)
        pthread_attr_getstacksize(attributes, &stack);
    if (stack == 65536 && is_asked("pthread_create", CALLER()))
        return EAGAIN;
    return real(thread, attributes, start, argument);
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_list arguments;
    long a[6];
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if ((number == SYS_timer_create && is_asked("timer_create", CALLER())) ||
        (number == 436 /* close_range */ && is_asked("close_range", CALLER()))) {
        errno = EAGAIN;
        return -1;
    }
    if (number == SYS_mmap && a[1] > 65536 && is_asked("mmap", CALLER())) {
        errno = ENOMEM;
        return -1;
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Prepare handlers run last registered first: this one, of a library that was there before the
 * program began, while the agent has its lock. */
static void sleep_long(void)
{
    usleep(600000);
}

__attribute__((constructor)) static void make_fork_slow(void)
{
    const char *fault = getenv("FAULT");
    if (fault && !strcmp(fault, "slow-fork"))
        pthread_atfork(sleep_long, NULL, NULL);
}

void *map_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages != MAP_FAILED)
        memset(pages, 1, size);
    return pages;
}

int unmap_later(void *address, size_t size, unsigned delay_us)
{
    usleep(delay_us);
    return munmap(address, size);
}

void *remap_later(void *address, size_t size, unsigned delay_us)
{
    usleep(delay_us);
    return mremap(address, size, 4 * size, MREMAP_MAYMOVE);
}

/* Change the handler of a signal without end. */
void change_handlers(int number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (;;)
        sigaction(number, &action, NULL);
}
