/*
 * The one file that knows CPython's version numbers.  See docs/porting-python.md
 * for how a new version gets its row.
 */
#include "py/layout.h"

#include "py/opcodes.h"
#include "wire/arena.h"

#define ABSENT PY_ABSENT

/* Opcodes that follow an await: of 3.8 to 3.10, of 3.11 and 3.12, of 3.11, of 3.12. */
enum { YIELD_FROM = 72, RESUME = 151, RESUME_QUICK = 150, INSTRUMENTED_RESUME = 240 };

/* clang-format off */

/* 3.8 and 3.9; 3.10 keeps a state and a depth in the frame. */
static const struct py_generators generators_3_8 = {
    .await = PY_AWAIT_NEXT_OPCODE, .frame_ref = 16, .frame = ABSENT, .running = 24, .state = ABSENT, .frame_state = ABSENT,
    .stack_end = 72, .stack_depth = ABSENT, .stack = ABSENT, .stack_ref = ABSENT,
    .awaited = 1, .value_mask = ~(uintptr_t)0, .opcodes = {YIELD_FROM, YIELD_FROM},
};
static const struct py_generators generators_3_10 = {
    .await = PY_AWAIT_NEXT_OPCODE, .frame_ref = 16, .frame = ABSENT, .running = ABSENT, .state = ABSENT, .frame_state = 108,
    .created = -2, .executing = 0, .stack_end = ABSENT, .stack_depth = 80, .stack = ABSENT, .stack_ref = 64,
    .awaited = 1, .value_mask = ~(uintptr_t)0, .opcodes = {YIELD_FROM, YIELD_FROM},
};
static const struct py_generators generators_3_11 = {
    .await = PY_AWAIT_RESUME, .frame_ref = ABSENT, .frame = 80, .running = ABSENT, .state = 75, .frame_state = ABSENT,
    .created = -2, .executing = 0, .stack_end = ABSENT, .stack_depth = 64, .stack = 72, .stack_ref = ABSENT,
    .awaited = 1, .value_mask = ~(uintptr_t)0, .opcodes = {RESUME, RESUME_QUICK},
};
static const struct py_generators generators_3_12 = {
    .await = PY_AWAIT_RESUME, .frame_ref = ABSENT, .frame = 72, .running = ABSENT, .state = 67, .frame_state = ABSENT,
    .created = -2, .executing = 0, .stack_end = ABSENT, .stack_depth = 64, .stack = 72, .stack_ref = ABSENT,
    .awaited = 1, .value_mask = ~(uintptr_t)0, .opcodes = {RESUME, INSTRUMENTED_RESUME},
};
static const struct py_generators generators_3_13 = {
    .await = PY_AWAIT_STATE, .frame_ref = ABSENT, .frame = 72, .running = ABSENT, .state = 67, .frame_state = ABSENT,
    .created = -3, .executing = 0, .awaits_first = -1, .awaits_last = -1,
    .stack_end = ABSENT, .stack_depth = 64, .stack = 72, .stack_ref = ABSENT,
    .awaited = 1, .value_mask = ~(uintptr_t)0,
};
/* From here on their places are described. */
static const struct py_generators generators_3_14 = {
    .await = PY_AWAIT_STATE, .frame_ref = ABSENT, .running = ABSENT, .frame_state = ABSENT,
    .created = -3, .executing = 0, .awaits_first = -1, .awaits_last = -1,
    .stack_depth = ABSENT, .stack = ABSENT, .stack_ref = ABSENT, .awaited = 1, .value_mask = ~(uintptr_t)3,
};
static const struct py_generators generators_3_15 = {
    .await = PY_AWAIT_STATE, .frame_ref = ABSENT, .running = ABSENT, .frame_state = ABSENT,
    .created = 0, .executing = 4, .awaits_first = 2, .awaits_last = 3,
    .stack_depth = ABSENT, .stack = ABSENT, .stack_ref = ABSENT, .awaited = 2, .value_mask = ~(uintptr_t)3,
};

#define FUTURES(bytes, bytes_of_task, at_state, at_waiter)                                                         \
    {.future_bytes = (bytes), .task_bytes = (bytes_of_task), .loop = 16, .state = (at_state), .waiter = (at_waiter), \
     .coroutine = (at_waiter) + 8, .name = (at_waiter) + 16, .node = ABSENT, .ts_tasks = ABSENT,                       \
     .interp_tasks = ABSENT}
static const struct py_futures futures_3_8 = FUTURES(104, 144, 72, 104);
static const struct py_futures futures_3_9 = FUTURES(144, 184, 80, 144);
static const struct py_futures futures_3_10 = FUTURES(152, 192, 88, 152);
static const struct py_futures futures_3_11 = FUTURES(128, 176, 88, 128); /* and 3.12 */
static const struct py_futures futures_3_13 = FUTURES(104, 144, 96, 112);
static const struct py_futures futures_described = {.is_described = true};

