/*
 * The answers of a system that can do nothing: what a port starts from.  It is
 * compiled, so that it stays complete, and linked into nothing.
 */
#include "os/os.h"

uint64_t os_mono_ns(void)
{
    return 0;
}

uint64_t os_real_ns(void)
{
    return 0;
}

uint64_t os_process_cpu_ns(void)
{
    return 0;
}

uint64_t os_thread_cpu_ns(void)
{
    return 0;
}

bool os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns)
{
    return false;
}

pid_t os_gettid(void)
{
    return 0;
}

int os_sample_signal(void)
{
    return 0;
}

bool os_timer_create(pid_t tid, int *timer)
{
    return false;
}

void os_timer_arm(int timer, uint64_t after_ns)
{
}

void os_timer_delete(int timer)
{
}

bool os_timer_is_ours(const void *siginfo)
{
    return false;
}

void *os_reserve(size_t size_bytes)
{
    return NULL;
}

void os_discard(void *memory, size_t size_bytes)
{
}

void os_release(void *memory, size_t size_bytes)
{
}

void *os_reserve_apart(size_t size_bytes)
{
    return NULL;
}

bool os_reserve_at(void *addresses, size_t size_bytes)
{
    return false;
}

uint64_t os_address_room(void)
{
    return UINT64_MAX;
}

bool os_private_descriptors(void)
{
    return false;
}

bool os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out)
{
    return false;
}

bool os_thread_starved_ns(pid_t tid, int *fd, bool keep, uint64_t *ns)
{
    return false;
}

void os_close(int *fd)
{
}

enum os_file_type os_file_type(int fd, uint64_t *inode)
{
    (void)fd;
    *inode = 0;
    return OS_FILE_OTHER;
}

bool os_holds_pipe(pid_t pid, uint64_t inode, bool writing)
{
    (void)pid;
    (void)inode;
    (void)writing;
    return false;
}

unsigned os_epoll_watches(int fd, int *fds, unsigned room)
{
    (void)fd;
    if (room)
        fds[0] = -1;
    return 0;
}

uint64_t os_peak_rss_bytes(void)
{
    return 0;
}

uint64_t os_rss_bytes(uint64_t *file_bytes)
{
    *file_bytes = 0;
    return 0;
}

size_t os_page_bytes(void)
{
    return 4096;
}

bool os_resident(uintptr_t start, size_t size_bytes, unsigned char *pages)
{
    return false;
}

uint64_t os_faults(void)
{
    return 0;
}

void os_yield(void)
{
}

_Atomic uint32_t *os_fork_mark(void)
{
    return NULL;
}

void os_private_directory(void)
{
}

void os_sleep(uint64_t ns, _Atomic uint32_t *word)
{
}

void os_wake(_Atomic uint32_t *word)
{
}

void os_wait_for_end(pid_t tid)
{
}
