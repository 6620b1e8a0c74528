/* libevent's HTTP server around answer.h; see server.h.  Called by the view command. */
#include "serve/server.h"

#include "base/mem.h"
#include "serve/answer.h"
#include "serve/newcomers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    HEADERS_MAX_BYTES = 16 * 1024,
    BODY_MAX_BYTES = 256 * 1024 * 1024,
    QUIET_SEC = 10,  /* a connection that says nothing for so long, or takes nothing, is closed */
    GOODBYE_SEC = 5, /* a page that is loaded again comes back sooner */
    KEEP_ALIVE_SEC = 15,
    LOOK_MS = 500,  /* between looks at the file */
    RETRY_MS = 100, /* until connections are taken again when there were too many */
    STREAMS_MAX = 32,
    CONNECTIONS_WAITING = 1024, /* to be taken */
};

struct stream { /* an open event stream */
    struct server *server;
    struct evhttp_request *request;
    struct stream *next;
};

struct server {
    struct store *store;
    struct server_config config;
    char token[REQUEST_TOKEN_LENGTH + 1];
    char url[80];
    struct event_base *base;
    struct evhttp *http;
    struct newcomers newcomers;
    struct event *gone, *alive, *look, *stop;
    struct stream *streams;
    unsigned stream_count;
    bool said_goodbye;
    bool is_running; /* the profiled program */
};

static struct timeval after_ms(double ms)
{
    return (struct timeval){(time_t)(ms / 1000), (suseconds_t)(fmod(ms, 1000) * 1000)};
}

/* ---- the end ---- */

/* Somebody was here: count anew, or not at all while a stream is open. */
static void note_page(struct server *server)
{
    double sec = server->config.linger_sec;
    if (server->said_goodbye)
        sec = fmin(sec, GOODBYE_SEC);
    struct timeval delay = after_ms(sec * 1000);
    if (server->streams)
        event_del(server->gone);
    else
        event_add(server->gone, &delay);
}

static void end_loop(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    event_base_loopbreak(server->base);
}

/* ---- events ---- */

static void send_stream(struct stream *stream, const char *text)
{
    struct evbuffer *chunk = evbuffer_new();
    evbuffer_add(chunk, text, strlen(text));
    evhttp_send_reply_chunk(stream->request, chunk);
    evbuffer_free(chunk);
}

static void send_all(struct server *server, const char *text)
{
    struct stream *next;
    for (struct stream *stream = server->streams; stream; stream = next) {
        next = stream->next;
        send_stream(stream, text);
    }
}

/* The connection is gone.  A request that was cut off from it is ours; else it goes with it. */
static void close_stream(struct evhttp_connection *connection, void *context)
{
    struct stream *stream = context;
    struct server *server = stream->server;
    struct stream **at = &server->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    server->stream_count--;
    if (!evhttp_request_get_connection(stream->request))
        evhttp_request_free(stream->request);
    free(stream);
    note_page(server);
}

static void open_stream(struct server *server, struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct stream *stream = mem_zalloc(1, sizeof *stream);
    *stream = (struct stream){server, request, server->streams};
    server->streams = stream;
    server->stream_count++;
    evhttp_connection_set_closecb(connection, close_stream, stream);
    /* It is quiet for long; a reader that is gone without a word is found by the keep-alive. */
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), NULL, NULL);
    evhttp_send_reply_start(request, 200, "OK");
    send_stream(stream, ": hello\n\n");
}

static void keep_alive(evutil_socket_t fd, short what, void *context)
{
    send_all(context, ": alive\n\n");
}

static void look_at_file(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    const struct store_entry *entry = &server->store->entries[0];
    if (!store_refresh(server->store))
        return;
    char event[96];
    snprintf(event, sizeof event, "event: profile\ndata: {\"p\":0,\"generation\":%llu}\n\n",
             (unsigned long long)entry->generation);
    send_all(server, event);
    bool is_running = parts_is_running(&entry->profile);
    if (is_running != server->is_running)
        send_all(server,
                 is_running ? "event: running\ndata: {}\n\n" : "event: ended\ndata: {}\n\n");
    server->is_running = is_running;
}

/* ---- requests ---- */

static const char *const fixed_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
     "'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'; trusted-types scalene"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    /* One request a connection: on loopback a new one costs nothing, and none is left lying. */
    {"Connection", "close"},
};

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } known[] = {{200, "OK"},           {204, "No Content"},
                 {304, "Not Modified"}, {401, "Unauthorized"},
                 {403, "Forbidden"},    {404, "Not Found"},
                 {410, "Gone"},         {422, "Unprocessable Content"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].reason;
    return "Too Many Requests";
}

static void free_body(const void *data, size_t length, void *context)
{
    free(context);
}

static void send_answer(struct evhttp_request *request, struct answer *answer)
{
    struct evbuffer *body = evbuffer_new();
    if (answer->body.len) {
        size_t length = answer->body.len;
        char *data = buf_detach(&answer->body);
        evbuffer_add_reference(body, data, length, free_body, data);
    }
    evhttp_send_reply(request, answer->status, reason_of(answer->status), body);
    evbuffer_free(body);
}

static void add_headers(struct evhttp_request *request, const struct answer *answer)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    for (size_t i = 0; i < sizeof fixed_headers / sizeof *fixed_headers; i++)
        evhttp_add_header(headers, fixed_headers[i][0], fixed_headers[i][1]);
    if (answer->type)
        evhttp_add_header(headers, "Content-Type", answer->type);
    if (answer->etag[0])
        evhttp_add_header(headers, "ETag", answer->etag);
    if (answer->is_gzip)
        evhttp_add_header(headers, "Content-Encoding", "gzip");
}