/* What 3.8, 3.9 and 3.10 share: frame objects, linked by f_back. */
static const struct py_layout frame_objects = {
    .ts_prev = 0, .ts_thread_id = 176, .ts_frame = 24,
    .ts_cframe = ABSENT, .cframe_current = ABSENT, .cframe_previous = ABSENT,
    .ts_gil_requested = ABSENT, .ts_state = ABSENT, .ts_base_frame = ABSENT,
    .fr_code = 32, .fr_back = 24, .fr_instr = 104, .fr_owner = ABSENT, .fr_tlbc_index = ABSENT, .fr_is_entry = ABSENT,
    .fo_frame = ABSENT, .instruction = PY_LASTI_BYTES, .code_mask = ~(uintptr_t)0,
    .code_file = 104, .code_name = 112, .code_first_line = 40, .code_line_table = 120,
    .code_bytes = ABSENT, .code_bytes_ref = 48, .code_tlbc = ABSENT,
    .line_format = WIRE_LINES_LNOTAB,
    .ob_type = 8, .bytes_size = 16, .bytes_data = 32,
    .str_length = 16, .str_state = 32, .str_ascii = 48, .str_compact = 72,
    .str_kind_shift = 2, .str_compact_shift = 5, .str_ascii_shift = 6,
    .head_bytes = 16, .calls = opcodes_3_8, .calls_need_stack = true,
};

/* 3.11: interpreter frames without objects, found through the C frame. */
static const struct py_layout layout_3_11 = {
    .ts_prev = 0, .ts_thread_id = 152, .ts_frame = ABSENT,
    .ts_cframe = 56, .cframe_current = 8, .cframe_previous = 16,
    .ts_gil_requested = ABSENT, .ts_state = ABSENT, .ts_base_frame = ABSENT,
    .fr_code = 32, .fr_back = 48, .fr_instr = 56, .fr_owner = 69, .fr_tlbc_index = ABSENT, .fr_is_entry = 68,
    .fr_owner_shim = 255, .fr_owner_max = 2, .fo_frame = 24,
    .instruction = PY_INSTR_POINTER, .code_mask = ~(uintptr_t)0,
    .code_file = 112, .code_name = 128, .code_first_line = 72, .code_line_table = 136,
    .code_bytes = 184, .code_bytes_ref = ABSENT, .code_tlbc = ABSENT,
    .line_format = WIRE_LINES_LOCATION, .caller_slack = 8,
    .ob_type = 8, .bytes_size = 16, .bytes_data = 32,
    .str_length = 16, .str_state = 32, .str_ascii = 48, .str_compact = 72,
    .str_kind_shift = 2, .str_compact_shift = 5, .str_ascii_shift = 6,
    .head_bytes = 16, .calls = opcodes_3_11, .chain_may_tear = true,
};

static const struct py_layout layout_3_12 = {
    .ts_prev = 0, .ts_thread_id = 136, .ts_frame = ABSENT,
    .ts_cframe = 56, .cframe_current = 0, .cframe_previous = 8,
    .ts_gil_requested = ABSENT, .ts_state = ABSENT, .ts_base_frame = ABSENT,
    .fr_code = 0, .fr_back = 8, .fr_instr = 56, .fr_owner = 70, .fr_tlbc_index = ABSENT, .fr_is_entry = ABSENT,
    .fr_owner_shim = 3, .fr_owner_max = 3, .fo_frame = 24,
    .instruction = PY_INSTR_POINTER, .code_mask = ~(uintptr_t)0,
    .code_file = 112, .code_name = 128, .code_first_line = 68, .code_line_table = 136,
    .code_bytes = 192, .code_bytes_ref = ABSENT, .code_tlbc = ABSENT,
    .line_format = WIRE_LINES_LOCATION, .caller_slack = 6,
    .ob_type = 8, .bytes_size = 16, .bytes_data = 32,
    .str_length = 16, .str_state = 32, .str_ascii = 40, .str_compact = 56,
    .str_kind_shift = 2, .str_compact_shift = 5, .str_ascii_shift = 6,
    .head_bytes = 16, .calls = opcodes_3_12, .chain_may_tear = true,
};

