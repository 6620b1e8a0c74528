/* The arena builder of the tests; see arena_make.h.  Failures abort: tests cannot go on. */
#include "arena_make.h"

#include "base/mem.h"
#include "wire/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void arena_make_init(struct arena_make *make, int pid)
{
    memset(make, 0, sizeof *make);
    struct wire_header *header = &make->header;
    header->magic = WIRE_ARENA_MAGIC;
    header->version = WIRE_ARENA_VERSION;
    header->header_bytes = WIRE_HEADER_BYTES;
    header->pid = pid;
    header->ppid = 1;
    header->python_hex = 0x030C01F0;
    header->stacks_state = WIRE_STACKS_OK;
    header->start_real_ns = UINT64_C(4102444800000000000); /* 2100: later than any source file */
    header->start_mono_ns = 1000000000;
    header->main_ident = 0x1000;
    header->log_stride = 1;
    header->memory.foot_stride = 1;
    header->memory.peak_epoch = 1;
    for (int i = 0; i < WIRE_SECTIONS; i++) /* record 0 is never used */
        buf_pad(&make->sections[i], '\0', wire_limits[i].record_bytes);
}

void arena_make_release(struct arena_make *make)
{
    for (int i = 0; i < WIRE_SECTIONS; i++)
        buf_release(&make->sections[i]);
}

static uint32_t add(struct arena_make *make, enum wire_section_id section, const void *record)
{
    buf_add(&make->sections[section], record, wire_limits[section].record_bytes);
    return (uint32_t)(make->sections[section].len / wire_limits[section].record_bytes - 1);
}

struct wire_span arena_make_blob(struct arena_make *make, const void *bytes, size_t length)
{
    struct wire_span span = {(uint32_t)make->sections[WIRE_BLOB].len, (uint32_t)length};
    buf_add(&make->sections[WIRE_BLOB], bytes, length);
    return span;
}

static uint32_t add_code(struct arena_make *make, const char *file, const char *name,
                         int first_line, enum wire_line_format format, const struct buf *table)
{
    struct wire_code code = {
        .file = arena_make_blob(make, file, strlen(file)),
        .name = arena_make_blob(make, name, strlen(name)),
        .line_table = arena_make_blob(make, table->data, table->len),
        .first_line = first_line,
        .file_width = 1,
        .name_width = 1,
        .line_format = (uint8_t)format,
    };
    return add(make, WIRE_CODE, &code);
}

uint32_t arena_make_code(struct arena_make *make, const char *file, const char *name,
                         int first_line, int last_line)
{
    struct buf table = {0};
    for (int line = first_line; line <= last_line; line++) {
        unsigned kind = line == first_line ? 10 : 11; /* as many lines further, two columns */
        buf_char(&table, (char)(0x80 | kind << 3));
        buf_pad(&table, '\0', 2);
    }
    uint32_t id = add_code(make, file, name, first_line, WIRE_LINES_LOCATION, &table);
    buf_release(&table);
    return id;
}

uint32_t arena_make_old_code(struct arena_make *make, const char *file, const char *name,
                             int first_line, int last_line)
{
    struct buf table = {0};
    for (int line = first_line + 1; line <= last_line; line++) {
        buf_char(&table, 2);
        buf_char(&table, 1);
    }
    uint32_t id = add_code(make, file, name, first_line, WIRE_LINES_LNOTAB, &table);
    buf_release(&table);
    return id;
}

uint32_t arena_make_node(struct arena_make *make, uint32_t parent, enum wire_frame frame,
                         uint32_t ref, int32_t at)
{
    struct wire_node node = {.parent = parent, .ref = ref, .at = at, .frame = frame};
    return add(make, WIRE_NODE, &node);
}

/* The instruction of a line. */
static int32_t at_line(const struct arena_make *make, uint32_t code, int line)
{
    struct wire_code record;
    memcpy(&record, make->sections[WIRE_CODE].data + code * sizeof record, sizeof record);
    return 2 * (line - record.first_line);
}

uint32_t arena_make_frame(struct arena_make *make, uint32_t parent, uint32_t code, int line)
{
    return arena_make_node(make, parent, WIRE_FRAME_PYTHON, code, at_line(make, code, line));
}

void arena_make_cell(struct arena_make *make, uint32_t node, enum wire_kind kind, uint64_t count,
                     uint64_t ns, uint64_t charged_ns)
{
    double us =
        (double)(kind <= WIRE_CPU_CALL ? ns : charged_ns) / 1000 / (double)(count ? count : 1);
    struct wire_cell cell = {.kind = kind,
                             .node = node,
                             .count = count,
                             .ns = ns,
                             .charged_ns = charged_ns,
                             .square_us2 = us * us * (double)count};
    add(make, WIRE_CELL, &cell);
}

void arena_make_log(struct arena_make *make, uint64_t at_ns, uint32_t node, uint16_t thread,
                    enum wire_kind kind, uint32_t count, uint32_t us)
{
    struct wire_log run = {.at_ns = at_ns,
                           .node = node,
                           .thread = thread,
                           .kind = (uint8_t)kind,
                           .count = count,
                           .us = us};
    add(make, WIRE_LOG, &run);
}

