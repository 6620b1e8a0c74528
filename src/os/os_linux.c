#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Marks our timers' signals among others of the same number. */
static char timer_mark;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now))
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t os_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t os_real_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t os_process_cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t os_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The kernel's encoding of "CPU clock of thread tid" (what pthread_getcpuclockid returns). */
static clockid_t thread_clock(pid_t tid)
{
    return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

bool os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns)
{
    int saved = errno;
    *cpu_ns = clock_ns(thread_clock(tid));
    errno = saved;
    return *cpu_ns != 0;
}

pid_t os_gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

int os_sample_signal(void)
{
    return SIGRTMAX - 6;
}

/*
 * Raw system calls: glibc's wrappers may allocate, and in a forked child they
 * would keep state of timers that do not exist there.
 */
bool os_timer_create(pid_t tid, int *timer)
{
    int saved = errno;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = os_sample_signal();
    event.sigev_value.sival_ptr = &timer_mark;
    event.sigev_notify_thread_id = tid;
    bool ok = !syscall(SYS_timer_create, thread_clock(tid), &event, timer);
    errno = saved;
    return ok;
}

void os_timer_arm(int timer, uint64_t after_ns)
{
    int saved = errno;
    struct itimerspec spec = {
        .it_value = {(time_t)(after_ns / 1000000000u), (long)(after_ns % 1000000000u)}};
    syscall(SYS_timer_settime, timer, 0, &spec, NULL);
    errno = saved;
}

void os_timer_delete(int timer)
{
    int saved = errno;
    syscall(SYS_timer_delete, timer);
    errno = saved;
}

bool os_timer_is_ours(const void *siginfo)
{
    const siginfo_t *info = siginfo;
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &timer_mark;
}

/* The bare calls: the agent stands in front of libc's to follow what the program maps. */
static void *map(void *address, size_t size_bytes, int flags)
{
    int saved = errno;
    void *memory = (void *)syscall(SYS_mmap, address, size_bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (memory != MAP_FAILED) /* tables are touched here and there: each page by itself */
        syscall(SYS_madvise, memory, size_bytes, MADV_NOHUGEPAGE);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

void os_release(void *memory, size_t size_bytes)
{
    int saved = errno;
    syscall(SYS_munmap, memory, size_bytes);
    errno = saved;
}

void *os_reserve(size_t size_bytes)
{
    return map(NULL, size_bytes, 0);
}

bool os_reserve_at(void *addresses, size_t size_bytes)
{
    void *memory = map(addresses, size_bytes, MAP_FIXED_NOREPLACE);
    if (memory && memory != addresses) /* a kernel that does not know the flag */
        os_release(memory, size_bytes);
    return memory == addresses;
}

/* Mappings follow each other downwards from below the stack.  Half a terabyte further down (less
 * where addresses are fewer) hardly anybody comes by; if somebody is there, not so far. */
void *os_reserve_apart(size_t size_bytes)
{
    enum { STEP = 1 << 21, FARTHEST = 8, NEAREST = 14 };
    char *near = map(NULL, STEP, 0);
    if (!near)
        return NULL;
    os_release(near, STEP);
    for (int shift = FARTHEST; shift <= NEAREST; shift++) {
        uintptr_t apart = (uintptr_t)near - ((uintptr_t)near >> shift);
        void *addresses = (void *)(apart & ~(uintptr_t)(STEP - 1));
        if (os_reserve_at(addresses, size_bytes))
            return addresses;
    }
    return map(NULL, size_bytes, 0);
}

_Atomic uint32_t *os_fork_mark(void)
{
    enum { MARK_BYTES = 4096 };
    void *page = os_reserve(MARK_BYTES);
    if (page && madvise(page, MARK_BYTES, MADV_WIPEONFORK)) {
        os_release(page, MARK_BYTES);
        return NULL;
    }
    return page;
}

void os_discard(void *memory, size_t size_bytes)
{
    madvise(memory, size_bytes, MADV_DONTNEED);
}

bool os_private_descriptors(void)
{
    /* Closing the copies does not touch the program's record locks: those belong to its own table.
     */
    return !syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE);
}

void os_private_directory(void)
{
    int saved = errno;
    syscall(SYS_unshare, CLONE_FS);
    errno = saved;
}

static char *put_number(char *at, unsigned long value)
{
    char digits[24];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *at++ = digits[--n];
    return at;
}

static char *put_text(char *at, const char *text)
{
    while (*text)
        *at++ = *text++;
    return at;
}

/* Read /proc/self/task/TID/NAME into `text`, NUL-terminated; -1 on failure. */
static ssize_t read_task_file(pid_t tid, const char *name, int *fd, bool keep, char *text,
                              size_t size)
{
    if (*fd < 0) {
        char path[64];
        char *at = put_number(put_text(path, "/proc/self/task/"), (unsigned long)tid);
        *put_text(put_text(at, "/"), name) = '\0';
        *fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*fd < 0)
            return -1;
    }
    ssize_t n = pread(*fd, text, size - 1, 0);
    if (!keep || n < 0)
        os_close(fd);
    if (n >= 0)
        text[n] = '\0';
    return n;
}

