/* Telling processes apart by /proc; see process.h.  Called by the launcher and by the commands
 * that look for sessions. */
#include "collect/process.h"

#include "base/map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A whole small file of /proc, NUL-terminated; 0 if there is none. */
static size_t read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

uint64_t process_start_ticks(pid_t pid)
{
    enum { FIELD_STATE = 3, FIELD_START = 22 };
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (pid <= 0 || !read_small(path, text, sizeof text))
        return 0;
    /* The second field is the name in parentheses, which may hold anything, parentheses too. */
    char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    for (int field = FIELD_STATE - 1; at && field < FIELD_START; field++)
        at = strchr(at + 1, ' ');
    uint64_t ticks = at ? strtoull(at + 1, NULL, 10) : 0;
    return ticks ? ticks : 1;
}

uint64_t process_boot(void)
{
    char text[64];
    size_t length = read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);
    return length ? hash_bytes(text, length) : 0;
}

uint64_t process_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool process_existed_at(pid_t pid, uint64_t mono_ns)
{
    uint64_t ticks = process_start_ticks(pid);
    if (!ticks)
        return false;
    /* Start times count while the machine sleeps, CLOCK_MONOTONIC does not.  How long it had slept
     * at that moment is not known, so the benefit of the doubt is for "it is the same one". */
    int64_t slept_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    double start_sec = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return start_sec <= ((double)mono_ns + (double)slept_ns) / 1e9;
}
