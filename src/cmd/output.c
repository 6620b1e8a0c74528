/* Naming and writing the profile's file; see output.h.  Called by save.c. */
#include "cmd/output.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *output_name(const char *outfile)
{
    struct stat st;
    if (!outfile)
        return mem_strdup(OUTPUT_DEFAULT);
    if (!stat(outfile, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return mem_strdup(outfile); /* /dev/null, a pipe: there is no other one beside it */
    const char *name = base_name(outfile);
    name += strspn(name, "."); /* leading dots begin no extension */
    const char *dot = strrchr(name, '.');
    size_t length = dot ? (size_t)(dot - outfile) : strlen(outfile);
    return mem_format("%.*s.json", (int)length, outfile);
}

bool output_is_directory(const char *outfile)
{
    struct stat st;
    size_t length = strlen(outfile);
    return (length && outfile[length - 1] == '/') || (!stat(outfile, &st) && S_ISDIR(st.st_mode));
}

int output_check(const char *path, struct err *err)
{
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return access(path, W_OK) ? err_set(err, "cannot write '%s': %s", path, strerror(errno))
                                  : 0;
    const char *name = base_name(path);
    char *directory = name == path ? mem_strdup(".") : mem_strndup(path, (size_t)(name - path));
    int rc = 0;
    if (access(directory, W_OK | X_OK))
        rc = err_set(err, "cannot write '%s': %s", path, strerror(errno));
    free(directory);
    return rc;
}

char *output_write(const char *path, const char *const *fallbacks, const struct buf *text,
                   struct err *err)
{
    if (!file_write_atomic(path, text->data, text->len, err))
        return mem_strdup(path);
    for (; *fallbacks; fallbacks++) {
        if (!**fallbacks)
            continue;
        char *other = mem_format("%s/%s", *fallbacks, base_name(path));
        if (!file_write_atomic(other, text->data, text->len, NULL))
            return other;
        free(other);
    }
    return NULL;
}