static const char *parse_number(const char *at, uint64_t *value, bool *negative)
{
    while (*at == ' ')
        at++;
    *negative = *at == '-';
    if (*negative)
        at++;
    uint64_t base = 10, n = 0;
    if (at[0] == '0' && at[1] == 'x') {
        base = 16;
        at += 2;
    }
    for (;; at++) {
        unsigned digit = *at >= '0' && *at <= '9'                 ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' && base == 16 ? (unsigned)(*at - 'a' + 10)
                                                                  : 99;
        if (digit >= base)
            break;
        n = n * base + digit;
    }
    *value = n;
    return at;
}

bool os_thread_wait(pid_t tid, int *fd, bool keep, struct os_wait *out)
{
    int saved = errno;
    char text[256];
    *out = (struct os_wait){.call = -1};
    ssize_t n = read_task_file(tid, "syscall", fd, keep, text, sizeof text);
    errno = saved;
    if (n <= 0)
        return false;
    if (text[0] == 'r') {
        out->running = true;
        return true;
    }
    uint64_t value;
    bool negative;
    const char *at = parse_number(text, &value, &negative);
    out->call = negative ? -1 : (long)value;
    if (!negative)
        for (int i = 0; i < 6; i++) {
            at = parse_number(at, &value, &negative);
            out->args[i] = (uintptr_t)value;
        }
    at = parse_number(at, &value, &negative);
    out->sp = (uintptr_t)value;
    parse_number(at, &value, &negative);
    out->pc = (uintptr_t)value;
    return true;
}

bool os_thread_starved_ns(pid_t tid, int *fd, bool keep, uint64_t *ns)
{
    int saved = errno;
    char text[96];
    ssize_t n = read_task_file(tid, "schedstat", fd, keep, text, sizeof text);
    errno = saved;
    if (n <= 0)
        return false;
    uint64_t ran;
    bool negative;
    parse_number(parse_number(text, &ran, &negative), ns, &negative);
    return true;
}

bool os_thread_switches(pid_t tid, uint64_t *count)
{
    static const char name[] = "\nvoluntary_ctxt_switches:\t";
    int saved = errno, fd = -1;
    char text[4096];
    bool negative;
    ssize_t n = read_task_file(tid, "status", &fd, false, text, sizeof text);
    const char *line = n > 0 ? strstr(text, name) : NULL;
    errno = saved;
    if (line)
        parse_number(line + sizeof name - 1, count, &negative);
    return line;
}

void os_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Through /proc, whose "self" is the whole process: our thread may have its own descriptor table.
 */
enum os_file_type os_file_type(int fd, uint64_t *inode)
{
    int saved = errno;
    char path[40];
    struct stat st;
    *inode = 0;
    if (fd < 0)
        return OS_FILE_OTHER;
    *put_number(put_text(path, "/proc/self/fd/"), (unsigned long)fd) = '\0';
    int failed = stat(path, &st);
    errno = saved;
    if (failed)
        return OS_FILE_OTHER;
    *inode = (uint64_t)st.st_ino;
    if (S_ISSOCK(st.st_mode))
        return OS_FILE_SOCKET;
    if (S_ISFIFO(st.st_mode))
        return OS_FILE_PIPE;
    if (S_ISCHR(st.st_mode))
        return OS_FILE_CHARACTER;
    return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) ? OS_FILE_REGULAR
                                                                             : OS_FILE_OTHER;
}

