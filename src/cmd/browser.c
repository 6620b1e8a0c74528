/* Finding and starting a browser; see browser.h.  Called by view.c. */
#include "cmd/browser.h"

#include "base/buf.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *write_redirect(const char *url)
{
    const char *directory = getenv("XDG_RUNTIME_DIR");
    if (!directory || access(directory, W_OK))
        directory = getenv("TMPDIR");
    char *path = mem_format("%s/scalene-XXXXXX.html", directory ? directory : "/tmp");
    int fd = mkostemps(path, (int)strlen(".html"), O_CLOEXEC); /* of mode 0600 */
    struct buf text = {0};
    buf_addf(&text,
             "<!doctype html><meta charset=\"utf-8\"><title>Scalene</title>"
             "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">Scalene</a>\n",
             url, url);
    bool ok = fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len;
    buf_release(&text);
    if (fd >= 0)
        close(fd);
    if (ok)
        return path;
    if (fd >= 0)
        unlink(path);
    free(path);
    return NULL;
}

/* In a session of its own, so that our Ctrl-C is not the browser's, and without our terminal. */
static bool start(const char *command, const char *path)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char *words[] = {(char *)command, (char *)path, NULL};
    pid_t pid;
    posix_spawn_file_actions_init(&files);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    posix_spawnattr_init(&attributes);
    sigset_t none, child;
    sigemptyset(&none);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &child);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    bool ok = !posix_spawnp(&pid, command, &files, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return ok;
}

static bool start_any(const char *path)
{
    static const char *const commands[] = {"xdg-open", "sensible-browser", "x-www-browser",
                                           "firefox",  "chromium",         "google-chrome"};
    const char *chosen = getenv("BROWSER");
    if (chosen && *chosen)
        return start(chosen, path);
    /* Without a display those would show the page in this terminal, if at all. */
    if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
        return false;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (start(commands[i], path))
            return true;
    return false;
}

char *browser_open(const char *url)
{
    char *path = write_redirect(url);
    if (!path)
        return NULL;
    signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
    if (start_any(path))
        return path;
    unlink(path);
    free(path);
    return NULL;
}
