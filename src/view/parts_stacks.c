/*
 * Stacks as one prefix tree, and the timeline over its nodes.  The tree of the
 * same stacks always comes out the same, so the two parts, which are made one
 * without the other, agree on the numbers of nodes.
 */
#include "profile/json_put.h"
#include "view/parts_put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_NODE UINT32_MAX

enum frame_kind { FRAME_YOURS, FRAME_LIBRARY, FRAME_NATIVE, FRAME_AWAIT }; /* as the page has it */

struct frame {
    const struct profile_frame *from;
    uint32_t name, file; /* places in the tree's texts */
};

struct node {
    uint32_t parent, frame;
    double self;
};

struct tree {
    const struct profile *profile;
    struct map files;       /* names of the profile's files */
    struct map text_index;  /* str_id -> place + 1 */
    struct map frame_index; /* hash of a frame -> place + 1 */
    str_id *texts;
    size_t text_count, text_cap;
    struct frame *frames; /* distinct ones */
    size_t frame_count, frame_cap;
    struct map node_index; /* hash of (parent, frame) -> place + 1 */
    struct node *nodes;
    size_t node_count, node_cap;
};

static void tree_init(struct tree *tree, const struct profile *profile)
{
    *tree = (struct tree){.profile = profile};
    for (uint32_t i = 0; i < profile->file_count; i++)
        map_put(&tree->files, profile->files[i].name, NULL);
}

static void tree_release(struct tree *tree)
{
    map_release(&tree->files);
    map_release(&tree->text_index);
    map_release(&tree->frame_index);
    map_release(&tree->node_index);
    free(tree->texts);
    free(tree->frames);
    free(tree->nodes);
}

static uint32_t add_text(struct tree *tree, str_id text)
{
    uint64_t *place = map_put(&tree->text_index, text, NULL);
    if (!*place) {
        VEC_PUSH(tree->texts, tree->text_count, tree->text_cap) = text;
        *place = tree->text_count;
    }
    return (uint32_t)(*place - 1);
}

static uint64_t frame_hash(const struct profile_frame *frame)
{
    uint64_t place = (uint64_t)frame->file << 32 | frame->line;
    return hash_mix(hash_mix(place, frame->name), frame->is_native);
}

static uint32_t add_frame(struct tree *tree, const struct profile_frame *frame)
{
    uint64_t *place = map_put(&tree->frame_index, frame_hash(frame), NULL);
    if (!*place) {
        struct frame made = {frame, add_text(tree, frame->name), add_text(tree, frame->file)};
        VEC_PUSH(tree->frames, tree->frame_count, tree->frame_cap) = made;
        *place = tree->frame_count;
    }
    return (uint32_t)(*place - 1);
}

/* The node of the innermost frame; NO_NODE for a stack without frames. */
static uint32_t add_stack(struct tree *tree, const struct profile_frame *frames, uint32_t count,
                          double self)
{
    uint32_t node = NO_NODE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t frame = add_frame(tree, &frames[i]);
        uint64_t key = (uint64_t)node << 32 | frame;
        uint64_t *place = map_put(&tree->node_index, key, NULL);
        if (!*place) {
            VEC_PUSH(tree->nodes, tree->node_count, tree->node_cap) =
                (struct node){.parent = node, .frame = frame};
            *place = tree->node_count;
        }
        node = (uint32_t)(*place - 1);
    }
    if (node != NO_NODE)
        tree->nodes[node].self += self;
    return node;
}

static enum frame_kind kind_of(const struct tree *tree, const struct profile_frame *frame)
{
    static const char await[] = "[await] ";
    if (frame->is_native)
        return FRAME_NATIVE;
    if (!strncmp(profile_str(tree->profile, frame->name), await, sizeof await - 1))
        return FRAME_AWAIT;
    return map_get(&tree->files, frame->file) ? FRAME_YOURS : FRAME_LIBRARY;
}

static void put_frames(const struct tree *tree, struct json_out *out)
{
    static const char *const keys[] = {"file", "kind", "line", "name"};
    json_out_key(out, "frames");
    json_out_object(out);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        json_out_key(out, keys[k]);
        json_out_array(out);
        for (size_t i = 0; i < tree->frame_count; i++) {
            const struct frame *frame = &tree->frames[i];
            const uint32_t values[] = {frame->file, kind_of(tree, frame->from), frame->from->line,
                                       frame->name};
            json_out_int(out, values[k]);
        }
        json_out_end(out);
    }
    json_out_end(out);
}

static void put_strings(const struct tree *tree, struct json_out *out)
{
    json_out_key(out, "strings");
    json_out_array(out);
    for (size_t i = 0; i < tree->text_count; i++)
        json_put_text(out, tree->profile, tree->texts[i]);
    json_out_end(out);
}

