/*
 * Connections that have not made a whole request yet, and how long they may take.
 * libevent closes those that are silent; one that sends a byte now and then would
 * stay forever, and hold a descriptor that the page may need.
 *
 * The server's thread only.
 */
#ifndef SERVE_NEWCOMERS_H
#define SERVE_NEWCOMERS_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

struct newcomer;

struct newcomers {
    struct newcomer *oldest, *newest;
    double patience_sec;
    struct event *sweep;
};

/* From now on every connection of `http` is one. */
void newcomers_init(struct newcomers *newcomers, struct event_base *base, struct evhttp *http,
                    double patience_sec);
/* It has made its request. */
void newcomers_served(struct newcomers *newcomers, struct bufferevent *connection);
void newcomers_release(struct newcomers *newcomers);

#endif
