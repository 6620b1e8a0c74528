/*
 * The loopback server of `scalene view`: libevent's HTTP around answer.h, the
 * stream of events, and the end of it all.  docs/internals/server.md says what it
 * speaks.
 *
 *   server_new -> server_url -> server_run -> server_free
 *
 * One thread.  The server ends when the page is gone: no event stream is open and
 * nothing was asked for `linger_sec`, or for a moment after the page said that it
 * goes; or when `stop_fd` can be read.
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "base/err.h"
#include "serve/store.h"

enum {
    SERVER_PORT = 11235,      /* the original's */
    SERVER_PORTS_TRIED = 100, /* the next ones, if that is taken */
    SERVER_LINGER_SEC = 150,  /* timers of a hidden page may run once a minute only */
    SERVER_REQUEST_SEC = 60,  /* a large profile through a slow tunnel */
};

struct server_config {
    int port; /* 0: any that is free */
    double linger_sec;
    double request_sec; /* so long a request may take to come */
    int stop_fd;        /* -1: none */
};

struct server;

/* The store holds one profile at least, and is the caller's. */
struct server *server_new(struct store *store, const struct server_config *config, struct err *err);
/* With the token: for the user's eyes only.  Lives as long as the server. */
const char *server_url(const struct server *server);
/* The page was opened: if it does not ask for anything, it is gone as well. */
void server_expect_page(struct server *server);
void server_run(struct server *server);
void server_free(struct server *server);

#endif
