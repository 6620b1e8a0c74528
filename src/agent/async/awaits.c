#include "agent/async/awaits.h"

#include "agent/core/agent.h"
#include "agent/core/check.h"
#include "os/guard.h"
#include "os/os.h"
#include "wire/limits.h"

#include <string.h>

enum {
    AWAIT_ENTRIES = 2 * WIRE_AWAITS_MAX,
    PLACE_ENTRIES = 2 * WIRE_PLACES_MAX,
    PROBES_MAX = 64,
    QUIET_NAMES = 256, /* after so many known ones in a row, */
    NAMES_EVERY = 16,  /* only every so many are looked at */
    SURE_HITS = 100,   /* from so many on, what they stand for is known to a tenth */
    US = 1000,
};
_Static_assert(!(AWAIT_ENTRIES & (AWAIT_ENTRIES - 1)) && !(PLACE_ENTRIES & (PLACE_ENTRIES - 1)),
               "a mask finds the entry");

/* What is kept of each record beside it. */
struct await_note {
    uint32_t hits, busy_hits; /* sightings in this pass */
    uint32_t place;
    double tasks;   /* in the last pass, with those that its sightings stand for, */
    double end_us2; /* and what it adds to the variance if that was their end */
};
struct place_note {
    uint32_t hits;        /* sightings in this round */
    uint32_t first_name;  /* chained by name_next */
    uint32_t known_names; /* sightings in a row whose name was known */
};

static struct memory {
    uint32_t await_index[AWAIT_ENTRIES], place_index[PLACE_ENTRIES];
    struct await_note awaits[WIRE_AWAITS_MAX];
    struct place_note places[WIRE_PLACES_MAX];
    uint32_t name_next[WIRE_NAMES_MAX];
    uint32_t seen_awaits[WIRE_AWAITS_MAX]; /* in this pass or the last */
    uint32_t seen_places[WIRE_PLACES_MAX]; /* in this round */
    uint8_t code_judged[WIRE_CODES_MAX];   /* enum awaits_frame + 1, 0: not yet */
} * memory;
static uint32_t seen_await_count, seen_place_count;

bool awaits_begin(void)
{
    if (!memory)
        memory = os_reserve(sizeof *memory);
    return memory != NULL;
}

static uint32_t hash2(uint32_t a, uint32_t b)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 13);
}

static struct wire_await *await_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_AWAIT, id);
}

static struct wire_place *place_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_PLACE, id);
}

static uint32_t new_place(uint32_t code, int32_t at)
{
    uint32_t id = arena_append(&agent.arena, WIRE_PLACE, 1);
    if (id) {
        place_at(id)->at = at;
        atomic_store_explicit(&place_at(id)->code, code, memory_order_release);
    }
    return id;
}

/* The innermost traced instruction of a stack; 0: none, or no room. */
static uint32_t find_place(uint32_t node)
{
    uint32_t traced = tables_traced(&agent.tables, node);
    if (!traced)
        return 0;
    const struct wire_node *record = arena_record(&agent.arena, WIRE_NODE, traced);
    uint32_t at = hash2(record->ref, (uint32_t)record->at);
    for (int probe = 0; probe < PROBES_MAX; probe++, at++) {
        uint32_t *entry = &memory->place_index[at & (PLACE_ENTRIES - 1)];
        if (!*entry)
            return *entry = new_place(record->ref, record->at);
        const struct wire_place *place = place_at(*entry);
        if (atomic_load_explicit(&place->code, memory_order_relaxed) == record->ref &&
            place->at == record->at)
            return *entry;
    }
    return 0;
}

static uint32_t new_await(uint32_t node, enum wire_await_kind kind)
{
    uint32_t id = arena_append(&agent.arena, WIRE_AWAIT, 1);
    if (id) {
        memory->awaits[id] = (struct await_note){.place = find_place(node)};
        await_at(id)->node = node;
        atomic_store_explicit(&await_at(id)->kind, kind, memory_order_release);
    }
    return id;
}

