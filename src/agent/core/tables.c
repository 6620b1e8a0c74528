#include "agent/core/tables.h"

#include "agent/core/check.h"
#include "os/guard.h"
#include "os/os.h"
#include "wire/limits.h"
#include "wire/traced.h"

#include <string.h>

/* Twice what the section may hold that each one indexes, so probes stay short. */
enum {
    CODE_ENTRIES = 2 * WIRE_CODES_MAX,
    NODE_ENTRIES = 2 * WIRE_NODES_MAX,
    CELL_ENTRIES = 2 * WIRE_CELLS_MAX,
    PROBES_MAX = 64,
    FOLD_SIXTEENTHS = 12,  /* from here on recursion is folded */
    SHORT_SIXTEENTHS = 14, /* and from here on only the innermost frames are kept */
    SHORT_FRAMES = 4,
    NAME_BYTES_MAX = 1024, /* of a file name that is not ASCII, to be judged */
};
_Static_assert(!(CODE_ENTRIES & (CODE_ENTRIES - 1)) && !(NODE_ENTRIES & (NODE_ENTRIES - 1)) &&
                   !(CELL_ENTRIES & (CELL_ENTRIES - 1)),
               "a mask finds the entry");

static const size_t memory_bytes = (CODE_ENTRIES + NODE_ENTRIES + CELL_ENTRIES) * sizeof(uint32_t);

static uint32_t hash2(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b * 0xD6E8FEB86659FD93u)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(h >> 32);
}

bool tables_init(struct tables *t, struct arena *arena)
{
    t->arena = arena;
    t->memory = os_reserve(memory_bytes);
    if (!t->memory)
        return false;
    t->codes = t->memory;
    t->nodes = t->codes + CODE_ENTRIES;
    t->cells = t->nodes + NODE_ENTRIES;
    return true;
}

void tables_reset(struct tables *t)
{
    os_discard(t->memory, memory_bytes);
}

/* Copy an object's bytes into the blob, with a zero behind them. */
static bool keep_bytes(struct tables *t, uintptr_t data, uint32_t bytes, struct wire_span *span)
{
    *span = (struct wire_span){0};
    if (!bytes)
        return true;
    uint32_t at = arena_append(t->arena, WIRE_BLOB, bytes + 1);
    if (!at)
        return false;
    if (!guard_copy(arena_record(t->arena, WIRE_BLOB, at), data, bytes))
        return false;
    *span = (struct wire_span){at, bytes};
    return true;
}

static bool keep_text(struct tables *t, const struct py_layout *layout, uintptr_t text,
                      uint32_t bytes_max, struct wire_span *span, uint8_t *width)
{
    uintptr_t data;
    uint32_t bytes;
    if (!code_text(layout, text, &data, &bytes, width))
        return false;
    if (bytes > bytes_max) {
        bytes = bytes_max;
        arena_lost(t->arena, WIRE_LOST_TEXT);
    }
    return keep_bytes(t, data, bytes, span);
}

static uint32_t character(const uint8_t *text, uint8_t width, uint32_t index)
{
    uint32_t code = 0;
    for (uint8_t i = 0; i < width; i++)
        code |= (uint32_t)text[index * width + i] << 8 * i;
    return code;
}

static uint8_t *put_utf8(uint8_t *at, uint32_t code)
{
    if (code < 0x80 || (code >= 0xDC80 && code <= 0xDCFF)) { /* the latter: an undecodable byte */
        *at++ = (uint8_t)code;
        return at;
    }
    if (code < 0x800) {
        *at++ = (uint8_t)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *at++ = (uint8_t)(0xE0 | code >> 12);
        } else {
            *at++ = (uint8_t)(0xF0 | code >> 18);
            *at++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        }
        *at++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    }
    *at++ = (uint8_t)(0x80 | (code & 0x3F));
    return at;
}

static bool is_ascii(const uint8_t *text, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (text[i] >= 0x80)
            return false;
    return true;
}

/* Relative names are those of scripts before 3.9, as they were typed; but for that of the code in
 * which the interpreter itself ends a call of __init__(). */
static bool is_traced(const struct tables *t, struct wire_span file, uint8_t width)
{
    const uint8_t *text = arena_record(t->arena, WIRE_BLOB, file.offset);
    uint8_t utf8[NAME_BYTES_MAX], *end = utf8;
    if (!t->filter || !file.bytes)
        return false;
    if (width != 1 || !is_ascii(text, file.bytes)) {
        for (uint32_t i = 0; i < file.bytes / width; i++) {
            if (end > utf8 + sizeof utf8 - 5)
                return false;
            end = put_utf8(end, character(text, width, i));
        }
        *end = '\0';
        text = utf8;
    }
    enum traced traced = traced_file(t->filter, (const char *)text);
    return traced == TRACED_YES ||
           (traced == TRACED_ASK && text[0] != '/' && strcmp((const char *)text, "__init__"));
}

