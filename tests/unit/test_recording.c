/* Arena files: what was written comes back, and nothing that is wrong with a file does harm. */
#include "arena_make.h"
#include "base/map.h"
#include "base/mem.h"
#include "report/recording.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/scalene-test-XXXXXX";
static char *path;

static int set_up(void **state)
{
    if (!mkdtemp(directory))
        return -1;
    path = mem_format("%s/7-0.arena", directory);
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    free(path);
    return rmdir(directory);
}

static void make_sample(struct arena_make *make)
{
    arena_make_init(make, 7);
    make->header.command_bytes = 9;
    memcpy(make->header.command, "python\0x", 9);
    uint32_t main_code = arena_make_code(make, "/p/main.py", "<module>", 1, 30);
    uint32_t code = arena_make_code(make, "/p/main.py", "f", 5, 12);
    uint32_t root = arena_make_frame(make, 0, main_code, 20);
    uint32_t node = arena_make_frame(make, root, code, 7);
    uint32_t native = arena_make_node(make, 0, WIRE_FRAME_NO_PYTHON, 0, 0);
    arena_make_cell(make, node, WIRE_CPU_PYTHON, 3, 30000000, 0);
    arena_make_cell(make, native, WIRE_CPU_NATIVE, 1, 10000000, 0);
    arena_make_cell(make, root, WIRE_WAIT_SLEEP, 2, 20000000, 10000000);
    uint32_t thread = arena_make_thread(make, 0x1000, 7, "python", true);
    arena_make_log(make, 5000000, node, (uint16_t)thread, WIRE_CPU_PYTHON, 3, 30000);
    arena_make_await(make, node, WIRE_AWAIT_WAITS, 3, 30000);
    uint32_t place = arena_make_place(make, code, 7, 15000, 2, 0);
    arena_make_name(make, place, "worker", 0);
    arena_make_name(make, place, NULL, 3);
    arena_make_crowd(make, 5000000, 2);
}

/* Cut to length afterwards: opened with O_TRUNC, some file systems flush at every close. */
static void write_bytes(const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), (ssize_t)length);
    assert_int_equal(ftruncate(fd, (off_t)length), 0);
    close(fd);
}

/* Ask for everything an arena offers, valid or not. */
static uint64_t touch(const struct recording *arena)
{
    struct buf text = {0};
    uint64_t sum = 0;
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_CODE) + 2; id++) {
        const struct wire_code *code = recording_code(arena, id);
        if (!code)
            continue;
        recording_text(arena, code->file, code->file_width, &text);
        recording_text(arena, code->name, code->name_width, &text);
        const uint8_t *table = recording_bytes(arena, code->line_table);
        for (uint32_t i = 0; table && i < code->line_table.bytes; i++)
            sum += table[i];
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_NODE) + 2; id++) {
        const struct wire_node *node = recording_node(arena, id);
        sum += node ? node->parent : 0;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_CELL) + 2; id++) {
        struct recording_cell cell;
        sum += recording_cell(arena, id, &cell) ? cell.ns : 0;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_LOG) + 2; id++) {
        struct recording_run run;
        sum += recording_run(arena, id, &run) ? run.at_ns : 0;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_THREAD) + 2; id++) {
        const struct wire_thread *thread = recording_thread(arena, id);
        sum += thread ? thread->ident : 0;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_AWAIT) + 2; id++) {
        struct recording_await await;
        sum += recording_await(arena, id, &await) ? await.us : 0;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_NAME) + 2; id++) {
        const struct wire_name *name = recording_name(arena, id);
        if (!name)
            continue;
        recording_text(arena, name->text, name->width, &text);
        sum += recording_place(arena, name->place)->at;
    }
    for (uint32_t id = 0; id <= recording_count(arena, WIRE_CROWD) + 2; id++) {
        const struct wire_crowd *crowd = recording_crowd(arena, id);
        sum += crowd ? crowd->tasks : 0;
    }
    sum += text.len;
    buf_release(&text);
    return sum;
}

static void what_was_written_comes_back(void **state)
{
    struct arena_make make;
    make_sample(&make);
    arena_make_write(&make, path);
    struct recording arena;
    struct err err;
    assert_int_equal(recording_open(&arena, path, &err), 0);
    assert_int_equal(arena.header.pid, 7);
    assert_false(arena.is_cut);
    const struct wire_code *code = recording_code(&arena, 2);
    assert_non_null(code);
    struct buf text = {0};
    recording_text(&arena, code->file, code->file_width, &text);
    assert_string_equal(text.data, "/p/main.py");
    const struct wire_node *node = recording_node(&arena, 2);
    assert_int_equal(node->parent, 1);
    assert_int_equal(node->at, 4);
    struct recording_cell cell;
    assert_true(recording_cell(&arena, 3, &cell));
    assert_int_equal(cell.kind, WIRE_WAIT_SLEEP);
    assert_int_equal(cell.charged_ns, 10000000);
    assert_false(recording_cell(&arena, 4, &cell));
    struct recording_run run;
    assert_true(recording_run(&arena, 1, &run));
    assert_int_equal(run.us, 30000);
    assert_int_equal(recording_thread(&arena, 1)->ident, 0x1000);
    struct recording_await await;
    assert_true(recording_await(&arena, 1, &await));
    assert_int_equal(await.kind, WIRE_AWAIT_WAITS);
    assert_int_equal(await.us, 30000);
    assert_false(recording_await(&arena, 2, &await));
    assert_int_equal(recording_place(&arena, recording_name(&arena, 1)->place)->peak, 2);
    assert_int_equal(recording_name(&arena, 2)->number, 3);
    assert_int_equal(recording_crowd(&arena, 1)->tasks, 2);
    assert_null(recording_node(&arena, 0));
    assert_null(recording_node(&arena, 1000));
    buf_release(&text);
    recording_release(&arena);
    recording_release(&arena);
    arena_make_release(&make);
}

