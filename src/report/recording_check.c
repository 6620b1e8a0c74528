/* Checks of a recording as it is opened; see recording_check.h. */
#include "report/recording_check.h"

#include "base/mem.h"
#include "wire/limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header ---- */

#define NUMBER(member, least, most)                                                                \
    {                                                                                              \
#member, offsetof(struct wire_header, member), least, most                                 \
    }

/* All are 64 bits wide.  `off_cpu_ns` is not here: at a process's end two threads may add to it,
 * and it may fall below 0. */
static const struct header_number {
    const char *name;
    size_t at;
    uint64_t least, most;
} header_numbers[] = {
    NUMBER(start_mono_ns, 1, WIRE_MOMENT_NS_MAX),
    NUMBER(start_cpu_ns, 0, WIRE_MOMENT_NS_MAX),
    NUMBER(beat_mono_ns, 1, WIRE_MOMENT_NS_MAX),
    NUMBER(handler_count, 0, WIRE_COUNT_MAX),
    NUMBER(log_stride, 1, WIRE_STRIDE_MAX),
    NUMBER(peak_rss_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.samples, 0, WIRE_COUNT_MAX),
    NUMBER(memory.allocated_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.live_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.live_python_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.live_mapped_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.peak_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.peak_python_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.peak_at_ns, 0, WIRE_MOMENT_NS_MAX),
    NUMBER(memory.interval_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.copied_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.start_rss_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.start_file_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.look.at_cpu_ms, 0, WIRE_CPU_MS_MAX),
    NUMBER(memory.look.rss_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.look.file_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.look.live_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.look.live_python_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.look.live_mapped_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.reserved_bytes, 0, WIRE_BYTES_MAX),
    NUMBER(memory.foot_stride, 1, WIRE_STRIDE_MAX),
    NUMBER(memory.calls, 0, WIRE_COUNT_MAX),
    NUMBER(async.passes, 0, WIRE_COUNT_MAX),
    NUMBER(async.looks, 0, WIRE_COUNT_MAX),
    NUMBER(async.rejected, 0, WIRE_COUNT_MAX),
};

static int check_numbers(const struct wire_header *header, struct err *err)
{
    for (size_t i = 0; i < sizeof header_numbers / sizeof *header_numbers; i++) {
        const struct header_number *number = &header_numbers[i];
        uint64_t value;
        memcpy(&value, (const char *)header + number->at, sizeof value);
        if (value < number->least || value > number->most)
            return err_set(err, "its %s is %" PRIu64, number->name, value);
    }
    for (int k = 0; k < WIRE_LOSSES; k++)
        if (atomic_load(&header->lost[k]) > WIRE_COUNT_MAX)
            return err_set(err, "its losses make no sense");
    if (atomic_load(&header->beat_mono_ns) < header->start_mono_ns ||
        atomic_load(&header->beat_cpu_ns) < header->start_cpu_ns)
        return err_set(err, "its clocks run backwards");
    if (header->caller_slack > WIRE_CALLER_SLACK_MAX)
        return err_set(err, "its caller_slack is %" PRIu32, header->caller_slack);
    if (header->command_bytes > WIRE_COMMAND_BYTES)
        return err_set(err, "its command_bytes is %" PRIu32, header->command_bytes);
    if (atomic_load(&header->async.tasks_peak) > WIRE_TASKS_AT_ONCE_MAX)
        return err_set(err, "its tasks_peak is %" PRIu32, atomic_load(&header->async.tasks_peak));
    return header->pid > 0 ? 0 : err_set(err, "its pid is %" PRId32, header->pid);
}

static uint64_t end_of(const struct wire_section *section)
{
    return section->offset + (uint64_t)section->capacity * section->record_bytes;
}

/* Sections of what is not followed have no room at all. */
static bool is_section_good(const struct wire_section *section, const struct wire_limit *limit)
{
    uint32_t capacity = section->capacity;
    if (atomic_load(&section->committed) > capacity || atomic_load(&section->used) > capacity ||
        atomic_load(&section->dropped) > WIRE_COUNT_MAX)
        return false;
    return !capacity ||
           (section->record_bytes == limit->record_bytes && capacity <= limit->records_max &&
            section->offset >= WIRE_HEADER_BYTES && section->offset <= WIRE_SECTION_END_MAX &&
            end_of(section) <= WIRE_SECTION_END_MAX);
}

