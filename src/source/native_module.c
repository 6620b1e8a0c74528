/*
 * Finds out from the disk whether a module is native (native_module.h).  Called
 * by the collector for each import of a reported file, in the launcher.
 *
 * Follows the import system's order: what is always built in, then the search
 * directories; in each of them a package before an extension module before
 * Python source; directories without __init__ only when nothing else is found.
 */
#include "source/native_module.h"

#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALK_DEPTH_MAX = 6, WALK_ENTRIES_MAX = 2000 };

/* C modules that may lack a file, sorted.  Which ones do depends on how the interpreter was built.
 */
static const struct builtin {
    const char *name;
    bool always; /* in every build, so that no file can stand before it */
} builtins[] = {
    {"_abc", true},
    {"_ast", true},
    {"_asyncio", false},
    {"_bisect", false},
    {"_blake2", false},
    {"_bz2", false},
    {"_codecs", true},
    {"_collections", true},
    {"_contextvars", false},
    {"_crypt", false},
    {"_csv", false},
    {"_ctypes", false},
    {"_curses", false},
    {"_datetime", false},
    {"_decimal", false},
    {"_elementtree", false},
    {"_functools", true},
    {"_hashlib", false},
    {"_heapq", false},
    {"_hmac", false},
    {"_imp", true},
    {"_interpchannels", false},
    {"_interpqueues", false},
    {"_interpreters", false},
    {"_io", true},
    {"_json", false},
    {"_locale", true},
    {"_lsprof", false},
    {"_lzma", false},
    {"_md5", false},
    {"_multiprocessing", false},
    {"_opcode", false},
    {"_operator", true},
    {"_peg_parser", false},
    {"_pickle", false},
    {"_posixshmem", false},
    {"_posixsubprocess", false},
    {"_queue", false},
    {"_random", false},
    {"_remote_debugging", false},
    {"_sha1", false},
    {"_sha2", false},
    {"_sha256", false},
    {"_sha3", false},
    {"_sha512", false},
    {"_signal", true},
    {"_socket", false},
    {"_sqlite3", false},
    {"_sre", true},
    {"_ssl", false},
    {"_stat", true},
    {"_statistics", false},
    {"_string", true},
    {"_struct", false},
    {"_suggestions", false},
    {"_symtable", true},
    {"_sysconfig", false},
    {"_thread", true},
    {"_tkinter", false},
    {"_tokenize", false},
    {"_tracemalloc", true},
    {"_types", false},
    {"_typing", false},
    {"_uuid", false},
    {"_warnings", true},
    {"_weakref", true},
    {"_zoneinfo", false},
    {"_zstd", false},
    {"array", false},
    {"atexit", true},
    {"audioop", false},
    {"binascii", false},
    {"builtins", true},
    {"cmath", false},
    {"errno", true},
    {"faulthandler", true},
    {"fcntl", false},
    {"gc", true},
    {"grp", false},
    {"itertools", true},
    {"marshal", true},
    {"math", false},
    {"mmap", false},
    {"posix", true},
    {"pwd", true},
    {"pyexpat", false},
    {"readline", false},
    {"resource", false},
    {"select", false},
    {"spwd", false},
    {"sys", true},
    {"syslog", false},
    {"termios", false},
    {"time", true},
    {"unicodedata", false},
    {"zlib", false},
};

enum found { FOUND_NOTHING, FOUND_PYTHON, FOUND_NATIVE };

static int compare_builtin(const void *key, const void *element)
{
    return strcmp(key, ((const struct builtin *)element)->name);
}

