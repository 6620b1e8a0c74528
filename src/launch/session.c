/* The launcher's side of a run: directory, control page, process, signals.  See session.h. */
#include "launch/session.h"

#include "base/mem.h"
#include "collect/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROOM_BYTES = 32 << 20,    /* what one process may write, and some */
    PLENTY_BYTES = 256 << 20, /* what a tree of processes may write (harvest.h), and some */
    PARENT_BYTES_MAX = 400,   /* the agent builds paths in a fixed buffer */
    REMOVE_TRIES = 3,
};

/* ---- directory and control page ---- */

/* LD_PRELOAD is split at colons and blanks, and knows no escape. */
static bool is_preloadable(const char *path)
{
    for (const char *p = path; *p; p++)
        if (*p == ':' || isspace((unsigned char)*p))
            return false;
    return strlen(path) <= PARENT_BYTES_MAX;
}

static bool has_room(const char *path, uint64_t least_bytes)
{
    struct statvfs fs;
    return !least_bytes ||
           (!statvfs(path, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize >= least_bytes);
}

/* An own directory below `parent`, or NULL. */
static char *make_directory(const char *parent, uint64_t room_bytes)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char random[12];
    char name[sizeof random + 1] = {0};
    char *real = realpath(parent, NULL), *path = NULL;
    if (real && is_preloadable(real) && has_room(real, room_bytes) &&
        getrandom(random, sizeof random, 0) == (ssize_t)sizeof random) {
        for (size_t i = 0; i < sizeof random; i++)
            name[i] = letters[random[i] % 32];
        path = mem_format("%s/scalene-%s", strcmp(real, "/") ? real : "", name);
        if (mkdir(path, 0700)) {
            free(path);
            path = NULL;
        }
    }
    free(real);
    return path;
}

/* A file system that is nearly full is better than none: the agent counts what it cannot write. */
static char *choose_directory(void)
{
    const char *users = getenv("TMPDIR"), *memory = "/dev/shm", *disk = "/tmp";
    const struct {
        const char *parent;
        uint64_t room_bytes;
    } choices[] = {
        {users, ROOM_BYTES}, {memory, PLENTY_BYTES},
        {disk, ROOM_BYTES},  {memory, ROOM_BYTES},
        {users, 0},          {disk, 0},
        {memory, 0},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *parent = choices[i].parent;
        char *path = parent && parent[0] ? make_directory(parent, choices[i].room_bytes) : NULL;
        if (path)
            return path;
    }
    return NULL;
}

static int make_control(struct session *session, const struct session_config *config,
                        struct err *err)
{
    char *path = mem_format("%s/%s", session->directory, WIRE_CONTROL_NAME);
    int rc = 0, fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = fd < 0 ? errno : posix_fallocate(fd, 0, WIRE_CONTROL_BYTES);
    void *page = MAP_FAILED;
    if (!failed) {
        page = mmap(NULL, WIRE_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        failed = page == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0)
        close(fd);
    if (failed) {
        rc = err_set(err, "cannot make '%s': %s", path, strerror(failed));
    } else {
        session->control = page;
        session->control->version = WIRE_CONTROL_VERSION;
        session->control->flags = config->flags;
        session->control->cpu_interval_ns = config->cpu_interval_ns;
        session->control->wait_interval_ns = config->wait_interval_ns;
        session->control->allocation_window_bytes = config->allocation_window_bytes;
        session->control->launcher_pid = getpid();
        session->control->launcher_start_ticks = process_start_ticks(getpid());
        session->control->boot = process_boot();
        session->control->pid_namespace = process_pid_namespace();
        atomic_store(&session->control->on, config->start_on);
        session->control->magic = WIRE_CONTROL_MAGIC;
    }
    free(path);
    return rc;
}

static int link_agent(const struct session *session, const char *agent_path, struct err *err)
{
    char *real = realpath(agent_path, NULL);
    if (!real)
        return err_set(err, "cannot find the agent '%s': %s", agent_path, strerror(errno));
    char *link = mem_format("%s/%s", session->directory, WIRE_AGENT_NAME);
    int rc = symlink(real, link) ? err_set(err, "cannot make '%s': %s", link, strerror(errno)) : 0;
    free(link);
    free(real);
    return rc;
}

/* ---- signals ---- */

static const int passed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};

