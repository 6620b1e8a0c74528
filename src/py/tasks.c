#include "py/tasks.h"

#include "os/guard.h"
#include "py/code.h"

#include <string.h>

enum {
    CHAIN_MAX = 64,   /* frames of a chain that are kept, */
    LINKS_MAX = 1024, /* and that are followed: more is garbage, or a circle */
    BASES_MAX = 16,
    STACK_MAX = 10000,   /* values on a frame's stack: more is garbage */
    SLOTS_MAX = 1 << 28, /* the same of a set's table */
    ENTRY_BYTES = 2 * sizeof(uintptr_t),
    RESUMES_AWAIT = 2, /* the least argument of RESUME behind an await */
    DIGIT_BITS = 30,   /* of an integer; */
    TAG_SHIFT = 3,     /* how many there are, in its tag */
};

/* Fields of a type, behind the head of an object of variable size. */
enum { TYPE_NAME = 0, TYPE_BYTES = 8, TYPE_BASE = 232 };

static uintptr_t field_at(const struct py_layout *l, uintptr_t type, unsigned field)
{
    return type + (uintptr_t)l->head_bytes + sizeof(uintptr_t) + field;
}

static uintptr_t type_field(const struct py_layout *l, uintptr_t type, unsigned field)
{
    unsigned bad = 0;
    uintptr_t value = guard_ptr(field_at(l, type, field), &bad);
    return bad ? 0 : value;
}

uintptr_t tasks_type_bytes(const struct py_layout *l, uintptr_t type)
{
    return type_field(l, type, TYPE_BYTES);
}

uintptr_t tasks_type_name(const struct py_layout *l, uintptr_t type)
{
    return type_field(l, type, TYPE_NAME);
}

uintptr_t tasks_type_slot(const struct py_layout *l, uintptr_t type, enum py_type_slot slot)
{
    return field_at(l, type, slot);
}

uintptr_t tasks_type_code(const struct py_layout *l, uintptr_t type)
{
    return type_field(l, type, PY_TYPE_DEALLOC);
}

static uintptr_t type_of(const struct py_layout *l, uintptr_t object)
{
    unsigned bad = 0;
    uintptr_t type = object ? guard_ptr(object + (uintptr_t)l->ob_type, &bad) : 0;
    return bad ? 0 : type;
}

bool tasks_is_a(const struct py_layout *l, uintptr_t object, uintptr_t type)
{
    uintptr_t base = type_of(l, object);
    for (int i = 0; type && base && i < BASES_MAX; i++) {
        if (base == type)
            return true;
        base = type_field(l, base, TYPE_BASE);
    }
    return false;
}

/* There may be no such type, and what cannot be read has none. */
static bool is_type(uintptr_t type, uintptr_t expected)
{
    return type && type == expected;
}

/* Words of the description. */
enum {
    WORD_TASK_BYTES,
    WORD_NAME,
    WORD_AWAITED_BY,
    WORD_IS_TASK,
    WORD_COROUTINE = 5,
    WORD_NODE,
    WORD_INTERP_TASKS = 8,
    WORD_TS_TASKS = 12,
    WORDS,
    OFFSET_MAX = 65536,
    INTERP_MAX = 1 << 20,
};

bool tasks_describe(struct py_layout *l, const uint64_t *description, size_t bytes)
{
    static const uint8_t needed[] = {WORD_TASK_BYTES, WORD_NAME, WORD_AWAITED_BY, WORD_IS_TASK,
                                     WORD_COROUTINE,  WORD_NODE, WORD_TS_TASKS};
    if (bytes < WORDS * sizeof *description)
        return false;
    for (size_t i = 0; i < sizeof needed; i++)
        if (description[needed[i]] >= OFFSET_MAX)
            return false;
    /* What is not described stands beside what is. */
    const struct py_futures described = {
        .task_bytes = (int32_t)description[WORD_TASK_BYTES],
        .loop = l->head_bytes,
        .state = (int32_t)description[WORD_AWAITED_BY] + 8,
        .waiter = (int32_t)description[WORD_COROUTINE] - 8,
        .coroutine = (int32_t)description[WORD_COROUTINE],
        .name = (int32_t)description[WORD_NAME],
        .node = (int32_t)description[WORD_NODE],
        .ts_tasks = (int32_t)description[WORD_TS_TASKS],
        .interp_tasks = description[WORD_INTERP_TASKS] < INTERP_MAX
                            ? (int32_t)description[WORD_INTERP_TASKS]
                            : PY_ABSENT,
    };
    if ((int32_t)description[WORD_IS_TASK] != described.state + 4)
        return false;
    l->futures = described;
    return true;
}

