/* Connections without a request; see newcomers.h.  Called by server.c. */
#include "serve/newcomers.h"

#include "base/mem.h"

#include <stdlib.h>
#include <time.h>

enum { SWEEPS = 4 }; /* in the time that one may take */

struct newcomer {
    struct bufferevent *connection; /* we hold a reference: libevent may be done with it before */
    double since_sec;
    struct newcomer *next; /* came later */
};

static double now_sec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct bufferevent *arrive(struct event_base *base, void *context)
{
    struct newcomers *newcomers = context;
    struct newcomer *newcomer = mem_zalloc(1, sizeof *newcomer);
    newcomer->connection = bufferevent_socket_new(base, -1, 0);
    newcomer->since_sec = now_sec();
    bufferevent_incref(newcomer->connection);
    *(newcomers->oldest ? &newcomers->newest->next : &newcomers->oldest) = newcomer;
    newcomers->newest = newcomer;
    return newcomer->connection;
}

static void forget(struct newcomers *newcomers, struct newcomer **at, struct newcomer *before)
{
    struct newcomer *gone = *at;
    *at = gone->next;
    if (newcomers->newest == gone)
        newcomers->newest = before;
    bufferevent_decref(gone->connection);
    free(gone);
}

/* Those who took too long are told that the other side has closed; for one that is closed already
 * this does nothing. */
static void sweep(evutil_socket_t fd, short what, void *context)
{
    struct newcomers *newcomers = context;
    double limit = now_sec() - newcomers->patience_sec;
    while (newcomers->oldest && newcomers->oldest->since_sec < limit) {
        bufferevent_trigger_event(newcomers->oldest->connection, BEV_EVENT_READING | BEV_EVENT_EOF,
                                  0);
        forget(newcomers, &newcomers->oldest, NULL);
    }
}

void newcomers_init(struct newcomers *newcomers, struct event_base *base, struct evhttp *http,
                    double patience_sec)
{
    *newcomers = (struct newcomers){.patience_sec = patience_sec};
    double every_sec = patience_sec / SWEEPS;
    struct timeval every = {(time_t)every_sec,
                            (suseconds_t)((every_sec - (double)(time_t)every_sec) * 1e6)};
    newcomers->sweep = event_new(base, -1, EV_PERSIST, sweep, newcomers);
    event_add(newcomers->sweep, &every);
    evhttp_set_bevcb(http, arrive, newcomers);
}

void newcomers_served(struct newcomers *newcomers, struct bufferevent *connection)
{
    struct newcomer *before = NULL;
    for (struct newcomer **at = &newcomers->oldest; *at; before = *at, at = &(*at)->next) {
        if ((*at)->connection == connection) {
            forget(newcomers, at, before);
            return;
        }
    }
}

void newcomers_release(struct newcomers *newcomers)
{
    while (newcomers->oldest)
        forget(newcomers, &newcomers->oldest, NULL);
    if (newcomers->sweep)
        event_free(newcomers->sweep);
    *newcomers = (struct newcomers){0};
}
