/* From requests to answers; see answer.h.  The tables are the list of all addresses. */
#include "serve/answer.h"

#include "base/deflate.h"
#include "base/file.h"
#include "base/json_out.h"
#include "serve/assets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GZIP_LEAST_BYTES = 64 * 1024, GZIP_LEVEL = 1, SEARCH_MAX = 1000 };

static const char type_json[] = "application/json";

static void refuse(struct answer *answer, int status, const char *text)
{
    struct json_out json;
    buf_reset(&answer->body);
    json_out_begin_compact(&json, &answer->body);
    json_out_object(&json);
    json_out_key(&json, "error");
    json_out_cstr(&json, text);
    json_out_end(&json);
    answer->kind = ANSWER_PUBLIC;
    answer->status = status;
    answer->type = type_json;
    answer->etag[0] = '\0';
}

/* ---- public ---- */

static void put_page(struct buf *out)
{
    html_shell(out);
}

static void put_script(struct buf *out)
{
    struct html_assets assets;
    assets_page(&assets);
    buf_add(out, assets.script, assets.script_length);
}

static void put_style(struct buf *out)
{
    struct html_assets assets;
    assets_page(&assets);
    buf_add(out, assets.style, assets.style_length);
}

static const struct {
    const char *path, *type;
    void (*put)(struct buf *out);
} pages[] = {
    {"/", "text/html; charset=utf-8", put_page},
    {"/page.js", "text/javascript; charset=utf-8", put_script},
    {"/page.css", "text/css; charset=utf-8", put_style},
};

/* ---- parts ---- */

/* A number at the end of a path: at most nine digits, and nothing behind them. */
static bool read_number(const char *text, uint32_t *number)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 9 || text[digits])
        return false;
    *number = (uint32_t)strtoul(text, NULL, 10);
    return true;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* %41 and + as in the query of an address. */
static void add_unquoted(const char *text, struct buf *out)
{
    for (; *text && out->len < SEARCH_MAX; text++) {
        int high = *text == '%' ? hex_digit(text[1]) : -1;
        int low = high >= 0 ? hex_digit(text[2]) : -1;
        if (low >= 0) {
            buf_char(out, (char)(high * 16 + low));
            text += 2;
        } else {
            buf_char(out, (char)(*text == '+' ? ' ' : *text));
        }
    }
}

static int put_search(const struct parts *parts, const char *query, struct buf *out)
{
    struct buf text = {0};
    if (strncmp(query, "q=", 2) != 0)
        return -1;
    add_unquoted(query + 2, &text);
    parts_search(parts, text.data ? text.data : "", text.len, out);
    buf_release(&text);
    return 0;
}

static int put_file(const struct parts *parts, const char *id_text, struct buf *out)
{
    uint32_t id;
    if (!read_number(id_text, &id) || id >= parts->profile->file_count)
        return -1;
    parts_file(parts, id, out);
    return 0;
}

static const struct {
    const char *name;
    void (*make)(const struct parts *, struct buf *);
} parts_plain[] = {
    {"summary", parts_summary},
    {"stacks", parts_stacks},
    {"memory_stacks", parts_memory_stacks},
    {"timeline", parts_timeline},
};

/* With something behind the name, which must make sense to it. */
static const struct {
    const char *begin;
    int (*make)(const struct parts *, const char *rest, struct buf *);
} parts_of[] = {
    {"file/", put_file},
    {"search?", put_search},
};

