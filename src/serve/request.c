/* Who may ask; see request.h.  Called by answer.c for each request. */
#include "serve/request.h"

#include <string.h>
#include <strings.h>

bool request_is_loopback(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) != 0)
            continue;
        const char *port = host + length;
        if (!*port)
            return true;
        size_t digits = strspn(port + 1, "0123456789");
        if (*port == ':' && digits && digits <= 5 && !port[1 + digits])
            return true;
    }
    return false;
}

static bool is_own_origin(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    return !strncmp(origin, scheme, sizeof scheme - 1) &&
           !strcasecmp(origin + sizeof scheme - 1, host);
}

/* Takes as long for any token that is as long. */
static bool is_token(const char *given, const char *token)
{
    unsigned char differs = 0;
    if (!given || strlen(given) != REQUEST_TOKEN_LENGTH)
        return false;
    for (size_t i = 0; i < REQUEST_TOKEN_LENGTH; i++)
        differs |= (unsigned char)(given[i] ^ token[i]);
    return !differs;
}

enum request_verdict request_check(const struct request *request, const char *token, bool is_public)
{
    if (!request->host || !request_is_loopback(request->host))
        return REQUEST_FOREIGN;
    if (request->origin && !is_own_origin(request->origin, request->host))
        return REQUEST_FOREIGN;
    bool is_navigation =
        is_public && request->fetch_mode && !strcmp(request->fetch_mode, "navigate");
    if (request->fetch_site && !is_navigation && strcmp(request->fetch_site, "same-origin") != 0)
        return REQUEST_FOREIGN;
    if (!is_public && !is_token(request->token, token))
        return REQUEST_NO_TOKEN;
    return REQUEST_FINE;
}
