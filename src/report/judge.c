/* Calls that enter Python functions, and what they cost; see judge.h. */
#include "report/judge.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/*
 * Calling a Python function or making an instance costs the interpreter so many
 * times what the function itself takes, at most: that of an empty one.  (Making an
 * instance with __slots__ was measured at 33 times its __init__ of one assignment.)
 */
enum { PRICE_MAX = 64 };

/* What a call site was seen to enter, and how much time was seen below and in the call itself. */
struct judge_call {
    bool enters_directly; /* a Python function, without C in between */
    uint64_t below_ns;    /* in functions that it entered directly, and in __init__ */
    uint64_t call_ns;     /* of kind WIRE_CPU_CALL */
};

/* Making an instance of a Python class runs its __init__ through C; that is no C function's work.
 */
static bool is_constructor(const struct recording *recording, const struct wire_node *node)
{
    static const char name[] = "__init__";
    size_t length = sizeof name - 1;
    const struct wire_code *code = recording_code(recording, node->ref);
    const uint8_t *text =
        code && code->name_width == 1 ? recording_bytes(recording, code->name) : NULL;
    return text && code->name.bytes >= length &&
           !memcmp(text + code->name.bytes - length, name, length);
}

static uint64_t key_of(const struct wire_node *node, uint32_t ahead)
{
    return (uint64_t)node->ref << 32 | (uint32_t)(node->at + (int32_t)ahead);
}

static struct judge_call *call_at(const struct judge *judge, uint64_t key)
{
    const uint64_t *place = map_get(&judge->sites, key);
    return place ? &judge->calls[*place - 1] : NULL;
}

/* Time with each node as the leaf or below it; a caller's id is less than its callees'. */
static uint64_t *time_below(const struct recording *recording)
{
    uint32_t nodes = recording_count(recording, WIRE_NODE);
    uint64_t *ns = mem_zalloc((size_t)nodes + 1, sizeof *ns);
    for (uint32_t i = 1; i < recording_count(recording, WIRE_CELL); i++) {
        struct recording_cell cell;
        if (recording_cell(recording, i, &cell) && cell.kind < WIRE_WAIT_FIRST)
            ns[cell.node] += cell.ns;
    }
    for (uint32_t id = nodes; id-- > 1;)
        ns[recording_node(recording, id)->parent] += ns[id];
    return ns;
}

static void find_calls(struct judge *judge)
{
    const struct recording *recording = judge->recording;
    uint64_t *below_ns = time_below(recording);
    for (uint32_t id = 1; id < recording_count(recording, WIRE_NODE); id++) {
        const struct wire_node *node = recording_node(recording, id);
        const struct wire_node *caller = recording_node(recording, node->parent);
        if (!caller || node->frame != WIRE_FRAME_PYTHON || caller->frame != WIRE_FRAME_PYTHON)
            continue;
        bool is_direct = (node->flags & WIRE_NODE_DIRECT) != 0;
        if (!is_direct && !is_constructor(recording, node))
            continue;
        uint64_t *place = map_put(&judge->sites, key_of(caller, 0), NULL);
        if (!*place) {
            VEC_PUSH(judge->calls, judge->call_count, judge->call_cap) = (struct judge_call){0};
            *place = judge->call_count;
        }
        struct judge_call *call = &judge->calls[*place - 1];
        call->enters_directly |= is_direct;
        call->below_ns += below_ns[id];
    }
    free(below_ns);
}

/*
 * While its callee runs, a caller's instruction may stand a few bytes behind the
 * call's own start, at which it stands while the call is being made.
 */
static struct judge_call *call_of(const struct judge *judge, uint32_t id)
{
    const struct wire_node *node = recording_node(judge->recording, id);
    if (!node || node->frame != WIRE_FRAME_PYTHON)
        return NULL;
    struct judge_call *call = call_at(judge, key_of(node, 0));
    for (uint32_t ahead = 2; !call && ahead <= judge->recording->header.caller_slack; ahead += 2) {
        call = call_at(judge, key_of(node, ahead));
        if (call && !call->enters_directly)
            call = NULL;
    }
    return call;
}

void judge_init(struct judge *judge, const struct recording *recording)
{
    *judge = (struct judge){.recording = recording};
    find_calls(judge);
    for (uint32_t i = 1; i < recording_count(recording, WIRE_CELL); i++) {
        struct recording_cell cell;
        bool is_call = recording_cell(recording, i, &cell) && cell.kind == WIRE_CPU_CALL;
        struct judge_call *call = is_call ? call_of(judge, cell.node) : NULL;
        if (call)
            call->call_ns += cell.ns;
    }
}

enum wire_kind judge_kind(const struct judge *judge, const struct recording_cell *cell)
{
    const struct judge_call *call = call_of(judge, cell->node);
    return call && call->call_ns / PRICE_MAX < call->below_ns ? WIRE_CPU_PYTHON : WIRE_CPU_NATIVE;
}

void judge_release(struct judge *judge)
{
    map_release(&judge->sites);
    free(judge->calls);
    *judge = (struct judge){0};
}
