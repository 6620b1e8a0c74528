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

/* The name does not tell that it is one of the program's files as it stands: is it? */
static bool is_own_really(const struct wire_filter *filter, const char *file)
{
    char *plain = filter_normalise(file);
    bool is_own = traced_is_own(filter, plain);
    free(plain);
    if (is_own || file[0] != '/')
        return is_own;
    char *real = realpath(file, NULL);
    is_own = real && traced_is_own(filter, real);
    free(real);
    return is_own;
}

static bool put(char *to, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    bool fits = length < WIRE_FILTER_TEXT_BYTES;
    memcpy(to, text ? text : "", fits ? length + 1 : 0);
    return fits;
}

/* A directory and what it really is; false if that does not fit. */
static bool put_directory(struct wire_filter *filter, int at, const char *directory)
{
    if (!directory || !directory[0])
        return true;
    char *plain = filter_normalise(directory), *real = realpath(directory, NULL);
    bool fits = put(filter->directories[at], plain) & put(filter->directories[at + 1], real);
    free(plain);
    free(real);
    return fits;
}

/* The root is everybody's, and nobody's working directory. */
static bool is_work_place(const struct filter_config *config)
{
    const char *work = config->work_directory;
    return work && work[0] && strcmp(work, "/") != 0 && traced_is_inside(config->directory, work);
}

void filter_init(struct wire_filter *filter, const struct filter_config *config)
{
    *filter = (struct wire_filter){
        .flags = (config->profile_all ? WIRE_FILTER_ALL : 0u) |
                 (config->profile_system_libraries ? WIRE_FILTER_SYSTEM_LIBRARIES : 0u) |
                 (config->program_is_stdin ? WIRE_FILTER_STDIN : 0u) |
                 (config->program_is_code ? WIRE_FILTER_CODE : 0u) |
                 (config->script_is_command ? WIRE_FILTER_COMMAND : 0u)};
    bool fits = put_directory(filter, 0, config->directory) &
                put_directory(filter, 2, is_work_place(config) ? config->work_directory : NULL) &
                put(filter->script, config->script) &
                put(filter->profile_only, config->profile_only) &
                put(filter->profile_exclude, config->profile_exclude);
    if (!fits)
        filter->flags |= WIRE_FILTER_ALL;
    size_t tool_bytes = config->tool ? strlen(config->tool) : 0;
    if (tool_bytes < sizeof filter->tool)
        memcpy(filter->tool, config->tool ? config->tool : "", tool_bytes);
}

bool filter_traces(const struct wire_filter *filter, const char *file)
{
    enum traced traced = traced_file(filter, file);
    return traced == TRACED_ASK ? is_own_really(filter, file) : traced == TRACED_YES;
}

/* `black` or `black.py`? */
static bool is_module(const struct traced_component *component, const char *name)
{
    size_t length = strlen(name);
    return traced_is(component, name) ||
           (component->length == length + 3 && !memcmp(component->at, name, length) &&
            !memcmp(component->at + length, ".py", 3));
}

/* Of an installed package the place where packages are is known; elsewhere (a working copy that is
 * on the path) any directory of that name will do.  The standard library is no tool. */
bool filter_is_tool(const struct wire_filter *filter, const char *file)
{
    static const char packages[] = "-packages";
    size_t root = traced_library_root(file), length = sizeof packages - 1;
    const char *rest = file + root;
    struct traced_component c;
    if (!filter->tool[0] || file[0] != '/')
        return false;
    if (traced_is_command(filter, file))
        return true;
    if (root)
        return root > length && !memcmp(rest - length, packages, length) &&
               traced_next(&rest, &c) && is_module(&c, filter->tool);
    while (traced_next(&rest, &c))
        if (is_module(&c, filter->tool))
            return true;
    return false;
}
