/*
 * Fuzzes src/report: from any recording, however damaged, a report is made that
 * can be written, read again and shown, and another process of the same run is in
 * it with all it has.
 *
 * The seed has all sections, tasks and memory included.  Fields of every kind of record are
 * set to numbers at the edges, to what is next to theirs, or to those of another
 * record; each kind must be met in recordings that were not refused.
 */
#include "arena_make.h"
#include "base/file.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "fuzz.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "report/report.h"
#include "view/terminal.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "/nowhere/program/main.py"

/* Pids that no kernel gives: nobody runs by them. */
enum { DAMAGED_PID = 5000000, HEALTHY_PID, MS = 1000000, MIB = 1 << 20, EVENTS = 120 };

static char directory[] = "/tmp/scalene-fuzz-XXXXXX";
static char *damaged_path, *healthy_path;
static bool was_accepted; /* the last input: its process has a row */

static void make_seed(struct arena_make *make, int pid)
{
    arena_make_init(make, pid);
    make->header.flags = WIRE_PROCESS_MEMORY | WIRE_PROCESS_FIRST;
    make->header.on_ns = 1000 * (uint64_t)MS;
    make->header.caller_slack = 8;
    make->header.beat_mono_ns = make->header.start_mono_ns + 1000 * (uint64_t)MS;
    make->header.beat_cpu_ns = 1000 * (uint64_t)MS;
    make->header.command_bytes = 15;
    memcpy(make->header.command, "/bin/python\0-x", 15);
    uint32_t code = arena_make_code(make, PROGRAM, "<module>", 1, 20);
    uint32_t old = arena_make_old_code(make, PROGRAM, "f.<locals>.<lambda>", 5, 20);
    uint32_t outer = arena_make_frame(make, 0, code, 5);
    uint32_t inner = arena_make_frame(make, outer, code, 6);
    uint32_t leaf = arena_make_frame(make, inner, old, 7);
    ((struct wire_node *)(void *)make->sections[WIRE_NODE].data)[leaf].flags = WIRE_NODE_DIRECT;
    uint32_t thread = arena_make_thread(make, 4711, 100, "python", true);
    arena_make_cell(make, inner, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    arena_make_cell(make, leaf, WIRE_CPU_CALL, 10, 100 * MS, 0);
    arena_make_cell(make, outer, WIRE_WAIT_SLEEP, 10, 100 * MS, 50 * MS);
    arena_make_log(make, 5 * MS, inner, (uint16_t)thread, WIRE_CPU_PYTHON, 10, 100000);
    arena_make_log(make, 105 * MS, leaf, (uint16_t)thread, WIRE_CPU_CALL, 10, 100000);
    arena_make_await(make, inner, WIRE_AWAIT_WAITS, 10, 400000);
    arena_make_await(make, outer, WIRE_AWAIT_TASKS, 10, 100000);
    arena_make_await(make, leaf, WIRE_AWAIT_READY, 10, 50000);
    arena_make_await(make, leaf, WIRE_AWAIT_BLOCKS, 2, 90000);
    uint32_t place = arena_make_place(make, code, 6, 200000, 4, 0);
    arena_make_place(make, code, 5, 100000, 1, 50000);
    arena_make_name(make, place, "worker", 0);
    arena_make_name(make, place, NULL, 7);
    arena_make_crowd(make, 100 * MS, 3);
    arena_make_crowd(make, 200 * MS, 5);
    make->header.async = (struct wire_async){.state = WIRE_ASYNC_OK,
                                             .loops = 1,
                                             .idle_us = 500000,
                                             .busy_us = 300000,
                                             .blocked_us = 90000,
                                             .longest_us = 50000,
                                             .longest_node = leaf,
                                             .tasks_peak = 5,
                                             .looks = 30};
    uint32_t library = arena_make_module(make, "/usr/lib/libsqlite3.so.0");
    uint32_t sites[] = {
        arena_make_site(make, inner, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB),
        arena_make_site(make, outer, WIRE_SITE_NATIVE, library, 10 * MIB, 4 * MIB),
        arena_make_site(make, inner, WIRE_SITE_COPY, 0, 10 * MIB, 0),
        arena_make_site(make, outer, WIRE_SITE_MAPPED, library, 10 * MIB, 4 * MIB),
    };
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t site = sites[i % 2];
        arena_make_foot(make, (uint64_t)i * 8 * MS, site, 1 + i % 3, i * 256, i * 128);
        arena_make_block(make, site, 128 << 10, i * 8);
    }
    struct wire_block *blocks = (struct wire_block *)(void *)make->sections[WIRE_BLOCK].data;
    for (uint32_t i = 2; i <= EVENTS; i += 3)
        blocks[i].flags = WIRE_BLOCK_EXACT | WIRE_BLOCK_GREW;
    struct wire_memory *memory = &make->header.memory;
    memory->peak_bytes = 28 * MIB;
    memory->peak_site = sites[0];
    memory->peak_epoch = 3;
    memory->interval_bytes = 128 << 10;
    memory->foot_stride = 1;
    memory->look.rss_bytes = 60 * MIB;
    memory->look.at_cpu_ms = 1000;
}