/* One entry of /proc/PID/fd: a link whose text names the pipe and whose mode tells the end. */
static bool is_pipe_end(int directory, const char *name, const char *pipe, size_t length,
                        bool writing)
{
    char link[40];
    struct stat st;
    ssize_t n = readlinkat(directory, name, link, sizeof link);
    return n == (ssize_t)length && !memcmp(link, pipe, length) &&
           !fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) &&
           st.st_mode & (writing ? S_IWUSR : S_IRUSR);
}

bool os_holds_pipe(pid_t pid, uint64_t inode, bool writing)
{
    struct entry { /* of getdents64(2) */
        uint64_t inode;
        int64_t next;
        uint16_t bytes;
        uint8_t type;
        char name[];
    };
    int saved = errno;
    char path[40], pipe[40];
    _Alignas(struct entry) char entries[2048];
    *put_text(put_number(put_text(path, "/proc/"), (unsigned long)pid), "/fd") = '\0';
    char *end = put_text(put_number(put_text(pipe, "pipe:["), inode), "]");
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = false;
    long n;
    while (!found && directory >= 0 &&
           (n = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0)
        for (long at = 0; !found && at < n;) {
            const struct entry *entry = (const struct entry *)(entries + at);
            found = entry->name[0] != '.' &&
                    is_pipe_end(directory, entry->name, pipe, (size_t)(end - pipe), writing);
            at += entry->bytes;
        }
    os_close(&directory);
    errno = saved;
    return found;
}

/* Lines of fdinfo that begin "tfd:" name what is watched. */
unsigned os_epoll_watches(int fd, int *fds, unsigned room)
{
    int saved = errno;
    char path[40], text[4096];
    unsigned count = 0;
    *put_number(put_text(path, "/proc/self/fdinfo/"), (unsigned long)fd) = '\0';
    int file = fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    os_close(&file);
    errno = saved;
    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; (at = strstr(at, "tfd:")); at += 4) {
        uint64_t watched;
        bool negative;
        parse_number(at + 4, &watched, &negative);
        if (count < room)
            fds[count] = (int)watched;
        count++;
    }
    return count;
}

uint64_t os_peak_rss_bytes(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* statm begins: size, resident, shared (files and shared memory), in pages. */
static bool read_statm(uint64_t bytes[static 3])
{
    char text[128];
    bool negative;
    int saved = errno, fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    errno = saved;
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        at = parse_number(at, &bytes[i], &negative);
        bytes[i] *= os_page_bytes();
    }
    return true;
}

uint64_t os_rss_bytes(uint64_t *file_bytes)
{
    uint64_t bytes[3] = {0};
    if (!read_statm(bytes))
        bytes[1] = bytes[2] = 0;
    *file_bytes = bytes[2];
    return bytes[1];
}

uint64_t os_address_room(void)
{
    struct rlimit limit;
    uint64_t bytes[3];
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY || !read_statm(bytes))
        return UINT64_MAX;
    return limit.rlim_cur > bytes[0] ? limit.rlim_cur - bytes[0] : 0;
}

size_t os_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool os_resident(uintptr_t start, size_t size_bytes, unsigned char *pages)
{
    int saved = errno;
    bool ok = !mincore((void *)start, size_bytes, pages);
    errno = saved;
    return ok;
}

uint64_t os_faults(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

void os_yield(void)
{
    syscall(SYS_sched_yield);
}

void os_sleep(uint64_t ns, _Atomic uint32_t *word)
{
    int saved = errno;
    struct timespec most = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
    errno = saved;
}

void os_wake(_Atomic uint32_t *word)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    errno = saved;
}

void os_wait_for_end(pid_t tid)
{
    enum { MOST_NS = 100000000 };
    int saved = errno;
    uint64_t began_ns = os_mono_ns();
    while (!syscall(SYS_tgkill, getpid(), tid, 0) && os_mono_ns() - began_ns < MOST_NS)
        os_yield();
    errno = saved;
}