/* -1: there is no such part. */
static int put_part(const struct parts *parts, const char *name, struct buf *out)
{
    for (size_t i = 0; i < sizeof parts_plain / sizeof *parts_plain; i++) {
        if (!strcmp(name, parts_plain[i].name)) {
            parts_plain[i].make(parts, out);
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof parts_of / sizeof *parts_of; i++) {
        size_t length = strlen(parts_of[i].begin);
        if (!strncmp(name, parts_of[i].begin, length))
            return parts_of[i].make(parts, name + length, out);
    }
    return -1;
}

static void put_whole(struct answer *answer, const struct store_entry *entry)
{
    struct err err;
    if (entry->text)
        buf_add(&answer->body, entry->text, entry->text_length);
    else if (file_read(entry->path, &answer->body, &err))
        refuse(answer, 410, err.text);
}

/* `path` is what follows "/api/": "0/summary". */
static void get_part(struct answer *answer, const struct store *store,
                     const struct request *request, const char *path)
{
    const char *slash = strchr(path, '/');
    char number[12];
    uint32_t p = UINT32_MAX;
    if (slash && (size_t)(slash - path) < sizeof number) {
        memcpy(number, path, (size_t)(slash - path));
        number[slash - path] = '\0';
        if (!read_number(number, &p))
            p = UINT32_MAX;
    }
    if (p >= store->count) {
        refuse(answer, 404, "there is no such profile");
        return;
    }
    const struct store_entry *entry = &store->entries[p];
    struct parts parts = store_parts(entry);
    snprintf(answer->etag, sizeof answer->etag, "\"%u-%llu\"", p,
             (unsigned long long)entry->generation);
    if (request->if_none_match && !strcmp(request->if_none_match, answer->etag))
        answer->status = 304;
    else if (!strcmp(slash + 1, "profile.json"))
        put_whole(answer, entry);
    else if (put_part(&parts, slash + 1, &answer->body))
        refuse(answer, 404, "there is no such part of a profile");
}

static void open_profile(struct answer *answer, struct store *store, const struct request *request)
{
    struct err err;
    if (store_open(store, NULL, request->body, request->body_length, &err))
        refuse(answer, 422, err.text);
    else
        buf_addf(&answer->body, "{\"p\":%u}", store->count - 1);
}

/* ---- all of it ---- */

static void answer_data(struct answer *answer, struct store *store, const struct request *request)
{
    const char *path = request->target + strlen("/api/");
    answer->kind = ANSWER_DATA;
    answer->type = type_json;
    if (request->is_post && !strcmp(path, "open"))
        open_profile(answer, store, request);
    else if (request->is_post && !strcmp(path, "bye"))
        *answer = (struct answer){.kind = ANSWER_BYE, .status = 204};
    else if (request->is_post)
        refuse(answer, 404, "there is nothing to send to at this address");
    else if (!strcmp(path, "events"))
        *answer =
            (struct answer){.kind = ANSWER_EVENTS, .status = 200, .type = "text/event-stream"};
    else
        get_part(answer, store, request, path);
}

static void answer_page(struct answer *answer, const struct request *request)
{
    size_t length = strcspn(request->target, "?");
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (strlen(pages[i].path) == length && !request->is_post &&
            !strncmp(request->target, pages[i].path, length)) {
            answer->type = pages[i].type;
            pages[i].put(&answer->body);
            return;
        }
    }
    refuse(answer, 404, "there is nothing at this address");
}

static void compress(struct answer *answer, const struct request *request)
{
    if (answer->body.len < GZIP_LEAST_BYTES || !request->accept_encoding ||
        !strstr(request->accept_encoding, "gzip"))
        return;
    struct buf small = {0};
    deflate_bytes(answer->body.data, answer->body.len, DEFLATE_GZIP, GZIP_LEVEL, &small);
    buf_release(&answer->body);
    answer->body = small;
    answer->is_gzip = true;
}

void answer_make(struct answer *answer, struct store *store, const char *token,
                 const struct request *request)
{
    bool is_public = strncmp(request->target, "/api/", 5) != 0;
    *answer = (struct answer){.status = 200};
    switch (request_check(request, token, is_public)) {
    case REQUEST_FOREIGN:
        refuse(answer, 403, "this server answers only its own page");
        return;
    case REQUEST_NO_TOKEN:
        refuse(answer, 401,
               "the token is missing or wrong: open the address that scalene view "
               "printed");
        return;
    case REQUEST_FINE:
        break;
    }
    if (is_public)
        answer_page(answer, request);
    else
        answer_data(answer, store, request);
    compress(answer, request);
}

void answer_release(struct answer *answer)
{
    buf_release(&answer->body);
}