static void remove_directory(void)
{
    unlink(damaged_path);
    unlink(healthy_path);
    rmdir(directory);
    free(damaged_path);
    free(healthy_path);
}

static void make_directory(void)
{
    struct arena_make make;
    CHECK(mkdtemp(directory));
    damaged_path = mem_format("%s/%d-0.arena", directory, DAMAGED_PID);
    healthy_path = mem_format("%s/%d-0.arena", directory, HEALTHY_PID);
    atexit(remove_directory);
    make_seed(&make, HEALTHY_PID);
    arena_make_write(&make, healthy_path);
    arena_make_release(&make);
}

static void show(const struct profile *profile)
{
    const struct terminal_options options = {.columns = 160, .cpu_percent_threshold = 1};
    struct buf out = {0};
    terminal_render(profile, &options, &out);
    CHECK(out.len);
    buf_release(&out);
}

static const struct profile_process *row_of(const struct profile *profile, int pid)
{
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].pid == pid)
            return &profile->processes[i];
    return NULL;
}

static void check_healthy(const struct profile *profile)
{
    const struct profile_process *row = row_of(profile, HEALTHY_PID);
    CHECK(row && fabs(row->sampled_cpu_sec - 0.2) < 1e-9 && fabs(row->elapsed_sec - 1) < 1e-9);
    for (uint32_t i = 0; i < profile->file_count; i++)
        if (!strcmp(profile_str(profile, profile->files[i].name), PROGRAM)) {
            const struct profile_line *line = profile_line_at(&profile->files[i], 6);
            CHECK(line && line->time.python_sec >= 0.1 - 1e-9);
            CHECK(line->memory.allocated_mb >= 30 - 1e-9);
            return;
        }
    CHECK(!"the program's file is there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct report_config config = {
        .session_directory = directory,
        .program = PROGRAM,
        .program_path = "",
        .profile_only = "",
        .profile_exclude = "",
        .cpu_percent_threshold = 1,
        .stacks = true,
        .memory = true,
        .leaks = true,
    };
    struct profile made, again;
    struct buf json = {0};
    struct err err = {""};
    if (!damaged_path)
        make_directory();
    CHECK(!file_write_atomic(damaged_path, data, size, &err));
    profile_init(&made);
    CHECK(!harvest_build(&made, &config, &err));
    was_accepted = made.process_count == 2;
    check_healthy(&made);
    json_write_profile(&made, &json);
    fuzz_check_numbers(json.data, json.len);
    show(&made);
    profile_release(&made);
    if (json_read_profile(&again, json.data, json.len, &err)) {
        fprintf(stderr, "cannot be read again: %s\n", err.text);
        abort();
    }
    check_healthy(&again);
    show(&again);
    profile_release(&again);
    buf_release(&json);
    return 0;
}

#ifndef LIBFUZZER

enum { INPUTS = 1000, DAMAGES_MAX = 3 };

/* Beside the sections: the header, its parts about memory and event loops, and the places of the
 * sections. */
enum { KIND_HEADER = WIRE_SECTIONS, KIND_MEMORY, KIND_ASYNC, KIND_PLACE, KINDS };

struct field {
    int kind;
    size_t at, width; /* in the record */
};

#define FIELD(kind, type, member)                                                                  \
    {                                                                                              \
        kind, offsetof(struct type, member), sizeof((struct type *)0)->member                      \
    }

