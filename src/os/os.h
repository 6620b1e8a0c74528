/*
 * What the agent asks of the operating system, beyond C and POSIX calls that
 * are the same everywhere.  One file per system (os_linux.c); os_null.c answers
 * "cannot" to everything and shows what a port has to fill in.
 *
 * Every function is callable from a signal handler unless it says otherwise,
 * allocates nothing, and leaves errno alone or says so.
 */
#ifndef OS_OS_H
#define OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t os_mono_ns(void);
uint64_t os_real_ns(void);
uint64_t os_process_cpu_ns(void);
uint64_t os_thread_cpu_ns(void);                    /* of the calling thread */
bool os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns); /* of any thread of this process */
pid_t os_gettid(void);
int os_sample_signal(void); /* the signal the timers send: a real-time one nobody else takes */

/* A one-shot timer on the CPU clock of thread `tid` that signals that thread alone. */
bool os_timer_create(pid_t tid, int *timer);
void os_timer_arm(int timer, uint64_t after_ns);
void os_timer_delete(int timer);
bool os_timer_is_ours(const void *siginfo);

/* Zeroed private memory that costs nothing until it is touched. */
void *os_reserve(size_t size_bytes);
void os_discard(void *memory, size_t size_bytes); /* back to zeroes */
void os_release(void *memory, size_t size_bytes);
/* The same where nobody else maps anything, so that it can grow there. */
void *os_reserve_apart(size_t size_bytes);
bool os_reserve_at(void *addresses, size_t size_bytes); /* false: something is there already */
/* How many bytes more the process may map, UINT64_MAX: any number. */
uint64_t os_address_room(void);

/*
 * Give the calling thread a descriptor table of its own, empty, so that what it
 * opens is invisible to the program and cannot disturb its numbering.  False if
 * the system cannot; then descriptors must not be kept open.
 */
bool os_private_descriptors(void);
/* The same of its working and root directory, and so of the file system it sees: a program that
 * enters another root or mount namespace leaves the thread where it is, and may do so although it
 * is not alone. */
void os_private_directory(void);

/* What a blocked thread waits for, as far as the system tells. */
struct os_wait {
    bool running; /* on a processor or runnable: not blocked at all */
    long call;    /* system call number, -1: none (a page fault) */
    uintptr_t args[6];
    uintptr_t sp, pc; /* of the thread's own code; 0: unknown */
};
/* `fd` (and `delay_fd`) keep /proc files open between calls when `keep`; -1 at first. */
bool os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out);
/* Time the thread was runnable without a processor, since it began. */
bool os_thread_starved_ns(pid_t tid, int *fd, bool keep, uint64_t *ns);
/* How often it gave its processor up, to wait for something. */
bool os_thread_switches(pid_t tid, uint64_t *count);
void os_close(int *fd);

enum os_file_type {
    OS_FILE_OTHER,
    OS_FILE_REGULAR,
    OS_FILE_SOCKET,
    OS_FILE_PIPE,
    OS_FILE_CHARACTER, /* a terminal or another device */
};
/* Of the program's descriptor, from any thread.  *inode tells pipes and sockets apart. */
enum os_file_type os_file_type(int fd, uint64_t *inode);
/* Does the process have the writing (or the reading) end of this pipe open? */
bool os_holds_pipe(pid_t pid, uint64_t inode, bool writing);
/* The descriptors that the program's epoll descriptor watches: how many there are, the first
 * `room` of them in `fds`. */
unsigned os_epoll_watches(int fd, int *fds, unsigned room);

uint64_t os_peak_rss_bytes(void);
/* Resident memory, and the part of it that is pages of files and shared memory. */
uint64_t os_rss_bytes(uint64_t *file_bytes);
size_t os_page_bytes(void);
/* Which pages of a range are resident: the lowest bit of a byte for each.  False: some of them are
 * not mapped. */
bool os_resident(uintptr_t start, size_t size_bytes, unsigned char *pages);
uint64_t os_faults(void); /* how many pages the process has touched for the first time, or again */
void os_yield(void);      /* let another thread run */

/* Sleep so long, or until *word is not 0 and somebody wakes who sleeps there. */
void os_sleep(uint64_t ns, _Atomic uint32_t *word);
void os_wake(_Atomic uint32_t *word);
/* A thread that has ended is a thread of the process for some microseconds more.  Not from a
 * handler; gives up after a tenth of a second. */
void os_wait_for_end(pid_t tid);

/* A word that is zero in a forked child, even if it was forked behind libc's back.  NULL: cannot.
 */
_Atomic uint32_t *os_fork_mark(void);

#endif