static void signal_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(set, passed_on[i]);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGCONT);
}

/* SIGCHLD may have been inherited as ignored; children would then vanish unseen.  A file that may
 * not grow (RLIMIT_FSIZE), or a pipe nobody reads our messages from, is to be an error and not our
 * death: the profile is still to be written. */
static const struct {
    int signal;
    void (*handler)(int);
} own_actions[SESSION_SIGNALS] = {{SIGCHLD, SIG_DFL}, {SIGXFSZ, SIG_IGN}, {SIGPIPE, SIG_IGN}};

static void restore_actions(const struct session *session)
{
    for (int i = 0; i < SESSION_SIGNALS; i++)
        sigaction(own_actions[i].signal, &session->outer_actions[i], NULL);
}

static void take_signals(struct session *session)
{
    sigset_t set;
    signal_set(&set);
    sigprocmask(SIG_BLOCK, &set, &session->outer_mask);
    for (int i = 0; i < SESSION_SIGNALS; i++) {
        struct sigaction own = {.sa_handler = own_actions[i].handler};
        sigaction(own_actions[i].signal, &own, &session->outer_actions[i]);
    }
    session->has_signals = true;
}

static void give_signals_back(struct session *session)
{
    if (!session->has_signals)
        return;
    /* These two are our own bookkeeping; nobody outside expects to see them. */
    const struct timespec now = {0};
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, SIGCHLD);
    sigaddset(&own, SIGCONT);
    while (sigtimedwait(&own, NULL, &now) > 0)
        continue;
    restore_actions(session);
    sigprocmask(SIG_SETMASK, &session->outer_mask, NULL);
    session->has_signals = false;
}

int session_open(struct session *session, const struct session_config *config, struct err *err)
{
    *session = (struct session){0};
    take_signals(session);
    session->directory = choose_directory();
    int rc = 0;
    if (!session->directory)
        rc = err_set(err, "no directory for temporary files: tried $TMPDIR, /tmp and /dev/shm");
    if (rc || make_control(session, config, err) || link_agent(session, config->agent_path, err)) {
        session_close(session);
        return -1;
    }
    return 0;
}

/* ---- the program ---- */

/* The caller's environment with our two entries; only the array and those two are to be freed. */
struct environment {
    char **entries;
    char *preload, *session;
};

static bool has_name(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(entry, name, length) && entry[length] == '=';
}

static void make_environment(struct environment *env, const char *directory)
{
    const char *old = getenv("LD_PRELOAD");
    bool has_old = old && old[0];
    env->preload = mem_format("LD_PRELOAD=%s/%s%s%s", directory, WIRE_AGENT_NAME,
                              has_old ? ":" : "", has_old ? old : "");
    env->session = mem_format("%s=%s", WIRE_SESSION_ENV, directory);
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    env->entries = mem_alloc((count + 3) * sizeof *env->entries);
    for (size_t i = 0; i < count; i++)
        if (!has_name(environ[i], "LD_PRELOAD") && !has_name(environ[i], WIRE_SESSION_ENV))
            env->entries[kept++] = environ[i];
    env->entries[kept++] = env->preload;
    env->entries[kept++] = env->session;
    env->entries[kept] = NULL;
}

static void release_environment(struct environment *env)
{
    free(env->entries);
    free(env->preload);
    free(env->session);
}

/* In the child: everything as the launcher got it, then the program.  What went wrong goes through
 * the pipe, which closes by itself when exec succeeds. */
static _Noreturn void become(const struct session *session, const struct session_config *config,
                             const struct environment *env, int report_fd)
{
    restore_actions(session);
    sigprocmask(SIG_SETMASK, &session->outer_mask, NULL);
    execvpe(config->command[0], config->command, env->entries);
    int why = errno;
    ssize_t ignored = write(report_fd, &why, sizeof why);
    (void)ignored;
    _exit(127);
}

