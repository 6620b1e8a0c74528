/* Merging of call trees and charging of time; see charge.h.  Called by report.c only. */
#include "report/charge.h"

#include "report/judge.h"
#include "report/linetable.h"
#include "wire/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t UNRESOLVED = UINT32_MAX;

static uint64_t pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* The value kept for a key, position + 1; 0 and a slot to fill when it is new. */
static uint64_t *slot(struct map *map, uint32_t high, uint32_t low)
{
    return map_put(map, pair(high, low), NULL);
}

void charge_init(struct charge *charge, struct intern *strings, const struct wire_filter *filter,
                 struct sources *sources)
{
    *charge = (struct charge){.strings = strings, .filter = filter, .sources = sources};
    for (int i = 0; i < CHARGE_FIRST_NODE; i++)
        VEC_PUSH(charge->nodes, charge->node_count, charge->node_cap) = (struct charge_node){0};
}

void charge_release(struct charge *charge)
{
    struct map *maps[] = {&charge->file_index,     &charge->line_index, &charge->pair_index,
                          &charge->function_index, &charge->code_index, &charge->frame_index,
                          &charge->node_index};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        map_release(maps[i]);
    for (size_t i = 0; i < charge->line_count; i++) {
        free(charge->lines[i].stamps.at_sec);
        free(charge->lines[i].names.items);
    }
    for (size_t i = 0; i < charge->function_count; i++)
        free(charge->functions[i].names.items);
    free(charge->files);
    free(charge->lines);
    free(charge->functions);
    free(charge->codes);
    free(charge->frames);
    free(charge->nodes);
    free(charge->order);
    *charge = (struct charge){0};
}

#define COPY_LIST(to, from, list, number, room)                                                    \
    ((to)->list = mem_copy((from)->list, (from)->number * sizeof *(from)->list),                   \
     (to)->number = (to)->room = (from)->number)

static void copy_names(struct charge_names *names)
{
    names->items = mem_copy(names->items, names->count * sizeof *names->items);
    names->cap = names->count;
}

void charge_copy(struct charge *to, const struct charge *from)
{
    struct charge empty = *to;
    free(empty.nodes); /* the two that every tree has */
    *to = *from;
    to->strings = empty.strings;
    to->filter = empty.filter;
    to->sources = empty.sources;
    map_copy(&to->file_index, &from->file_index);
    map_copy(&to->line_index, &from->line_index);
    map_copy(&to->pair_index, &from->pair_index);
    map_copy(&to->function_index, &from->function_index);
    map_copy(&to->code_index, &from->code_index);
    map_copy(&to->frame_index, &from->frame_index);
    map_copy(&to->node_index, &from->node_index);
    COPY_LIST(to, from, files, file_count, file_cap);
    COPY_LIST(to, from, lines, line_count, line_cap);
    COPY_LIST(to, from, functions, function_count, function_cap);
    COPY_LIST(to, from, codes, code_count, code_cap);
    COPY_LIST(to, from, frames, frame_count, frame_cap);
    COPY_LIST(to, from, nodes, node_count, node_cap);
    COPY_LIST(to, from, order, order_count, order_cap);
    for (size_t i = 0; i < to->line_count; i++) {
        struct charge_stamps *stamps = &to->lines[i].stamps;
        stamps->at_sec = mem_copy(stamps->at_sec, stamps->count * sizeof *stamps->at_sec);
        stamps->cap = stamps->count;
        copy_names(&to->lines[i].names);
    }
    for (size_t i = 0; i < to->function_count; i++)
        copy_names(&to->functions[i].names);
}

/* ---- names ---- */

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

bool charge_is_anonymous(const char *name)
{
    return last_part(name)[0] == '<';
}

static uint32_t file_of(struct charge *charge, str_id name)
{
    uint64_t *at = slot(&charge->file_index, 0, name);
    if (*at)
        return (uint32_t)(*at - 1);
    *at = charge->file_count + 1;
    const char *text = intern_get(charge->strings, name);
    bool is_own = filter_traces(charge->filter, text);
    bool is_tool = !is_own && filter_is_tool(charge->filter, text);
    VEC_PUSH(charge->files, charge->file_count, charge->file_cap) =
        (struct charge_file){.name = name, .traced = is_own || is_tool, .is_tool = is_tool};
    return (uint32_t)(charge->file_count - 1);
}

