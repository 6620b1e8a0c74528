#include "py/frames.h"

#include "os/guard.h"

/* The chain's first frame.  `up`: one C frame further out, for a chain caught half-linked. */
static uintptr_t first_frame(const struct py_layout *l, uintptr_t tstate, unsigned up,
                             unsigned *bad)
{
    if (l->ts_cframe < 0)
        return up ? 0 : guard_ptr(tstate + (uintptr_t)l->ts_frame, bad);
    uintptr_t cframe = guard_ptr(tstate + (uintptr_t)l->ts_cframe, bad);
    while (up-- && cframe && !*bad)
        cframe = guard_ptr(cframe + (uintptr_t)l->cframe_previous, bad);
    return cframe && !*bad ? guard_ptr(cframe + (uintptr_t)l->cframe_current, bad) : 0;
}

/* Where the frame's bytecode begins; 0 if that cannot be told. */
static uintptr_t bytecode(const struct py_layout *l, uintptr_t frame, uintptr_t code, unsigned *bad)
{
    if (l->code_bytes_ref >= 0)
        return guard_ptr(code + (uintptr_t)l->code_bytes_ref, bad) + (uintptr_t)l->bytes_data;
    if (l->code_tlbc < 0 || l->fr_tlbc_index < 0)
        return code + (uintptr_t)l->code_bytes;
    /* {size, entries[]}: each thread may run its own specialised copy. */
    uintptr_t copies = guard_ptr(code + (uintptr_t)l->code_tlbc, bad);
    int32_t index = (int32_t)guard_u32(frame + (uintptr_t)l->fr_tlbc_index, bad);
    if (*bad || !copies || index < 0 || (uint64_t)index >= guard_u64(copies, bad))
        return 0;
    return guard_ptr(copies + 8 + 8 * (uintptr_t)index, bad);
}

/* Fill one frame; false when it is not one.  `now`: where its instruction is, if that is asked. */
static bool read_frame(const struct py_layout *l, uintptr_t code_type, uintptr_t frame,
                       uintptr_t code, struct py_frame *out, uintptr_t *now)
{
    unsigned bad = 0;
    if (guard_ptr(code + (uintptr_t)l->ob_type, &bad) != code_type || bad)
        return false;
    out->code = code;
    out->at = -1;
    if (l->instruction == PY_INSTR_POINTER) {
        uintptr_t address = guard_ptr(frame + (uintptr_t)l->fr_instr, &bad);
        uintptr_t start = bytecode(l, frame, code, &bad);
        if (address >= start && address - start < 1u << 24)
            out->at = (int32_t)(address - start);
        if (now)
            *now = out->at >= 0 ? address : 0;
    } else {
        int32_t lasti = (int32_t)guard_u32(frame + (uintptr_t)l->fr_instr, &bad);
        out->at = lasti < 0 ? -1 : l->instruction == PY_LASTI_UNITS ? lasti * 2 : lasti;
        if (now)
            *now = out->at >= 0 ? bytecode(l, frame, code, &bad) + (uintptr_t)out->at : 0;
    }
    return !bad;
}

bool frames_read(const struct py_layout *l, uintptr_t code_type, uintptr_t frame,
                 struct py_frame *out, uintptr_t *now)
{
    unsigned bad = 0;
    uintptr_t code = guard_ptr(frame + (uintptr_t)l->fr_code, &bad) & l->code_mask;
    out->direct = false;
    return !bad && read_frame(l, code_type, frame, code, out, now);
}

/* Was the frame entered by its caller's own call instruction?  `back` is what it links to. */
static bool is_direct(const struct py_layout *l, uintptr_t frame, uintptr_t back, unsigned *bad)
{
    if (l->fr_owner < 0 || !back)
        return false;
    if (l->fr_is_entry >= 0)
        return !guard_u8(frame + (uintptr_t)l->fr_is_entry, bad);
    return guard_u8(back + (uintptr_t)l->fr_owner, bad) < l->fr_owner_shim;
}

static uintptr_t where(const struct py_moved *moved, uintptr_t address)
{
    return address - moved->from < moved->bytes ? address - moved->from + moved->to : address;
}

