#include "py/code.h"

#include "os/guard.h"

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

bool code_read(const struct py_layout *l, uintptr_t code, struct py_code *out)
{
    unsigned bad = 0;
    out->file = guard_ptr(code + (uintptr_t)l->code_file, &bad);
    out->name = guard_ptr(code + (uintptr_t)l->code_name, &bad);
    out->line_table = guard_ptr(code + (uintptr_t)l->code_line_table, &bad);
    out->first_line = (int32_t)guard_u32(code + (uintptr_t)l->code_first_line, &bad);
    if (bad || !out->file || !out->name || !out->line_table)
        return false;
    uint64_t size = guard_u64(out->line_table + (uintptr_t)l->bytes_size, &bad);
    if (bad || size >= 1u << 24)
        return false;
    out->line_table_bytes = (uint32_t)size;
    uint64_t head = guard_u64(out->line_table + (uintptr_t)l->bytes_data, &bad);
    if (size < 8)
        head &= (UINT64_C(1) << (size * 8)) - 1;
    uint64_t hash = mix(mix(mix(out->file, out->name), out->line_table), size);
    out->fingerprint = mix(mix(hash, head), (uint32_t)out->first_line);
    return !bad;
}

bool code_text(const struct py_layout *l, uintptr_t text, uintptr_t *data, uint32_t *bytes,
               uint8_t *width)
{
    unsigned bad = 0;
    uint64_t length = guard_u64(text + (uintptr_t)l->str_length, &bad);
    uint32_t state = guard_u32(text + (uintptr_t)l->str_state, &bad);
    if (bad || length >= 1u << 20 || !(state >> l->str_compact_shift & 1))
        return false;
    *width = state >> l->str_kind_shift & 7;
    if (*width != 1 && *width != 2 && *width != 4)
        return false;
    bool ascii = state >> l->str_ascii_shift & 1;
    *data = text + (uintptr_t)(ascii ? l->str_ascii : l->str_compact);
    *bytes = (uint32_t)length * *width;
    return true;
}

bool code_is_a(const struct py_layout *l, uintptr_t object, uintptr_t type)
{
    unsigned bad = 0;
    return object && guard_ptr(object + (uintptr_t)l->ob_type, &bad) == type && !bad;
}