int session_spawn(struct session *session, const struct session_config *config, struct err *err)
{
    const char *name = config->command[0];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, "cannot run '%s': %s", name, strerror(errno));
    struct environment env;
    make_environment(&env, session->directory);
    pid_t child = fork();
    if (child == 0)
        become(session, config, &env, ends[1]);
    int why = child < 0 ? errno : 0;
    close(ends[1]);
    release_environment(&env);
    if (child > 0) {
        ssize_t got;
        do
            got = read(ends[0], &why, sizeof why);
        while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof why)
            why = 0;
        if (why)
            waitpid(child, NULL, 0);
    }
    close(ends[0]);
    if (why)
        return err_set(err, "cannot run '%s': %s", name, strerror(why));
    session->child = child;
    return 0;
}

/* ---- waiting ---- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool take_pending(int signo)
{
    const struct timespec now = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    return sigtimedwait(&set, NULL, &now) == signo;
}

/*
 * The program stopped.  If we have just been continued, so will it be, or was
 * meant to be: a terminal stops and continues the whole group at once, and we
 * may be looking before its own SIGCONT came.  Else stop as it did; the SIGCONT
 * that ends that is then pending.
 */
static void stop_too(const struct session *session, int signo)
{
    if (take_pending(SIGCONT))
        kill(session->child, SIGCONT);
    else
        kill(getpid(), signo);
}

/* 1 when the program has ended, 0 when not, -1 on an error. */
static int look_at_child(struct session *session, struct err *err)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(session->child, &status, WNOHANG | WUNTRACED);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return err_set(err, "cannot wait for the program: %s", strerror(errno));
        if (pid == 0)
            return 0;
        if (WIFSTOPPED(status)) {
            stop_too(session, WSTOPSIG(status));
            continue;
        }
        session->status = status;
        return 1;
    }
}

static void on_signal(const struct session *session, const siginfo_t *info)
{
    bool from_kernel = info->si_code > 0; /* a terminal: it went to the whole group */
    if (info->si_signo == SIGCONT || (info->si_signo != SIGCHLD && !from_kernel))
        kill(session->child, info->si_signo);
}

int session_wait(struct session *session, uint64_t tick_ns, void (*tick)(void *), void *context,
                 struct err *err)
{
    sigset_t set;
    signal_set(&set);
    uint64_t next_ns = now_ns() + tick_ns;
    int ended;
    while (!(ended = look_at_child(session, err))) {
        struct timespec left, *timeout = NULL;
        if (tick_ns) {
            uint64_t now = now_ns(), ns = next_ns > now ? next_ns - now : 0;
            left = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
            timeout = &left;
        }
        siginfo_t info;
        if (sigtimedwait(&set, &info, timeout) > 0)
            on_signal(session, &info);
        if (tick_ns && now_ns() >= next_ns) {
            tick(context);
            next_ns = now_ns() + tick_ns;
        }
    }
    /* A Ctrl-C that ended the program was meant for it, and must not end us before the report. */
    while (take_pending(SIGINT) || take_pending(SIGQUIT))
        continue;
    return ended < 0 ? -1 : 0;
}

/* ---- the end ---- */

void session_linger(bool (*is_over)(void *), void *context)
{
    const struct timespec pause = {0, 10000000};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&set, passed_on[i]);
    uint64_t end_ns = now_ns() + SESSION_LINGER_NS;
    while (!is_over(context) && now_ns() < end_ns) {
        int signo = sigtimedwait(&set, NULL, &pause);
        if (signo > 0) {
            if (signo != SIGINT && signo != SIGQUIT)
                raise(signo); /* blocked: it is pending again */
            break;
        }
    }
}

static void remove_files(const char *directory)
{
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

void session_close(struct session *session)
{
    if (session->control) {
        atomic_store(&session->control->closed, 1);
        if (atomic_exchange(&session->control->on, 0))
            atomic_fetch_add(&session->control->generation, 1);
        munmap(session->control, WIRE_CONTROL_BYTES);
        session->control = NULL;
    }
    /* A process that was just starting may still have put its arena there. */
    for (int i = 0; session->directory && i < REMOVE_TRIES; i++) {
        remove_files(session->directory);
        if (!rmdir(session->directory) || errno != ENOTEMPTY)
            break;
    }
    free(session->directory);
    session->directory = NULL;
    give_signals_back(session);
}

int session_end_like(int status)
{
    enum { SHELL_SIGNAL = 128 };
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    int number = WTERMSIG(status);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), number);
    return SHELL_SIGNAL + number;
}