/* A small number for (file, name), so that a third part fits beside it into a key. */
static uint32_t pair_of(struct charge *charge, uint32_t file, str_id name)
{
    uint64_t *at = slot(&charge->pair_index, file, name);
    if (!*at)
        *at = charge->pair_index.count;
    return (uint32_t)*at;
}

static uint32_t function_add(struct charge *charge, uint32_t file, str_id name, uint32_t first_line)
{
    uint64_t *at = slot(&charge->function_index, pair_of(charge, file, name), first_line);
    if (!*at) {
        VEC_PUSH(charge->functions, charge->function_count, charge->function_cap) =
            (struct charge_function){.file = file, .name = name, .first_line = first_line};
        *at = charge->function_count;
    }
    return (uint32_t)*at;
}

/* The narrowest def around a line, by the source. */
static const struct structure_function *def_around(const struct structure *structure, uint32_t line)
{
    const struct structure_function *best = NULL;
    for (size_t i = 0; i < structure->function_count; i++) {
        const struct structure_function *f = &structure->functions[i];
        if (!f->is_class && f->first_line <= line && line <= f->last_line &&
            (!best || f->first_line >= best->first_line))
            best = f;
    }
    return best;
}

/* The def (or class) a code object was made from; NULL when the source does not show it. */
static const struct structure_function *def_of(const struct structure *structure,
                                               uint32_t first_line, const char *name)
{
    for (size_t i = 0; i < structure->function_count; i++) {
        const struct structure_function *f = &structure->functions[i];
        if (f->decorator_line == first_line && !strcmp(last_part(f->qualname), name))
            return f;
    }
    return structure_find(structure, first_line, name);
}

/* Without source: "f.<locals>.<lambda>" is in "f"; its first line is unknown, so the nearest
 * function of that name seen above is taken. */
static uint32_t function_by_prefix(struct charge *charge, uint32_t file, const char *name,
                                   uint32_t first_line)
{
    size_t length = strlen(name);
    do {
        while (length && name[length - 1] != '.')
            length--;
        length -= length > 0;
        const size_t locals = strlen(".<locals>");
        if (length > locals && !memcmp(name + length - locals, ".<locals>", locals))
            length -= locals;
    } while (length && name[length - 1] == '>');
    if (!length)
        return 0;
    str_id outer = intern_add(charge->strings, name, length);
    uint32_t best = 0;
    for (size_t i = 0; i < charge->function_count; i++) {
        const struct charge_function *f = &charge->functions[i];
        if (f->file == file && f->name == outer && f->first_line <= first_line &&
            (!best || f->first_line > charge->functions[best - 1].first_line))
            best = (uint32_t)i + 1;
    }
    return best ? best : function_add(charge, file, outer, first_line);
}

static uint32_t function_of(struct charge *charge, uint32_t file, str_id name_id,
                            uint32_t first_line)
{
    const char *name = intern_get(charge->strings, name_id);
    if (!name[0] || !strcmp(name, "<module>"))
        return 0;
    if (!charge_is_anonymous(name))
        return function_add(charge, file, name_id, first_line);
    const struct source_file *source = sources_get(charge->sources, charge->files[file].name);
    if (!source->is_loaded)
        return function_by_prefix(charge, file, name, first_line);
    const struct structure_function *def = def_around(&source->structure, first_line);
    return def ? function_add(charge, file, intern_cstr(charge->strings, def->qualname),
                              def->decorator_line)
               : 0;
}

/* Until 3.10 a code object knows only its plain name; the source tells the rest. */
static str_id qualified_name(struct charge *charge, uint32_t file, str_id name_id,
                             uint32_t first_line)
{
    const char *name = intern_get(charge->strings, name_id);
    if (!name[0] || charge_is_anonymous(name))
        return name_id;
    const struct source_file *source = sources_get(charge->sources, charge->files[file].name);
    const struct structure_function *def =
        source->is_loaded ? def_of(&source->structure, first_line, name) : NULL;
    return def ? intern_cstr(charge->strings, def->qualname) : name_id;
}

