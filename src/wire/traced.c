/* The file filter's text part; see traced.h.  Path tests work on whole components, never on bare
 * substrings. */
#include "wire/traced.h"

#include <string.h>

bool traced_next(const char **rest, struct traced_component *out)
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

bool traced_is(const struct traced_component *component, const char *text)
{
    return strlen(text) == component->length && !memcmp(component->at, text, component->length);
}

static size_t digits(const char *at, size_t length)
{
    size_t n = 0;
    while (n < length && at[n] >= '0' && at[n] <= '9')
        n++;
    return n;
}

/* `python3.12`, `python3.13t` */
static bool is_versioned_python(const struct traced_component *c)
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
static bool is_zipped_python(const struct traced_component *c)
{
    const size_t prefix = strlen("python"), suffix = strlen(".zip");
    if (c->length <= prefix + suffix || memcmp(c->at, "python", prefix) ||
        memcmp(c->at + c->length - suffix, ".zip", suffix))
        return false;
    return digits(c->at + prefix, c->length) == c->length - prefix - suffix;
}

size_t traced_library_root(const char *file)
{
    const char *rest = file;
    struct traced_component c, previous = {"", 0};
    size_t root = 0;
    while (traced_next(&rest, &c)) {
        bool below_lib = traced_is(&previous, "lib") || traced_is(&previous, "lib64") ||
                         traced_is(&previous, "lib32");
        /* The last component is the file itself: a script may well be called site-packages. */
        if (*rest && (traced_is(&c, "site-packages") || traced_is(&c, "dist-packages") ||
                      (below_lib && is_versioned_python(&c)) || is_zipped_python(&c)))
            root = (size_t)(rest - file);
        previous = c;
    }
    return root;
}

static bool is_own_package(const char *file)
{
    const char *rest = file;
    struct traced_component c, previous = {"", 0};
    while (traced_next(&rest, &c)) {
        if (*rest && traced_is(&c, "scalene") &&
            (traced_is(&previous, "site-packages") || traced_is(&previous, "dist-packages")))
            return true;
        previous = c;
    }
    return false;
}

static bool is_given(const char *patterns)
{
    return patterns[strspn(patterns, ", ")];
}

/* Is one of the comma-separated patterns in the name?  Empty ones match nothing. */
static bool matches_any(const char *patterns, const char *file)
{
    while (*patterns) {
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

bool traced_is_inside(const char *file, const char *directory)
{
    size_t length = strlen(directory);
    if (!length || strncmp(file, directory, length))
        return false;
    return directory[length - 1] == '/' || file[length] == '/';
}

/* Is the directory part of an installed package?  Not the place of all of them, nor the standard
 * library's. */
static bool is_in_package(const char *directory)
{
    static const char site[] = "site-packages", dist[] = "dist-packages";
    size_t root = traced_library_root(directory), length = sizeof site - 1;
    return root > length && (!memcmp(directory + root - length, site, length) ||
                             !memcmp(directory + root - length, dist, length));
}

static bool is_library(const struct wire_filter *filter, const char *file)
{
    size_t root = traced_library_root(file);
    for (int i = 0; root && i < WIRE_FILTER_DIRECTORIES; i++) {
        const char *directory = filter->directories[i];
        if (traced_is_inside(file, directory) && is_in_package(directory))
            return traced_library_root(file + strlen(directory)) > 0;
    }
    return root > 0;
}

/* Is the file in the directory that the given one lies in? */
static bool is_in_parent(const char *file, const char *directory)
{
    const char *file_end = strrchr(file, '/'), *parent_end = strrchr(directory, '/');
    return file_end && parent_end && directory[1] && file_end - file == parent_end - directory &&
           !memcmp(file, directory, (size_t)(parent_end - directory));
}

bool traced_is_command(const struct wire_filter *filter, const char *file)
{
    return (filter->flags & WIRE_FILTER_COMMAND) && !strcmp(file, filter->script);
}

bool traced_is_own(const struct wire_filter *filter, const char *file)
{
    if (traced_is_command(filter, file))
        return false;
    for (int i = 0; i < WIRE_FILTER_DIRECTORIES; i++)
        if (traced_is_inside(file, filter->directories[i]))
            return true;
    return !strcmp(file, filter->script) || is_in_parent(file, filter->directories[0]) ||
           is_in_parent(file, filter->directories[1]);
}

enum traced traced_file(const struct wire_filter *filter, const char *file)
{
    size_t length = strlen(file);
    if (!length || is_own_package(file) || matches_any(filter->profile_exclude, file))
        return TRACED_NO;
    bool only = is_given(filter->profile_only);
    if (only && !matches_any(filter->profile_only, file))
        return TRACED_NO;
    if (file[0] == '<' && file[length - 1] == '>')
        return ((filter->flags & WIRE_FILTER_STDIN) && !strcmp(file, "<stdin>")) ||
                       ((filter->flags & WIRE_FILTER_CODE) && !strcmp(file, "<string>"))
                   ? TRACED_YES
                   : TRACED_NO;
    if (filter->flags & WIRE_FILTER_ALL)
        return TRACED_YES;
    if (!strcmp(file, filter->script))
        return traced_is_command(filter, file) && !only ? TRACED_NO : TRACED_YES;
    if (is_library(filter, file))
        return only || (filter->flags & WIRE_FILTER_SYSTEM_LIBRARIES) ? TRACED_YES : TRACED_NO;
    if (strstr(file, "/../"))
        return TRACED_ASK;
    return traced_is_own(filter, file) ? TRACED_YES : TRACED_ASK;
}
