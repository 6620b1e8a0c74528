/*
 * Fuzzes src/report: from any recording, however damaged, a report is made that
 * can be written, read again and shown.  The seed has all sections, memory
 * included; what is damaged most are whole numbers, by values at the edges.
 *
 * With -DLIBFUZZER, LLVMFuzzerTestOneInput is libFuzzer's; without it, main()
 * damages the seed with a fixed random sequence, so that the same inputs run as
 * an ordinary test (under sanitizers, where the build has them).  Its argument is
 * another number of inputs.
 */
#include "arena_make.h"
#include "base/mem.h"
#include "collect/harvest.h"
#include "profile/json_read.h"
#include "profile/json_write.h"
#include "report/report.h"
#include "view/terminal.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROGRAM "/nowhere/program/main.py"

/* assert() that stays in release builds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static char directory[] = "/tmp/scalene-fuzz-XXXXXX";
static char path[sizeof directory + 16];

static void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

static void write_input(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        CHECK(mkdtemp(directory));
        snprintf(path, sizeof path, "%s/100-0.arena", directory);
        atexit(remove_directory);
    }
    FILE *file = fopen(path, "wb");
    CHECK(file);
    CHECK(fwrite(data, 1, size, file) == size);
    CHECK(!fclose(file));
}

static void show(const struct profile *profile)
{
    const struct terminal_options options = {.columns = 160, .cpu_percent_threshold = 1};
    struct buf out = {0};
    terminal_render(profile, &options, &out);
    CHECK(out.len);
    buf_release(&out);
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
    write_input(data, size);
    profile_init(&made);
    CHECK(!harvest_build(&made, &config, &err));
    json_write_profile(&made, &json);
    show(&made);
    profile_release(&made);
    if (json_read_profile(&again, json.data, json.len, &err)) {
        fprintf(stderr, "cannot be read again: %s\n", err.text);
        abort();
    }
    show(&again);
    profile_release(&again);
    buf_release(&json);
    return 0;
}

#ifndef LIBFUZZER

enum { ITERATIONS = 2000, DAMAGES_MAX = 6, MS = 1000000, MIB = 1 << 20, EVENTS = 120 };

static uint64_t random_state = 1;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)((random_state >> 16) % limit);
}

static void make_seed(struct buf *out)
{
    struct arena_make make;
    arena_make_init(&make, 100);
    make.header.flags = WIRE_PROCESS_MEMORY | WIRE_PROCESS_FIRST;
    make.header.on_ns = 1000 * (uint64_t)MS;
    make.header.beat_mono_ns = make.header.start_mono_ns + 1000 * (uint64_t)MS;
    uint32_t code = arena_make_code(&make, PROGRAM, "<module>", 1, 20);
    uint32_t outer = arena_make_frame(&make, 0, code, 5);
    uint32_t inner = arena_make_frame(&make, outer, code, 6);
    uint32_t thread = arena_make_thread(&make, 4711, 100, "python", true);
    arena_make_cell(&make, inner, WIRE_CPU_PYTHON, 10, 100 * MS, 0);
    arena_make_cell(&make, outer, WIRE_WAIT_SLEEP, 10, 100 * MS, 50 * MS);
    arena_make_log(&make, 5 * MS, inner, (uint16_t)thread, WIRE_CPU_PYTHON, 10, 100000);
    uint32_t library = arena_make_module(&make, "/usr/lib/libsqlite3.so.0");
    uint32_t sites[] = {
        arena_make_site(&make, inner, WIRE_SITE_PYTHON, 0, 30 * MIB, 10 * MIB),
        arena_make_site(&make, outer, WIRE_SITE_NATIVE, library, 10 * MIB, 4 * MIB),
        arena_make_site(&make, inner, WIRE_SITE_COPY, 0, 10 * MIB, 0),
        arena_make_site(&make, outer, WIRE_SITE_MAPPED, library, 10 * MIB, 4 * MIB),
    };
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t site = sites[i % 2];
        arena_make_foot(&make, (uint64_t)i * 8 * MS, site, 1 + i % 3, i * 256, i * 128);
        arena_make_block(&make, site, 128 << 10, i * 8);
    }
    struct wire_block *blocks = (struct wire_block *)(void *)make.sections[WIRE_BLOCK].data;
    for (uint32_t i = 2; i <= EVENTS; i += 3)
        blocks[i].flags = WIRE_BLOCK_EXACT | WIRE_BLOCK_GREW;
    struct wire_memory *memory = &make.header.memory;
    memory->peak_bytes = 28 * MIB;
    memory->peak_site = sites[0];
    memory->peak_epoch = 3;
    memory->interval_bytes = 128 << 10;
    memory->foot_stride = 1;
    memory->look.rss_bytes = 60 * MIB;
    memory->look.at_cpu_ms = 1000;
    arena_make_image(&make, out);
    arena_make_release(&make);
}

static uint64_t edge(void)
{
    static const uint64_t edges[] = {0,          1,
                                     2,          0x7fffffff,
                                     0x80000000, 0xffffffff,
                                     INT64_MAX,  (uint64_t)INT64_MAX + 1,
                                     UINT64_MAX, 1000000000000};
    uint64_t value = edges[random_below(sizeof edges / sizeof *edges)];
    return random_below(3) ? value : random_below(300);
}

/* A field of the header, or of any section, becomes something else. */
static void damage(struct buf *image, size_t size)
{
    size_t width = random_below(2) ? 4 : 8;
    size_t at = random_below(4) ? random_below(size) : random_below(sizeof(struct wire_header));
    at -= at % width;
    if (at + width > size)
        return;
    uint64_t value = edge();
    memcpy(image->data + at, &value, width); /* the first four bytes of eight are the low ones */
}

int main(int argc, char **argv)
{
    long iterations = argc > 1 ? strtol(argv[1], NULL, 10) : ITERATIONS;
    struct buf seed = {0};
    make_seed(&seed);
    LLVMFuzzerTestOneInput((const uint8_t *)seed.data, seed.len);
    for (long i = 0; i < iterations; i++) {
        struct buf image = {0};
        buf_add(&image, seed.data, seed.len);
        size_t size = random_below(20) ? seed.len : random_below(seed.len);
        for (size_t n = 1 + random_below(DAMAGES_MAX); n; n--)
            damage(&image, size);
        LLVMFuzzerTestOneInput((const uint8_t *)image.data, size);
        buf_release(&image);
    }
    buf_release(&seed);
    return 0;
}

#endif
