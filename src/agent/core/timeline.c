#include "agent/core/timeline.h"

#include "agent/core/agent.h"

enum {
    GAP_INTERVALS = 4, /* a longer silence ends an entry */
    ENTRY_US_MAX =
        1 << 30, /* so does a length of 18 minutes: it stays exact, and far from wrapping */
};

/*
 * Compaction moves entries, so no writer may be in the middle of one: writers count
 * themselves in and out, and turn back while it is closed.
 */
static _Atomic uint32_t writers, is_closed;
static _Atomic uint32_t epoch; /* another one: entries have moved */

static struct wire_log *entry_at(uint32_t id)
{
    return arena_record(&agent.arena, WIRE_LOG, id);
}

static bool continues(const struct timeline_cursor *cursor, uint32_t node, enum wire_kind kind,
                      uint64_t at_ns, uint64_t ns)
{
    if (!cursor->id || cursor->epoch != atomic_load(&epoch))
        return false;
    const struct wire_log *last = entry_at(cursor->id);
    uint64_t us = atomic_load_explicit(&last->us, memory_order_relaxed);
    uint64_t gap_ns = GAP_INTERVALS * agent.control->cpu_interval_ns + ns;
    return last->node == node && last->kind == kind && us + ns / 1000 < ENTRY_US_MAX &&
           at_ns - last->at_ns < us * 1000 + gap_ns;
}

static void begin_entry(struct timeline_cursor *cursor, const struct wire_log *first)
{
    cursor->epoch = atomic_load(&epoch);
    cursor->id = arena_append(&agent.arena, WIRE_LOG, 1);
    if (!cursor->id) {
        arena_lost(&agent.arena, WIRE_LOST_LOG_FULL);
        return;
    }
    struct wire_log *entry = entry_at(cursor->id);
    entry->at_ns = first->at_ns;
    entry->node = first->node;
    entry->thread = first->thread;
    atomic_store_explicit(&entry->count, first->count, memory_order_relaxed);
    atomic_store_explicit(&entry->us, first->us, memory_order_relaxed);
    atomic_store_explicit(&entry->kind, first->kind, memory_order_release);
}

void timeline_add(struct timeline_cursor *cursor, uint16_t thread, uint32_t node,
                  enum wire_kind kind, uint64_t at_mono_ns, uint64_t ns)
{
    struct wire_header *header = agent.arena.header;
    uint32_t stride = (uint32_t)atomic_load_explicit(&header->log_stride, memory_order_relaxed);
    if (cursor->skip++ % stride)
        return;
    uint64_t at_ns = at_mono_ns - header->start_mono_ns;
    atomic_fetch_add(&writers, 1);
    if (atomic_load(&is_closed)) {
        /* The sample is in the totals; here it is one of many. */
    } else if (continues(cursor, node, kind, at_ns, ns)) {
        struct wire_log *last = entry_at(cursor->id);
        atomic_fetch_add_explicit(&last->count, stride, memory_order_relaxed);
        atomic_fetch_add_explicit(&last->us, (uint32_t)(ns / 1000), memory_order_relaxed);
    } else {
        uint64_t us = ns / 1000;
        begin_entry(cursor, &(struct wire_log){
                                .at_ns = at_ns,
                                .node = node,
                                .thread = thread,
                                .kind = (uint8_t)kind,
                                .count = stride,
                                .us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX,
                            });
    }
    atomic_fetch_sub(&writers, 1);
}

static void keep_every_other(struct wire_section *section)
{
    uint32_t used = atomic_load(&section->used), kept = 1;
    for (uint32_t i = 1; i < used; i += 2)
        *entry_at(kept++) = *entry_at(i);
    for (uint32_t i = kept; i < used; i++)
        atomic_store(&entry_at(i)->kind, 0);
    atomic_store(&section->used, kept);
}

void timeline_compact(void)
{
    struct wire_header *header = agent.arena.header;
    struct wire_section *section = &header->sections[WIRE_LOG];
    if (atomic_load(&section->used) < section->capacity - section->capacity / 16)
        return;
    atomic_store(&is_closed, 1);
    if (!atomic_load(&writers)) { /* else somebody is in the middle of it: next pass */
        keep_every_other(section);
        atomic_fetch_add(&header->log_stride, atomic_load(&header->log_stride));
        atomic_fetch_add(&epoch, 1);
    }
    atomic_store(&is_closed, 0);
}

void timeline_in_child(bool is_recorded)
{
    (void)is_recorded;
    atomic_store(&writers, 0);
    atomic_store(&is_closed, 0);
}
