/* The shell and the report in one file; see html.h. */
#include "view/html.h"

#include "base/base64.h"
#include "base/deflate.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "view/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN_PART_MAX = 256 * 1024, REPORT_DEFLATE_LEVEL = 9 };

static void begin(const char *source, struct buf *out)
{
    buf_addf(out,
             "<!doctype html>\n<html lang=\"en\" data-source=\"%s\">\n<head>\n"
             "<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n",
             source);
}

void html_shell(struct buf *out)
{
    begin("http", out);
    buf_str(out, "<title>Scalene</title>\n"
                 "<link rel=\"stylesheet\" href=\"/page.css\">\n</head>\n<body>\n"
                 "<main id=\"app\"><noscript><p>This page needs JavaScript. Without it: "
                 "<code>scalene view --cli</code>, or <code>scalene view --html</code>, whose "
                 "summary needs none.</p></noscript></main>\n"
                 "<script src=\"/page.js\" defer></script>\n</body>\n</html>\n");
}

/* 'sha256-...', which lets a browser run or apply exactly this text. */
static void put_hash(const char *text, size_t length, struct buf *out)
{
    uint8_t digest[SHA256_BYTES];
    sha256(text, length, digest);
    buf_str(out, "'sha256-");
    base64_encode(digest, sizeof digest, out);
    buf_char(out, '\'');
}

static void put_policy(const struct html_assets *assets, struct buf *out)
{
    buf_str(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "script-src ");
    put_hash(assets->script, assets->script_length, out);
    buf_str(out, "; style-src ");
    put_hash(assets->style, assets->style_length, out);
    buf_str(out, "; img-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; "
                 "require-trusted-types-for 'script'; trusted-types scalene\">\n");
}

/* JSON has '<' in texts only, where an escape means the same. */
static void put_part(const char *name, struct buf *json, struct buf *out)
{
    if (json->len > PLAIN_PART_MAX) {
        struct buf small = {0};
        deflate_bytes(json->data, json->len, DEFLATE_ZLIB, REPORT_DEFLATE_LEVEL, &small);
        buf_addf(out, "<script type=\"text/plain\" data-part=\"%s\" data-encoding=\"deflate\">",
                 name);
        base64_encode(small.data, small.len, out);
        buf_release(&small);
    } else {
        buf_addf(out, "<script type=\"application/json\" data-part=\"%s\">", name);
        for (size_t at = 0; at < json->len;) {
            size_t plain = strcspn(json->data + at, "<");
            buf_add(out, json->data + at, plain);
            at += plain;
            if (at < json->len) {
                buf_str(out, "\\u003c");
                at++;
            }
        }
    }
    buf_str(out, "</script>\n");
    buf_reset(json);
}

static void put_parts(const struct parts *parts, struct buf *out)
{
    static const struct {
        const char *name;
        void (*make)(const struct parts *, struct buf *);
    } list[] = {{"summary", parts_summary},
                {"stacks", parts_stacks},
                {"memory_stacks", parts_memory_stacks},
                {"timeline", parts_timeline}};
    struct buf json = {0};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        list[i].make(parts, &json);
        put_part(list[i].name, &json, out);
    }
    uint32_t *order = rank_files(parts->profile);
    for (uint32_t i = 0; i < parts->profile->file_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "file/%u", order[i]);
        parts_file(parts, order[i], &json);
        put_part(name, &json, out);
    }
    free(order);
    buf_release(&json);
}

void html_report(const struct parts *parts, const struct html_assets *assets, struct buf *out)
{
    const struct profile *profile = parts->profile;
    const char *program = profile_str(profile, profile->program);
    begin("embedded", out);
    put_policy(assets, out);
    buf_str(out, "<title>Scalene - ");
    html_escape(program, strlen(program), out);
    buf_str(out, "</title>\n<style>");
    buf_add(out, assets->style, assets->style_length);
    buf_str(out, "</style>\n</head>\n<body>\n<main id=\"app\">");
    html_summary(profile, out);
    buf_str(out, "</main>\n");
    put_parts(parts, out);
    buf_str(out, "<script>");
    buf_add(out, assets->script, assets->script_length);
    buf_str(out, "</script>\n</body>\n</html>\n");
}