static int check_sections(const struct wire_header *header, struct err *err)
{
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        const struct wire_section *section = &header->sections[i];
        if (!is_section_good(section, &wire_limits[i]))
            return err_set(err, "section %d makes no sense", i);
        for (int k = 0; k < i; k++) {
            const struct wire_section *other = &header->sections[k];
            if (section->capacity && other->capacity && section->offset < end_of(other) &&
                other->offset < end_of(section))
                return err_set(err, "sections %d and %d overlap", k, i);
        }
    }
    return 0;
}

int recording_check_header(const struct wire_header *header, struct err *err)
{
    return check_numbers(header, err) || check_sections(header, err) ? -1 : 0;
}

/* ---- records ---- */

struct check {
    struct recording *recording;
    uint64_t moment_max_ns; /* since the start: the last moment that can be told of */
    double time_max_ns;     /* all threads together, */
    double task_max_ns;     /* and all tasks */
};

static void *record_at(const struct recording *recording, enum wire_section_id section, uint32_t id)
{
    return (char *)recording->sections[section].records +
           (size_t)id * wire_limits[section].record_bytes;
}

static void settle_reference(const struct recording *recording, enum wire_section_id section,
                             uint32_t *id)
{
    if (*id >= recording_count(recording, section))
        *id = 0;
}

static bool is_text(const struct recording *recording, struct wire_span span, uint32_t bytes_max)
{
    uint32_t end = recording_count(recording, WIRE_BLOB);
    return !span.bytes || (span.bytes <= bytes_max && span.offset && span.offset <= end &&
                           span.bytes <= end - span.offset);
}

static bool is_width(struct wire_span span, uint8_t width)
{
    return !span.bytes || width == 1 || width == 2 || width == 4;
}

static bool is_code_good(const struct check *check, void *record)
{
    const struct wire_code *code = record;
    return is_text(check->recording, code->file, WIRE_FILE_BYTES_MAX) &&
           is_text(check->recording, code->name, WIRE_NAME_BYTES_MAX) &&
           is_text(check->recording, code->line_table, WIRE_LINE_TABLE_BYTES_MAX) &&
           is_width(code->file, code->file_width) && is_width(code->name, code->name_width) &&
           code->line_format <= WIRE_LINES_LOCATION;
}

static bool is_module_good(const struct check *check, void *record)
{
    const struct wire_module *module = record;
    return is_text(check->recording, module->path, WIRE_PATH_BYTES_MAX);
}

static bool is_square_good(const _Atomic double *square)
{
    double value = atomic_load(square);
    return value >= 0 && value <= WIRE_SQUARE_MAX;
}

static bool is_cell_good(const struct check *check, void *record)
{
    struct wire_cell *cell = record;
    settle_reference(check->recording, WIRE_NODE, &cell->node);
    return atomic_load(&cell->kind) < WIRE_KINDS && atomic_load(&cell->count) <= WIRE_COUNT_MAX &&
           (double)atomic_load(&cell->ns) <= check->time_max_ns &&
           (double)atomic_load(&cell->charged_ns) <= check->time_max_ns &&
           is_square_good(&cell->square_us2);
}

static bool is_log_good(const struct check *check, void *record)
{
    struct wire_log *run = record;
    settle_reference(check->recording, WIRE_NODE, &run->node);
    if (run->thread >= recording_count(check->recording, WIRE_THREAD))
        run->thread = 0;
    return atomic_load(&run->kind) < WIRE_KINDS && run->at_ns <= check->moment_max_ns;
}

static bool is_thread_good(const struct check *check, void *record)
{
    const struct wire_thread *thread = record;
    return thread->tid >= 0 && atomic_load(&thread->cpu_ns) <= check->moment_max_ns &&
           atomic_load(&thread->waited_ns) <= check->moment_max_ns;
}

static double ns_of(const _Atomic uint64_t *us)
{
    return (double)atomic_load(us) * 1e3;
}

static bool is_await_good(const struct check *check, void *record)
{
    struct wire_await *await = record;
    settle_reference(check->recording, WIRE_NODE, &await->node);
    return atomic_load(&await->kind) < WIRE_AWAIT_KINDS &&
           atomic_load(&await->count) <= WIRE_COUNT_MAX &&
           ns_of(&await->us) <= check->task_max_ns &&
           ns_of(&await->busy_us) <= check->task_max_ns && is_square_good(&await->square_us2);
}

