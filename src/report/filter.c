/* The file filter; see filter.h.  Path tests work on whole components, never on bare substrings. */
#include "report/filter.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct component {
    const char *at;
    size_t length;
};

/* The component that starts at or after *rest; false at the end. */
static bool next_component(const char **rest, struct component *out)
{
    const char *p = *rest;
    while (*p == '/')
        p++;
    if (!*p)
        return false;
    out->at = p;
    out->length = strcspn(p, "/");
    *rest = p + out->length;
    return true;
}

static bool is(const struct component *component, const char *text)
{
    return strlen(text) == component->length && !memcmp(component->at, text, component->length);
}

static size_t digits(const char *at, size_t length)
{
    size_t n = 0;
    while (n < length && isdigit((unsigned char)at[n]))
        n++;
    return n;
}

/* `python3.12`, `python3.13t` */
static bool is_versioned_python(const struct component *c)
{
    const size_t prefix = strlen("python");
    if (c->length <= prefix || memcmp(c->at, "python", prefix))
        return false;
    const char *p = c->at + prefix;
    size_t left = c->length - prefix, major = digits(p, left);
    if (!major || major == left || p[major] != '.')
        return false;
    size_t minor = digits(p + major + 1, left - major - 1), used = major + 1 + minor;
    return minor && (used == left || (used + 1 == left && p[used] == 't'));
}

/* `python312.zip` */
static bool is_zipped_python(const struct component *c)
{
    const size_t prefix = strlen("python"), suffix = strlen(".zip");
    if (c->length <= prefix + suffix || memcmp(c->at, "python", prefix) ||
        memcmp(c->at + c->length - suffix, ".zip", suffix))
        return false;
    return digits(c->at + prefix, c->length) == c->length - prefix - suffix;
}

size_t filter_library_root(const char *file)
{
    const char *rest = file;
    struct component c, previous = {"", 0};
    size_t root = 0;
    while (next_component(&rest, &c)) {
        bool below_lib = is(&previous, "lib") || is(&previous, "lib64") || is(&previous, "lib32");
        /* The last component is the file itself: a script may well be called site-packages. */
        if (*rest && (is(&c, "site-packages") || is(&c, "dist-packages") ||
                      (below_lib && is_versioned_python(&c)) || is_zipped_python(&c)))
            root = (size_t)(rest - file);
        previous = c;
    }
    return root;
}

bool filter_is_library(const char *file)
{
    return filter_library_root(file) > 0;
}

static bool is_own_package(const char *file)
{
    const char *rest = file;
    struct component c, previous = {"", 0};
    while (next_component(&rest, &c)) {
        if (*rest && is(&c, "scalene") &&
            (is(&previous, "site-packages") || is(&previous, "dist-packages")))
            return true;
        previous = c;
    }
    return false;
}

static bool is_given(const char *patterns)
{
    return patterns && patterns[strspn(patterns, ", ")];
}

/* Is one of the comma-separated patterns in the name?  Empty ones match nothing. */
static bool matches_any(const char *patterns, const char *file)
{
    while (patterns && *patterns) {
        size_t length = strcspn(patterns, ",");
        const char *at = patterns;
        patterns += length + (patterns[length] == ',');
        while (length && *at == ' ')
            at++, length--;
        while (length && at[length - 1] == ' ')
            length--;
        if (length && memmem(file, strlen(file), at, length))
            return true;
    }
    return false;
}

char *filter_normalise(const char *path)
{
    struct buf out = {0};
    bool absolute = path[0] == '/';
    if (absolute)
        buf_char(&out, '/');
    const size_t base = out.len;
    const char *rest = path;
    struct component c;
    while (next_component(&rest, &c)) {
        if (is(&c, "."))
            continue;
        if (is(&c, "..") && (absolute || out.len > base)) {
            while (out.len > base && out.data[out.len - 1] != '/')
                out.len--;
            if (out.len > base)
                out.len--;
            continue;
        }
        if (out.len > base)
            buf_char(&out, '/');
        buf_add(&out, c.at, c.length);
    }
    size_t length = out.len;
    char *text = buf_detach(&out);
    text[length] = '\0';
    return text;
}

/* Both normalised. */
static bool is_inside(const char *file, const char *directory)
{
    size_t length = directory ? strlen(directory) : 0;
    if (!length || strncmp(file, directory, length))
        return false;
    return directory[length - 1] == '/' || file[length] == '/';
}

static bool is_in_program(const struct filter *filter, const char *file)
{
    char *plain = filter_normalise(file);
    bool inside = is_inside(plain, filter->directory) || is_inside(plain, filter->real_directory);
    free(plain);
    if (inside || file[0] != '/')
        return inside;
    char *real = realpath(file, NULL);
    inside =
        real && (is_inside(real, filter->directory) || is_inside(real, filter->real_directory));
    free(real);
    return inside;
}

void filter_init(struct filter *filter, const struct filter_config *config)
{
    *filter = (struct filter){.config = *config};
    if (config->directory && config->directory[0]) {
        filter->directory = filter_normalise(config->directory);
        filter->real_directory = realpath(config->directory, NULL);
    }
}

void filter_release(struct filter *filter)
{
    free(filter->directory);
    free(filter->real_directory);
    *filter = (struct filter){0};
}

bool filter_traces(const struct filter *filter, const char *file)
{
    const struct filter_config *config = &filter->config;
    size_t length = strlen(file);
    if (!length || is_own_package(file) || matches_any(config->profile_exclude, file))
        return false;
    bool only = is_given(config->profile_only);
    if (only && !matches_any(config->profile_only, file))
        return false;
    if (file[0] == '<' && file[length - 1] == '>')
        return (config->program_is_stdin && !strcmp(file, "<stdin>")) ||
               (config->program_is_code && !strcmp(file, "<string>"));
    if (config->profile_all)
        return true;
    if (filter_is_library(file))
        return only || config->profile_system_libraries;
    return is_in_program(filter, file);
}
