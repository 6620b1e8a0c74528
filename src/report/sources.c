/* The report's cache of source files; see sources.h. */
#include "report/sources.h"

#include "report/filter.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sources_init(struct sources *sources, struct intern *strings, const char *string_text)
{
    *sources = (struct sources){.strings = strings, .string_text = string_text};
}

void sources_release(struct sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        source_release(&sources->files[i]->source);
        structure_release(&sources->files[i]->structure);
        statements_release(&sources->files[i]->statements);
        free(sources->files[i]);
    }
    free(sources->files);
    map_release(&sources->index);
    *sources = (struct sources){0};
}

static void load(const struct sources *sources, struct source_file *file, const char *name)
{
    if (sources->string_text && !strcmp(name, "<string>")) {
        source_from_text(&file->source, sources->string_text, strlen(sources->string_text));
    } else {
        struct stat st;
        if (!stat(name, &st))
            file->modified_ns =
                (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
        if (source_load(&file->source, name, &file->why))
            return;
    }
    file->is_loaded = true;
    structure_parse(&file->structure, file->source.text, file->source.length);
    statements_parse(&file->statements, file->source.text, file->source.length);
}

const struct source_file *sources_get(struct sources *sources, str_id name)
{
    bool is_new;
    uint64_t *at = map_put(&sources->index, name, &is_new);
    if (is_new) {
        struct source_file *file = mem_zalloc(1, sizeof *file);
        load(sources, file, intern_get(sources->strings, name));
        VEC_PUSH(sources->files, sources->count, sources->cap) = file;
        *at = sources->count;
    }
    return sources->files[*at - 1];
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, two;
    return !stat(a, &one) && !stat(b, &two) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

str_id sources_name(struct sources *sources, const char *file)
{
    if (!file[0] || file[0] == '<')
        return intern_cstr(sources->strings, file);
    char *absolute = NULL;
    if (file[0] != '/') {
        char *here = getcwd(NULL, 0);
        absolute = here ? mem_format("%s/%s", here, file) : mem_strdup(file);
        free(here);
        if (access(absolute, F_OK)) { /* not a file from here: something else's idea of a name */
            free(absolute);
            absolute = mem_strdup(file);
        }
    } else {
        absolute = mem_strdup(file);
    }
    char *plain = filter_normalise(absolute);
    bool use_plain = strcmp(plain, absolute) && is_same_file(plain, absolute);
    str_id name = intern_cstr(sources->strings, use_plain ? plain : absolute);
    free(plain);
    free(absolute);
    return name;
}
