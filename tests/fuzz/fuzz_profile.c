/*
 * Fuzzes src/profile and src/view: any text is either refused with a reason or
 * becomes a profile that can be shown, merged with itself, written, and read again,
 * and whose parts and one-file report are well-formed.
 *
 * Inputs are the golden profiles.  Whole values are changed, so that most are
 * still JSON: a value becomes another one, or one that stands elsewhere in the
 * document; elements of lists are doubled and left out.
 */
#include <jansson.h> /* before json_out.h, whose short names are jansson's */

#include "base/file.h"
#include "base/mem.h"
#include "fuzz.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "profile/merge.h"
#include "view/html.h"
#include "view/parts.h"
#include "view/terminal.h"

#include <string.h>

static long results[3]; /* read, invalid, no JSON */

static void show(const struct profile *profile, size_t way)
{
    static const int widths[] = {40, 80, 100, 160, 500};
    const struct terminal_options options = {
        .columns = widths[way % COUNT_OF(widths)],
        .color = way & 1,
        .ascii = way & 2,
        .reduced = way & 4,
        .cpu_percent_threshold = 1,
    };
    struct buf out = {0};
    terminal_render(profile, &options, &out);
    CHECK(out.len);
    buf_release(&out);
}

/* A list of indices, each below `limit`; -1 only where there may be none. */
static void check_indices(const json_t *object, const char *key, size_t limit, bool may_be_none)
{
    const json_t *list = json_object_get(object, key);
    CHECK(json_is_array(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t index = json_integer_value(json_array_get(list, i));
        CHECK(index >= -may_be_none && index < (json_int_t)limit);
    }
}

static json_t *parsed(struct buf *out)
{
    json_t *part = json_loadb(out->data, out->len, 0, NULL);
    CHECK(part && json_object_get(part, "generation"));
    buf_release(out);
    return part;
}

static size_t check_tree(json_t *part)
{
    const json_t *tree = json_object_get(part, "tree"), *frames = json_object_get(part, "frames");
    size_t strings = json_array_size(json_object_get(part, "strings"));
    size_t nodes = json_array_size(json_object_get(tree, "self"));
    check_indices(frames, "name", strings, false);
    check_indices(frames, "file", strings, false);
    check_indices(tree, "frame", json_array_size(json_object_get(frames, "name")), false);
    check_indices(tree, "parent", nodes, true);
    json_decref(part);
    return nodes;
}

static void split(const struct profile *profile)
{
    const struct parts parts = {.profile = profile, .generation = 1, .path = "x"};
    struct buf out = {0};
    parts_summary(&parts, &out);
    json_decref(parsed(&out));
    for (uint32_t i = 0; i < profile->file_count; i++) {
        parts_file(&parts, i, &out);
        json_t *file = parsed(&out);
        CHECK(json_array_size(json_object_get(file, "colours")) == profile->files[i].line_count);
        check_indices(json_object_get(file, "lines"), "row", profile->files[i].line_count, false);
        json_decref(file);
    }
    parts_memory_stacks(&parts, &out);
    check_tree(parsed(&out));
    parts_stacks(&parts, &out);
    size_t nodes = check_tree(parsed(&out));
    parts_timeline(&parts, &out);
    json_t *timeline = parsed(&out);
    check_indices(timeline, "node", nodes, false);
    check_indices(timeline, "thread", profile->thread_count, true);
    json_decref(timeline);
    parts_search(&parts, "E", 1, &out);
    json_decref(parsed(&out));
    /* Markup is ours alone: of what the profile says, none is. */
    html_report(&parts, &(const struct html_assets){"", 0, "", 0}, &out);
    size_t scripts = 5 + profile->file_count, found = 0;
    for (const char *at = out.data; (at = strstr(at, "<script")); at++)
        found++;
    CHECK(found == scripts && strlen(out.data) == out.len && !strstr(out.data, "<!--"));
    buf_release(&out);
}

/* `must_be_read`: what we wrote ourselves. */
static bool use(const char *text, size_t length, bool must_be_read, struct buf *written)
{
    struct profile profile, merged;
    struct err err = {""};
    int result = json_read_profile(&profile, text, length, &err);
    CHECK(result <= 0 && result >= JSON_READ_SYNTAX && !result == !err.text[0]);
    if (must_be_read && result) {
        fprintf(stderr, "cannot be read again: %s\n", err.text);
        abort();
    }
    if (!must_be_read)
        results[-result]++;
    if (result)
        return false;
    show(&profile, length);
    split(&profile);
    json_write_profile(&profile, written);
    merge_profiles(&merged, (struct profile[]){profile, profile}, 2);
    show(&merged, length + 1);
    struct buf both = {0};
    json_write_profile(&merged, &both);
    if (!must_be_read) {
        struct buf again = {0};
        use(both.data, both.len, true, &again);
        buf_release(&again);
    }
    buf_release(&both);
    profile_release(&merged);
    profile_release(&profile);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf written = {0}, again = {0}, dump = {0};
    struct err err = {""};
    char *text = mem_strndup((const char *)data, size);
    if (use(text, size, false, &written))
        use(written.data, written.len, true, &again);
    /* The dump may be refused for its depth alone. */
    int result = json_check_and_dump(text, size, &dump, &err);
    CHECK(!result == (dump.len != 0) && !result == !err.text[0]);
    buf_release(&written);
    buf_release(&again);
    buf_release(&dump);
    free(text);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 300, CHANGES_MAX = 4, DEPTH_MAX = 64 };

struct value {
    size_t start, end;
    bool in_list;
};

struct values {
    struct value *items;
    size_t count, cap;
};

static size_t end_of_text(const struct buf *json, size_t at)
{
    for (at++; at < json->len && json->data[at] != '"'; at++)
        at += json->data[at] == '\\';
    return at < json->len ? at + 1 : json->len;
}

/* Where the values are; good enough for a text that changes have broken already. */
static void find_values(const struct buf *json, struct values *values)
{
    size_t open[DEPTH_MAX], depth = 0;
    for (size_t at = 0; at < json->len;) {
        char c = json->data[at];
        size_t start = at;
        bool in_list = depth && json->data[values->items[open[depth - 1]].start] == '[';
        if ((c == '{' || c == '[') && depth < DEPTH_MAX) {
            open[depth++] = values->count;
            at++;
        } else if (c == '}' || c == ']') {
            at++;
            if (depth)
                values->items[open[--depth]].end = at;
            continue;
        } else if (c == '"') {
            at = end_of_text(json, at);
        } else if (strchr(" \n\t,:{[", c)) {
            at++;
            continue;
        } else {
            size_t length = strcspn(json->data + at, ",]} \n\t:\"");
            at += length ? length : 1;
        }
        VEC_PUSH(values->items, values->count, values->cap) =
            (struct value){start, c == '{' || c == '[' ? json->len : at, in_list};
    }
}

static const struct value *pick(const struct values *values)
{
    return &values->items[fuzz_below(values->count)];
}

static char *number_text(void)
{
    static const char *const special[] = {"-1",          "-0.0", "1e308",  "1e-300", "0.1",
                                          "100.0000001", "1e12", "9.2e18", "1e999",  "1.5"};
    if (!fuzz_below(2))
        return mem_strdup(special[fuzz_below(COUNT_OF(special))]);
    return mem_format("%llu", (unsigned long long)fuzz_edge());
}

static char *new_text(const struct buf *json, const struct values *values)
{
    static const char *const pieces[] = {"null",
                                         "true",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "[[[[{}]]]]",
                                         "\"\\u0000\"",
                                         "\"\\u001b[2J\"",
                                         "\"</script><script><!--\"",
                                         "\"\\ud83d\\ude00\""};
    const struct value *other = pick(values);
    switch (fuzz_below(3)) {
    case 0:
        return number_text();
    case 1:
        return mem_strdup(pieces[fuzz_below(COUNT_OF(pieces))]);
    default:
        return mem_strndup(json->data + other->start, other->end - other->start);
    }
}

static void change(struct buf *json)
{
    enum { GROWN_MAX = 1 << 20 };
    struct values values = {0};
    find_values(json, &values);
    const struct value *value = values.count ? pick(&values) : NULL;
    if (value && value->in_list && !fuzz_below(3) && json->len < GROWN_MAX) {
        char *twice =
            mem_format("%.*s,", (int)(value->end - value->start), json->data + value->start);
        fuzz_splice(json, value->start, 0, twice, strlen(twice));
        free(twice);
    } else if (value && value->in_list && !fuzz_below(3)) {
        size_t end = value->end + (value->end < json->len && json->data[value->end] == ',');
        fuzz_splice(json, value->start, end - value->start, "", 0);
    } else if (value && fuzz_below(30)) {
        char *text = new_text(json, &values);
        if (json->len < GROWN_MAX)
            fuzz_splice(json, value->start, value->end - value->start, text, strlen(text));
        free(text);
    } else if (json->len) { /* now and then no JSON at all */
        char byte = (char)fuzz_below(256);
        fuzz_splice(json, fuzz_below(json->len), fuzz_below(2), &byte, 1);
    }
    free(values.items);
}

/* The profiles are written for people: without the blanks there is less to look through. */
static void load_seed(const char *name, struct buf *seed)
{
    char *path = mem_format("%s/tests/golden/%s", SOURCE_ROOT, name);
    struct buf text = {0};
    struct err err;
    CHECK(!file_read(path, &text, &err));
    for (size_t i = 0; i < text.len; i++) {
        size_t end = text.data[i] == '"' ? end_of_text(&text, i) : i + 1;
        if (!strchr(" \n", text.data[i]))
            buf_add(seed, text.data + i, end - i);
        i = end - 1;
    }
    buf_release(&text);
    free(path);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"basic.json", "async.json", "view_basic.json",
                                        "view_memory.json"};
    struct buf seeds[COUNT_OF(names)] = {{0}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        load_seed(names[i], &seeds[i]);
        LLVMFuzzerTestOneInput((const uint8_t *)seeds[i].data, seeds[i].len);
        CHECK(results[0] == (long)i + 1);
    }
    while (fuzz_goes_on(argc, argv, INPUTS)) {
        const struct buf *seed = &seeds[fuzz_below(COUNT_OF(names))];
        struct buf json = {0};
        buf_add(&json, seed->data, seed->len);
        for (size_t n = 1 + fuzz_below(CHANGES_MAX); n; n--)
            change(&json);
        LLVMFuzzerTestOneInput((const uint8_t *)json.data, json.len);
        buf_release(&json);
    }
    for (size_t i = 0; i < COUNT_OF(results); i++)
        CHECK(results[i] > 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        buf_release(&seeds[i]);
    return 0;
}

#endif
