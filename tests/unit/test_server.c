/*
 * The server in a process of its own, with limits short enough to reach: requests
 * that take too long to come are cut off, those that came in time are not.  What
 * it answers is in tests/e2e/test_serve.py.
 */
#include "serve/server.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t server_pid;
static unsigned port;
static char token[64];

/* Never returns; the address goes to `out`. */
static void serve(int out)
{
    static const char profile[] = "{\"elapsed_time_sec\":1,\"files\":{\"a\":{}}}";
    const struct server_config config = {.linger_sec = 60, .request_sec = 0.3, .stop_fd = -1};
    struct store store = {0};
    struct err err;
    if (store_open(&store, NULL, profile, strlen(profile), &err))
        _exit(1);
    struct server *server = server_new(&store, &config, &err);
    if (!server || dprintf(out, "%s\n", server_url(server)) < 0)
        _exit(1);
    close(out);
    server_run(server);
    _exit(0);
}

static int start(void **state)
{
    int ends[2];
    char url[128];
    signal(SIGPIPE, SIG_IGN); /* connections are closed while we write */
    if (pipe(ends))
        return -1;
    server_pid = fork();
    if (!server_pid)
        serve(ends[1]);
    close(ends[1]);
    ssize_t n = read(ends[0], url, sizeof url - 1);
    close(ends[0]);
    if (n <= 0)
        return -1;
    url[n] = '\0';
    return sscanf(url, "http://127.0.0.1:%u/#t=%63s", &port, token) == 2 ? 0 : -1;
}

static int stop(void **state)
{
    kill(server_pid, SIGKILL);
    return waitpid(server_pid, NULL, 0) == server_pid ? 0 : -1;
}

static int connected(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
}

/* Is there something to read, or an end, within this time? */
static bool hears(int fd, int ms)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    return poll(&waiting, 1, ms) == 1;
}

/* A header that grows by a byte now and then: never silent, never whole. */
static void test_drip(void **state)
{
    int fd = connected(), drops = 0;
    say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    while (!hears(fd, 20) && drops < 1000) {
        ssize_t n = write(fd, "x", 1);
        assert_true(n == 1 || errno == EPIPE || errno == ECONNRESET);
        drops++;
    }
    assert_true(drops > 1 && drops < 1000);
    close(fd);
}

/* Nor is one that says nothing at all kept so long as silence is allowed. */
static void test_mute(void **state)
{
    int fd = connected();
    char byte;
    assert_true(hears(fd, 8000));
    assert_true(read(fd, &byte, 1) <= 0);
    close(fd);
}

/* An event stream made its request and may stay: longer than another connection that did not. */
static void test_stream_stays(void **state)
{
    char answer[4096];
    size_t length = 0;
    int stream = connected(), mute = connected();
    char *request = mem_format(
        "GET /api/events HTTP/1.1\r\nHost: localhost\r\nX-Scalene-Token: %s\r\n\r\n", token);
    say(stream, request);
    free(request);
    while (length < sizeof answer - 1 && !memmem(answer, length, ": hello", 7)) {
        ssize_t n = read(stream, answer + length, sizeof answer - 1 - length);
        assert_true(n > 0);
        length += (size_t)n;
    }
    assert_true(hears(mute, 8000)); /* it is closed */
    close(mute);
    mute = connected();
    assert_true(hears(mute, 8000)); /* and so is the next */
    close(mute);
    while (hears(stream, 0)) { /* what came meanwhile is no end */
        ssize_t n = read(stream, answer, sizeof answer);
        assert_true(n > 0);
    }
    close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drip),
        cmocka_unit_test(test_mute),
        cmocka_unit_test(test_stream_stays),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