static void put_nodes(const struct tree *tree, struct json_out *out)
{
    json_out_key(out, "tree");
    json_out_object(out);
    json_out_key(out, "frame");
    json_out_array(out);
    for (size_t i = 0; i < tree->node_count; i++)
        json_out_int(out, tree->nodes[i].frame);
    json_out_end(out);
    json_out_key(out, "parent");
    json_out_array(out);
    for (size_t i = 0; i < tree->node_count; i++)
        json_out_int(out, tree->nodes[i].parent == NO_NODE ? -1 : (int64_t)tree->nodes[i].parent);
    json_out_end(out);
    json_out_key(out, "self");
    json_out_array(out);
    for (size_t i = 0; i < tree->node_count; i++)
        json_out_short(out, tree->nodes[i].self);
    json_out_end(out);
    json_out_end(out);
}

static void put_tree(const struct parts *parts, const struct tree *tree, struct buf *out)
{
    struct json_out json;
    json_out_begin_compact(&json, out);
    json_out_object(&json);
    put_frames(tree, &json);
    parts_put_generation(parts, &json);
    put_strings(tree, &json);
    put_nodes(tree, &json);
    json_out_end(&json);
}

/* The tree of the CPU stacks; `leaves` (may be NULL) gets the node of each. */
static void grow_stacks(struct tree *tree, uint32_t *leaves)
{
    const struct profile *profile = tree->profile;
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        uint32_t leaf = add_stack(tree, stack->frames, stack->frame_count, (double)stack->hits);
        if (leaves)
            leaves[i] = leaf;
    }
}

void parts_stacks(const struct parts *parts, struct buf *out)
{
    struct tree tree;
    tree_init(&tree, parts->profile);
    grow_stacks(&tree, NULL);
    put_tree(parts, &tree, out);
    tree_release(&tree);
}

void parts_memory_stacks(const struct parts *parts, struct buf *out)
{
    const struct profile *profile = parts->profile;
    struct tree tree;
    tree_init(&tree, profile);
    for (uint32_t i = 0; i < profile->memory_stack_count; i++) {
        const struct profile_memory_stack *stack = &profile->memory_stacks[i];
        add_stack(&tree, stack->frames, stack->frame_count, stack->mb);
    }
    put_tree(parts, &tree, out);
    tree_release(&tree);
}

/* ---- timeline ---- */

struct run {
    double at_sec;
    uint64_t count;
    uint32_t place; /* in the profile: keeps runs of one moment in order */
    uint32_t node;
    int64_t thread;
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* All runs with a stack, by start; *count of them. */
static struct run *sorted_runs(const struct profile *profile, size_t *count)
{
    uint32_t *leaves = mem_zalloc(profile->stack_count, sizeof *leaves);
    struct run *runs = mem_zalloc(profile->run_count, sizeof *runs);
    struct map threads = {0}; /* ident -> place + 1 */
    struct tree tree;
    tree_init(&tree, profile);
    grow_stacks(&tree, leaves);
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        uint64_t *place = map_put(&threads, profile->threads[i].ident, NULL);
        if (!*place)
            *place = i + 1;
    }
    *count = 0;
    for (uint32_t i = 0; i < profile->run_count; i++) {
        const struct profile_run *run = &profile->runs[i];
        if (leaves[run->stack] == NO_NODE)
            continue;
        const uint64_t *thread = run->thread_ident ? map_get(&threads, run->thread_ident) : NULL;
        runs[(*count)++] = (struct run){run->at_sec, run->count, i, leaves[run->stack],
                                        thread ? (int64_t)*thread - 1 : -1};
    }
    qsort(runs, *count, sizeof *runs, compare_runs);
    tree_release(&tree);
    map_release(&threads);
    free(leaves);
    return runs;
}

void parts_timeline(const struct parts *parts, struct buf *out)
{
    size_t count;
    struct run *runs = sorted_runs(parts->profile, &count);
    struct json_out json;
    json_out_begin_compact(&json, out);
    json_out_object(&json);
    json_out_key(&json, "count");
    json_out_array(&json);
    for (size_t i = 0; i < count; i++)
        json_out_int(&json, (int64_t)runs[i].count);
    json_out_end(&json);
    parts_put_generation(parts, &json);
    json_out_key(&json, "node");
    json_out_array(&json);
    for (size_t i = 0; i < count; i++)
        json_out_int(&json, runs[i].node);
    json_out_end(&json);
    json_out_key(&json, "start_sec");
    json_out_array(&json);
    for (size_t i = 0; i < count; i++)
        json_out_real(&json, round(runs[i].at_sec * 1e6) / 1e6);
    json_out_end(&json);
    json_out_key(&json, "thread");
    json_out_array(&json);
    for (size_t i = 0; i < count; i++)
        json_out_int(&json, runs[i].thread);
    json_out_end(&json);
    json_out_end(&json);
    free(runs);
}