static void walk_from(const struct py_layout *l, uintptr_t code_type, uintptr_t frame,
                      uintptr_t base, const struct py_moved *moved, struct py_frame *frames,
                      struct py_walk *walk)
{
    *walk = (struct py_walk){0};
    for (unsigned hops = 0; frame; hops++) {
        unsigned bad = 0;
        frame = where(moved, frame);
        uintptr_t code = guard_ptr(frame + (uintptr_t)l->fr_code, &bad) & l->code_mask;
        uintptr_t back = guard_ptr(frame + (uintptr_t)l->fr_back, &bad);
        uint8_t owner = l->fr_owner >= 0 ? guard_u8(frame + (uintptr_t)l->fr_owner, &bad) : 0;
        if (bad || (l->fr_owner >= 0 && owner > l->fr_owner_max) || back == frame) {
            walk->bad = true;
            return;
        }
        if (l->fr_owner < 0 || owner < l->fr_owner_shim) {
            if (walk->count == PY_FRAMES_MAX || hops == PY_HOPS_MAX) {
                walk->truncated = true;
                return;
            }
            uintptr_t now = 0;
            bool is_frame = read_frame(l, code_type, frame, code, &frames[walk->count],
                                       walk->count ? NULL : &now);
            if (is_frame && now)
                walk->leaf_opcode = guard_u8(now, &bad);
            if (!is_frame || bad) {
                walk->bad = true;
                return;
            }
            frames[walk->count++].direct = is_direct(l, frame, where(moved, back), &bad);
            walk->root = frame;
        } else if (hops == PY_HOPS_MAX) {
            walk->truncated = true;
            return;
        }
        if (!back && base && frame != base)
            walk->bad = true; /* ended before the frame every chain ends in */
        frame = back;
    }
}

static const struct py_moved in_place;

void frames_walk(const struct py_layout *l, uintptr_t code_type, uintptr_t tstate,
                 struct py_frame *frames, struct py_walk *walk)
{
    *walk = (struct py_walk){0};
    unsigned bad = 0;
    uintptr_t base =
        l->ts_base_frame >= 0 ? guard_ptr(tstate + (uintptr_t)l->ts_base_frame, &bad) : 0;
    uintptr_t frame = first_frame(l, tstate, 0, &bad);
    if (!bad)
        walk_from(l, code_type, frame, base, &in_place, frames, walk);
    if (l->chain_may_tear && (bad || (walk->bad && !walk->count))) {
        /* The thread is entering or leaving a C frame: the one outside it is linked. */
        bad = 0;
        frame = first_frame(l, tstate, 1, &bad);
        if (!bad && frame)
            walk_from(l, code_type, frame, base, &in_place, frames, walk);
    }
    if (bad)
        walk->bad = true;
}

void frames_walk_suspended(const struct py_layout *l, uintptr_t code_type, uintptr_t frame_object,
                           const struct py_moved *moved, struct py_frame *frames,
                           struct py_walk *walk)
{
    unsigned bad = 0;
    uintptr_t frame =
        l->fo_frame >= 0 ? guard_ptr(frame_object + (uintptr_t)l->fo_frame, &bad) : frame_object;
    walk_from(l, code_type, bad ? 0 : frame, 0, moved, frames, walk);
    walk->bad |= bad != 0;
}

bool frames_any(const struct py_layout *l, uintptr_t tstate)
{
    unsigned bad = 0;
    uintptr_t frame = first_frame(l, tstate, 0, &bad);
    for (unsigned hops = 0; frame && !bad && hops < PY_HOPS_MAX; hops++) {
        if (l->fr_owner < 0 || guard_u8(frame + (uintptr_t)l->fr_owner, &bad) < l->fr_owner_shim)
            return !bad;
        frame = guard_ptr(frame + (uintptr_t)l->fr_back, &bad);
    }
    return false;
}

bool frames_thread_is(const struct py_layout *l, uintptr_t tstate, uintptr_t ident)
{
    unsigned bad = 0;
    return tstate && guard_ptr(tstate + (uintptr_t)l->ts_thread_id, &bad) == ident && !bad;
}

uintptr_t frames_find_thread(const struct py_layout *l, uintptr_t main_tstate, uintptr_t ident)
{
    /* New states are pushed in front of the main thread's, which is the oldest. */
    uintptr_t tstate = main_tstate;
    for (int hops = 0; tstate && hops < 65536; hops++) {
        if (frames_thread_is(l, tstate, ident))
            return tstate;
        unsigned bad = 0;
        tstate = guard_ptr(tstate + (uintptr_t)l->ts_prev, &bad);
        if (bad)
            break;
    }
    return 0;
}