static const struct builtin *find_builtin(const char *module)
{
    return bsearch(module, builtins, sizeof builtins / sizeof *builtins, sizeof *builtins,
                   compare_builtin);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

static bool is_directory(const char *dir, const char *name)
{
    char *path = mem_format("%s/%s", dir, name);
    struct stat st;
    bool result = !stat(path, &st) && S_ISDIR(st.st_mode);
    free(path);
    return result;
}

/* A directory found in the walk, still to be read. */
struct walk_dir {
    char *path;
    int depth;
};

/* Whether a directory holds a shared object, at any depth within the limits. */
static bool holds_native(const char *top)
{
    struct walk_dir *queue = NULL;
    size_t head = 0, count = 0, cap = 0, entries = 0;
    bool found = false;
    VEC_PUSH(queue, count, cap) = (struct walk_dir){.path = mem_strdup(top), .depth = 1};
    for (; head < count && !found && entries < WALK_ENTRIES_MAX; head++) {
        const struct walk_dir here = queue[head];
        DIR *dir = opendir(here.path);
        struct dirent *entry;
        while (dir && !found && entries < WALK_ENTRIES_MAX && (entry = readdir(dir))) {
            struct stat st;
            if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "__pycache__"))
                continue;
            entries++;
            if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
                continue;
            if (!S_ISDIR(st.st_mode))
                found = has_suffix(entry->d_name, ".so");
            else if (here.depth < WALK_DEPTH_MAX)
                VEC_PUSH(queue, count, cap) = (struct walk_dir){
                    .path = mem_format("%s/%s", here.path, entry->d_name),
                    .depth = here.depth + 1,
                };
        }
        if (dir)
            closedir(dir);
    }
    for (size_t i = 0; i < count; i++)
        free(queue[i].path);
    free(queue);
    return found;
}

/* What a search directory has under the name of one module (one part of a dotted name). */
struct candidates {
    bool package;   /* a directory with an __init__ */
    bool directory; /* one without: perhaps a part of a namespace package */
    bool extension;
    bool python;
};

static void scan(const char *dir, const char *name, struct candidates *out)
{
    *out = (struct candidates){0};
    size_t length = strlen(name);
    DIR *handle = opendir(dir);
    struct dirent *entry;
    while (handle && (entry = readdir(handle))) {
        const char *file = entry->d_name;
        if (strncmp(file, name, length) != 0)
            continue;
        if (!file[length])
            out->directory = is_directory(dir, name);
        else if (file[length] == '.' && has_suffix(file, ".so"))
            out->extension = true;
        else if (!strcmp(file + length, ".py") || !strcmp(file + length, ".pyc"))
            out->python = true;
    }
    if (handle)
        closedir(handle);
}

static enum found find_in(const char *dir, const char *module);

/* The directory of a package's part: go on with the rest of the dotted name, or look through it. */
static enum found find_in_package(const char *dir, const char *name, const char *rest)
{
    char *path = mem_format("%s/%s", dir, name);
    enum found found;
    if (rest)
        found = find_in(path, rest);
    else
        found = holds_native(path) ? FOUND_NATIVE : FOUND_PYTHON;
    free(path);
    return found;
}

static enum found find_in(const char *dir, const char *module)
{
    const char *dot = strchr(module, '.');
    size_t length = dot ? (size_t)(dot - module) : strlen(module);
    const char *rest = dot ? dot + 1 : NULL;
    if (!length || memchr(module, '/', length))
        return FOUND_NOTHING;
    char *name = mem_strndup(module, length);
    struct candidates candidates, inside = {0};
    scan(dir, name, &candidates);
    if (candidates.directory) {
        char *path = mem_format("%s/%s", dir, name);
        scan(path, "__init__", &inside);
        candidates.package = inside.extension || inside.python;
        free(path);
    }
    enum found found = FOUND_NOTHING;
    if (candidates.package)
        found = find_in_package(dir, name, rest);
    else if (candidates.extension)
        found = FOUND_NATIVE;
    else if (candidates.python)
        found = FOUND_PYTHON;
    else if (candidates.directory)
        found = find_in_package(dir, name, rest);
    /* The package decides: a name it does not have as a file may be an attribute of it. */
    if (candidates.package && !found)
        found = FOUND_PYTHON;
    free(name);
    return found;
}

bool native_module(const char *module, const char *const *dirs, size_t dir_count)
{
    const struct builtin *builtin = find_builtin(module);
    if (builtin && builtin->always)
        return true;
    for (size_t i = 0; i < dir_count; i++) {
        enum found found = find_in(dirs[i], module);
        if (found)
            return found == FOUND_NATIVE;
    }
    return builtin != NULL;
}