static uint32_t new_code(struct tables *t, const struct py_layout *layout, uintptr_t code,
                         const struct py_code *read)
{
    struct wire_code record = {
        .address = code,
        .fingerprint = read->fingerprint,
        .first_line = read->first_line,
        .line_format = layout->line_format,
    };
    if (!keep_text(t, layout, read->file, WIRE_FILE_BYTES_MAX, &record.file, &record.file_width) ||
        !keep_text(t, layout, read->name, WIRE_NAME_BYTES_MAX, &record.name, &record.name_width)) {
        arena_lost(t->arena, WIRE_LOST_TEXT);
        return 0;
    }
    if (read->line_table_bytes > WIRE_LINE_TABLE_BYTES_MAX ||
        !keep_bytes(t, read->line_table + (uintptr_t)layout->bytes_data, read->line_table_bytes,
                    &record.line_table)) {
        arena_lost(t->arena, WIRE_LOST_TEXT);
        record.line_format = WIRE_LINES_NONE;
    }
    record.is_traced = is_traced(t, record.file, record.file_width);
    uint32_t id = arena_append(t->arena, WIRE_CODE, 1);
    if (id)
        *(struct wire_code *)arena_record(t->arena, WIRE_CODE, id) = record;
    return id;
}

uint32_t tables_code(struct tables *t, const struct py_layout *layout, uintptr_t code)
{
    struct py_code read;
    if (!code_read(layout, code, &read))
        return 0;
    uint32_t at = hash2(code, read.fingerprint), made = 0;
    for (int probe = 0; probe < PROBES_MAX; probe++, at++) {
        _Atomic uint32_t *entry = &t->codes[at & (CODE_ENTRIES - 1)];
        uint32_t id = atomic_load_explicit(entry, memory_order_acquire);
        if (!id) {
            if (!made && !(made = new_code(t, layout, code, &read)))
                return 0;
            if (atomic_compare_exchange_strong(entry, &id, made))
                return made;
        }
        const struct wire_code *record = arena_record(t->arena, WIRE_CODE, id);
        if (record->address == code && record->fingerprint == read.fingerprint)
            return id;
    }
    return made;
}

bool tables_code_is(const struct tables *t, const struct wire_code *code, const char *name,
                    const char *file_end)
{
    size_t name_bytes = strlen(name), end_bytes = strlen(file_end);
    if (code->name_width != 1 || code->file_width != 1 || code->name.bytes < name_bytes ||
        code->file.bytes < end_bytes)
        return false;
    const char *text = arena_record(t->arena, WIRE_BLOB, code->name.offset);
    const char *file = arena_record(t->arena, WIRE_BLOB, code->file.offset);
    text += code->name.bytes - name_bytes; /* it may be qualified */
    return !memcmp(text, name, name_bytes) && (code->name.bytes == name_bytes || text[-1] == '.') &&
           !memcmp(file + code->file.bytes - end_bytes, file_end, end_bytes);
}

static bool was_reserved(const struct tables *t, enum wire_section_id section, uint32_t id)
{
    return id <
           atomic_load_explicit(&t->arena->header->sections[section].used, memory_order_relaxed);
}

static const struct wire_node *node_at(const struct tables *t, uint32_t id)
{
    return arena_record(t->arena, WIRE_NODE, id);
}

static bool is_traced_frame(const struct tables *t, enum wire_frame frame, uint32_t ref)
{
    const struct wire_code *code =
        frame == WIRE_FRAME_PYTHON ? arena_record(t->arena, WIRE_CODE, ref) : NULL;
    return code && code->is_traced;
}

uint32_t tables_traced(const struct tables *t, uint32_t id)
{
    if (!id || !(node_at(t, id)->flags & WIRE_NODE_TRACED))
        return 0;
    while (!is_traced_frame(t, (enum wire_frame)node_at(t, id)->frame, node_at(t, id)->ref))
        id = node_at(t, id)->parent;
    return id;
}

uint32_t tables_node(struct tables *t, uint32_t parent, enum wire_frame frame, uint32_t ref,
                     int32_t at, uint16_t flags)
{
    CHECK_CHEAP(was_reserved(t, WIRE_NODE, parent));
    CHECK_CHEAP(frame != WIRE_FRAME_PYTHON || (ref && was_reserved(t, WIRE_CODE, ref)));
    if (is_traced_frame(t, frame, ref) || (parent && node_at(t, parent)->flags & WIRE_NODE_TRACED))
        flags |= WIRE_NODE_TRACED;
    uint32_t hash = hash2((uint64_t)parent << 32 | ref,
                          (uint64_t)frame << 48 | (uint64_t)flags << 32 | (uint32_t)at);
    uint32_t made = 0;
    for (int probe = 0; probe < PROBES_MAX; probe++, hash++) {
        _Atomic uint32_t *entry = &t->nodes[hash & (NODE_ENTRIES - 1)];
        uint32_t id = atomic_load_explicit(entry, memory_order_acquire);
        if (!id) {
            if (!made) {
                made = arena_append(t->arena, WIRE_NODE, 1);
                if (!made)
                    return 0;
                CHECK_CHEAP(parent < made); /* so that no path is a circle */
                *(struct wire_node *)arena_record(t->arena, WIRE_NODE, made) =
                    (struct wire_node){parent, ref, at, (uint16_t)frame, flags};
            }
            if (atomic_compare_exchange_strong(entry, &id, made))
                return made;
        }
        const struct wire_node *node = arena_record(t->arena, WIRE_NODE, id);
        if (node->parent == parent && node->ref == ref && node->at == at && node->frame == frame &&
            node->flags == flags)
            return id;
    }
    return made;
}