const struct charge_file *charge_file_at(const struct charge *charge, uint32_t node)
{
    return &charge->files[charge->codes[charge->frames[charge->nodes[node].frame].code].file];
}

/* ---- the merged tree ---- */

static str_id text_of(struct charge *charge, const struct recording *recording,
                      struct wire_span span, unsigned width)
{
    struct buf text = {0};
    recording_text(recording, span, width, &text);
    str_id id = intern_add(charge->strings, text.data, text.len);
    buf_release(&text);
    return id;
}

static uint32_t code_of(struct charge *charge, const struct recording *recording, uint32_t id)
{
    struct wire_code none = {0};
    const struct wire_code *code = recording_code(recording, id);
    if (!code)
        code = &none;
    struct buf path = {0};
    recording_text(recording, code->file, code->file_width, &path);
    str_id file_name = sources_name(charge->sources, path.data ? path.data : "");
    buf_release(&path);
    uint32_t file = file_of(charge, file_name);
    uint32_t first_line = code->first_line > 0 ? (uint32_t)code->first_line : 1;
    str_id name = text_of(charge, recording, code->name, code->name_width);
    bool has_plain_name =
        code->line_format == WIRE_LINES_LNOTAB || code->line_format == WIRE_LINES_PEP626;
    if (has_plain_name && charge->files[file].traced)
        name = qualified_name(charge, file, name, first_line);

    uint64_t *at = slot(&charge->code_index, pair_of(charge, file, name), first_line);
    if (!*at) {
        *at = charge->code_count + 1;
        struct charge_code *made = &VEC_PUSH(charge->codes, charge->code_count, charge->code_cap);
        *made = (struct charge_code){.file = file, .name = name, .first_line = first_line};
        if (charge->files[file].traced)
            made->function = function_of(charge, file, name, first_line);
        return (uint32_t)(charge->code_count - 1);
    }
    return (uint32_t)(*at - 1);
}

static uint32_t frame_of(struct charge *charge, uint32_t code, uint32_t line)
{
    uint64_t *at = slot(&charge->frame_index, code, line);
    if (!*at) {
        VEC_PUSH(charge->frames, charge->frame_count, charge->frame_cap) =
            (struct charge_frame){code, line};
        *at = charge->frame_count;
    }
    return (uint32_t)(*at - 1);
}

static uint32_t line_of(struct charge *charge, uint32_t file, uint32_t line)
{
    uint64_t *at = slot(&charge->line_index, file, line);
    if (!*at) {
        VEC_PUSH(charge->lines, charge->line_count, charge->line_cap) =
            (struct charge_line){.file = file, .line = line};
        *at = charge->line_count;
    }
    return (uint32_t)*at;
}

/* Is one of the user's frames on the stack? */
static bool is_below_own(const struct charge *charge, uint32_t node)
{
    uint32_t traced = charge->nodes[node].traced;
    return traced != CHARGE_NO_STACK && !charge_file_at(charge, traced)->is_tool;
}

static uint32_t node_below(struct charge *charge, uint32_t parent, uint32_t frame)
{
    const struct charge_frame *f = &charge->frames[frame];
    uint32_t file = charge->codes[f->code].file;
    if (charge->node_count >= CHARGE_NODES_MAX &&
        !map_get(&charge->node_index, pair(parent, frame))) {
        charge->cut_count += parent != CHARGE_NO_STACK;
        if (!charge->files[file].traced)
            return parent;
        parent = CHARGE_NO_STACK;
    }
    uint64_t *at = slot(&charge->node_index, parent, frame);
    if (*at)
        return (uint32_t)*at;
    *at = charge->node_count;
    struct charge_node node = {.parent = parent,
                               .frame = frame,
                               .depth = charge->nodes[parent].depth + 1,
                               .traced = charge->nodes[parent].traced};
    if (charge->files[file].traced &&
        !(charge->files[file].is_tool && is_below_own(charge, parent))) {
        node.traced = (uint32_t)charge->node_count;
        node.line = line_of(charge, file, f->line);
    }
    VEC_PUSH(charge->nodes, charge->node_count, charge->node_cap) = node;
    return (uint32_t)(charge->node_count - 1);
}

