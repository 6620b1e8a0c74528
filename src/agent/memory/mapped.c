#include "agent/memory/mapped.h"

#include "agent/core/check.h"
#include "agent/memory/memory.h"
#include "agent/memory/records.h"
#include "os/os.h"

_Atomic uint64_t mapped_clock;

static struct mapped_piece *pieces;
static size_t count;
static _Atomic uint64_t reserved_bytes;

bool mapped_init(void)
{
    pieces = os_reserve(sizeof *pieces * MAPPED_MAX);
    return pieces != NULL;
}

void mapped_forget(void)
{
    count = 0;
    reserved_bytes = 0;
}

size_t mapped_count(void)
{
    return count;
}

uint64_t mapped_reserved_bytes(void)
{
    return reserved_bytes;
}

struct mapped_piece *mapped_at(size_t index)
{
    CHECK_CHEAP(index < count);
    return &pieces[index];
}

size_t mapped_find(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pieces[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- pieces ---- */

static uint64_t bytes_of(const struct mapped_piece *piece)
{
    return piece->end - piece->start;
}

static bool is_full(const struct mapped_piece *piece)
{
    return piece->resident_bytes == bytes_of(piece);
}

bool mapped_is_sound(void)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++) {
        const struct mapped_piece *piece = &pieces[i];
        if (piece->start >= piece->end || (i && pieces[i - 1].end > piece->start) ||
            piece->resident_bytes > bytes_of(piece) || !piece->record != !piece->resident_bytes ||
            (piece->record && piece->is_inherited))
            return false;
        all += bytes_of(piece);
    }
    return all == reserved_bytes;
}

/* By hand: memmove() is one of the functions we stand in front of. */
static bool make_room(size_t at)
{
    if (count == MAPPED_MAX)
        return false;
    for (size_t i = count; i > at; i--)
        pieces[i] = pieces[i - 1];
    count++;
    return true;
}

static void drop(size_t from, size_t to)
{
    size_t gone = to - from;
    for (size_t i = to; i < count; i++)
        pieces[i - gone] = pieces[i];
    count -= gone;
}

static void clip(struct mapped_piece *piece)
{
    if (piece->low < piece->start)
        piece->low = piece->start;
    if (piece->high > piece->end)
        piece->high = piece->end;
}

/* Where in it the resident pages are is known of a full piece only.  Of another each part gets its
 * share for now, and is counted again. */
static bool split(size_t index, uintptr_t address)
{
    struct mapped_piece *left = &pieces[index], *right = left + 1;
    if (!make_room(index + 1))
        return false;
    *right = *left;
    left->end = right->start = address;
    clip(left);
    clip(right);
    if (!left->record)
        return true;
    uint64_t resident = left->resident_bytes, whole = right->end - left->start;
    if (resident != whole)
        left->is_stale = right->is_stale = true;
    right->resident_bytes =
        (uint64_t)((double)resident / (double)whole * (double)bytes_of(right)) & ~UINT64_C(4095);
    if (resident == whole)
        right->resident_bytes = bytes_of(right);
    left->resident_bytes = resident - right->resident_bytes;
    if (left->resident_bytes > bytes_of(left)) {
        left->resident_bytes = bytes_of(left);
        right->resident_bytes = resident - left->resident_bytes;
    }
    if (!right->resident_bytes) {
        right->record = 0;
    } else if (!left->resident_bytes) {
        left->record = 0;
    } else {
        right->record = records_split_mapped(left->record, right->resident_bytes);
        if (!right->record) { /* no room for it: the left part keeps what it may have */
            left->record = records_shrink_mapped(left->record, right->resident_bytes);
            right->resident_bytes = 0;
            memory_lost();
        }
    }
    left->is_stale &= left->record != 0;
    right->is_stale &= right->record != 0;
    return true;
}

/* The first piece at or behind an address at which a range begins or ends; split there if need be.
 */
static bool cut(uintptr_t address, size_t *index)
{
    *index = mapped_find(address);
    if (*index == count || pieces[*index].start >= address)
        return true;
    if (!split(*index, address))
        return false;
    ++*index;
    return true;
}

bool mapped_carve(uintptr_t start, uintptr_t end, size_t *index)
{
    size_t after;
    return cut(start, index) && cut(end, &after);
}

/* ---- what the program does ---- */

bool mapped_add(uintptr_t start, uintptr_t end, bool is_open, const struct mapped_piece *like)
{
    size_t at = mapped_find(start);
    CHECK_CHEAP(memory_is_locked() && start < end);
    if ((at < count && pieces[at].start < end) || !make_room(at))
        return false;
    struct mapped_piece *piece = &pieces[at];
    *piece = *like;
    piece->start = start;
    piece->end = end;
    piece->low = start;
    piece->high = is_open ? end : start;
    piece->changed = ++mapped_clock;
    piece->born = is_open ? piece->changed : 0;
    piece->grain_bytes = MAPPED_GRAIN_LEAST;
    while (piece->grain_bytes < MAPPED_STEP_BYTES &&
           (end - start) / MAPPED_GRAINS > piece->grain_bytes)
        piece->grain_bytes *= 2;
    reserved_bytes += end - start;
    CHECK_COSTLY(mapped_is_sound());
    return true;
}

