/*
 * What a request is answered with: the page, its bundle, or a part of a profile.
 * docs/internals/server.md has all addresses.  Nothing here knows of sockets; the
 * two requests that concern the server itself, the event stream and the page's
 * farewell, are only recognised.
 */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include "base/buf.h"
#include "serve/request.h"
#include "serve/store.h"

enum answer_kind {
    ANSWER_PUBLIC, /* the page and its bundle, or any error: says nothing of who asked */
    ANSWER_DATA,   /* somebody with the token asked */
    ANSWER_EVENTS, /* keep the connection and send events */
    ANSWER_BYE,    /* the page is going */
};

struct answer {
    enum answer_kind kind;
    int status; /* of HTTP */
    const char *type;
    struct buf body;
    bool is_gzip;
    char etag[48]; /* "": none */
};

/* `token` has REQUEST_TOKEN_LENGTH digits.  A request to open a profile adds it to the store.  The
 * body is released by answer_release. */
void answer_make(struct answer *answer, struct store *store, const char *token,
                 const struct request *request);
void answer_release(struct answer *answer);

#endif