struct merge {
    struct charge *charge;
    const struct recording *recording;
    uint32_t *code_of;       /* arena's code id -> code */
    struct linetable *lines; /* of each code in code_of */
    uint32_t *node_of;
};

/* An instruction as a code of ours and a line. */
static bool resolve(struct merge *merge, uint32_t ref, int32_t at, struct charge_frame *frame)
{
    const struct wire_code *code = recording_code(merge->recording, ref);
    if (!code)
        return false;
    uint32_t *known = &merge->code_of[ref];
    struct linetable *lines = &merge->lines[ref];
    if (*known == UNRESOLVED) {
        *known = code_of(merge->charge, merge->recording, ref);
        linetable_decode(lines, (enum wire_line_format)code->line_format,
                         recording_bytes(merge->recording, code->line_table),
                         code->line_table.bytes, code->first_line);
    }
    int line = linetable_line(lines, at);
    frame->code = *known;
    frame->line = line > 0 ? (uint32_t)line : merge->charge->codes[*known].first_line;
    return true;
}

static uint32_t python_node(struct merge *merge, uint32_t parent, const struct wire_node *node)
{
    struct charge_frame frame;
    if (!resolve(merge, node->ref, node->at, &frame))
        return parent;
    return node_below(merge->charge, parent, frame_of(merge->charge, frame.code, frame.line));
}

/* Frames that are not Python's leave no node: a stack cut at the outside begins where it was cut,
 * an unreadable one is no stack. */
static uint32_t merge_one(struct merge *merge, uint32_t parent, const struct wire_node *node)
{
    if (node->frame == WIRE_FRAME_PYTHON)
        return python_node(merge, parent == CHARGE_NATIVE_THREAD ? CHARGE_NO_STACK : parent, node);
    if (node->frame == WIRE_FRAME_NO_PYTHON && parent == CHARGE_NO_STACK)
        return CHARGE_NATIVE_THREAD;
    return parent;
}

static uint32_t merge_node(struct merge *merge, uint32_t id)
{
    uint32_t path[WIRE_DEPTH_MAX], length = 0;
    while (merge->node_of[id] == UNRESOLVED) {
        path[length++] = id;
        id = recording_node(merge->recording, id)->parent;
    }
    uint32_t node = merge->node_of[id];
    while (length--) {
        node = merge_one(merge, node, recording_node(merge->recording, path[length]));
        merge->node_of[path[length]] = node;
    }
    return node;
}

static struct charge_place merge_place(struct merge *merge, const struct wire_place *place)
{
    struct charge *charge = merge->charge;
    struct charge_frame frame;
    if (!place || !resolve(merge, atomic_load(&place->code), place->at, &frame))
        return (struct charge_place){0};
    const struct charge_code *code = &charge->codes[frame.code];
    if (!charge->files[code->file].traced)
        return (struct charge_place){0};
    return (struct charge_place){line_of(charge, code->file, frame.line), code->function};
}

struct charge_place charge_place_of(const struct charge *charge, uint32_t node)
{
    uint32_t traced = charge->nodes[node].traced;
    if (traced == CHARGE_NO_STACK)
        return (struct charge_place){0};
    return (struct charge_place){
        .line = charge->nodes[traced].line,
        .function = charge->codes[charge->frames[charge->nodes[traced].frame].code].function,
    };
}

/* Nodes that others than cells refer to. */
static void merge_others(struct merge *merge)
{
    const struct recording *recording = merge->recording;
    for (uint32_t i = 1; i < recording_count(recording, WIRE_SITE); i++) {
        const struct wire_site *site = recording_site(recording, i);
        if (site)
            merge_node(merge, site->node);
    }
    for (uint32_t i = 1; i < recording_count(recording, WIRE_AWAIT); i++) {
        struct recording_await await;
        if (recording_await(recording, i, &await))
            merge_node(merge, await.node);
    }
    merge_node(merge, atomic_load(&recording->header.async.longest_node));
}

