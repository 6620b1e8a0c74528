/* Values of a JSON document as text; see json_walk.h. */
#include "profile/json_walk.h"

#include "base/utf8.h"

#include <string.h>

/* ---- errors ---- */

/* The place in the document as people count, and how far a piece that begins there is into it. */
static void locate(const struct json_document *document, size_t at, int *line, int *column)
{
    *line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at; i++) {
        if (document->text[i] == '\n') {
            ++*line;
            start = i + 1;
        }
    }
    *column = 0;
    while (start < at) {
        utf8_decode(document->text, document->length, &start);
        ++*column;
    }
}

static int broken(struct json_document *document, size_t at, const char *what)
{
    int line, column;
    locate(document, at, &line, &column);
    document->is_broken = true;
    return err_set(document->err, "line %d, column %d: %s", line, column + (at < document->length),
                   what);
}

static int broken_end(struct json_document *document)
{
    return broken(document, document->length, "the document ends in the middle");
}

/* ---- scanning ---- */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static size_t skip_blanks(const struct json_document *document, size_t at)
{
    while (at < document->length && is_one_of(document->text[at], " \t\n\r"))
        at++;
    return at;
}

/* Behind the text that begins at `at`; 0 if it has no end. */
static size_t skip_text(const struct json_document *document, size_t at)
{
    for (at++; at < document->length; at++) {
        if (document->text[at] == '"')
            return at + 1;
        if (document->text[at] == '\\')
            at++;
    }
    return 0;
}

/* Behind the value at `at`; 0 if it has no end.  What is inside is not looked at. */
static size_t skip_value(const struct json_document *document, size_t at)
{
    const char *text = document->text;
    size_t depth = 0;
    while (at < document->length) {
        switch (text[at]) {
        case '"':
            at = skip_text(document, at);
            if (!at || !depth)
                return at;
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (depth < 2)
                return depth ? at + 1 : at;
            depth--;
            break;
        default:
            if (!depth) { /* a number or a word */
                while (at < document->length && !is_one_of(text[at], ",:]} \t\n\r\"[{"))
                    at++;
                return at;
            }
        }
        at++;
    }
    return 0;
}

/* ---- values ---- */

char json_walk_type(const struct json_document *document, struct json_slice slice)
{
    return document->text[slice.start];
}

json_t *json_walk_load(struct json_document *document, struct json_slice slice)
{
    json_error_t error;
    json_t *value =
        json_loadb(document->text + slice.start, slice.end - slice.start, JSON_DECODE_ANY, &error);
    if (value)
        return value;
    int line, column;
    locate(document, slice.start, &line, &column);
    document->is_broken = true;
    err_set(document->err, "line %d, column %d: %s", line + error.line - 1,
            error.line > 1 ? error.column : column + error.column, error.text);
    return NULL;
}

/* The value that must be at `at`. */
static int take_value(struct json_document *document, size_t at, struct json_slice *value)
{
    *value = (struct json_slice){at, skip_value(document, at)};
    if (!value->end)
        return broken_end(document);
    if (value->end == at)
        return at == document->length ? broken_end(document)
                                      : broken(document, at, "value expected");
    return 0;
}

char json_walk_first(const struct json_document *document)
{
    size_t at = skip_blanks(document, 0);
    return at < document->length ? document->text[at] : '\0';
}

int json_walk_root(struct json_document *document, struct json_slice *root)
{
    if (take_value(document, skip_blanks(document, 0), root))
        return -1;
    size_t rest = skip_blanks(document, root->end);
    return rest < document->length ? broken(document, rest, "end of file expected") : 0;
}

void json_walk_begin(struct json_walk *walk, struct json_document *document,
                     struct json_slice slice)
{
    *walk = (struct json_walk){
        .document = document,
        .at = slice.start + 1,
        .end = slice.end,
        .close = document->text[slice.start] == '{' ? '}' : ']',
    };
}

/* The member's name and the colon, if it has one. */
static int take_key(struct json_walk *walk, json_t **key)
{
    struct json_document *document = walk->document;
    if (document->text[walk->at] != '"')
        return broken(document, walk->at, "string or '}' expected");
    struct json_slice name = {walk->at, skip_text(document, walk->at)};
    if (!name.end)
        return broken_end(document);
    walk->at = skip_blanks(document, name.end);
    if (document->text[walk->at] != ':')
        return broken(document, walk->at, "':' expected");
    walk->at = skip_blanks(document, walk->at + 1);
    *key = json_walk_load(document, name);
    return *key ? 0 : -1;
}

int json_walk_next(struct json_walk *walk, json_t **key, struct json_slice *value)
{
    struct json_document *document = walk->document;
    const char *text = document->text;
    walk->at = skip_blanks(document, walk->at);
    if (text[walk->at] == walk->close && walk->at + 1 == walk->end)
        return 0;
    if (walk->count++) {
        if (text[walk->at] != ',')
            return broken(document, walk->at, walk->close == '}' ? "'}' expected" : "']' expected");
        walk->at = skip_blanks(document, walk->at + 1);
    }
    json_t *name = NULL;
    if (walk->close == '}' && take_key(walk, &name))
        return -1;
    if (take_value(document, walk->at, value) || value->end >= walk->end) {
        json_decref(name);
        return document->is_broken ? -1 : broken_end(document);
    }
    walk->at = value->end;
    if (key)
        *key = name;
    else
        json_decref(name);
    return 1;
}

json_t *json_walk_object(struct json_document *document, struct json_slice slice,
                         const char *const *large, struct json_slice *slices)
{
    struct json_walk walk;
    struct json_slice value;
    json_t *object = json_object(), *key;
    int more;
    for (size_t i = 0; large[i]; i++)
        slices[i] = (struct json_slice){0};
    json_walk_begin(&walk, document, slice);
    while ((more = json_walk_next(&walk, &key, &value)) > 0) {
        size_t i = 0;
        while (large[i] && strcmp(large[i], json_string_value(key)) != 0)
            i++;
        json_t *loaded = large[i] ? NULL : json_walk_load(document, value);
        if (large[i])
            slices[i] = value;
        else if (!loaded || json_object_set_new(object, json_string_value(key), loaded))
            more = -1;
        json_decref(key);
        if (more < 0)
            break;
    }
    if (!more)
        return object;
    json_decref(object);
    return NULL;
}