static struct request request_of(struct evhttp_request *from)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(from);
    struct evbuffer *body = evhttp_request_get_input_buffer(from);
    size_t length = evbuffer_get_length(body);
    return (struct request){
        .is_post = evhttp_request_get_command(from) == EVHTTP_REQ_POST,
        .target = evhttp_request_get_uri(from),
        .host = evhttp_find_header(headers, "Host"),
        .origin = evhttp_find_header(headers, "Origin"),
        .fetch_site = evhttp_find_header(headers, "Sec-Fetch-Site"),
        .fetch_mode = evhttp_find_header(headers, "Sec-Fetch-Mode"),
        .token = evhttp_find_header(headers, "X-Scalene-Token"),
        .if_none_match = evhttp_find_header(headers, "If-None-Match"),
        .accept_encoding = evhttp_find_header(headers, "Accept-Encoding"),
        .body = length ? (const char *)evbuffer_pullup(body, -1) : "",
        .body_length = length,
    };
}

static void handle(struct evhttp_request *from, void *context)
{
    struct server *server = context;
    struct request request = request_of(from);
    struct answer answer;
    newcomers_served(&server->newcomers,
                     evhttp_connection_get_bufferevent(evhttp_request_get_connection(from)));
    answer_make(&answer, server->store, server->token, &request);
    if (answer.kind == ANSWER_EVENTS && server->stream_count == STREAMS_MAX) {
        answer.kind = ANSWER_PUBLIC;
        answer.status = 429;
    }
    add_headers(from, &answer);
    if (answer.kind != ANSWER_PUBLIC)
        server->said_goodbye = answer.kind == ANSWER_BYE;
    if (answer.kind == ANSWER_EVENTS)
        open_stream(server, from);
    else
        send_answer(from, &answer);
    if (answer.kind != ANSWER_PUBLIC)
        note_page(server);
    answer_release(&answer);
}

/* ---- life ---- */

static void accept_again(evutil_socket_t fd, short what, void *context)
{
    evconnlistener_enable(context);
}

/* No descriptor is free: without a pause the loop would spin, since the connection still waits.
 * The context is evhttp's, whose listener it became. */
static void accept_failed(struct evconnlistener *listener, void *context)
{
    struct timeval delay = after_ms(RETRY_MS);
    evconnlistener_disable(listener);
    event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, accept_again, listener,
                    &delay);
}

static void drop_log(int severity, const char *message)
{
}

static struct evconnlistener *listen_at(struct server *server, int port)
{
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return evconnlistener_new_bind(server->base, NULL, NULL, flags, CONNECTIONS_WAITING,
                                   (struct sockaddr *)&address, sizeof address);
}

static int bind_port(struct server *server, struct err *err)
{
    int first = server->config.port, last = first ? first + SERVER_PORTS_TRIED : 0, port = first;
    struct evconnlistener *listener = listen_at(server, port);
    while (!listener && errno == EADDRINUSE && port < last && port < 65535)
        listener = listen_at(server, ++port);
    if (!listener)
        return err_set(err, "cannot listen on 127.0.0.1, port %d%s: %s", first,
                       port > first ? " and above" : "", strerror(errno));
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &length);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/#t=%s",
             (unsigned)ntohs(address.sin_port), server->token);
    evhttp_bind_listener(server->http, listener); /* which owns it from now on */
    evconnlistener_set_error_cb(listener, accept_failed);
    return 0;
}

static int make_token(struct server *server, struct err *err)
{
    unsigned char random[REQUEST_TOKEN_LENGTH / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return err_set(err, "cannot get random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(server->token + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static void start_timers(struct server *server)
{
    struct timeval alive = {KEEP_ALIVE_SEC, 0}, look = after_ms(LOOK_MS);
    server->gone = evtimer_new(server->base, end_loop, server);
    server->alive = event_new(server->base, -1, EV_PERSIST, keep_alive, server);
    server->look = event_new(server->base, -1, EV_PERSIST, look_at_file, server);
    event_add(server->alive, &alive);
    event_add(server->look, &look);
    if (server->config.stop_fd >= 0) {
        server->stop = event_new(server->base, server->config.stop_fd, EV_READ, end_loop, server);
        event_add(server->stop, NULL);
    }
}

struct server *server_new(struct store *store, const struct server_config *config, struct err *err)
{
    struct server *server = mem_zalloc(1, sizeof *server);
    server->store = store;
    server->config = *config;
    server->is_running = parts_is_running(&store->entries[0].profile);
    event_set_log_callback(drop_log);
    server->base = event_base_new();
    server->http = server->base ? evhttp_new(server->base) : NULL;
    if (!server->http) {
        err_set(err, "cannot start the server: %s", strerror(errno));
        server_free(server);
        return NULL;
    }
    if (make_token(server, err) || bind_port(server, err)) {
        server_free(server);
        return NULL;
    }
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_headers_size(server->http, HEADERS_MAX_BYTES);
    evhttp_set_max_body_size(server->http, BODY_MAX_BYTES);
    evhttp_set_timeout(server->http, QUIET_SEC);
    evhttp_set_gencb(server->http, handle, server);
    newcomers_init(&server->newcomers, server->base, server->http, config->request_sec);
    start_timers(server);
    return server;
}

const char *server_url(const struct server *server)
{
    return server->url;
}

void server_expect_page(struct server *server)
{
    note_page(server);
}

void server_run(struct server *server)
{
    event_base_dispatch(server->base);
}

void server_free(struct server *server)
{
    struct event *const events[] = {server->gone, server->alive, server->look, server->stop};
    /* Connections first: closing a stream still counts it. */
    if (server->http)
        evhttp_free(server->http);
    newcomers_release(&server->newcomers);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            event_free(events[i]);
    if (server->base)
        event_base_free(server->base);
    free(server);
}