bool tasks_read(const struct py_layout *l, const struct py_task_types *types, uintptr_t task,
                struct py_task *out)
{
    const struct py_futures *at = &l->futures;
    unsigned bad = 0;
    if (!tasks_is_a(l, task, types->task))
        return false;
    uint32_t state = guard_u32(task + (uintptr_t)at->state, &bad);
    *out = (struct py_task){
        .loop = guard_ptr(task + (uintptr_t)at->loop, &bad),
        .waiter = guard_ptr(task + (uintptr_t)at->waiter, &bad),
        .coroutine = guard_ptr(task + (uintptr_t)at->coroutine, &bad),
    };
    if (bad)
        return false;
    if (state || !out->coroutine) {
        out->state = PY_TASK_ENDED;
        return true;
    }
    bool is_future = out->waiter && tasks_is_a(l, out->waiter, types->future);
    if (!out->waiter || (is_future && guard_u32(out->waiter + (uintptr_t)at->state, &bad)))
        out->state = PY_TASK_READY;
    else if (is_type(type_of(l, out->waiter), types->gathering) ||
             tasks_is_a(l, out->waiter, types->task))
        out->state = PY_TASK_WAITS_FOR_TASK;
    else
        out->state = PY_TASK_WAITS;
    return !bad;
}

bool tasks_read_slots(const struct py_layout *l, const struct py_task_types *types,
                      const struct py_slots *slots, uintptr_t task, struct py_task *out)
{
    unsigned bad = 0;
    if (type_of(l, task) != slots->type)
        return false;
    *out = (struct py_task){
        .waiter = guard_ptr(task + (uintptr_t)slots->abort, &bad),
        .coroutine = guard_ptr(task + (uintptr_t)slots->coroutine, &bad),
    };
    out->state = out->waiter && out->waiter != types->none ? PY_TASK_WAITS : PY_TASK_READY;
    return !bad && out->coroutine;
}

static bool is_generator(const struct py_task_types *types, uintptr_t type)
{
    return type &&
           (type == types->coroutine || type == types->generator || type == types->async_generator);
}

/*
 * Does an object of this type stand in front of a generator, an __await__(), asend(), athrow() or
 * anext()?  Not all of these types are exported; all have these names, and the other object behind
 * their head.
 */
static bool is_in_front(const struct py_layout *l, uintptr_t type)
{
    static const char names[][24] = {"coroutine_wrapper", "async_generator_asend",
                                     "async_generator_athrow", "anext_awaitable"};
    char name[sizeof *names];
    if (!type || !guard_copy(name, type_field(l, type, TYPE_NAME), sizeof name))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], sizeof name))
            return true;
    return false;
}

/* What stands in front of a generator gives way to it. */
static uintptr_t behind(const struct py_layout *l, const struct py_task_types *types,
                        uintptr_t object)
{
    enum { IN_FRONT_MAX = 3 };
    unsigned bad = 0;
    for (int i = 0; i < IN_FRONT_MAX && object && !bad; i++) {
        if (is_generator(types, type_of(l, object)))
            return object;
        if (!is_in_front(l, type_of(l, object)))
            return 0;
        object = guard_ptr(object + (uintptr_t)l->head_bytes, &bad);
    }
    return !bad && is_generator(types, type_of(l, object)) ? object : 0;
}

enum { STATE_UNREADABLE, STATE_CREATED, STATE_RUNS, STATE_SUSPENDED, STATE_AWAITS };

static int state_of(const struct py_generators *at, uintptr_t generator, uintptr_t frame,
                    const struct py_frame *read, uintptr_t now)
{
    unsigned bad = 0;
    int state = STATE_SUSPENDED;
    if (at->running >= 0) {
        if (guard_u8(generator + (uintptr_t)at->running, &bad))
            state = STATE_RUNS;
        else if (read->at < 0)
            state = STATE_CREATED;
    } else {
        uintptr_t address =
            at->state >= 0 ? generator + (uintptr_t)at->state : frame + (uintptr_t)at->frame_state;
        int8_t value = (int8_t)guard_u8(address, &bad);
        if (value == at->created)
            state = STATE_CREATED;
        else if (value == at->executing)
            state = STATE_RUNS;
        else if (at->await == PY_AWAIT_STATE && value >= at->awaits_first &&
                 value <= at->awaits_last)
            state = STATE_AWAITS;
    }
    if (state == STATE_SUSPENDED && at->await != PY_AWAIT_STATE && now) {
        uint8_t opcode = guard_u8(now + 2, &bad);
        if ((opcode == at->opcodes[0] || opcode == at->opcodes[1]) &&
            (at->await == PY_AWAIT_NEXT_OPCODE || guard_u8(now + 3, &bad) >= RESUMES_AWAIT))
            state = STATE_AWAITS;
    }
    return bad ? STATE_UNREADABLE : state;
}

/* The object that a suspended frame awaits. */
static uintptr_t awaited_of(const struct py_generators *at, uintptr_t frame)
{
    unsigned bad = 0;
    uintptr_t end;
    if (at->stack_end >= 0) {
        end = guard_ptr(frame + (uintptr_t)at->stack_end, &bad);
    } else {
        int32_t depth = (int32_t)guard_u32(frame + (uintptr_t)at->stack_depth, &bad);
        if (depth < 1 || depth > STACK_MAX)
            return 0;
        uintptr_t values = at->stack >= 0 ? frame + (uintptr_t)at->stack
                                          : guard_ptr(frame + (uintptr_t)at->stack_ref, &bad);
        end = values + (uintptr_t)depth * sizeof(uintptr_t);
    }
    uintptr_t value =
        bad || !end ? 0 : guard_ptr(end - at->awaited * sizeof(uintptr_t), &bad) & at->value_mask;
    return bad ? 0 : value;
}

