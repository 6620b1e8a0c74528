#include "agent/memory/looks.h"

#include "agent/core/agent.h"
#include "agent/memory/mapped.h"
#include "agent/memory/memory.h"
#include "agent/memory/place.h"
#include "agent/memory/records.h"
#include "agent/memory/resident.h"
#include "agent/memory/runners.h"
#include "os/os.h"

size_t looks_page_bytes;
_Atomic uint64_t looks_clock;

static uint32_t site_for(const struct mapped_piece *piece, uint64_t bytes)
{
    uint32_t node = piece->node;
    if (!node || (piece->is_pool && piece->born <= looks_clock))
        node = runners_choose(bytes);
    if (!node)
        node = piece->node;
    if (!node)
        node = tables_node(&agent.tables, 0, WIRE_FRAME_NO_PYTHON, 0, 0, 0);
    return node ? place_site(node, WIRE_SITE_MAPPED, piece->caller) : 0;
}

/* A range that is looked at in one call: a part of a piece, or several that follow each other. */
struct step {
    uintptr_t start, end;
    uint64_t clock;
    unsigned piece_count;
    uintptr_t rest_end; /* of the last piece */
};

static bool is_full(const struct mapped_piece *piece)
{
    return piece->resident_bytes == piece->end - piece->start;
}

static bool is_due(const struct mapped_piece *piece, enum looks_which which)
{
    if (which == LOOKS_STALE)
        return piece->is_stale;
    if (piece->record)
        return is_full(piece) == (which == LOOKS_FULL);
    return which == LOOKS_GROWN && !piece->is_inherited && piece->low < piece->high;
}

/* What of the piece to look at now, at or behind `from` and before `to`.  False: nothing. */
static bool plan(const struct looks *look, const struct mapped_piece *piece, uintptr_t from,
                 uintptr_t to, struct step *step)
{
    uintptr_t start = piece->record ? piece->start : piece->low;
    uintptr_t end = piece->record ? piece->end : piece->high;
    size_t most = piece->record ? (size_t)MAPPED_STEP_BYTES : look->page_count * looks_page_bytes;
    if (!is_due(piece, look->which) || end <= from || start >= end || start >= to)
        return false;
    *step = (struct step){start, end, mapped_clock, 1, end};
    if (piece->record && !is_full(piece)) /* where in it pages are is not known: all of it */
        return true;
    if (step->start < from)
        step->start = from;
    if (!piece->record && step->end > to)
        step->end = to;
    if (step->end - step->start > most)
        step->end = (step->start / most + 1) * most;
    return true;
}

/* Take those in that follow it, as far as one call reaches. */
static void extend(const struct looks *look, size_t index, uintptr_t to, unsigned most,
                   struct step *step)
{
    size_t room = look->page_count * looks_page_bytes;
    struct step next;
    while (++index < mapped_count() && step->piece_count < most &&
           plan(look, mapped_at(index), step->end, to, &next) && next.start == step->end &&
           next.end == mapped_at(index)->end && next.end - step->start <= room) {
        step->end = step->rest_end = next.end;
        step->piece_count++;
    }
}

/* The next range to be looked at, of `most` pieces at most.  Under the lock. */
static bool next_step(const struct looks *look, uintptr_t from, uintptr_t to, unsigned most,
                      struct step *step)
{
    for (size_t i = mapped_find(from); i < mapped_count() && mapped_at(i)->start < to; i++)
        if (plan(look, mapped_at(i), from, to, step)) {
            extend(look, i, to, most, step);
            return true;
        }
    return false;
}

/* What was found of a piece that had records before. */
static void recount(const struct step *step, size_t index, uint64_t resident)
{
    if (!mapped_carve(step->start, step->end, &index))
        return;
    struct mapped_piece *piece = mapped_at(index);
    uint64_t before = piece->resident_bytes;
    piece->is_stale = false;
    if (resident < before) {
        piece->record = records_shrink_mapped(piece->record, before - resident);
    } else if (resident > before) {
        records_grow_mapped(piece->record, records_site(piece->record), resident - before);
    }
    piece->resident_bytes = resident;
    mapped_join(index);
}

/* A part of a piece without records is resident now. */
static void claim(const struct looks *look, uintptr_t start, uintptr_t end, uint64_t resident)
{
    size_t index;
    if (!mapped_carve(start, end, &index)) {
        memory_lost();
        return;
    }
    struct mapped_piece *piece = mapped_at(index);
    uint32_t site = look->is_baseline ? 0 : site_for(piece, resident);
    piece->record = site ? records_grow_mapped(0, site, resident) : 0;
    if (piece->record)
        piece->resident_bytes = resident;
    else
        piece->is_inherited = true;
    if (!piece->record && !look->is_baseline)
        memory_lost();
    mapped_join(index);
}

