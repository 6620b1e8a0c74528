/* Finding sessions, and acting on one from outside; see sessions.h.  Called by the commands on,
 * off, snapshot and recover. */
#include "collect/sessions.h"

#include "base/mem.h"
#include "collect/process.h"
#include "wire/arena.h"
#include "wire/control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "scalene-"

/* ---- one directory ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The directory, if it is one of ours by its looks; -1 and errno else. */
static int open_directory(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* The control page, checked, or NULL. */
static struct wire_control *map_control(int directory_fd, struct stat *st)
{
    int fd = openat(directory_fd, WIRE_CONTROL_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct wire_control *control = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
        st->st_size >= WIRE_CONTROL_BYTES)
        control = mmap(NULL, WIRE_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (control == MAP_FAILED)
        return NULL;
    if (control->magic == WIRE_CONTROL_MAGIC && control->version == WIRE_CONTROL_VERSION)
        return control;
    munmap(control, WIRE_CONTROL_BYTES);
    return NULL;
}

static bool is_pool_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(WIRE_ARENA_SUFFIX);
    return isdigit((unsigned char)name[0]) && length > suffix &&
           !strcmp(name + length - suffix, WIRE_ARENA_SUFFIX);
}

static char *command_text(const struct wire_header *header)
{
    uint32_t bytes =
        header->command_bytes < WIRE_COMMAND_BYTES ? header->command_bytes : WIRE_COMMAND_BYTES;
    while (bytes && !header->command[bytes - 1])
        bytes--;
    char *text = mem_alloc((size_t)bytes + 1);
    for (uint32_t i = 0; i < bytes; i++)
        text[i] = header->command[i] ? header->command[i] : ' ';
    text[bytes] = '\0';
    return text;
}

/* An image that the same process left by exec is no process of its own, but only the last counts:
 * what is asked is whether the process still runs. */
static void add_process(struct sessions_entry *entry, int directory_fd, const char *name,
                        bool same_boot)
{
    struct wire_header header;
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, &header, sizeof header, 0);
    if (fd >= 0)
        close(fd);
    if (got != (ssize_t)sizeof header || header.magic != WIRE_ARENA_MAGIC || header.pid <= 0)
        return;
    struct sessions_process process = {
        .pid = header.pid,
        .running = same_boot && process_existed_at(header.pid, header.start_mono_ns),
        .start_mono_ns = header.start_mono_ns,
        .start_real_ns = header.start_real_ns,
        .command = command_text(&header),
    };
    entry->running |= process.running;
    VEC_PUSH(entry->processes, entry->process_count, entry->process_cap) = process;
}

static int by_start(const void *a, const void *b)
{
    const struct sessions_process *x = a, *y = b;
    return (x->start_mono_ns > y->start_mono_ns) - (x->start_mono_ns < y->start_mono_ns);
}

