/*
 * A request as it came, and whether it may be answered at all.
 *
 * The server listens on loopback, where every process and user of the machine
 * can reach it, and so can any web page that is open in the user's browser.  What
 * keeps them out:
 *
 *   token     128 random bits, in the address' fragment, which browsers do not send;
 *             the page sends it as a header, which no other page can without being
 *             asked for permission first (CORS), and that is never given
 *   Host      a loopback name: a page of another name that has been rebound to
 *             127.0.0.1 still says its own
 *   Origin    if sent, this server's
 *   Sec-Fetch-Site   if sent, same-origin; only the page itself may be navigated to
 *             from elsewhere, since that is how the browser is opened
 *
 * Pure functions of the request.
 */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { REQUEST_TOKEN_LENGTH = 32 }; /* hexadecimal digits */

struct request {
    bool is_post;
    const char *target; /* "/api/0/search?q=x", as it came */
    /* Headers; NULL: not sent. */
    const char *host, *origin, *fetch_site, *fetch_mode, *token, *if_none_match, *accept_encoding;
    const char *body;
    size_t body_length;
};

enum request_verdict {
    REQUEST_FINE,
    REQUEST_FOREIGN,  /* made by or for somebody else: 403 */
    REQUEST_NO_TOKEN, /* 401 */
};

/* Of a request for data; or, with `is_public`, for the page itself and its bundle. */
enum request_verdict request_check(const struct request *request, const char *token,
                                   bool is_public);

/* "localhost", "127.0.0.1" or "[::1]", with any port or none: the port may be that of a tunnel. */
bool request_is_loopback(const char *host);

#endif