/* One link of a chain: its frame, what it does, and what it awaits. */
struct link {
    struct py_frame frame;
    int state;
    uintptr_t awaited;
};

static bool read_link(const struct py_layout *l, const struct py_task_types *types,
                      uintptr_t generator, struct link *link)
{
    const struct py_generators *at = &l->generators;
    unsigned bad = 0;
    uintptr_t now = 0;
    uintptr_t frame = at->frame >= 0 ? generator + (uintptr_t)at->frame
                                     : guard_ptr(generator + (uintptr_t)at->frame_ref, &bad);
    if (bad || !frame || at->await == PY_AWAIT_UNKNOWN ||
        !frames_read(l, types->code, frame, &link->frame, &now))
        return false;
    link->state = state_of(at, generator, frame, &link->frame, now);
    link->awaited = link->state == STATE_AWAITS ? behind(l, types, awaited_of(at, frame)) : 0;
    return link->state != STATE_UNREADABLE;
}

static void reverse(struct py_frame *frames, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct py_frame first = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = first;
    }
}

/* Of a long chain the inner end is kept: there it waits. */
bool tasks_chain(const struct py_layout *l, const struct py_task_types *types, uintptr_t coroutine,
                 struct py_frame *frames, struct py_walk *walk, bool *runs, bool *has_begun)
{
    uint32_t links = 0;
    *walk = (struct py_walk){0};
    *runs = false;
    *has_begun = true;
    for (uintptr_t at = behind(l, types, coroutine); at && links < LINKS_MAX;) {
        struct link link;
        if (!read_link(l, types, at, &link))
            return false;
        if (link.state == STATE_CREATED && !links)
            *has_begun = false;
        *runs |= link.state == STATE_RUNS;
        frames[links++ % CHAIN_MAX] = link.frame;
        at = link.awaited;
    }
    if (!links)
        return false;
    walk->truncated = links > CHAIN_MAX;
    walk->count = walk->truncated ? CHAIN_MAX : links;
    uint32_t last = (links - 1) % CHAIN_MAX + 1; /* behind it are the outermost that are left */
    reverse(frames, last);
    reverse(frames + last, walk->count - last);
    return true;
}

uintptr_t tasks_awaited(const struct py_layout *l, const struct py_task_types *types,
                        uintptr_t coroutine)
{
    const struct py_generators *at = &l->generators;
    struct link link;
    unsigned bad = 0;
    if (!is_generator(types, type_of(l, coroutine)) || !read_link(l, types, coroutine, &link) ||
        link.state != STATE_AWAITS)
        return 0;
    return awaited_of(at, at->frame >= 0 ? coroutine + (uintptr_t)at->frame
                                         : guard_ptr(coroutine + (uintptr_t)at->frame_ref, &bad));
}

bool tasks_name(const struct py_layout *l, const struct py_task_types *types, uintptr_t name,
                uintptr_t *text, uint64_t *number)
{
    unsigned bad = 0;
    uintptr_t type = type_of(l, name);
    *text = 0;
    *number = 0;
    if (type && type == types->text) {
        *text = name;
        return true;
    }
    if (!type || type != types->integer)
        return false;
    uintptr_t tag = guard_ptr(name + (uintptr_t)l->head_bytes, &bad);
    uintptr_t digits = name + (uintptr_t)l->head_bytes + sizeof(uintptr_t);
    uint64_t count = tag >> TAG_SHIFT;
    for (uint64_t i = 0; i < count && i < 2; i++)
        *number |= (uint64_t)guard_u32(digits + i * sizeof(uint32_t), &bad) << i * DIGIT_BITS;
    return !bad && count <= 2;
}

bool tasks_set(const struct py_layout *l, uintptr_t set, struct py_set *out)
{
    enum { FILL_AND_USED = 8, MASK = 16, TABLE = 24 };
    unsigned bad = 0;
    uintptr_t at = set + (uintptr_t)l->head_bytes;
    *out = (struct py_set){
        .used = guard_u64(at + FILL_AND_USED, &bad),
        .mask = guard_u64(at + MASK, &bad),
        .table = guard_ptr(at + TABLE, &bad),
    };
    return !bad && out->table && out->mask < SLOTS_MAX && !(out->mask & (out->mask + 1)) &&
           out->used <= out->mask;
}

uintptr_t tasks_set_key(const struct py_layout *l, const struct py_set *set, uint64_t index,
                        bool is_weak)
{
    unsigned bad = 0;
    uintptr_t key = guard_ptr(set->table + index * ENTRY_BYTES, &bad);
    if (!bad && key && is_weak) /* the word behind a weak reference's head */
        key = guard_ptr(key + (uintptr_t)l->head_bytes, &bad);
    return bad ? 0 : key;
}
