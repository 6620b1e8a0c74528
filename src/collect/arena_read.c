/* Reads and checks arena files; see arena_read.h.  Library zone: no printing, one owner. */
#include "collect/arena_read.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t record_bytes[WIRE_SECTIONS] = {
    [WIRE_BLOB] = 1,
    [WIRE_CODE] = sizeof(struct wire_code),
    [WIRE_NODE] = sizeof(struct wire_node),
    [WIRE_CELL] = sizeof(struct wire_cell),
    [WIRE_LOG] = sizeof(struct wire_log),
    [WIRE_THREAD] = sizeof(struct wire_thread),
    [WIRE_MODULE] = sizeof(struct wire_module),
    [WIRE_SITE] = sizeof(struct wire_site),
    [WIRE_BLOCK] = sizeof(struct wire_block),
    [WIRE_FOOT] = sizeof(struct wire_foot),
};

/* As many bytes as the file has, up to `length`; what is missing stays as it was. */
static size_t read_at(int fd, void *out, size_t length, uint64_t offset)
{
    size_t done = 0;
    while (done < length) {
        ssize_t n = pread(fd, (char *)out + done, length - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

static int read_header(struct wire_header *header, int fd, const char *path, struct err *err)
{
    memset(header, 0, sizeof *header);
    size_t got = read_at(fd, header, sizeof *header, 0);
    if (got < sizeof header->magic || !header->magic)
        return 1;
    if (header->magic != WIRE_ARENA_MAGIC)
        return err_set(err, "'%s' is not a recording of this program", path);
    if (got < sizeof *header)
        return err_set(err, "'%s' is cut off", path);
    if (header->version != WIRE_ARENA_VERSION || header->header_bytes != WIRE_HEADER_BYTES)
        return err_set(err, "'%s' was written by another version", path);
    return 0;
}

/*
 * `used` counts from where the writer began, with or without the unused record
 * 0; one record more than it says covers both, and an unpublished record at the
 * end is ignored like any other.
 */
static uint64_t section_records(const struct wire_section *section)
{
    uint64_t count = (uint64_t)atomic_load(&section->used) + 1;
    uint64_t committed = atomic_load(&section->committed);
    if (count > committed)
        count = committed;
    return count > section->capacity ? section->capacity : count;
}

static int read_section(struct arena *arena, int fd, enum wire_section_id id, struct err *err)
{
    struct wire_section *section = &arena->header.sections[id];
    /* The count anew: it has grown since, together with what refers to it. */
    struct wire_section now;
    uint64_t place = offsetof(struct wire_header, sections) + id * sizeof now;
    if (read_at(fd, &now, sizeof now, place) == sizeof now)
        *section = now;

    uint64_t size = record_bytes[id], count = section_records(section);
    if (!count)
        return 0;
    if (section->record_bytes != size || section->offset < WIRE_HEADER_BYTES)
        return err_set(err, "section %d does not make sense", (int)id);
    struct stat st;
    if (fstat(fd, &st))
        return err_set(err, "cannot read: %s", strerror(errno));
    uint64_t file_bytes = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
    uint64_t room = section->offset < file_bytes ? (file_bytes - section->offset) / size : 0;
    if (count > room) {
        arena->is_cut = true;
        count = room;
    }
    struct arena_section *out = &arena->sections[id];
    out->records = mem_zalloc(count, size);
    out->count = (uint32_t)(read_at(fd, out->records, count * size, section->offset) / size);
    return 0;
}

static int open_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? err_set(err, "cannot open '%s': %s", path, strerror(errno)) : fd;
}

int arena_peek(struct wire_header *header, const char *path, struct err *err)
{
    int fd = open_file(path, err);
    if (fd < 0)
        return -1;
    int rc = read_header(header, fd, path, err);
    close(fd);
    return rc;
}

int arena_open(struct arena *arena, const char *path, struct err *err)
{
    static const enum wire_section_id order[] = {WIRE_LOG,   WIRE_CELL, WIRE_THREAD, WIRE_FOOT,
                                                 WIRE_BLOCK, WIRE_SITE, WIRE_MODULE, WIRE_NODE,
                                                 WIRE_CODE,  WIRE_BLOB};
    *arena = (struct arena){0};
    int fd = open_file(path, err);
    if (fd < 0)
        return -1;
    int rc = read_header(&arena->header, fd, path, err);
    for (size_t i = 0; !rc && i < sizeof order / sizeof *order; i++) {
        struct err why = {""};
        if (read_section(arena, fd, order[i], &why))
            rc = err_set(err, "'%s' is damaged: %s", path, why.text);
    }
    close(fd);
    if (rc) {
        arena_release(arena);
        return rc;
    }
    for (int i = 0; i < WIRE_SECTIONS; i++)
        arena->sections[i].dropped = atomic_load(&arena->header.sections[i].dropped);
    if (arena->header.command_bytes > WIRE_COMMAND_BYTES)
        arena->header.command_bytes = WIRE_COMMAND_BYTES;
    return 0;
}

void arena_release(struct arena *arena)
{
    for (int i = 0; i < WIRE_SECTIONS; i++)
        free(arena->sections[i].records);
    *arena = (struct arena){0};
}

uint32_t arena_count(const struct arena *arena, enum wire_section_id section)
{
    return arena->sections[section].count;
}

static const void *record(const struct arena *arena, enum wire_section_id section, uint32_t id)
{
    const struct arena_section *s = &arena->sections[section];
    if (!id || id >= s->count)
        return NULL;
    return (const char *)s->records + (size_t)id * record_bytes[section];
}

const struct wire_code *arena_code(const struct arena *arena, uint32_t id)
{
    return record(arena, WIRE_CODE, id);
}

const struct wire_node *arena_node(const struct arena *arena, uint32_t id)
{
    return record(arena, WIRE_NODE, id);
}

const struct wire_thread *arena_thread(const struct arena *arena, uint32_t id)
{
    return record(arena, WIRE_THREAD, id);
}

bool arena_cell(const struct arena *arena, uint32_t id, struct arena_cell *out)
{
    const struct wire_cell *cell = record(arena, WIRE_CELL, id);
    uint32_t kind = cell ? atomic_load(&cell->kind) : WIRE_NONE;
    if (kind == WIRE_NONE || kind >= WIRE_KINDS)
        return false;
    *out = (struct arena_cell){
        .kind = (enum wire_kind)kind,
        .node = cell->node,
        .count = atomic_load(&cell->count),
        .ns = atomic_load(&cell->ns),
        .charged_ns = atomic_load(&cell->charged_ns),
        .square_us2 = atomic_load(&cell->square_us2),
    };
    return true;
}

bool arena_run(const struct arena *arena, uint32_t id, struct arena_run *out)
{
    const struct wire_log *run = record(arena, WIRE_LOG, id);
    uint32_t kind = run ? atomic_load(&run->kind) : WIRE_NONE;
    if (kind == WIRE_NONE || kind >= WIRE_KINDS)
        return false;
    *out = (struct arena_run){
        .kind = (enum wire_kind)kind,
        .node = run->node,
        .thread = run->thread,
        .at_ns = run->at_ns,
        .count = atomic_load(&run->count),
        .us = atomic_load(&run->us),
    };
    return true;
}

const struct wire_module *arena_module(const struct arena *arena, uint32_t id)
{
    return record(arena, WIRE_MODULE, id);
}

const struct wire_site *arena_site(const struct arena *arena, uint32_t id)
{
    const struct wire_site *site = record(arena, WIRE_SITE, id);
    uint32_t kind = site ? atomic_load(&site->kind) : WIRE_SITE_NONE;
    return kind == WIRE_SITE_NONE || kind >= WIRE_SITE_KINDS ? NULL : site;
}

const struct wire_block *arena_block(const struct arena *arena, uint32_t id)
{
    const struct wire_block *block = record(arena, WIRE_BLOCK, id);
    return block && arena_site(arena, atomic_load(&block->site)) ? block : NULL;
}

const struct wire_foot *arena_foot(const struct arena *arena, uint32_t id)
{
    const struct wire_foot *foot = record(arena, WIRE_FOOT, id);
    bool is_good =
        foot && atomic_load(&foot->published) && (!foot->site || arena_site(arena, foot->site));
    return is_good ? foot : NULL;
}

const uint8_t *arena_bytes(const struct arena *arena, struct wire_span span)
{
    const struct arena_section *blob = &arena->sections[WIRE_BLOB];
    if (!span.bytes || span.offset > blob->count || span.bytes > blob->count - span.offset)
        return NULL;
    return (const uint8_t *)blob->records + span.offset;
}

static uint32_t character(const uint8_t *bytes, unsigned width)
{
    uint16_t two;
    uint32_t four;
    if (width == 1)
        return *bytes;
    if (width == 2)
        return memcpy(&two, bytes, sizeof two), two;
    return memcpy(&four, bytes, sizeof four), four;
}

void arena_text(const struct arena *arena, struct wire_span span, unsigned width, struct buf *out)
{
    const uint8_t *bytes = arena_bytes(arena, span);
    if (!bytes || (width != 1 && width != 2 && width != 4))
        return;
    for (uint32_t i = 0; span.bytes - i >= width; i += width) {
        uint32_t c = character(bytes + i, width);
        if (c >= 0xDC80 && c <= 0xDCFF)
            buf_char(out, (char)(c - 0xDC00));
        else
            buf_utf8(out, c ? c : 0xFFFD);
    }
}
