/* The page, in a browser or in one file; see view_page.h. */
#include "cmd/view_page.h"

#include "base/file.h"
#include "cmd/browser.h"
#include "cmd/cmd.h"
#include "serve/assets.h"
#include "serve/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define REPORT_DEFAULT "scalene-profile.html"

static int write_report(const struct store *store, const struct html_assets *assets,
                        const char *outfile)
{
    const char *path = outfile ? outfile : REPORT_DEFAULT;
    struct parts parts = store_parts(&store->entries[0]);
    struct buf out = {0};
    struct err err;
    html_report(&parts, assets, &out);
    int rc = file_write_atomic(path, out.data, out.len, &err);
    if (rc)
        cmd_say(&err);
    else
        printf("Profile saved to: %s\n", path);
    buf_release(&out);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Ctrl-C and its like as something to be read; they end the server and are no failure. */
static int stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Connections that wait must not keep the page out. */
static void allow_connections(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Scripts that call view where there is no browser expect it to leave the page as a file. */
static bool is_alone(const char *redirect, const struct view_options *view)
{
    if (redirect || !view->browser)
        return false;
    fputs("Scalene: could not open a browser.\n", stderr);
    return !isatty(STDOUT_FILENO);
}

static void say_where(const char *url)
{
    struct buf text = {0};
    buf_addf(&text,
             "Scalene: the profile is at %s\n"
             "  Keep this address to yourself. It ends when the page is closed, or with Ctrl-C.\n",
             url);
    cmd_print(&text);
    buf_release(&text);
}

static int serve(struct store *store, const struct html_assets *assets,
                 const struct view_options *view)
{
    struct server_config config = {
        .port = (int)view->port,
        .linger_sec = view->linger_sec,
        .request_sec = SERVER_REQUEST_SEC,
        .stop_fd = stop_signals(),
    };
    struct err err;
    int status = EXIT_SUCCESS;
    allow_connections();
    struct server *server = server_new(store, &config, &err);
    if (!server) {
        cmd_say(&err);
        return EXIT_FAILURE;
    }
    char *redirect = view->browser ? browser_open(server_url(server)) : NULL;
    if (redirect)
        server_expect_page(server);
    if (is_alone(redirect, view)) {
        status = write_report(store, assets, view->outfile);
    } else {
        say_where(server_url(server));
        server_run(server);
    }
    if (redirect)
        unlink(redirect);
    free(redirect);
    server_free(server);
    return status;
}

int view_page(const char *path, struct buf *text, const struct view_options *view)
{
    struct html_assets assets;
    struct store store = {0};
    struct err err;
    if (!assets_page(&assets)) {
        fputs("scalene: this build has no page; use scalene view --cli\n", stderr);
        return EXIT_FAILURE;
    }
    int rc = store_open(&store, path, text->data, text->len, &err);
    buf_release(text);
    if (rc) {
        view_say_failure(rc, &err);
        return EXIT_FAILURE;
    }
    int status = view->html || view->standalone ? write_report(&store, &assets, view->outfile)
                                                : serve(&store, &assets, view);
    store_release(&store);
    return status;
}