/* Byte positions, inside _Py_DebugOffsets, of the offsets we need.  0: not there. */
struct positions {
    uint32_t minor;
    uint16_t size;
    uint16_t ts_prev, ts_frame, ts_base_frame, ts_thread_id, ts_gil_requested;
    uint16_t ts_status, ts_state_behind; /* the state stands so many bytes behind the status */
    uint16_t fr_back, fr_code, fr_instr, fr_owner, fr_tlbc_index;
    uint16_t code_file, code_name, code_line_table, code_first_line, code_bytes, code_tlbc;
    uint16_t ob_type, bytes_size, bytes_data;
    uint16_t str_state, str_length, str_ascii_size, str_compact_size;
    uint16_t fr_stack_end, gen_frame, gen_state; /* 0: not described, `generators` says it */
    uint8_t owner_max;
    const uint8_t *calls;
    const struct py_generators *generators;
    const struct py_futures *futures;
};

static const struct positions positions[] = {
    {.minor = 13, .size = 584, .ts_prev = 160, .ts_frame = 184, .ts_thread_id = 192,
     .ts_status = 216, .ts_state_behind = 8,
     .fr_back = 232, .fr_code = 240, .fr_instr = 248, .fr_owner = 264,
     .code_file = 280, .code_name = 296, .code_line_table = 304, .code_first_line = 312,
     .code_bytes = 344, .ob_type = 360, .bytes_size = 520, .bytes_data = 528,
     .str_state = 544, .str_length = 552, .str_ascii_size = 560, .owner_max = 3,
     .calls = opcodes_3_13, .generators = &generators_3_13, .futures = &futures_3_13},
    {.minor = 14, .size = 760, .ts_prev = 184, .ts_frame = 208, .ts_thread_id = 216,
     .ts_status = 240, .ts_state_behind = 12,
     .fr_back = 256, .fr_code = 264, .fr_instr = 272, .fr_owner = 288, .fr_tlbc_index = 304,
     .code_file = 320, .code_name = 336, .code_line_table = 344, .code_first_line = 352,
     .code_bytes = 384, .code_tlbc = 392, .ob_type = 408, .bytes_size = 600, .bytes_data = 608,
     .str_state = 624, .str_length = 632, .str_ascii_size = 640, .owner_max = 4,
     .fr_stack_end = 296, .gen_frame = 680, .gen_state = 688,
     .calls = opcodes_3_14, .generators = &generators_3_14, .futures = &futures_described},
    {.minor = 15, .size = 888, .ts_prev = 184, .ts_frame = 208, .ts_base_frame = 216,
     .ts_thread_id = 240, .ts_gil_requested = 280, .ts_status = 264, .ts_state_behind = 16,
     .fr_back = 320, .fr_code = 328, .fr_instr = 336, .fr_owner = 352, .fr_tlbc_index = 368,
     .code_file = 384, .code_name = 400, .code_line_table = 408, .code_first_line = 416,
     .code_bytes = 448, .code_tlbc = 456, .ob_type = 472, .bytes_size = 696, .bytes_data = 704,
     .str_state = 720, .str_length = 728, .str_ascii_size = 736, .str_compact_size = 744,
     .fr_stack_end = 360, .gen_frame = 808, .gen_state = 816,
     .owner_max = 4, .calls = opcodes_3_15, .generators = &generators_3_15, .futures = &futures_described},
};

/* clang-format on */

enum {
    OFFSET_LIMIT = 65536,
    HEAD_BYTES = 16,
    FREE_THREADED_AT = 16,
    COOKIE_AT = 0,
    VERSION_AT = 8
};

static uint64_t word_at(uintptr_t runtime, size_t offset)
{
    return *(const uint64_t *)(runtime + offset);
}

/* One offset out of the interpreter's own description; *ok is cleared when it is absurd. */
static int32_t described(uintptr_t runtime, uint16_t position, bool *ok)
{
    if (!position)
        return ABSENT;
    uint64_t value = word_at(runtime, position);
    if (value >= OFFSET_LIMIT)
        *ok = false;
    return (int32_t)value;
}

/* Without GIL every object has a longer head, and what stands in a table is so much further on. */
static void select_async(struct py_layout *layout, const struct positions *p, uintptr_t runtime,
                         bool *ok)
{
    layout->head_bytes = layout->ob_type + (int32_t)sizeof(uintptr_t);
    layout->fo_frame = layout->head_bytes + (int32_t)sizeof(uintptr_t); /* behind f_back */
    int32_t further = layout->head_bytes - HEAD_BYTES;
    layout->generators = *p->generators;
    if (p->gen_frame) {
        layout->generators.frame = described(runtime, p->gen_frame, ok);
        layout->generators.state = described(runtime, p->gen_state, ok);
        layout->generators.stack_end = described(runtime, p->fr_stack_end, ok);
    } else {
        layout->generators.frame += further;
        layout->generators.state += further;
    }
    layout->futures = *p->futures;
    layout->futures.future_bytes += further;
    layout->futures.task_bytes += further;
    layout->futures.loop += further;
    layout->futures.state += further;
    layout->futures.waiter += further;
    layout->futures.coroutine += further;
    layout->futures.name += further;
}