static bool is_place_good(const struct check *check, void *record)
{
    struct wire_place *place = record;
    for (int i = 0; i < WIRE_PARTS_MAX; i++)
        settle_reference(check->recording, WIRE_PLACE, &place->parts[i].place);
    return atomic_load(&place->code) < recording_count(check->recording, WIRE_CODE) &&
           ns_of(&place->present_us) <= check->time_max_ns &&
           ns_of(&place->longest_us) <= (double)check->moment_max_ns &&
           atomic_load(&place->peak) <= WIRE_TASKS_AT_ONCE_MAX;
}

/* Names at several places may share their text. */
static bool is_name_good(const struct check *check, void *record)
{
    const struct wire_name *name = record;
    uint32_t place = atomic_load(&name->place);
    return !place || (recording_place(check->recording, place) &&
                      is_text(check->recording, name->text, WIRE_TASK_NAME_BYTES_MAX) &&
                      is_width(name->text, name->width));
}

static bool is_crowd_good(const struct check *check, void *record)
{
    const struct wire_crowd *crowd = record;
    return crowd->at_ns <= check->moment_max_ns && crowd->tasks <= WIRE_TASKS_AT_ONCE_MAX;
}

static bool is_site_good(const struct check *check, void *record)
{
    struct wire_site *site = record;
    settle_reference(check->recording, WIRE_NODE, &site->node);
    settle_reference(check->recording, WIRE_MODULE, &site->module);
    return atomic_load(&site->kind) < WIRE_SITE_KINDS &&
           atomic_load(&site->allocated_bytes) <= WIRE_BYTES_MAX &&
           atomic_load(&site->live_bytes) <= WIRE_BYTES_MAX &&
           atomic_load(&site->at_peak_bytes) <= WIRE_BYTES_MAX &&
           atomic_load(&site->most_bytes) <= WIRE_BYTES_MAX &&
           atomic_load(&site->count) <= WIRE_COUNT_MAX &&
           atomic_load(&site->samples) <= WIRE_COUNT_MAX &&
           atomic_load(&site->churned_bytes) <= WIRE_BYTES_MAX &&
           atomic_load(&site->churned_count) <= WIRE_COUNT_MAX && is_square_good(&site->square) &&
           is_square_good(&site->churned_square) && is_square_good(&site->live_square) &&
           is_square_good(&site->most_square) &&
           fabs(atomic_load(&site->window_square)) <= WIRE_SQUARE_MAX;
}

static bool is_block_good(const struct check *check, void *record)
{
    const struct wire_block *block = record;
    uint32_t site = atomic_load(&block->site);
    return !site || (recording_site(check->recording, site) && block->bytes <= WIRE_BYTES_MAX);
}

static bool is_foot_good(const struct check *check, void *record)
{
    const struct wire_foot *foot = record;
    uint32_t kind = atomic_load(&foot->published);
    return kind <= WIRE_FOOT_FREED && foot->at_ns <= check->moment_max_ns &&
           foot->at_cpu_ms <= WIRE_CPU_MS_MAX &&
           (!kind || !foot->site || recording_site(check->recording, foot->site));
}

/* What others refer to comes first. */
static const struct {
    enum wire_section_id section;
    bool (*is_good)(const struct check *check, void *record);
} record_checks[] = {
    {WIRE_CODE, is_code_good},   {WIRE_MODULE, is_module_good}, {WIRE_CELL, is_cell_good},
    {WIRE_LOG, is_log_good},     {WIRE_THREAD, is_thread_good}, {WIRE_AWAIT, is_await_good},
    {WIRE_PLACE, is_place_good}, {WIRE_NAME, is_name_good},     {WIRE_CROWD, is_crowd_good},
    {WIRE_SITE, is_site_good},   {WIRE_BLOCK, is_block_good},   {WIRE_FOOT, is_foot_good},
};

/* An emptied record is as good as one that was never published. */
static void empty_bad_records(struct check *check)
{
    struct recording *recording = check->recording;
    for (size_t i = 0; i < sizeof record_checks / sizeof *record_checks; i++) {
        enum wire_section_id section = record_checks[i].section;
        for (uint32_t id = 1; id < recording_count(recording, section); id++) {
            void *record = record_at(recording, section, id);
            if (record_checks[i].is_good(check, record))
                continue;
            memset(record, 0, wire_limits[section].record_bytes);
            recording->bad_count++;
        }
    }
}