/* ---- time ---- */

static struct profile_time time_of(const struct recording_cell *cell)
{
    struct profile_time time = {0};
    double sec = (double)cell->ns / 1e9, square_sec2 = cell->square_us2 / 1e12;
    if (cell->kind == WIRE_CPU_PYTHON || cell->kind == WIRE_CPU_NATIVE) {
        *(cell->kind == WIRE_CPU_PYTHON ? &time.python_sec : &time.native_sec) = sec;
        time.samples = cell->count;
        time.square_sec2 = square_sec2;
        return time;
    }
    time.wait_sec[cell->kind - WIRE_WAIT_FIRST] = sec;
    if (cell->kind == WIRE_WAIT_REQUEST)
        return time; /* idle */
    if (cell->charged_ns && cell->ns) {
        double share =
            cell->charged_ns < cell->ns ? (double)cell->charged_ns / (double)cell->ns : 1;
        time.system_sec = sec * share;
        time.samples = (uint64_t)fmin(ceil((double)cell->count * share), 1e18);
        time.square_sec2 = square_sec2; /* of the charged parts alone */
    }
    return time;
}

static void charge_cell(struct charge *charge, uint32_t node_id, const struct profile_time *time)
{
    struct charge_node *node = &charge->nodes[node_id];
    profile_time_add(&charge->total, time);
    if (!profile_time_sum(&node->time) && profile_time_sum(time) > 0)
        VEC_PUSH(charge->order, charge->order_count, charge->order_cap) = node_id;
    profile_time_add(&node->time, time);
    if (node_id == CHARGE_NATIVE_THREAD)
        charge->native_threads_sec += profile_time_sum(time);
    if (node->traced == CHARGE_NO_STACK) {
        profile_time_add(&charge->untraced, time);
        return;
    }
    const struct charge_node *charged = &charge->nodes[node->traced];
    const struct charge_code *code = &charge->codes[charge->frames[charged->frame].code];
    profile_time_add(&charge->lines[charged->line - 1].time, time);
    profile_time_add(&charge->files[code->file].time, time);
    if (code->function)
        profile_time_add(&charge->functions[code->function - 1].time, time);
}

static double charge_cells(struct merge *merge)
{
    struct charge *charge = merge->charge;
    double cpu_sec = 0;
    struct judge judge;
    judge_init(&judge, merge->recording);
    for (uint32_t i = 1; i < recording_count(merge->recording, WIRE_CELL); i++) {
        struct recording_cell cell;
        if (!recording_cell(merge->recording, i, &cell))
            continue;
        if (cell.kind == WIRE_CPU_CALL)
            cell.kind = judge_kind(&judge, &cell);
        struct profile_time time = time_of(&cell);
        charge_cell(charge, merge_node(merge, cell.node), &time);
        if (cell.kind == WIRE_WAIT_REQUEST)
            charge->idle_sec += (double)cell.charged_ns / 1e9;
        cpu_sec += time.python_sec + time.native_sec;
    }
    judge_release(&judge);
    return cpu_sec;
}

