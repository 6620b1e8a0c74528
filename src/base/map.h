/*
 * Hash map from a 64-bit key to a 64-bit value (open addressing, never
 * shrinks, no deletion).  Zero-initialise it.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
    struct map_entry *entries;
    size_t count, cap;
};

/* The value's address; inserted as 0 with *is_new set when the key was absent.
 * Valid until the next insertion. */
uint64_t *map_put(struct map *map, uint64_t key, bool *is_new);
uint64_t *map_get(const struct map *map, uint64_t key); /* NULL when absent */
void map_copy(struct map *to, const struct map *from);  /* `to` holds nothing yet */
void map_release(struct map *map);

uint64_t hash_bytes(const void *bytes, size_t length);
uint64_t hash_mix(uint64_t a, uint64_t b);

#endif