static const struct field fields[] = {
    {WIRE_BLOB, 0, 1},
    FIELD(WIRE_CODE, wire_code, file.offset),
    FIELD(WIRE_CODE, wire_code, file.bytes),
    FIELD(WIRE_CODE, wire_code, name.offset),
    FIELD(WIRE_CODE, wire_code, name.bytes),
    FIELD(WIRE_CODE, wire_code, line_table.offset),
    FIELD(WIRE_CODE, wire_code, line_table.bytes),
    FIELD(WIRE_CODE, wire_code, first_line),
    FIELD(WIRE_CODE, wire_code, file_width),
    FIELD(WIRE_CODE, wire_code, name_width),
    FIELD(WIRE_CODE, wire_code, line_format),
    FIELD(WIRE_NODE, wire_node, parent),
    FIELD(WIRE_NODE, wire_node, ref),
    FIELD(WIRE_NODE, wire_node, at),
    FIELD(WIRE_NODE, wire_node, frame),
    FIELD(WIRE_NODE, wire_node, flags),
    FIELD(WIRE_CELL, wire_cell, kind),
    FIELD(WIRE_CELL, wire_cell, node),
    FIELD(WIRE_CELL, wire_cell, count),
    FIELD(WIRE_CELL, wire_cell, ns),
    FIELD(WIRE_CELL, wire_cell, charged_ns),
    FIELD(WIRE_CELL, wire_cell, square_us2),
    FIELD(WIRE_LOG, wire_log, at_ns),
    FIELD(WIRE_LOG, wire_log, node),
    FIELD(WIRE_LOG, wire_log, thread),
    FIELD(WIRE_LOG, wire_log, kind),
    FIELD(WIRE_LOG, wire_log, count),
    FIELD(WIRE_LOG, wire_log, us),
    FIELD(WIRE_THREAD, wire_thread, ident),
    FIELD(WIRE_THREAD, wire_thread, tid),
    FIELD(WIRE_THREAD, wire_thread, python),
    FIELD(WIRE_THREAD, wire_thread, cpu_ns),
    FIELD(WIRE_THREAD, wire_thread, waited_ns),
    {WIRE_THREAD, offsetof(struct wire_thread, name), 8},
    {WIRE_THREAD, offsetof(struct wire_thread, name) + 8, 8},
    FIELD(WIRE_AWAIT, wire_await, kind),
    FIELD(WIRE_AWAIT, wire_await, node),
    FIELD(WIRE_AWAIT, wire_await, count),
    FIELD(WIRE_AWAIT, wire_await, us),
    FIELD(WIRE_AWAIT, wire_await, busy_us),
    FIELD(WIRE_AWAIT, wire_await, square_us2),
    FIELD(WIRE_PLACE, wire_place, code),
    FIELD(WIRE_PLACE, wire_place, at),
    FIELD(WIRE_PLACE, wire_place, present_us),
    FIELD(WIRE_PLACE, wire_place, longest_us),
    FIELD(WIRE_PLACE, wire_place, peak),
    FIELD(WIRE_PLACE, wire_place, names),
    FIELD(WIRE_NAME, wire_name, place),
    FIELD(WIRE_NAME, wire_name, text.offset),
    FIELD(WIRE_NAME, wire_name, text.bytes),
    FIELD(WIRE_NAME, wire_name, number),
    FIELD(WIRE_NAME, wire_name, width),
    FIELD(WIRE_CROWD, wire_crowd, at_ns),
    FIELD(WIRE_CROWD, wire_crowd, tasks),
    FIELD(WIRE_CROWD, wire_crowd, ready),
    FIELD(WIRE_CROWD, wire_crowd, published),
    FIELD(WIRE_MODULE, wire_module, start),
    FIELD(WIRE_MODULE, wire_module, end),
    FIELD(WIRE_MODULE, wire_module, path.offset),
    FIELD(WIRE_MODULE, wire_module, path.bytes),
    FIELD(WIRE_SITE, wire_site, kind),
    FIELD(WIRE_SITE, wire_site, node),
    FIELD(WIRE_SITE, wire_site, module),
    FIELD(WIRE_SITE, wire_site, peak_epoch),
    FIELD(WIRE_SITE, wire_site, allocated_bytes),
    FIELD(WIRE_SITE, wire_site, live_bytes),
    FIELD(WIRE_SITE, wire_site, at_peak_bytes),
    FIELD(WIRE_SITE, wire_site, most_bytes),
    FIELD(WIRE_SITE, wire_site, count),
    FIELD(WIRE_SITE, wire_site, samples),
    FIELD(WIRE_BLOCK, wire_block, site),
    FIELD(WIRE_BLOCK, wire_block, next),
    FIELD(WIRE_BLOCK, wire_block, bytes),
    FIELD(WIRE_BLOCK, wire_block, from),
    {WIRE_BLOCK, 24, 8}, /* at_cpu_ms and flags are bits */
    FIELD(WIRE_FOOT, wire_foot, at_ns),
    FIELD(WIRE_FOOT, wire_foot, at_cpu_ms),
    FIELD(WIRE_FOOT, wire_foot, live_kib),
    FIELD(WIRE_FOOT, wire_foot, site_live_kib),
    FIELD(WIRE_FOOT, wire_foot, site),
    FIELD(WIRE_FOOT, wire_foot, published),
    FIELD(KIND_HEADER, wire_header, magic),
    FIELD(KIND_HEADER, wire_header, version),
    FIELD(KIND_HEADER, wire_header, header_bytes),
    FIELD(KIND_HEADER, wire_header, pid),
    FIELD(KIND_HEADER, wire_header, ppid),
    FIELD(KIND_HEADER, wire_header, python_hex),
    FIELD(KIND_HEADER, wire_header, stacks_state),
    FIELD(KIND_HEADER, wire_header, flags),
    FIELD(KIND_HEADER, wire_header, caller_slack),
    FIELD(KIND_HEADER, wire_header, ended),
    FIELD(KIND_HEADER, wire_header, start_real_ns),
    FIELD(KIND_HEADER, wire_header, start_mono_ns),
    FIELD(KIND_HEADER, wire_header, start_cpu_ns),
    FIELD(KIND_HEADER, wire_header, main_ident),
    FIELD(KIND_HEADER, wire_header, beat_mono_ns),
    FIELD(KIND_HEADER, wire_header, beat_cpu_ns),
    FIELD(KIND_HEADER, wire_header, on_ns),
    FIELD(KIND_HEADER, wire_header, off_cpu_ns),
    FIELD(KIND_HEADER, wire_header, handler_count),
    FIELD(KIND_HEADER, wire_header, handler_ns),
    FIELD(KIND_HEADER, wire_header, sampler_cpu_ns),
    FIELD(KIND_HEADER, wire_header, log_stride),
    FIELD(KIND_HEADER, wire_header, peak_rss_bytes),
    FIELD(KIND_HEADER, wire_header, has_status),
    FIELD(KIND_HEADER, wire_header, exit_status),
    FIELD(KIND_HEADER, wire_header, lost[3]),
    FIELD(KIND_HEADER, wire_header, command_bytes),
    FIELD(KIND_HEADER, wire_header, command[0]),
    FIELD(KIND_MEMORY, wire_memory, samples),
    FIELD(KIND_MEMORY, wire_memory, allocated_bytes),
    FIELD(KIND_MEMORY, wire_memory, live_bytes),
    FIELD(KIND_MEMORY, wire_memory, peak_bytes),
    FIELD(KIND_MEMORY, wire_memory, peak_python_bytes),
    FIELD(KIND_MEMORY, wire_memory, peak_at_ns),
    FIELD(KIND_MEMORY, wire_memory, peak_epoch),
    FIELD(KIND_MEMORY, wire_memory, peak_site),
    FIELD(KIND_MEMORY, wire_memory, interval_bytes),
    FIELD(KIND_MEMORY, wire_memory, copied_bytes),
    FIELD(KIND_MEMORY, wire_memory, start_rss_bytes),
    FIELD(KIND_MEMORY, wire_memory, start_file_bytes),
    FIELD(KIND_MEMORY, wire_memory, look.at_cpu_ms),
    FIELD(KIND_MEMORY, wire_memory, look.rss_bytes),
    FIELD(KIND_MEMORY, wire_memory, look.file_bytes),
    FIELD(KIND_MEMORY, wire_memory, look.live_bytes),
    FIELD(KIND_MEMORY, wire_memory, look.live_python_bytes),
    FIELD(KIND_MEMORY, wire_memory, look.live_mapped_bytes),
    FIELD(KIND_MEMORY, wire_memory, foot_stride),
    FIELD(KIND_ASYNC, wire_async, state),
    FIELD(KIND_ASYNC, wire_async, loops),
    FIELD(KIND_ASYNC, wire_async, idle_us),
    FIELD(KIND_ASYNC, wire_async, busy_us),
    FIELD(KIND_ASYNC, wire_async, blocked_us),
    FIELD(KIND_ASYNC, wire_async, longest_us),
    FIELD(KIND_ASYNC, wire_async, longest_node),
    FIELD(KIND_ASYNC, wire_async, tasks_peak),
    FIELD(KIND_ASYNC, wire_async, looks),
    FIELD(KIND_ASYNC, wire_async, look_ns),
    FIELD(KIND_PLACE, wire_section, offset),
    FIELD(KIND_PLACE, wire_section, record_bytes),
    FIELD(KIND_PLACE, wire_section, capacity),
    FIELD(KIND_PLACE, wire_section, committed),
    FIELD(KIND_PLACE, wire_section, used),
    FIELD(KIND_PLACE, wire_section, dropped),
};

