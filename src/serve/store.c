/* Open profiles; see store.h.  Called by answer.c and server.c, in one thread. */
#include "serve/store.h"

#include "base/file.h"
#include "base/mem.h"
#include "profile/json_read.h"

#include <stdlib.h>
#include <string.h>

static struct stat look(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        memset(&st, 0, sizeof st);
    return st;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int store_open(struct store *store, const char *path, const char *text, size_t length,
               struct err *err)
{
    struct store_entry entry = {.generation = 1};
    if (store->count == STORE_PROFILES_MAX)
        return err_set(err, "%d profiles are open already: end this server and start another",
                       STORE_PROFILES_MAX);
    int rc = json_read_profile(&entry.profile, text, length, err);
    if (rc)
        return rc;
    entry.path = mem_strdup(path ? path : "");
    if (path) {
        entry.seen = look(path);
        if ((size_t)entry.seen.st_size != length) /* it changed meanwhile: look again */
            entry.seen = (struct stat){0};
    } else {
        entry.text = mem_strndup(text, length);
        entry.text_length = length;
    }
    store->entries[store->count++] = entry;
    return 0;
}

static int read_file(struct profile *profile, const char *path)
{
    struct buf text = {0};
    int rc = file_read(path, &text, NULL);
    if (!rc)
        rc = json_read_profile(profile, text.data, text.len, NULL);
    buf_release(&text);
    return rc;
}

bool store_refresh(struct store *store)
{
    struct store_entry *entry = &store->entries[0];
    struct stat now = look(entry->path);
    struct profile profile;
    if (!now.st_ino || is_same(&now, &entry->seen))
        return false;
    entry->seen = now;
    if (read_file(&profile, entry->path))
        return false;
    profile_release(&entry->profile);
    entry->profile = profile;
    entry->generation++;
    return true;
}

void store_release(struct store *store)
{
    for (uint32_t i = 0; i < store->count; i++) {
        profile_release(&store->entries[i].profile);
        free(store->entries[i].path);
        free(store->entries[i].text);
    }
    *store = (struct store){0};
}

struct parts store_parts(const struct store_entry *entry)
{
    return (struct parts){
        .profile = &entry->profile, .generation = entry->generation, .path = entry->path};
}
