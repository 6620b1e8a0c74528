/*
 * The process's arena file (wire/arena.h): made at the program's start and anew
 * in a forked child, grown by the sampler thread ahead of need, written from
 * anywhere.
 */
#ifndef AGENT_CORE_ARENA_H
#define AGENT_CORE_ARENA_H

#include "wire/arena.h"

#include <stdbool.h>
#include <stddef.h>

struct arena {
    struct wire_header *header; /* start of the mapping */
    size_t mapped_bytes;
    _Atomic uint32_t is_hungry; /* a section has become half full; who grows it may sleep on this */
    char path[512];
};

/* Create and map the file in `directory`, with the sections for memory or without, each with room
 * for one `part`th (1 to 8) of what it may hold.  Not from a handler (it makes system calls that
 * block). */
bool arena_create(struct arena *arena, const char *directory, bool with_memory, unsigned part);
void arena_unmap(struct arena *arena);

bool arena_wants_more(const struct arena *arena);
/* Back more of every section that is more than half full.  `fd` as arena_open_again gives it. */
void arena_grow(struct arena *arena, int fd);
int arena_open_again(const struct arena *arena);

/* Reserve one record (or `count` bytes of the blob); 0: no room.  From a handler too. */
uint32_t arena_append(struct arena *arena, enum wire_section_id section, uint32_t count);
/* One that was reserved: never 0. */
void *arena_record(const struct arena *arena, enum wire_section_id section, uint32_t id);
void arena_lost(struct arena *arena, enum wire_loss loss);

#endif