static void look_inside(struct sessions_entry *entry, DIR *dir, bool same_boot)
{
    struct dirent *item;
    while ((item = readdir(dir))) {
        struct stat st;
        if (!fstatat(dirfd(dir), item->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
            entry->size_bytes += (uint64_t)st.st_blocks * 512;
        if (is_pool_name(item->d_name))
            add_process(entry, dirfd(dir), item->d_name, same_boot);
    }
    if (entry->process_count) {
        qsort(entry->processes, entry->process_count, sizeof *entry->processes, by_start);
        entry->started_real = entry->processes[0].start_real_ns / 1000000000u;
    }
}

int sessions_look_at(struct sessions_entry *entry, const char *directory, struct err *err)
{
    *entry = (struct sessions_entry){0};
    int fd = open_directory(directory);
    if (fd < 0)
        return err_set(err, "'%s' is not a session of yours: %s", directory, strerror(errno));
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return err_set(err, "cannot read '%s': %s", directory, strerror(errno));
    }
    int rc = 0;
    struct stat st;
    struct wire_control *control = map_control(fd, &st);
    if (!control) {
        rc = err_set(err, "'%s' is not a session: it has no valid control file", directory);
    } else if (control->pid_namespace != process_pid_namespace()) {
        rc = err_set(err, "'%s' is a session of another container", directory);
    } else {
        bool same_boot = control->boot == process_boot();
        entry->directory = mem_strdup(directory);
        entry->launcher_pid = control->launcher_pid;
        entry->orphaned = !same_boot || process_start_ticks(control->launcher_pid) !=
                                            control->launcher_start_ticks;
        entry->started_real = (uint64_t)st.st_ctim.tv_sec;
        look_inside(entry, dir, same_boot);
    }
    if (control)
        munmap(control, WIRE_CONTROL_BYTES);
    closedir(dir);
    return rc;
}

void sessions_entry_release(struct sessions_entry *entry)
{
    for (size_t i = 0; i < entry->process_count; i++)
        free(entry->processes[i].command);
    free(entry->processes);
    free(entry->directory);
    *entry = (struct sessions_entry){0};
}

/* ---- all of them ---- */

static bool is_known(const struct sessions *sessions, const char *directory)
{
    for (size_t i = 0; i < sessions->count; i++)
        if (!strcmp(sessions->items[i].directory, directory))
            return true;
    return false;
}

static void find_below(struct sessions *sessions, const char *parent)
{
    char *real = realpath(parent, NULL);
    DIR *dir = real ? opendir(real) : NULL;
    struct dirent *item;
    while (dir && (item = readdir(dir))) {
        if (strncmp(item->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        char *path = mem_format("%s/%s", strcmp(real, "/") ? real : "", item->d_name);
        struct sessions_entry entry;
        /* Two parents may be the same directory. */
        if (!is_known(sessions, path) && !sessions_look_at(&entry, path, NULL))
            VEC_PUSH(sessions->items, sessions->count, sessions->cap) = entry;
        free(path);
    }
    if (dir)
        closedir(dir);
    free(real);
}

static int by_session_start(const void *a, const void *b)
{
    const struct sessions_entry *x = a, *y = b;
    if (x->started_real != y->started_real)
        return x->started_real < y->started_real ? -1 : 1;
    return strcmp(x->directory, y->directory);
}

void sessions_find(struct sessions *sessions, const char *const *parents)
{
    *sessions = (struct sessions){0};
    for (; *parents; parents++)
        if (**parents)
            find_below(sessions, *parents);
    if (sessions->count)
        qsort(sessions->items, sessions->count, sizeof *sessions->items, by_session_start);
}

void sessions_release(struct sessions *sessions)
{
    for (size_t i = 0; i < sessions->count; i++)
        sessions_entry_release(&sessions->items[i]);
    free(sessions->items);
    *sessions = (struct sessions){0};
}

const struct sessions_entry *sessions_with(const struct sessions *sessions, pid_t pid)
{
    for (size_t i = 0; i < sessions->count; i++) {
        const struct sessions_entry *entry = &sessions->items[i];
        if (entry->launcher_pid == pid && !entry->orphaned)
            return entry;
        for (size_t k = 0; k < entry->process_count; k++)
            if (entry->processes[k].pid == pid && entry->processes[k].running)
                return entry;
    }
    return NULL;
}

/* The path in a line of /proc/PID/maps, if it is some session's control file; cut to the directory.
 * Session paths hold no blanks, so one that was deleted does not match: it ends differently. */
static char *directory_in(char *line)
{
    static const char ending[] = "/" WIRE_CONTROL_NAME "\n";
    char *path = strchr(line, '/');
    size_t length = path ? strlen(path) : 0;
    if (length < sizeof ending || strcmp(path + length - (sizeof ending - 1), ending) != 0)
        return NULL;
    path[length - (sizeof ending - 1)] = '\0';
    return strncmp(base_name(path), PREFIX, strlen(PREFIX)) ? NULL : path;
}

char *sessions_directory_of(pid_t pid)
{
    char path[64], *line = NULL, *found = NULL;
    size_t cap = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &cap, maps) > 0) {
        const char *directory = directory_in(line);
        struct sessions_entry entry;
        if (directory && !sessions_look_at(&entry, directory, NULL)) {
            found = mem_strdup(directory);
            sessions_entry_release(&entry);
        }
    }
    free(line);
    if (maps)
        (void)fclose(maps);
    return found;
}

/* ---- acting on one ---- */

/* The directory again, open, and its control page. */
static int open_entry(const struct sessions_entry *entry, int *directory_fd,
                      struct wire_control **control, struct err *err)
{
    struct stat st;
    *directory_fd = open_directory(entry->directory);
    *control = *directory_fd < 0 ? NULL : map_control(*directory_fd, &st);
    if (*control)
        return 0;
    if (*directory_fd >= 0)
        close(*directory_fd);
    return err_set(err, "the session '%s' is gone", entry->directory);
}

int sessions_switch(const struct sessions_entry *entry, bool on, struct err *err)
{
    int fd;
    struct wire_control *control;
    if (open_entry(entry, &fd, &control, err))
        return -1;
    atomic_store(&control->on, on);
    atomic_fetch_add(&control->generation, 1);
    munmap(control, WIRE_CONTROL_BYTES);
    close(fd);
    return 0;
}

int sessions_remove(const struct sessions_entry *entry, struct err *err)
{
    int fd;
    struct wire_control *control;
    if (open_entry(entry, &fd, &control, err))
        return -1;
    atomic_store(&control->closed, 1);
    munmap(control, WIRE_CONTROL_BYTES);
    DIR *dir = fdopendir(fd);
    if (!dir)
        close(fd);
    struct dirent *item;
    while (dir && (item = readdir(dir)))
        if (strcmp(item->d_name, ".") && strcmp(item->d_name, ".."))
            unlinkat(fd, item->d_name, 0);
    if (dir)
        closedir(dir);
    if (rmdir(entry->directory))
        return err_set(err, "cannot remove '%s': %s", entry->directory, strerror(errno));
    return 0;
}