uint32_t arena_make_thread(struct arena_make *make, uint64_t ident, int tid, const char *name,
                           bool is_python)
{
    struct wire_thread thread = {.ident = ident, .tid = tid, .python = is_python};
    snprintf(thread.name, sizeof thread.name, "%s", name);
    return add(make, WIRE_THREAD, &thread);
}

void arena_make_await(struct arena_make *make, uint32_t node, enum wire_await_kind kind,
                      uint64_t count, uint64_t us)
{
    struct wire_await await = {.kind = kind, .node = node, .count = count, .us = us};
    add(make, WIRE_AWAIT, &await);
}

uint32_t arena_make_place(struct arena_make *make, uint32_t code, int line, uint64_t present_us,
                          uint32_t peak, uint64_t longest_us)
{
    uint32_t id = (uint32_t)(make->sections[WIRE_PLACE].len / sizeof(struct wire_place));
    struct wire_place place = {.code = code,
                               .at = at_line(make, code, line),
                               .present_us = present_us,
                               .longest_us = longest_us,
                               .peak = peak,
                               .parts = {{id, (uint32_t)longest_us}}};
    return add(make, WIRE_PLACE, &place);
}

void arena_make_name(struct arena_make *make, uint32_t place, const char *text, uint64_t number)
{
    struct wire_name name = {.place = place, .number = number, .width = 1};
    if (text)
        name.text = arena_make_blob(make, text, strlen(text));
    add(make, WIRE_NAME, &name);
}

void arena_make_crowd(struct arena_make *make, uint64_t at_ns, uint32_t tasks)
{
    struct wire_crowd crowd = {.at_ns = at_ns, .tasks = tasks, .published = 1};
    add(make, WIRE_CROWD, &crowd);
}

uint32_t arena_make_module(struct arena_make *make, const char *path)
{
    struct wire_module module = {.path = arena_make_blob(make, path, strlen(path))};
    return add(make, WIRE_MODULE, &module);
}

uint32_t arena_make_site(struct arena_make *make, uint32_t node, enum wire_site_kind kind,
                         uint32_t module, uint64_t allocated_bytes, uint64_t live_bytes)
{
    struct wire_site site = {
        .kind = kind,
        .node = node,
        .module = module,
        .allocated_bytes = allocated_bytes,
        .live_bytes = live_bytes,
        .most_bytes = live_bytes,
        .count = allocated_bytes >> 10,
        .samples = (allocated_bytes >> 17) + 1,
    };
    struct wire_memory *memory = &make->header.memory;
    memory->allocated_bytes += allocated_bytes;
    memory->live_bytes += live_bytes;
    memory->look.live_bytes += live_bytes;
    if (kind == WIRE_SITE_PYTHON) {
        memory->live_python_bytes += live_bytes;
        memory->look.live_python_bytes += live_bytes;
    } else if (kind == WIRE_SITE_MAPPED) {
        memory->live_mapped_bytes += live_bytes;
        memory->look.live_mapped_bytes += live_bytes;
    }
    return add(make, WIRE_SITE, &site);
}

void arena_make_foot(struct arena_make *make, uint64_t at_ns, uint32_t site,
                     enum wire_foot_kind kind, uint32_t live_kib, uint32_t site_live_kib)
{
    struct wire_foot foot = {.at_ns = at_ns,
                             .at_cpu_ms = at_ns / 1000000,
                             .live_kib = live_kib,
                             .site_live_kib = site_live_kib,
                             .site = site,
                             .published = kind};
    add(make, WIRE_FOOT, &foot);
}

void arena_make_block(struct arena_make *make, uint32_t site, uint64_t bytes, uint64_t at_cpu_ms)
{
    struct wire_block block = {.site = site, .bytes = bytes, .at_cpu_ms = at_cpu_ms};
    add(make, WIRE_BLOCK, &block);
}

void arena_make_image(struct arena_make *make, struct buf *out)
{
    struct wire_header *header = &make->header;
    if (!header->beat_mono_ns)
        header->beat_mono_ns = header->start_mono_ns;
    if (!header->beat_cpu_ns)
        header->beat_cpu_ns = header->start_cpu_ns;
    uint64_t offset = WIRE_HEADER_BYTES;
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        uint32_t count = (uint32_t)(make->sections[i].len / wire_limits[i].record_bytes);
        make->header.sections[i] = (struct wire_section){
            .offset = offset,
            .record_bytes = wire_limits[i].record_bytes,
            .capacity = count + 8,
            .committed = count + 4,
            .used = count,
            .dropped = make->header.sections[i].dropped,
        };
        offset += (uint64_t)(count + 8) * wire_limits[i].record_bytes;
        offset += -offset % 8; /* records are aligned, as the agent's are */
    }
    size_t base = out->len;
    buf_add(out, &make->header, sizeof make->header);
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        buf_pad(out, '\0', base + make->header.sections[i].offset - out->len);
        buf_add(out, make->sections[i].data, make->sections[i].len);
    }
    buf_pad(out, '\0', base + offset - out->len);
}

void arena_make_write(struct arena_make *make, const char *path)
{
    struct buf image = {0};
    arena_make_image(make, &image);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image.data, 1, image.len, file) != image.len || fclose(file))
        abort();
    buf_release(&image);
}
