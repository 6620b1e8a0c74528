/*
 * Fuzzes src/serve: whatever a request has in it, it is answered with a status
 * that there is, JSON where it should be, and nothing of the profile unless token,
 * Host, Origin and Sec-Fetch-Site are right.
 *
 * An input is lines: the target, then `h` Host, `o` Origin, `s` Sec-Fetch-Site, `m`
 * Sec-Fetch-Mode, `t` token, `e` Accept-Encoding, `p` makes it a POST and the rest of the input its
 * body.  Inputs are requests that are answered, with pieces of others in them.
 */
#include <jansson.h> /* before json_out.h, whose short names are jansson's */

#include "base/mem.h"
#include "fuzz.h"
#include "serve/answer.h"

#include <string.h>

#define TOKEN  "0123456789abcdef0123456789abcdef"
#define SECRET "the_text_of_a_line"

static long results[600]; /* by status */

static const char profile_text[] =
    "{\"elapsed_time_sec\":1,\"files\":{\"/p/a.py\":{\"lines\":[{\"lineno\":1,\"line\":\"" SECRET
    "\",\"n_cpu_percent_c\":50}]}}}";

static void fill(struct request *request, char *text, size_t length)
{
    char *end = text + length;
    *request = (struct request){.target = text, .body = ""};
    while ((text = memchr(text, '\n', (size_t)(end - text)))) {
        *text++ = '\0';
        const char **const fields[] = {
            ['h'] = &request->host,       ['o'] = &request->origin,
            ['s'] = &request->fetch_site, ['m'] = &request->fetch_mode,
            ['t'] = &request->token,      ['e'] = &request->accept_encoding};
        if (*text == 'p') {
            request->is_post = true;
            request->body = text + 1;
            request->body_length = (size_t)(end - text) - 1;
            return;
        }
        if ((unsigned char)*text < COUNT_OF(fields) && fields[(unsigned char)*text])
            *fields[(unsigned char)*text] = text + 1;
    }
}

/* Said once more, in other words. */
static bool is_ours(const struct request *request)
{
    if (!request->host || !request->token || strcmp(request->token, TOKEN) != 0)
        return false;
    char *origin = mem_format("http://%s", request->host);
    bool is_right = !request->origin || !strcasecmp(request->origin, origin);
    free(origin);
    return is_right && strncasecmp(request->host, "evil", 4) != 0 &&
           (!request->fetch_site || !strcmp(request->fetch_site, "same-origin"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store store = {0};
    struct request request;
    struct answer answer;
    struct err err;
    char *text = mem_strndup((const char *)data, size);
    CHECK(!store_open(&store, NULL, profile_text, strlen(profile_text), &err));
    fill(&request, text, size);
    answer_make(&answer, &store, TOKEN, &request);
    CHECK(answer.status >= 200 && answer.status < 500);
    results[answer.status]++;
    if (answer.kind != ANSWER_PUBLIC || store.count > 1)
        CHECK(is_ours(&request) && !strncmp(request.target, "/api/", 5));
    else if (answer.body.data)
        CHECK(!strstr(answer.body.data, SECRET));
    if (answer.body.len && !strcmp(answer.type, "application/json") && !answer.is_gzip) {
        json_t *body = json_loadb(answer.body.data, answer.body.len, 0, NULL);
        CHECK(json_is_object(body));
        CHECK((answer.status == 200) == !json_object_get(body, "error"));
        json_decref(body);
    }
    answer_release(&answer);
    store_release(&store);
    free(text);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 30000, CHANGES_MAX = 3 };

static const char *const seeds[] = {
    "/\nhlocalhost\nscross-site\nmnavigate",
    "/page.js\nhlocalhost:1\negzip, br",
    "/api/0/summary\nhlocalhost\nt" TOKEN,
    "/api/0/file/0\nh127.0.0.1:11235\nohttp://127.0.0.1:11235\nssame-origin\nt" TOKEN,
    "/api/0/search?q=the%5Ftext+x%\nh[::1]:9\nt" TOKEN,
    "/api/0/stacks\nhlocalhost\nt" TOKEN,
    "/api/0/timeline\nhlocalhost\nt" TOKEN,
    "/api/0/profile.json\nhlocalhost\nt" TOKEN,
    "/api/events\nhlocalhost\nt" TOKEN,
    "/api/bye\nhlocalhost\nt" TOKEN "\np",
    "/api/open\nhlocalhost\nt" TOKEN "\np{\"elapsed_time_sec\":1,\"files\":{}}",
    "/api/open\nhlocalhost\nt" TOKEN "\np{\"elapsed_time_sec\"",
};

static void change(struct buf *text)
{
    static const char *const pieces[] = {
        "/",       "..",          "%",        "%00", "\n",        "\nh", "\nhevil",
        "\no",     "\ns",         "\nt",      "\np", "localhost", "0",   "1",
        "9999",    "api/",        "?q=",      "//",  "file/",     "-1",  "\npnull",
        "http://", "same-origin", "navigate", TOKEN, "summary"};
    size_t at = fuzz_below(text->len + 1), cut = fuzz_below(3) ? 0 : fuzz_below(text->len - at + 1);
    if (fuzz_below(2)) {
        const char *piece = pieces[fuzz_below(COUNT_OF(pieces))];
        fuzz_splice(text, at, cut, piece, strlen(piece));
    } else {
        char byte = (char)fuzz_below(256);
        fuzz_splice(text, at, cut > 4 ? 4 : cut, &byte, 1);
    }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT_OF(seeds); i++)
        LLVMFuzzerTestOneInput((const uint8_t *)seeds[i], strlen(seeds[i]));
    CHECK(results[200] == (long)COUNT_OF(seeds) - 2 && results[204] == 1 && results[422] == 1);
    while (fuzz_goes_on(argc, argv, INPUTS)) {
        const char *seed = seeds[fuzz_below(COUNT_OF(seeds))];
        struct buf text = {0};
        buf_str(&text, seed);
        for (size_t n = 1 + fuzz_below(CHANGES_MAX); n; n--)
            change(&text);
        LLVMFuzzerTestOneInput((const uint8_t *)text.data, text.len);
        buf_release(&text);
    }
    CHECK(results[200] && results[204] && results[401] && results[403] && results[404] &&
          results[422]);
    return 0;
}

#endif
