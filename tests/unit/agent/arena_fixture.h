/*
 * An arena in a directory of its own, for tests of what is recorded into one.
 * Include it once, after <cmocka.h>.
 */
#ifndef TESTS_ARENA_FIXTURE_H
#define TESTS_ARENA_FIXTURE_H

#include "agent/core/arena.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fixture_directory[64];

static inline bool fixture_make_directory(void)
{
    snprintf(fixture_directory, sizeof fixture_directory, "/tmp/arena-XXXXXX");
    return mkdtemp(fixture_directory) != NULL;
}

static inline bool fixture_open(struct arena *arena)
{
    memset(arena, 0, sizeof *arena);
    return fixture_make_directory() && arena_create(arena, fixture_directory, true, 1);
}

/* Nothing else may be left in the directory. */
static inline int fixture_close(struct arena *arena)
{
    unlink(arena->path);
    arena_unmap(arena);
    return rmdir(fixture_directory);
}

/* All the room there can be, without the sampler that makes it. */
static inline void fixture_grow_fully(struct arena *arena)
{
    int fd = arena_open_again(arena);
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        struct wire_section *s = &arena->header->sections[i];
        uint64_t from = s->offset + (uint64_t)s->committed * s->record_bytes;
        off_t more = (off_t)(s->capacity - s->committed) * s->record_bytes;
        if (more)
            assert_int_equal(posix_fallocate(fd, (off_t)from, more), 0);
        s->committed = s->capacity;
    }
    close(fd);
}

#endif
