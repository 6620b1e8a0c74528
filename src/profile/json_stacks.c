/* Traced frames and times of stacks; see json_stacks.h.  Called by json_read.c when files and
 * combined_stacks have been read. */
#include "profile/json_stacks.h"

#include "base/buf.h"

#include <stdlib.h>

struct entry {
    double python_sec, native_sec, system_sec;
    uint64_t hits; /* of the stacks that look like this */
};

struct entries {
    struct entry *items;
    size_t count, cap;
    struct map places; /* hash of the frames' texts -> place + 1 */
    struct map frames; /* hashes of texts of traced frames */
};

static double share(const json_t *stats, const char *key)
{
    double value = json_number_value(json_object_get(stats, key));
    return value > 0 && value <= 1 ? value : 0;
}

static void read_entry(const struct profile *profile, const json_t *value, struct entries *entries)
{
    const json_t *frames = json_array_get(value, 0), *stats = json_array_get(value, 1);
    uint64_t key = 0;
    size_t count = json_array_size(frames);
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(frames, i);
        if (!json_is_string(frame))
            return;
        uint64_t hash = hash_bytes(json_string_value(frame), json_string_length(frame));
        map_put(&entries->frames, hash, NULL);
        key = hash_mix(key, hash);
    }
    double python = share(stats, "python_time"), native = share(stats, "c_time");
    double rest = share(stats, "cpu_samples") - python - native;
    uint64_t *place = map_put(&entries->places, key, NULL);
    if (*place)
        return;
    VEC_PUSH(entries->items, entries->count, entries->cap) = (struct entry){
        .python_sec = python * profile->total_sec,
        .native_sec = native * profile->total_sec,
        .system_sec = rest > 0 ? rest * profile->total_sec : 0,
    };
    *place = entries->count;
}

/* The entry that this stack is part of, or NULL; marks its traced frames. */
static struct entry *entry_of(const struct profile *profile, struct profile_stack *stack,
                              const struct entries *entries, struct buf *text)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        struct profile_frame *frame = &stack->frames[i];
        buf_reset(text);
        buf_addf(text, "%s %s:%u;", profile_str(profile, frame->file),
                 profile_str(profile, frame->name), frame->line);
        uint64_t hash = hash_bytes(text->data, text->len);
        frame->traced = map_get(&entries->frames, hash) != NULL;
        if (frame->traced)
            key = hash_mix(key, hash);
    }
    const uint64_t *place = key ? map_get(&entries->places, key) : NULL;
    return place ? &entries->items[*place - 1] : NULL;
}

void json_stacks_read(struct profile *profile, const json_t *stacks)
{
    struct entries entries = {0};
    struct buf text = {0};
    for (size_t i = 0; i < json_array_size(stacks); i++)
        read_entry(profile, json_array_get(stacks, i), &entries);
    struct entry **found = mem_zalloc((size_t)profile->stack_count + 1, sizeof(struct entry *));
    for (uint32_t i = 0; entries.count && i < profile->stack_count; i++) {
        found[i] = entry_of(profile, &profile->stacks[i], &entries, &text);
        if (found[i])
            found[i]->hits += profile->stacks[i].hits;
    }
    for (uint32_t i = 0; i < profile->stack_count; i++) {
        const struct entry *entry = found[i];
        if (!entry || !entry->hits)
            continue;
        double part = (double)profile->stacks[i].hits / (double)entry->hits;
        profile->stacks[i].time = (struct profile_time){
            .python_sec = entry->python_sec * part,
            .native_sec = entry->native_sec * part,
            .system_sec = entry->system_sec * part,
        };
    }
    free(found);
    free(entries.items);
    map_release(&entries.places);
    map_release(&entries.frames);
    buf_release(&text);
}