double charge_recording(struct charge *charge, const struct recording *recording,
                        struct charge_ids *ids)
{
    size_t nodes = recording_count(recording, WIRE_NODE),
           codes = recording_count(recording, WIRE_CODE),
           places = recording_count(recording, WIRE_PLACE);
    struct merge merge = {
        .charge = charge,
        .recording = recording,
        .code_of = mem_alloc((codes + 1) * sizeof(uint32_t)),
        .lines = mem_zalloc(codes + 1, sizeof *merge.lines),
        .node_of = mem_alloc((nodes + 1) * sizeof(uint32_t)),
    };
    memset(merge.code_of, 0xFF, (codes + 1) * sizeof(uint32_t));
    memset(merge.node_of, 0xFF, (nodes + 1) * sizeof(uint32_t));
    merge.node_of[0] = CHARGE_NO_STACK;
    double cpu_sec = charge_cells(&merge);
    merge_others(&merge);
    /* The timeline may know stacks whose cells found no room. */
    for (uint32_t i = 1; i < nodes; i++)
        if (merge.node_of[i] == UNRESOLVED)
            merge.node_of[i] = CHARGE_NO_STACK;
    ids->node_of = merge.node_of;
    ids->place_of = mem_zalloc(places + 1, sizeof *ids->place_of);
    for (uint32_t i = 1; i < places; i++)
        ids->place_of[i] = merge_place(&merge, recording_place(recording, i));
    for (size_t i = 0; i < codes; i++)
        linetable_release(&merge.lines[i]);
    free(merge.lines);
    free(merge.code_of);
    return cpu_sec;
}

void charge_ids_release(struct charge_ids *ids)
{
    free(ids->node_of);
    free(ids->place_of);
    *ids = (struct charge_ids){0};
}

bool charge_settle_tool(struct charge *charge)
{
    bool has_tool = false, has_own = false;
    for (size_t i = 0; i < charge->file_count; i++) {
        const struct charge_file *file = &charge->files[i];
        if (file->traced && (profile_time_sum(&file->time) > 0 || file->memory.samples ||
                             profile_async_is_active(&file->async)))
            *(file->is_tool ? &has_tool : &has_own) = true;
    }
    for (size_t i = 0; has_own && i < charge->file_count; i++)
        charge->files[i].traced &= !charge->files[i].is_tool;
    return has_tool && !has_own;
}

/* ---- time stamps ---- */

/* splitmix64: the same profile for the same recording. */
static double uniform(uint64_t *state)
{
    return ((double)(hash_mix(++*state, 0x5CA1E) >> 11) + 0.5) * 0x1p-53;
}

/* How many stamps to pass over before the next one is taken (Li's "algorithm L"): the cost follows
 * the number of stamps kept, not the number offered, which a damaged log can make huge. */
static void draw_next(struct charge_stamps *stamps, uint64_t *state)
{
    if (stamps->threshold == 0)
        stamps->threshold = 1;
    stamps->threshold *= exp(log(uniform(state)) / PROFILE_STAMPS_MAX);
    double gap = floor(log(uniform(state)) / log1p(-stamps->threshold));
    stamps->next = gap < 1e18 ? stamps->seen + (uint64_t)gap : UINT64_MAX;
}

static void stamp_offer(struct charge_stamps *stamps, double at_sec, double step_sec,
                        uint64_t count, uint64_t seed)
{
    uint64_t done = 0;
    while (done < count && stamps->count < PROFILE_STAMPS_MAX) {
        VEC_PUSH(stamps->at_sec, stamps->count, stamps->cap) = at_sec + step_sec * (double)done++;
        stamps->seen++;
        uint64_t state = hash_mix(seed, stamps->seen);
        if (stamps->count == PROFILE_STAMPS_MAX)
            draw_next(stamps, &state);
    }
    uint64_t first = stamps->seen - done, end = first + count;
    while (stamps->count == PROFILE_STAMPS_MAX && stamps->next < end) {
        uint64_t state = hash_mix(seed, stamps->next);
        uint32_t victim = (uint32_t)(uniform(&state) * PROFILE_STAMPS_MAX);
        stamps->at_sec[victim] = at_sec + step_sec * (double)(stamps->next - first);
        stamps->seen = stamps->next + 1;
        draw_next(stamps, &state);
    }
    stamps->seen = end;
}

void charge_stamp(struct charge *charge, uint32_t node, double at_sec, double step_sec,
                  uint64_t count)
{
    uint32_t traced = node < charge->node_count ? charge->nodes[node].traced : CHARGE_NO_STACK;
    if (traced == CHARGE_NO_STACK)
        return;
    uint32_t line = charge->nodes[traced].line - 1;
    stamp_offer(&charge->lines[line].stamps, at_sec, step_sec, count, hash_mix(line, 1));
}
