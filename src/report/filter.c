#include "report/filter.h"

#include "base/buf.h"
#include "wire/traced.h"

#include <stdlib.h>
#include <string.h>

bool filter_is_library(const char *file)
{
    return traced_library_root(file) > 0;
}

char *filter_normalise(const char *path)
{
    struct buf out = {0};
    bool absolute = path[0] == '/';
    if (absolute)
        buf_char(&out, '/');
    const size_t base = out.len;
    const char *rest = path;
    struct traced_component c;
    while (traced_next(&rest, &c)) {
        if (traced_is(&c, "."))
            continue;
        if (traced_is(&c, "..") && (absolute || out.len > base)) {
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

static bool is_in_program(const struct wire_filter *filter, const char *plain)
{
    return traced_is_inside(plain, filter->directory) ||
           traced_is_inside(plain, filter->real_directory);
}

/* The name is not below the program's directory as it stands: is the file? */
static bool is_in_program_really(const struct wire_filter *filter, const char *file)
{
    char *plain = filter_normalise(file);
    bool inside = is_in_program(filter, plain);
    free(plain);
    if (inside || file[0] != '/')
        return inside;
    char *real = realpath(file, NULL);
    inside = real && is_in_program(filter, real);
    free(real);
    return inside;
}

static bool put(char *to, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    bool fits = length < WIRE_FILTER_TEXT_BYTES;
    memcpy(to, text ? text : "", fits ? length + 1 : 0);
    return fits;
}

void filter_init(struct wire_filter *filter, const struct filter_config *config)
{
    char *directory = NULL, *real = NULL;
    if (config->directory && config->directory[0]) {
        directory = filter_normalise(config->directory);
        real = realpath(config->directory, NULL);
    }
    *filter = (struct wire_filter){
        .flags = (config->profile_all ? WIRE_FILTER_ALL : 0u) |
                 (config->profile_system_libraries ? WIRE_FILTER_SYSTEM_LIBRARIES : 0u) |
                 (config->program_is_stdin ? WIRE_FILTER_STDIN : 0u) |
                 (config->program_is_code ? WIRE_FILTER_CODE : 0u)};
    bool fits = put(filter->directory, directory) & put(filter->real_directory, real) &
                put(filter->profile_only, config->profile_only) &
                put(filter->profile_exclude, config->profile_exclude);
    if (!fits)
        filter->flags |= WIRE_FILTER_ALL;
    free(directory);
    free(real);
}

bool filter_traces(const struct wire_filter *filter, const char *file)
{
    enum traced traced = traced_file(filter, file);
    return traced == TRACED_ASK ? is_in_program_really(filter, file) : traced == TRACED_YES;
}