static void texts_of_every_width(void **state)
{
    struct arena_make make;
    arena_make_init(&make, 7);
    const uint8_t latin[] = {'a', 0xE9};
    const uint16_t wide[] = {'b', 0x20AC, 0xDC80, 0xDCFF, 0xD800, 0};
    const uint32_t full[] = {'c', 0x1F600, 0x7FFFFFFF};
    struct wire_span spans[] = {arena_make_blob(&make, latin, sizeof latin),
                                arena_make_blob(&make, wide, sizeof wide),
                                arena_make_blob(&make, full, sizeof full)};
    static const unsigned widths[] = {1, 2, 4};
    static const char *const expected[] = {"a\xC3\xA9",
                                           "b\xE2\x82\xAC\x80\xFF\xEF\xBF\xBD\xEF\xBF\xBD",
                                           "c\xF0\x9F\x98\x80\xEF\xBF\xBD"};
    arena_make_write(&make, path);
    struct recording arena;
    assert_int_equal(recording_open(&arena, path, NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct buf text = {0};
        recording_text(&arena, spans[i], widths[i], &text);
        assert_string_equal(text.data, expected[i]);
        buf_release(&text);
    }
    struct buf none = {0};
    recording_text(&arena, (struct wire_span){1, UINT32_MAX}, 1, &none);
    recording_text(&arena, (struct wire_span){UINT32_MAX, 4}, 1, &none);
    recording_text(&arena, spans[0], 3, &none);
    assert_int_equal(none.len, 0);
    recording_release(&arena);
    arena_make_release(&make);
}

static void not_an_arena_is_refused(void **state)
{
    struct recording arena;
    struct err err = {""};
    write_bytes("", 0);
    assert_int_equal(recording_open(&arena, path, &err), 1);
    write_bytes("hello, this is some other file", 30);
    assert_int_equal(recording_open(&arena, path, &err), -1);
    assert_non_null(strstr(err.text, "not a recording"));
    unlink(path);
    assert_int_equal(recording_open(&arena, path, &err), -1);
    assert_non_null(strstr(err.text, "No such file"));

    struct arena_make make;
    make_sample(&make);
    make.header.version = 99;
    arena_make_write(&make, path);
    assert_int_equal(recording_open(&arena, path, &err), -1);
    assert_non_null(strstr(err.text, "another version"));
    arena_make_release(&make);
}

/* Cut at every length: it either opens with what is there, or says why not. */
static void cut_anywhere(void **state)
{
    struct arena_make make;
    make_sample(&make);
    struct buf image = {0};
    arena_make_image(&make, &image);
    size_t opened = 0, cut = 0;
    write_bytes(image.data, image.len);
    for (size_t length = image.len; length-- > 0;) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        struct recording arena;
        struct err err = {""};
        int rc = recording_open(&arena, path, &err);
        if (rc)
            continue;
        opened++;
        cut += arena.is_cut;
        touch(&arena);
        recording_release(&arena);
    }
    assert_true(opened >= image.len - WIRE_HEADER_BYTES);
    assert_true(cut > 0);
    buf_release(&image);
    arena_make_release(&make);
}

static void damaged_anywhere(void **state)
{
    struct arena_make make;
    make_sample(&make);
    struct buf image = {0};
    arena_make_image(&make, &image);
    /* Most of the header is room for the command line; aim at what matters twice as often. */
    size_t interesting = offsetof(struct wire_header, command);
    uint64_t seed = 42, sum = 0;
    int opened = 0;
    for (int round = 0; round < 20000; round++) {
        struct buf copy = {0};
        buf_add(&copy, image.data, image.len);
        for (int hits = 1 + (int)(hash_mix(++seed, 1) % 4); hits--;) {
            size_t range = hash_mix(++seed, 2) % 2 ? interesting : copy.len;
            size_t at = hash_mix(++seed, 3) % range;
            uint64_t value = hash_mix(++seed, 4);
            size_t bytes = (size_t)1 << value % 4;
            if (at + bytes > copy.len)
                bytes = 1;
            uint64_t stuff = value >> 8 & 1 ? UINT64_MAX : value;
            memcpy(copy.data + at, &stuff, bytes);
        }
        write_bytes(copy.data, copy.len);
        buf_release(&copy);
        struct recording arena;
        struct err err = {""};
        if (!recording_open(&arena, path, &err)) {
            opened++;
            sum += touch(&arena);
            recording_release(&arena);
        }
    }
    assert_true(opened > 1000 && opened < 20000);
    assert_true(sum > 0);
    buf_release(&image);
    arena_make_release(&make);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(texts_of_every_width),
        cmocka_unit_test(not_an_arena_is_refused),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(damaged_anywhere),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
