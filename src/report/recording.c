/* Reads and checks arena files; see recording.h.  Library zone: no printing, one owner. */
#include "report/recording.h"

#include "base/mem.h"
#include "report/recording_check.h"
#include "wire/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct err why = {""};
    if (recording_check_header(header, &why))
        return err_set(err, "'%s' is damaged: %s", path, why.text);
    return 0;
}

/* The count anew: it has grown since the header was read, together with what refers to it.  The
 * rest of the section was checked and must stay as it was. */
static void update_count(struct wire_section *section, int fd, enum wire_section_id id)
{
    struct wire_section now;
    uint64_t place = offsetof(struct wire_header, sections) + id * sizeof now;
    if (read_at(fd, &now, sizeof now, place) != sizeof now)
        return;
    atomic_store(&section->committed, atomic_load(&now.committed));
    atomic_store(&section->used, atomic_load(&now.used));
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

static int read_section(struct recording *recording, int fd, enum wire_section_id id,
                        struct err *err)
{
    struct wire_section *section = &recording->header.sections[id];
    update_count(section, fd, id);
    uint64_t size = wire_limits[id].record_bytes, count = section_records(section);
    struct stat st;
    if (!count)
        return 0;
    if (fstat(fd, &st))
        return err_set(err, "cannot read: %s", strerror(errno));
    uint64_t file_bytes = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
    uint64_t room = section->offset < file_bytes ? (file_bytes - section->offset) / size : 0;
    if (count > room) {
        recording->is_cut = true;
        count = room;
    }
    struct recording_section *out = &recording->sections[id];
    out->records = mem_zalloc(count, size);
    out->count = (uint32_t)(read_at(fd, out->records, count * size, section->offset) / size);
    return 0;
}

static int open_file(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd < 0 ? err_set(err, "cannot open '%s': %s", path, strerror(errno)) : fd;
}

int recording_peek(struct wire_header *header, const char *path, struct err *err)
{
    int fd = open_file(path, err);
    if (fd < 0)
        return -1;
    int rc = read_header(header, fd, path, err);
    close(fd);
    return rc;
}

int recording_open(struct recording *recording, const char *path, struct err *err)
{
    static const enum wire_section_id order[] = {
        WIRE_LOG,  WIRE_CELL,  WIRE_THREAD, WIRE_AWAIT,  WIRE_NAME, WIRE_PLACE, WIRE_CROWD,
        WIRE_FOOT, WIRE_BLOCK, WIRE_SITE,   WIRE_MODULE, WIRE_NODE, WIRE_CODE,  WIRE_BLOB};
    *recording = (struct recording){0};
    int fd = open_file(path, err);
    if (fd < 0)
        return -1;
    int rc = read_header(&recording->header, fd, path, err);
    struct err why = {""};
    bool is_bad = false;
    for (size_t i = 0; !rc && !is_bad && i < sizeof order / sizeof *order; i++)
        is_bad = read_section(recording, fd, order[i], &why) != 0;
    close(fd);
    if (!rc && (is_bad || recording_check_records(recording, &why)))
        rc = err_set(err, "'%s' is damaged: %s", path, why.text);
    if (rc) {
        recording_release(recording);
        return rc;
    }
    for (int i = 0; i < WIRE_SECTIONS; i++)
        recording->sections[i].dropped = atomic_load(&recording->header.sections[i].dropped);
    return 0;
}

void recording_release(struct recording *recording)
{
    for (int i = 0; i < WIRE_SECTIONS; i++)
        free(recording->sections[i].records);
    *recording = (struct recording){0};
}

uint32_t recording_count(const struct recording *recording, enum wire_section_id section)
{
    return recording->sections[section].count;
}

static const void *record(const struct recording *recording, enum wire_section_id section,
                          uint32_t id)
{
    const struct recording_section *s = &recording->sections[section];
    if (!id || id >= s->count)
        return NULL;
    return (const char *)s->records + (size_t)id * wire_limits[section].record_bytes;
}

const struct wire_code *recording_code(const struct recording *recording, uint32_t id)
{
    return record(recording, WIRE_CODE, id);
}

const struct wire_node *recording_node(const struct recording *recording, uint32_t id)
{
    return record(recording, WIRE_NODE, id);
}

const struct wire_thread *recording_thread(const struct recording *recording, uint32_t id)
{
    return record(recording, WIRE_THREAD, id);
}

bool recording_cell(const struct recording *recording, uint32_t id, struct recording_cell *out)
{
    const struct wire_cell *cell = record(recording, WIRE_CELL, id);
    uint32_t kind = cell ? atomic_load(&cell->kind) : WIRE_NONE;
    if (kind == WIRE_NONE)
        return false;
    *out = (struct recording_cell){
        .kind = (enum wire_kind)kind,
        .node = cell->node,
        .count = atomic_load(&cell->count),
        .ns = atomic_load(&cell->ns),
        .charged_ns = atomic_load(&cell->charged_ns),
        .square_us2 = atomic_load(&cell->square_us2),
    };
    return true;
}

bool recording_run(const struct recording *recording, uint32_t id, struct recording_run *out)
{
    const struct wire_log *run = record(recording, WIRE_LOG, id);
    uint32_t kind = run ? atomic_load(&run->kind) : WIRE_NONE;
    if (kind == WIRE_NONE)
        return false;
    *out = (struct recording_run){
        .kind = (enum wire_kind)kind,
        .node = run->node,
        .thread = run->thread,
        .at_ns = run->at_ns,
        .count = atomic_load(&run->count),
        .us = atomic_load(&run->us),
    };
    return true;
}

bool recording_await(const struct recording *recording, uint32_t id, struct recording_await *out)
{
    const struct wire_await *await = record(recording, WIRE_AWAIT, id);
    uint32_t kind = await ? atomic_load(&await->kind) : WIRE_AWAIT_NONE;
    if (kind == WIRE_AWAIT_NONE)
        return false;
    *out = (struct recording_await){
        .kind = (enum wire_await_kind)kind,
        .node = await->node,
        .count = atomic_load(&await->count),
        .us = atomic_load(&await->us),
        .square_us2 = atomic_load(&await->square_us2),
    };
    return true;
}

const struct wire_place *recording_place(const struct recording *recording, uint32_t id)
{
    const struct wire_place *place = record(recording, WIRE_PLACE, id);
    return place && atomic_load(&place->code) ? place : NULL;
}

const struct wire_name *recording_name(const struct recording *recording, uint32_t id)
{
    const struct wire_name *name = record(recording, WIRE_NAME, id);
    return name && atomic_load(&name->place) ? name : NULL;
}

const struct wire_crowd *recording_crowd(const struct recording *recording, uint32_t id)
{
    const struct wire_crowd *crowd = record(recording, WIRE_CROWD, id);
    return crowd && atomic_load(&crowd->published) ? crowd : NULL;
}

const struct wire_module *recording_module(const struct recording *recording, uint32_t id)
{
    return record(recording, WIRE_MODULE, id);
}

const struct wire_site *recording_site(const struct recording *recording, uint32_t id)
{
    const struct wire_site *site = record(recording, WIRE_SITE, id);
    return site && atomic_load(&site->kind) ? site : NULL;
}

const struct wire_block *recording_block(const struct recording *recording, uint32_t id)
{
    const struct wire_block *block = record(recording, WIRE_BLOCK, id);
    return block && atomic_load(&block->site) ? block : NULL;
}

const struct wire_foot *recording_foot(const struct recording *recording, uint32_t id)
{
    const struct wire_foot *foot = record(recording, WIRE_FOOT, id);
    return foot && atomic_load(&foot->published) ? foot : NULL;
}

const uint8_t *recording_bytes(const struct recording *recording, struct wire_span span)
{
    const struct recording_section *blob = &recording->sections[WIRE_BLOB];
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

void recording_text(const struct recording *recording, struct wire_span span, unsigned width,
                    struct buf *out)
{
    const uint8_t *bytes = recording_bytes(recording, span);
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
