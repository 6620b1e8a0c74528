/*
 * A Python made of plain memory: code objects and frames laid out by a layout
 * of ours, so that the walker, the tables and the text reader can be tested
 * without an interpreter, on good chains and on broken ones.
 */
#ifndef TESTS_FAKE_PYTHON_H
#define TESTS_FAKE_PYTHON_H

#include "py/frames.h"
#include "wire/arena.h"

#include <stdlib.h>
#include <string.h>

static uintptr_t fake_code_type = 0xC0DE, fake_str_type = 0x57;

struct fake_object {
    uint64_t words[64];
};

/* Objects live as long as the test program. */
static inline struct fake_object *fake_alloc(void)
{
    static struct fake_object pool[16384];
    static unsigned used;
    if (used == sizeof pool / sizeof *pool)
        abort();
    return &pool[used++];
}

static inline void fake_put(struct fake_object *object, int32_t offset, uint64_t value)
{
    memcpy((char *)object + offset, &value, sizeof value);
}

static inline struct fake_object *fake_new(const struct py_layout *l, uintptr_t type)
{
    struct fake_object *object = fake_alloc();
    fake_put(object, l->ob_type, type);
    return object;
}

static inline struct fake_object *fake_str(const struct py_layout *l, const char *text)
{
    struct fake_object *object = fake_new(l, fake_str_type);
    fake_put(object, l->str_length, strlen(text));
    uint32_t state =
        1u << l->str_kind_shift | 1u << l->str_compact_shift | 1u << l->str_ascii_shift;
    memcpy((char *)object + l->str_state, &state, sizeof state);
    memcpy((char *)object + l->str_ascii, text, strlen(text));
    return object;
}

static inline struct fake_object *fake_code(const struct py_layout *l, const char *file,
                                            const char *name, int first_line)
{
    struct fake_object *table = fake_new(l, 1), *code = fake_new(l, fake_code_type);
    fake_put(table, l->bytes_size, 4);
    memcpy((char *)table + l->bytes_data, "\x80\x00\x88\x01", 4);
    fake_put(code, l->code_file, (uintptr_t)fake_str(l, file));
    fake_put(code, l->code_name, (uintptr_t)fake_str(l, name));
    fake_put(code, l->code_line_table, (uintptr_t)table);
    memcpy((char *)code + l->code_first_line, &first_line, sizeof first_line);
    return code;
}

static inline struct fake_object *fake_frame(const struct py_layout *l, struct fake_object *code,
                                             int at, struct fake_object *back, uint8_t owner)
{
    struct fake_object *frame = fake_alloc();
    fake_put(frame, l->fr_code, (uintptr_t)code);
    fake_put(frame, l->fr_back, (uintptr_t)back);
    fake_put(frame, l->fr_instr, (uintptr_t)code + (uintptr_t)l->code_bytes + (uintptr_t)at);
    ((uint8_t *)frame)[l->fr_owner] = owner;
    return frame;
}

static inline struct fake_object *fake_thread(const struct py_layout *l, struct fake_object *frame,
                                              uintptr_t ident)
{
    struct fake_object *tstate = fake_alloc(), *cframe = fake_alloc();
    fake_put(cframe, l->cframe_current, (uintptr_t)frame);
    fake_put(tstate, l->ts_cframe, (uintptr_t)cframe);
    fake_put(tstate, l->ts_thread_id, ident);
    return tstate;
}

#endif
