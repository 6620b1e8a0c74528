#include "base/map.h"

#include "base/mem.h"

#include <stdlib.h>

struct map_entry {
    uint64_t key, value;
    bool used;
};

static struct map_entry *find(const struct map *map, uint64_t key)
{
    size_t at = hash_mix(key, 0) & (map->cap - 1);
    while (map->entries[at].used && map->entries[at].key != key)
        at = (at + 1) & (map->cap - 1);
    return &map->entries[at];
}

static void grow(struct map *map)
{
    struct map old = *map;
    map->cap = old.cap ? old.cap * 2 : 64;
    map->entries = mem_zalloc(map->cap, sizeof *map->entries);
    for (size_t i = 0; i < old.cap; i++)
        if (old.entries[i].used)
            *find(map, old.entries[i].key) = old.entries[i];
    free(old.entries);
}

uint64_t *map_put(struct map *map, uint64_t key, bool *is_new)
{
    if (map->count * 2 >= map->cap)
        grow(map);
    struct map_entry *entry = find(map, key);
    if (is_new)
        *is_new = !entry->used;
    if (!entry->used) {
        entry->used = true;
        entry->key = key;
        map->count++;
    }
    return &entry->value;
}

uint64_t *map_get(const struct map *map, uint64_t key)
{
    if (!map->cap)
        return NULL;
    struct map_entry *entry = find(map, key);
    return entry->used ? &entry->value : NULL;
}

void map_copy(struct map *to, const struct map *from)
{
    *to = *from;
    to->entries = mem_copy(from->entries, from->cap * sizeof *from->entries);
}

void map_release(struct map *map)
{
    free(map->entries);
    *map = (struct map){0};
}

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b * 0x9E3779B97F4A7C15u)) + 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

uint64_t hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xCBF29CE484222325u ^ length;
    for (size_t i = 0; i < length; i++)
        h = (h ^ p[i]) * 0x100000001B3u;
    return hash_mix(h, length);
}