void mapped_remove(uintptr_t start, uintptr_t end)
{
    size_t from, to;
    CHECK_CHEAP(memory_is_locked() && start < end);
    if (!cut(start, &from) || !cut(end, &to)) {
        /* No room to keep what is left of it: all that the range touches goes. */
        memory_lost();
        from = mapped_find(start);
        to = mapped_find(end);
        if (to < count && pieces[to].start < end)
            to++;
    }
    for (size_t i = from; i < to; i++) {
        reserved_bytes -= bytes_of(&pieces[i]);
        if (pieces[i].record)
            records_shrink_mapped(pieces[i].record, pieces[i].resident_bytes);
    }
    drop(from, to);
    mapped_clock++;
    CHECK_COSTLY(mapped_is_sound());
}

void mapped_open(uintptr_t start, uintptr_t end)
{
    CHECK_CHEAP(memory_is_locked());
    for (size_t i = mapped_find(start); i < count && pieces[i].start < end; i++) {
        struct mapped_piece *piece = &pieces[i];
        bool was_open = piece->low < piece->high;
        piece->low = was_open && piece->low < start ? piece->low : start;
        piece->high = was_open && piece->high > end ? piece->high : end;
        clip(piece);
    }
}

/* What is smaller than a grain is not worth a piece: then all of it is counted again. */
static void cut_counted(uintptr_t address, uint64_t bytes)
{
    size_t index = mapped_find(address);
    if (index < count && pieces[index].start < address && bytes >= pieces[index].grain_bytes &&
        (pieces[index].record || pieces[index].is_inherited))
        split(index, address);
}

void mapped_discard(uintptr_t start, uintptr_t end)
{
    CHECK_CHEAP(memory_is_locked());
    mapped_clock++;
    cut_counted(start, end - start);
    cut_counted(end, end - start);
    for (size_t i = mapped_find(start); i < count && pieces[i].start < end; i++) {
        struct mapped_piece *piece = &pieces[i];
        piece->changed = mapped_clock;
        piece->is_stale |= piece->record != 0;
        if (piece->start >= start && piece->end <= end)
            piece->is_inherited = false;
    }
    CHECK_COSTLY(mapped_is_sound());
}

void mapped_move(uintptr_t start, uintptr_t end, uintptr_t to)
{
    size_t from, after;
    CHECK_CHEAP(memory_is_locked());
    if (!cut(start, &from) || !cut(end, &after)) {
        mapped_remove(start, end);
        return;
    }
    mapped_clock++;
    for (; from < after; after--) {
        /* One by one: the last goes first and stays last. */
        struct mapped_piece piece = pieces[after - 1];
        uintptr_t by = to - start;
        piece.start += by;
        piece.end += by;
        piece.low += by;
        piece.high += by;
        piece.changed = mapped_clock;
        drop(after - 1, after);
        size_t at = mapped_find(piece.start);
        CHECK_CHEAP(at == count || pieces[at].start >= piece.end);
        make_room(at); /* one was just dropped */
        pieces[at] = piece;
        if (at <= from) { /* moved down, in front of those still to come */
            from++;
            after++;
        }
    }
    CHECK_COSTLY(mapped_is_sound());
}

/* ---- neighbours ---- */

static bool are_alike(const struct mapped_piece *a, const struct mapped_piece *b)
{
    if (a->end != b->start || a->caller != b->caller || a->grain_bytes != b->grain_bytes ||
        a->is_pool != b->is_pool || a->is_inherited != b->is_inherited || a->is_stale ||
        b->is_stale || (!a->is_pool && a->node != b->node) || a->born != b->born ||
        !a->record != !b->record)
        return false;
    bool is_open = a->high == a->end && b->low == b->start;
    if (!a->record)
        return is_open || (a->low >= a->high && b->low >= b->high);
    return is_open && is_full(a) == is_full(b) &&
           (is_full(a) || b->end - a->start <= MAPPED_STEP_BYTES) &&
           records_site(a->record) == records_site(b->record);
}

static void join(size_t index)
{
    struct mapped_piece *left = &pieces[index];
    const struct mapped_piece *right = left + 1;
    if (left->record)
        records_join_mapped(left->record, right->record);
    left->end = right->end;
    left->high = left->low < left->high ? right->high : left->low;
    left->resident_bytes += right->resident_bytes;
    if (left->changed < right->changed)
        left->changed = right->changed;
    drop(index + 1, index + 2);
}

void mapped_join(size_t index)
{
    const struct mapped_piece *piece = &pieces[index];
    bool is_partial = piece->record && !is_full(piece);
    /* A look that goes upwards must find the next one, resident in part, as a whole. */
    if (!is_partial && index + 1 < count && are_alike(&pieces[index], &pieces[index + 1]))
        join(index);
    if (index && are_alike(&pieces[index - 1], &pieces[index]))
        join(index - 1);
    CHECK_COSTLY(mapped_is_sound());
}
