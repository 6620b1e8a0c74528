/* Finding recordings, and which of them are complete; see harvest.h. */
#include "collect/harvest.h"

#include "base/mem.h"
#include "collect/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t LOOK_AGAIN_NS = 1000000000; /* files grow without a change of the directory */

struct entry {
    char *path;
    pid_t pid;
    uint64_t start_mono_ns; /* 0: its process has not begun to write, or it is damaged */
    enum report_fate fate;
};

struct entries {
    struct entry *items;
    size_t count, cap;
    uint64_t size_bytes; /* on disk */
};

/* PID-N.arena; 0 if it is not. */
static pid_t pid_of_name(const char *name)
{
    char *end;
    if (!isdigit((unsigned char)name[0]))
        return 0;
    unsigned long pid = strtoul(name, &end, 10);
    size_t digits = end[0] == '-' ? strspn(end + 1, "0123456789") : 0;
    bool is_pool = digits && !strcmp(end + 1 + digits, WIRE_ARENA_SUFFIX);
    return is_pool && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int list_files(struct entries *list, const char *directory, struct err *err)
{
    *list = (struct entries){0};
    DIR *dir = opendir(directory);
    if (!dir)
        return err_set(err, "cannot open '%s': %s", directory, strerror(errno));
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        struct stat st;
        pid_t pid = pid_of_name(entry->d_name);
        if (!pid)
            continue;
        if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
            list->size_bytes += (uint64_t)st.st_blocks * 512;
        VEC_PUSH(list->items, list->count, list->cap) = (struct entry){
            .path = mem_format("%s/%s", directory, entry->d_name),
            .pid = pid,
        };
    }
    closedir(dir);
    return 0;
}

static void release_files(struct entries *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (struct entries){0};
}

static int by_pid(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->start_mono_ns != y->start_mono_ns)
        return x->start_mono_ns < y->start_mono_ns ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int by_start(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->start_mono_ns != y->start_mono_ns)
        return x->start_mono_ns < y->start_mono_ns ? -1 : 1;
    return by_pid(a, b);
}

/* Of one that has not begun, the pid alone must do. */
static bool is_running(const struct entry *entry)
{
    return entry->start_mono_ns ? process_existed_at(entry->pid, entry->start_mono_ns)
                                : process_start_ticks(entry->pid) != 0;
}

/* Start and fate of each; then they are in order of start. */
static void find_fates(struct entries *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct wire_header header;
        if (!recording_peek(&header, list->items[i].path, NULL))
            list->items[i].start_mono_ns = header.start_mono_ns;
    }
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_pid);
    for (size_t i = 0; i < list->count; i++) {
        struct entry *entry = &list->items[i];
        bool has_later = i + 1 < list->count && list->items[i + 1].pid == entry->pid;
        if (has_later && entry->start_mono_ns)
            entry->fate = REPORT_REPLACED;
        else
            entry->fate = is_running(entry) ? REPORT_RUNNING : REPORT_ENDED;
    }
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_start);
}

/* Was it a recording? */
static bool add(struct report *report, const struct entry *entry)
{
    struct recording recording;
    struct err why = {""};
    int rc = recording_open(&recording, entry->path, &why);
    if (rc < 0)
        report_unreadable(report, entry->pid, why.text);
    if (rc)
        return false;
    report_add(report, &recording, entry->fate);
    recording_release(&recording);
    return true;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void harvest_tick(struct harvest *harvest)
{
    struct stat st;
    uint64_t now = now_ns();
    if (stat(harvest->directory, &st))
        return;
    bool has_changed = st.st_mtim.tv_sec != harvest->changed.tv_sec ||
                       st.st_mtim.tv_nsec != harvest->changed.tv_nsec;
    if (!has_changed && now - harvest->looked_ns < LOOK_AGAIN_NS)
        return;
    harvest->changed = st.st_mtim;
    harvest->looked_ns = now;

    struct entries list;
    if (list_files(&list, harvest->directory, NULL))
        return;
    if (list.count > HARVEST_FILES_MAX || list.size_bytes > HARVEST_BYTES_MAX) {
        find_fates(&list);
        for (size_t i = 0; i < list.count; i++) {
            if (list.items[i].fate == REPORT_RUNNING)
                continue;
            if (add(harvest->report, &list.items[i]))
                atomic_fetch_add(&harvest->control->harvested, 1);
            unlink(list.items[i].path);
        }
    }
    release_files(&list);
}

bool harvest_running(const char *directory)
{
    struct entries list;
    bool found = false;
    if (list_files(&list, directory, NULL))
        return false;
    find_fates(&list);
    for (size_t i = 0; i < list.count; i++)
        found |= list.items[i].fate == REPORT_RUNNING;
    release_files(&list);
    return found;
}

int harvest_all(struct report *report, const char *directory, struct err *err)
{
    struct entries list;
    if (list_files(&list, directory, err))
        return -1;
    find_fates(&list);
    for (size_t i = 0; i < list.count; i++)
        add(report, &list.items[i]);
    release_files(&list);
    return 0;
}

int harvest_build(struct profile *profile, const struct report_config *config, struct err *err)
{
    struct report *report = report_begin(profile, config);
    int rc = harvest_all(report, config->session_directory, err);
    if (rc) {
        report_free(report);
        return rc;
    }
    report_harvested(report);
    report_finish(report);
    return 0;
}