static uint32_t find_await(uint32_t node, enum wire_await_kind kind)
{
    uint32_t at = hash2(node, kind);
    for (int probe = 0; probe < PROBES_MAX; probe++, at++) {
        uint32_t *entry = &memory->await_index[at & (AWAIT_ENTRIES - 1)];
        if (!*entry) {
            uint32_t made = *entry = new_await(node, kind);
            if (made)
                return made;
            break;
        }
        const struct wire_await *await = await_at(*entry);
        if (await->node == node &&
            atomic_load_explicit(&await->kind, memory_order_relaxed) == (uint32_t)kind)
            return *entry;
    }
    arena_lost(&agent.arena, WIRE_LOST_TABLE_FULL);
    return 0;
}

static void see_place(uint32_t place)
{
    if (!memory->places[place].hits++)
        memory->seen_places[seen_place_count++] = place;
}

uint32_t awaits_see(uint32_t node, enum wire_await_kind kind, bool is_loop_busy)
{
    uint32_t id = find_await(node, kind);
    if (!id)
        return 0;
    struct await_note *note = &memory->awaits[id];
    if (!note->hits++ && !(note->tasks > 0))
        memory->seen_awaits[seen_await_count++] = id;
    note->busy_hits += is_loop_busy;
    if (note->place && kind != WIRE_AWAIT_READY)
        see_place(note->place);
    return note->place;
}

static void add(_Atomic uint64_t *to, uint64_t amount)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

static void raise_peak(struct wire_place *place, uint32_t tasks)
{
    if (atomic_load_explicit(&place->peak, memory_order_relaxed) < tasks)
        atomic_store_explicit(&place->peak, tasks, memory_order_relaxed);
}

static void add_real(_Atomic double *to, double amount)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

/*
 * How far off the time may be follows from how much the number of tasks changes from one pass to
 * the next: they came, or went, at some time in between, or others of them were looked at.  As long
 * as there is no next pass, they may all be gone.
 */
static void weigh(struct wire_await *await, struct await_note *note, double since_us, double scale)
{
    double tasks = note->hits * scale, us = tasks * since_us;
    double step_us = us - note->tasks * since_us, end_us2 = us * us / 2;
    add(&await->count, note->hits);
    add(&await->us, (uint64_t)(us + 0.5));
    if (atomic_load_explicit(&await->kind, memory_order_relaxed) == WIRE_AWAIT_WAITS)
        add(&await->busy_us, (uint64_t)(note->busy_hits * scale * since_us + 0.5));
    add_real(&await->square_us2, step_us * step_us / 2 + end_us2 - note->end_us2);
    note->hits = note->busy_hits = 0;
    note->tasks = tasks;
    note->end_us2 = end_us2;
}

void awaits_weigh(double since_us, double scale)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < seen_await_count; i++) {
        uint32_t id = memory->seen_awaits[i];
        weigh(await_at(id), &memory->awaits[id], since_us, scale);
        if (memory->awaits[id].tasks > 0)
            memory->seen_awaits[kept++] = id;
    }
    seen_await_count = kept;
}

void awaits_raise(double scale)
{
    for (uint32_t i = 0; i < seen_place_count; i++) {
        uint32_t id = memory->seen_places[i];
        if (memory->places[id].hits >= SURE_HITS)
            raise_peak(place_at(id), (uint32_t)(memory->places[id].hits * scale));
    }
}

void awaits_end_round(uint64_t round_us, double scale)
{
    for (uint32_t i = 0; i < seen_place_count; i++) {
        uint32_t id = memory->seen_places[i];
        struct place_note *note = &memory->places[id];
        add(&place_at(id)->present_us, round_us);
        raise_peak(place_at(id),
                   note->hits < SURE_HITS ? note->hits : (uint32_t)(note->hits * scale));
        note->hits = 0;
    }
    seen_place_count = 0;
}