/* How full the call tree is, in sixteenths. */
static uint32_t fullness(const struct tables *t)
{
    const struct wire_section *s = &t->arena->header->sections[WIRE_NODE];
    return atomic_load_explicit(&s->used, memory_order_relaxed) / (s->capacity / 16);
}

/* The node on the path to `node` that stands for this very frame, or 0. */
static uint32_t on_path(const struct tables *t, uint32_t node, uint32_t code, int32_t at)
{
    while (node) {
        const struct wire_node *record = arena_record(t->arena, WIRE_NODE, node);
        if (record->frame == WIRE_FRAME_PYTHON && record->ref == code && record->at == at)
            return node;
        CHECK_DEBUG(record->parent < node);
        node = record->parent;
    }
    return 0;
}

uint32_t tables_stack(struct tables *t, const struct py_layout *layout, uint32_t root,
                      const struct py_frame *frames, const struct py_walk *walk)
{
    uint32_t node = root, full = fullness(t), count = walk->count;
    bool fold = full >= FOLD_SIXTEENTHS, folded = false;
    if (full >= SHORT_SIXTEENTHS && count > SHORT_FRAMES) {
        count = SHORT_FRAMES;
        folded = true;
    }
    if (walk->truncated || walk->bad || count < walk->count)
        node = tables_node(t, root, WIRE_FRAME_TRUNCATED, 0, 0, 0);
    if (walk->truncated || walk->bad)
        arena_lost(t->arena, walk->bad ? WIRE_LOST_TORN : WIRE_LOST_TRUNCATED);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t code = tables_code(t, layout, frames[i].code);
        uint32_t seen = fold && code ? on_path(t, node, code, frames[i].at) : 0;
        uint16_t flags = frames[i].direct ? WIRE_NODE_DIRECT : 0;
        uint32_t next = seen   ? seen
                        : code ? tables_node(t, node, WIRE_FRAME_PYTHON, code, frames[i].at, flags)
                               : tables_node(t, node, WIRE_FRAME_UNKNOWN, 0, 0, 0);
        folded |= seen != 0;
        if (!next)
            return 0; /* a caller that still fitted would be the wrong line */
        node = next;
    }
    if (folded)
        arena_lost(t->arena, WIRE_LOST_FOLDED);
    return node;
}

static struct wire_cell *find_cell(struct tables *t, uint32_t node, enum wire_kind kind)
{
    uint32_t hash = hash2(node, kind), made = 0;
    for (int probe = 0; probe < PROBES_MAX; probe++, hash++) {
        _Atomic uint32_t *entry = &t->cells[hash & (CELL_ENTRIES - 1)];
        uint32_t id = atomic_load_explicit(entry, memory_order_acquire);
        if (!id) {
            if (!made) {
                made = arena_append(t->arena, WIRE_CELL, 1);
                if (!made)
                    return NULL;
                struct wire_cell *cell = arena_record(t->arena, WIRE_CELL, made);
                cell->node = node;
                atomic_store_explicit(&cell->kind, kind, memory_order_release);
            }
            if (atomic_compare_exchange_strong(entry, &id, made))
                return arena_record(t->arena, WIRE_CELL, made);
        }
        struct wire_cell *cell = arena_record(t->arena, WIRE_CELL, id);
        if (cell->node == node && atomic_load(&cell->kind) == (uint32_t)kind)
            return cell;
    }
    return made ? arena_record(t->arena, WIRE_CELL, made) : NULL;
}

/* There is no atomic addition of reals; a writer that comes in between makes this one try again. */
static void add_square(struct wire_cell *cell, double us)
{
    double sum = atomic_load_explicit(&cell->square_us2, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&cell->square_us2, &sum, sum + us * us,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

bool tables_add(struct tables *t, uint32_t node, enum wire_kind kind, uint64_t ns,
                uint64_t charged_ns)
{
    CHECK_CHEAP(kind > WIRE_NONE && kind < WIRE_KINDS && was_reserved(t, WIRE_NODE, node));
    struct wire_cell *cell = node ? find_cell(t, node, kind) : NULL;
    if (!cell) {
        arena_lost(t->arena, WIRE_LOST_TABLE_FULL);
        return false;
    }
    atomic_fetch_add_explicit(&cell->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&cell->ns, ns, memory_order_relaxed);
    if (charged_ns)
        atomic_fetch_add_explicit(&cell->charged_ns, charged_ns, memory_order_relaxed);
    add_square(cell, (double)(kind < WIRE_WAIT_FIRST ? ns : charged_ns) / 1000);
    return true;
}