static const struct wire_section *seed_sections; /* of the seed, whatever becomes of the input's */

/* Where in the file one of the kind's records begins. */
static size_t record_place(int kind)
{
    if (kind == KIND_HEADER)
        return 0;
    if (kind == KIND_MEMORY)
        return offsetof(struct wire_header, memory);
    if (kind == KIND_ASYNC)
        return offsetof(struct wire_header, async);
    if (kind == KIND_PLACE)
        return offsetof(struct wire_header, sections) +
               fuzz_below(WIRE_SECTIONS) * sizeof(struct wire_section);
    const struct wire_section *section = &seed_sections[kind];
    return section->offset + (size_t)fuzz_below(section->used) * section->record_bytes;
}

static uint64_t number_at(const struct buf *image, size_t at, size_t width)
{
    uint64_t value = 0;
    memcpy(&value, image->data + at, width); /* the first bytes are the low ones */
    return value;
}

static uint64_t new_number(const struct buf *image, const struct field *field, size_t at)
{
    switch (fuzz_below(4)) {
    case 0: /* next to what it was */
        return number_at(image, at, field->width) + fuzz_below(5) - 2;
    case 1: /* one bit is wrong */
        return number_at(image, at, field->width) ^ UINT64_C(1) << fuzz_below(8 * field->width);
    case 2: /* what another record has */
        return number_at(image, record_place(field->kind) + field->at, field->width);
    default:
        return fuzz_edge();
    }
}