/* Runs of grains in which something is resident, those that are resident in full apart. */
static void claim_runs(const struct looks *look, const struct step *step, size_t grain)
{
    uintptr_t run = 0;
    uint64_t run_bytes = 0;
    bool run_is_full = false;
    for (uintptr_t at = step->start, next; at < step->end; at = next) {
        next = (at / grain + 1) * grain;
        if (next > step->end)
            next = step->end;
        uint64_t bytes = 0;
        for (uintptr_t page = at; page < next; page += looks_page_bytes)
            bytes +=
                look->pages[(page - step->start) / looks_page_bytes] & 1 ? looks_page_bytes : 0;
        bool is_full = bytes == next - at;
        if (run &&
            (!bytes || is_full != run_is_full || (!is_full && at % MAPPED_STEP_BYTES == 0))) {
            claim(look, run, at, run_bytes);
            run = 0;
        }
        if (bytes && !run) {
            run = at;
            run_bytes = 0;
            run_is_full = is_full;
        }
        run_bytes += bytes;
    }
    if (run)
        claim(look, run, step->end, run_bytes);
}

/* What was found of one piece, or of a part of it. */
static void apply_to(const struct looks *look, const struct mapped_piece *piece,
                     const struct step *step)
{
    size_t index = mapped_find(step->start);
    if (!is_due(piece, look->which) || piece->changed > step->clock)
        return;
    if (!piece->record) {
        claim_runs(look, step, piece->grain_bytes);
        return;
    }
    if (!is_full(piece) && (step->start > piece->start || step->end < piece->end))
        return;
    uint64_t resident = 0;
    for (size_t i = 0; i < (step->end - step->start) / looks_page_bytes; i++)
        resident += look->pages[i] & 1 ? looks_page_bytes : 0;
    recount(step, index, resident);
}

/* Under the lock: what the system said of a piece holds if the program left it alone meanwhile. */
static void apply(const struct looks *look, const struct step *step)
{
    struct looks rest = *look;
    struct step part = *step;
    for (; part.start < step->end; part.start = part.end) {
        size_t index = mapped_find(part.start);
        const struct mapped_piece *piece = index < mapped_count() ? mapped_at(index) : NULL;
        bool is_there = piece && piece->start <= part.start;
        uintptr_t end = is_there ? piece->end : piece ? piece->start : step->end;
        part.end = end < step->end ? end : step->end;
        rest.pages = look->pages + (part.start - step->start) / looks_page_bytes;
        if (is_there)
            apply_to(&rest, piece, &part);
    }
}

/* It went without our being told, if it is still on the books as it was. */
static void apply_absence(const struct step *step)
{
    size_t index = mapped_find(step->start);
    const struct mapped_piece *piece = index < mapped_count() ? mapped_at(index) : NULL;
    if (piece && piece->start <= step->start && piece->end >= step->end &&
        piece->changed <= step->clock)
        mapped_remove(step->start, step->end);
}

static bool found_any(const struct looks *look, const struct step *step)
{
    for (size_t i = 0; i < (step->end - step->start) / looks_page_bytes; i++)
        if (look->pages[i] & 1)
            return true;
    return false;
}

bool looks_through(const struct looks *look, uintptr_t *at, uintptr_t to, unsigned steps)
{
    unsigned most = UINT32_MAX; /* pieces in one step */
    for (; steps; steps--) {
        struct step step;
        if (!look->has_lock && !resident_lock())
            return false;
        bool is_more = next_step(look, *at, to, most, &step);
        if (!look->has_lock)
            memory_unlock();
        if (!is_more)
            return true;
        bool is_there = os_resident(step.start, step.end - step.start, look->pages);
        most = is_there ? UINT32_MAX : 1;
        if (!is_there && step.piece_count > 1)
            continue; /* one of them is not */
        if (!look->has_lock && !resident_lock())
            return false;
        if (is_there)
            apply(look, &step);
        else
            apply_absence(&step);
        if (!look->has_lock)
            memory_unlock();
        *at = look->is_brief && !found_any(look, &step) ? step.rest_end : step.end;
        if (look->until_cpu_ns && os_thread_cpu_ns() > look->until_cpu_ns)
            return false;
    }
    return false;
}

bool looks_any(const struct looks *look, uintptr_t from, uintptr_t to)
{
    struct step step;
    return next_step(look, from, to, 1, &step);
}