static bool select_described(struct py_layout *layout, const struct positions *p,
                             uint32_t version_hex, uintptr_t runtime, size_t runtime_bytes)
{
    static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    if (!runtime || runtime_bytes < p->size ||
        __builtin_memcmp((const void *)(runtime + COOKIE_AT), cookie, sizeof cookie) ||
        word_at(runtime, VERSION_AT) >> 16 != version_hex >> 16)
        return false;
    bool ok = true;
    bool free_threaded = word_at(runtime, FREE_THREADED_AT) != 0;
    /* clang-format off */
    *layout = (struct py_layout){
        .ts_prev = described(runtime, p->ts_prev, &ok),
        .ts_thread_id = described(runtime, p->ts_thread_id, &ok),
        .ts_frame = described(runtime, p->ts_frame, &ok),
        .ts_cframe = ABSENT, .cframe_current = ABSENT, .cframe_previous = ABSENT,
        .ts_gil_requested = described(runtime, p->ts_gil_requested, &ok),
        .ts_state = free_threaded ? described(runtime, p->ts_status, &ok) + p->ts_state_behind : ABSENT,
        .ts_base_frame = described(runtime, p->ts_base_frame, &ok),
        .fr_code = described(runtime, p->fr_code, &ok),
        .fr_back = described(runtime, p->fr_back, &ok),
        .fr_instr = described(runtime, p->fr_instr, &ok),
        .fr_owner = described(runtime, p->fr_owner, &ok),
        .fr_tlbc_index = free_threaded ? described(runtime, p->fr_tlbc_index, &ok) : ABSENT,
        .fr_is_entry = ABSENT, .fr_owner_shim = 3, .fr_owner_max = p->owner_max,
        .instruction = PY_INSTR_POINTER, .code_mask = ~(uintptr_t)3,
        .code_file = described(runtime, p->code_file, &ok),
        .code_name = described(runtime, p->code_name, &ok),
        .code_first_line = described(runtime, p->code_first_line, &ok),
        .code_line_table = described(runtime, p->code_line_table, &ok),
        .code_bytes = described(runtime, p->code_bytes, &ok),
        .code_bytes_ref = ABSENT,
        .code_tlbc = free_threaded ? described(runtime, p->code_tlbc, &ok) : ABSENT,
        .line_format = WIRE_LINES_LOCATION,
        .ob_type = described(runtime, p->ob_type, &ok),
        .bytes_size = described(runtime, p->bytes_size, &ok),
        .bytes_data = described(runtime, p->bytes_data, &ok),
        .str_state = described(runtime, p->str_state, &ok),
        .str_length = described(runtime, p->str_length, &ok),
        .str_ascii = described(runtime, p->str_ascii_size, &ok),
        .str_compact = described(runtime, p->str_compact_size, &ok),
        .str_kind_shift = 2, .str_compact_shift = 5, .str_ascii_shift = 6,
        .calls = p->calls, .free_threaded = free_threaded, .may_jit = true,
    };
    /* clang-format on */
    select_async(layout, p, runtime, &ok);
    /* A compact string that is not ASCII has two words more in its head (utf8, utf8_length). */
    if (layout->str_compact == ABSENT)
        layout->str_compact = layout->str_ascii + 16;
    if (free_threaded && p->minor >= 14) {
        layout->str_kind_shift = 8;
        layout->str_compact_shift = 11;
        layout->str_ascii_shift = 12;
    }
    return ok;
}

bool layout_select(struct py_layout *layout, uint32_t version_hex, uintptr_t runtime,
                   size_t runtime_bytes)
{
    if (version_hex >> 24 != 3)
        return false;
    uint32_t minor = version_hex >> 16 & 0xFF;
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        if (positions[i].minor == minor)
            return select_described(layout, &positions[i], version_hex, runtime, runtime_bytes);
    switch (minor) {
    case 8:
    case 9:
        *layout = frame_objects;
        layout->generators = generators_3_8;
        layout->futures = minor == 8 ? futures_3_8 : futures_3_9;
        return true;
    case 10:
        *layout = frame_objects;
        layout->generators = generators_3_10;
        layout->futures = futures_3_10;
        layout->fr_instr = 96;
        layout->instruction = PY_LASTI_UNITS;
        layout->line_format = WIRE_LINES_PEP626;
        return true;
    case 11:
        *layout = layout_3_11;
        layout->generators = generators_3_11;
        layout->futures = futures_3_11;
        return true;
    case 12:
        *layout = layout_3_12;
        layout->generators = generators_3_12;
        layout->futures = futures_3_11;
        return true;
    default:
        return false;
    }
}