/* Add to the part of a place, and keep the largest first; of too many, the smallest is dropped. */
static void add_part(struct awaits_stretch *stretch, uint32_t place, uint64_t ns)
{
    unsigned i = 0;
    while (i < stretch->count && stretch->parts[i].place != place)
        i++;
    if (i == stretch->count) {
        if (i == WIRE_PARTS_MAX)
            i--;
        else
            stretch->count++;
        stretch->parts[i].place = place;
        stretch->parts[i].ns = 0;
    }
    stretch->parts[i].ns += ns;
    for (; i && stretch->parts[i - 1].ns < stretch->parts[i].ns; i--) {
        struct awaits_part larger = stretch->parts[i];
        stretch->parts[i] = stretch->parts[i - 1];
        stretch->parts[i - 1] = larger;
    }
}

/* If it is the longest that its first place has led. */
static void keep_stretch(const struct awaits_stretch *stretch)
{
    struct wire_place *place = place_at(stretch->parts[0].place);
    if (stretch->ns / US <= atomic_load_explicit(&place->longest_us, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < WIRE_PARTS_MAX; i++) {
        uint64_t us = i < stretch->count ? stretch->parts[i].ns / US : 0;
        place->parts[i] = (struct wire_part){us ? stretch->parts[i].place : 0,
                                             us < UINT32_MAX ? (uint32_t)us : UINT32_MAX};
    }
    atomic_store_explicit(&place->longest_us, stretch->ns / US, memory_order_release);
}

void awaits_block(struct awaits_stretch *stretch, uint32_t node, uint64_t ns)
{
    uint32_t id = awaits_begin() && node ? find_await(node, WIRE_AWAIT_BLOCKS) : 0;
    bool is_new = !stretch->ns;
    stretch->ns += ns;
    if (!id)
        return;
    add(&await_at(id)->us, ns / US);
    if (is_new)
        add(&await_at(id)->count, 1);
    struct await_note *note = &memory->awaits[id];
    if (note->place) {
        add_part(stretch, note->place, ns);
        keep_stretch(stretch);
    }
    if (!stretch->node || (stretch->count && stretch->parts[0].place == note->place))
        stretch->node = node;
}

void awaits_block_more(uint32_t node, uint64_t ns, uint64_t stretches)
{
    uint32_t id = ns && awaits_begin() ? find_await(node, WIRE_AWAIT_BLOCKS) : 0;
    if (id) {
        add(&await_at(id)->us, ns / US);
        add(&await_at(id)->count, stretches);
    }
}

/* ---- names ---- */

bool awaits_wants_name(uint32_t place)
{
    if (!place || atomic_load_explicit(&place_at(place)->names, memory_order_relaxed) >=
                      WIRE_NAMES_OF_PLACE_MAX)
        return false;
    uint32_t known = memory->places[place].known_names++;
    return known < QUIET_NAMES || known % NAMES_EVERY == 0;
}

/* Text and its hash; false: it cannot be read. */
struct name {
    uint8_t bytes[WIRE_TASK_NAME_BYTES_MAX];
    uint32_t count, hash;
    uint8_t width;
};

static bool read_name(uintptr_t text, uint64_t number, struct name *name)
{
    uintptr_t data;
    *name = (struct name){.hash = hash2((uint32_t)number, (uint32_t)(number >> 32)), .width = 1};
    if (!text)
        return true;
    if (!code_text(&agent.layout, text, &data, &name->count, &name->width))
        return false;
    if (name->count > sizeof name->bytes)
        name->count = sizeof name->bytes;
    if (!guard_copy(name->bytes, data, name->count))
        return false;
    for (uint32_t i = 0; i < name->count; i++)
        name->hash = hash2(name->hash, name->bytes[i]);
    return true;
}

static void keep_name(uint32_t place, const struct name *name, uint64_t number)
{
    struct place_note *note = &memory->places[place];
    uint32_t id = arena_append(&agent.arena, WIRE_NAME, 1);
    uint32_t at = id && name->count ? arena_append(&agent.arena, WIRE_BLOB, name->count + 1) : 0;
    if (!id || (name->count && !at))
        return;
    struct wire_name *record = arena_record(&agent.arena, WIRE_NAME, id);
    if (at)
        memcpy(arena_record(&agent.arena, WIRE_BLOB, at), name->bytes, name->count);
    record->hash = name->hash;
    record->text = (struct wire_span){at, name->count};
    record->number = number;
    record->width = name->width;
    atomic_store_explicit(&record->place, place, memory_order_release);
    memory->name_next[id] = note->first_name;
    note->first_name = id;
    note->known_names = 0;
    atomic_fetch_add(&place_at(place)->names, 1);
}

void awaits_name(uint32_t place, uintptr_t text, uint64_t number)
{
    struct name name;
    if (!read_name(text, number, &name) || (text && !name.count))
        return; /* an empty one would look like a number */
    for (uint32_t id = memory->places[place].first_name; id; id = memory->name_next[id])
        if (((const struct wire_name *)arena_record(&agent.arena, WIRE_NAME, id))->hash ==
            name.hash)
            return;
    keep_name(place, &name, number);
}

/* ---- what library frames say ---- */

/* Functions in which a task waits for others, and those of tasks that frameworks have for
 * themselves. */
static const struct {
    const char *name, *file_end;
    enum awaits_frame says;
} library_frames[] = {
    {"_wait", "/asyncio/tasks.py", AWAITS_FOR_TASKS},
    {"wait_for", "/asyncio/tasks.py", AWAITS_FOR_TASKS},
    {"_wait_for_one", "/asyncio/tasks.py", AWAITS_FOR_TASKS},
    {"_cancel_and_wait", "/asyncio/tasks.py", AWAITS_FOR_TASKS},
    {"__aexit__", "/asyncio/taskgroups.py", AWAITS_FOR_TASKS},
    {"_aexit", "/asyncio/taskgroups.py", AWAITS_FOR_TASKS},
    {"__aexit__", "/anyio/_backends/_asyncio.py", AWAITS_FOR_TASKS},
    {"_nested_child_finished", "/trio/_core/_run.py", AWAITS_FOR_TASKS},
    {"join", "/gevent/pool.py", AWAITS_FOR_TASKS},
    {"join", "/threading.py", AWAITS_FOR_TASKS}, /* of threads that are greenlets */
    {"init", "/trio/_core/_run.py", AWAITS_HIDDEN},
    {"task", "/trio/_core/_entry_queue.py", AWAITS_HIDDEN},
};

static enum awaits_frame judge_code(uint32_t id)
{
    const struct wire_code *code = arena_record(&agent.arena, WIRE_CODE, id);
    for (size_t i = 0; i < sizeof library_frames / sizeof *library_frames; i++)
        if (tables_code_is(&agent.tables, code, library_frames[i].name, library_frames[i].file_end))
            return library_frames[i].says;
    return AWAITS_PLAIN;
}

static enum awaits_frame judged(uint32_t code)
{
    uint8_t *known = &memory->code_judged[code];
    if (!*known)
        *known = (uint8_t)(judge_code(code) + 1);
    return (enum awaits_frame)(*known - 1);
}

enum awaits_frame awaits_judge(uint32_t node)
{
    enum awaits_frame found = AWAITS_PLAIN;
    bool is_library = true;
    while (node) {
        const struct wire_node *record = arena_record(&agent.arena, WIRE_NODE, node);
        node = record->parent;
        if (record->frame != WIRE_FRAME_PYTHON)
            continue;
        const struct wire_code *code = arena_record(&agent.arena, WIRE_CODE, record->ref);
        enum awaits_frame says = judged(record->ref);
        is_library = is_library && !code->is_traced;
        if ((says == AWAITS_FOR_TASKS && is_library) || (says == AWAITS_HIDDEN && !node))
            found = says;
    }
    return found;
}

/* The tables hold ids of the parent's arena. */
void awaits_in_child(bool is_recorded)
{
    (void)is_recorded;
    if (memory)
        os_discard(memory, sizeof *memory);
    seen_await_count = seen_place_count = 0;
}