/* A frame of unknown kind or code keeps its place in the stacks it is part of. */
static void settle_frame(struct recording *recording, struct wire_node *node)
{
    if (node->frame <= WIRE_FRAME_THREAD &&
        (node->frame != WIRE_FRAME_PYTHON || node->ref < recording_count(recording, WIRE_CODE)))
        return;
    node->frame = WIRE_FRAME_UNKNOWN;
    recording->bad_count++;
}

static int check_nodes(struct recording *recording, struct err *err)
{
    uint32_t count = recording_count(recording, WIRE_NODE);
    uint16_t *depths = mem_zalloc((size_t)count + 1, sizeof *depths);
    int rc = 0;
    for (uint32_t id = 1; !rc && id < count; id++) {
        struct wire_node *node = record_at(recording, WIRE_NODE, id);
        if (node->parent >= id) {
            rc = err_set(err, "a frame is older than its caller");
        } else if (depths[node->parent] == WIRE_DEPTH_MAX) {
            rc = err_set(err, "a stack is too deep");
        } else {
            depths[id] = (uint16_t)(depths[node->parent] + 1);
            settle_frame(recording, node);
        }
    }
    free(depths);
    return rc;
}

/* The agent writes each text for itself; a file in which many share a large one would take up many
 * times its size. */
static int check_texts(const struct recording *recording, struct err *err)
{
    uint64_t bytes = 0;
    for (uint32_t id = 1; id < recording_count(recording, WIRE_CODE); id++) {
        const struct wire_code *code = record_at(recording, WIRE_CODE, id);
        bytes += (uint64_t)code->file.bytes + code->name.bytes + code->line_table.bytes;
    }
    for (uint32_t id = 1; id < recording_count(recording, WIRE_MODULE); id++)
        bytes += ((const struct wire_module *)record_at(recording, WIRE_MODULE, id))->path.bytes;
    return bytes <= recording_count(recording, WIRE_BLOB) ? 0 : err_set(err, "its texts overlap");
}

/*
 * The process's last sign of life is at most a moment old, an hour to be sure;
 * but if the sampler's thread could not start there is none before the end.
 */
static uint64_t moment_max_ns(const struct wire_header *header)
{
    const uint64_t hour_ns = UINT64_C(3600000000000);
    if (atomic_load(&header->lost[WIRE_LOST_SAMPLER]))
        return WIRE_MOMENT_NS_MAX;
    return atomic_load(&header->beat_mono_ns) - header->start_mono_ns + hour_ns;
}

static int check_times(const struct wire_header *header, const struct check *check, struct err *err)
{
    double cpu_ns = (double)(atomic_load(&header->beat_cpu_ns) - header->start_cpu_ns);
    if (atomic_load(&header->on_ns) > check->moment_max_ns || cpu_ns > check->time_max_ns ||
        (double)atomic_load(&header->handler_ns) > check->time_max_ns ||
        (double)atomic_load(&header->sampler_cpu_ns) > check->time_max_ns ||
        (double)atomic_load(&header->memory.sample_ns) > check->time_max_ns ||
        ns_of(&header->async.idle_us) > check->time_max_ns ||
        ns_of(&header->async.busy_us) > check->time_max_ns ||
        ns_of(&header->async.blocked_us) > check->time_max_ns ||
        ns_of(&header->async.longest_us) > (double)check->moment_max_ns ||
        (double)atomic_load(&header->async.look_ns) > check->time_max_ns)
        return err_set(err, "it has more time than the process had");
    return 0;
}

int recording_check_records(struct recording *recording, struct err *err)
{
    struct check check = {.recording = recording,
                          .moment_max_ns = moment_max_ns(&recording->header)};
    check.time_max_ns = (double)check.moment_max_ns * WIRE_THREADS_AT_ONCE_MAX;
    check.task_max_ns = (double)check.moment_max_ns * WIRE_TASKS_AT_ONCE_MAX;
    if (check_times(&recording->header, &check, err) || check_nodes(recording, err))
        return -1;
    empty_bad_records(&check);
    if (atomic_load(&recording->header.async.longest_node) >= recording_count(recording, WIRE_NODE))
        atomic_store(&recording->header.async.longest_node, 0);
    return check_texts(recording, err);
}