/* Each kind as often as any other, however many fields it has. */
static const struct field *pick_field(void)
{
    int kind = (int)fuzz_below(KINDS);
    const struct field *field;
    do
        field = &fields[fuzz_below(COUNT_OF(fields))];
    while (field->kind != kind);
    return field;
}

static int damage(struct buf *image)
{
    const struct field *field = pick_field();
    size_t at = record_place(field->kind) + field->at;
    uint64_t value = new_number(image, field, at);
    memcpy(image->data + at, &value, field->width);
    return field->kind;
}

static void make_image(struct buf *image)
{
    struct arena_make make;
    make_seed(&make, DAMAGED_PID);
    arena_make_image(&make, image);
    arena_make_release(&make);
}

int main(int argc, char **argv)
{
    long met[KINDS] = {0};
    struct buf seed = {0};
    make_image(&seed);
    seed_sections = ((const struct wire_header *)(const void *)seed.data)->sections;
    LLVMFuzzerTestOneInput((const uint8_t *)seed.data, seed.len);
    CHECK(was_accepted);
    while (fuzz_goes_on(argc, argv, INPUTS)) {
        struct buf image = {0};
        bool is_damaged[KINDS] = {false};
        buf_add(&image, seed.data, seed.len);
        for (size_t n = 1 + fuzz_below(DAMAGES_MAX); n; n--)
            is_damaged[damage(&image)] = true;
        size_t size = fuzz_below(20) ? image.len : fuzz_below(image.len);
        LLVMFuzzerTestOneInput((const uint8_t *)image.data, size);
        for (int kind = 0; kind < KINDS; kind++)
            met[kind] += was_accepted && is_damaged[kind];
        buf_release(&image);
    }
    for (int kind = 0; kind < KINDS; kind++)
        CHECK(met[kind] > 0);
    buf_release(&seed);
    return 0;
}

#endif
