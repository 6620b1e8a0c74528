/* The arena: its file, growth ahead of need, what it does when the system refuses, many writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "wire/control.h"
#include "wire/limits.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct arena arena;

/* ---- a system that refuses: the call that makes `*_left` zero fails, and all after it ---- */

static int fallocate_left = -1, mmap_left = -1, truncate_left = -1, open_left = -1, opened;
static int open_error;

int __real_posix_fallocate64(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate64(int fd, off_t at, off_t bytes);
void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_ftruncate64(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes);
int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);

static bool refuses(int *left)
{
    if (*left > 0)
        --*left;
    return !*left;
}

int __wrap_posix_fallocate64(int fd, off_t at, off_t bytes)
{
    return refuses(&fallocate_left) ? ENOSPC : __real_posix_fallocate64(fd, at, bytes);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return refuses(&mmap_left) ? MAP_FAILED
                               : __real_mmap64(at, bytes, protection, flags, fd, offset);
}

int __wrap_ftruncate64(int fd, off_t bytes)
{
    return refuses(&truncate_left) ? -1 : __real_ftruncate64(fd, bytes);
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
    opened++;
    if (refuses(&open_left))
        return errno = open_error, -1;
    return __real_open64(path, flags, mode);
}

/* ---- around each test ---- */

static int open_all(void **state)
{
    (void)state;
    return fixture_open(&arena) ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    return fixture_close(&arena);
}

static struct wire_section *section(enum wire_section_id id)
{
    return &arena.header->sections[id];
}

static unsigned entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2; /* . and .. */
}

static unsigned open_descriptors(void)
{
    return entries("/proc/self/fd");
}

/* ---- the file ---- */

static void the_file_is_private(void **state)
{
    (void)state;
    struct stat st;
    char expected[96];
    assert_int_equal(stat(arena.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, arena.mapped_bytes);
    snprintf(expected, sizeof expected, "%s/%d-0%s", fixture_directory, (int)getpid(),
             WIRE_ARENA_SUFFIX);
    assert_string_equal(arena.path, expected);
}

static void sections_do_not_overlap(void **state)
{
    (void)state;
    uint64_t end = WIRE_HEADER_BYTES;
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        const struct wire_section *s = section((enum wire_section_id)i);
        assert_true(s->offset >= end && s->offset % 4096 == 0);
        assert_true(s->committed && s->committed <= s->capacity);
        assert_int_equal(s->used, 1);
        end = s->offset + (uint64_t)s->capacity * s->record_bytes;
    }
    assert_true(end <= arena.mapped_bytes);
}

static void memory_has_no_room_where_it_is_not_followed(void **state)
{
    (void)state;
    struct arena small = {0};
    assert_true(arena_create(&small, fixture_directory, false, 1));
    assert_true(small.mapped_bytes < arena.mapped_bytes);
    for (int i = WIRE_MODULE; i <= WIRE_FOOT; i++) {
        assert_int_equal(small.header->sections[i].capacity, 0);
        assert_int_equal(arena_append(&small, (enum wire_section_id)i, 1), 0);
        assert_int_equal(small.header->sections[i].dropped, 1);
    }
    assert_int_equal(arena_append(&small, WIRE_CELL, 1), 1);
    unlink(small.path);
    arena_unmap(&small);
    assert_null(small.header);
    arena_unmap(&small); /* once more is harmless */
}

/* The same process may exec several Pythons; but not for ever. */
static void names_that_are_taken(void **state)
{
    (void)state;
    enum { TRIES = 64 };
    static struct arena others[TRIES];
    for (unsigned n = 1; n < TRIES; n++) {
        assert_true(arena_create(&others[n], fixture_directory, false, 1));
        char expected[96];
        snprintf(expected, sizeof expected, "%s/%d-%u%s", fixture_directory, (int)getpid(), n,
                 WIRE_ARENA_SUFFIX);
        assert_string_equal(others[n].path, expected);
    }
    struct arena last = {0};
    assert_false(arena_create(&last, fixture_directory, false, 1));
    assert_null(last.header);
    assert_int_equal(entries(fixture_directory), TRIES);
    for (unsigned n = 1; n < TRIES; n++) {
        unlink(others[n].path);
        arena_unmap(&others[n]);
    }
}

static void a_part_of_the_room(void **state)
{
    (void)state;
    struct arena small = {0};
    assert_true(arena_create(&small, fixture_directory, true, 8));
    for (int i = 0; i < WIRE_SECTIONS; i++) {
        const struct wire_section *section = &small.header->sections[i];
        assert_int_equal(section->capacity, wire_limits[i].records_max / 8);
        assert_true(section->committed <= section->capacity);
        assert_true(section->offset + (uint64_t)section->capacity * section->record_bytes <=
                    small.mapped_bytes);
    }
    assert_true(small.mapped_bytes < arena.mapped_bytes / 7);
    unlink(small.path);
    arena_unmap(&small);
}

/* ---- refusals ---- */

/* Nothing is left behind: no file, no descriptor. */
static void assert_refused(void)
{
    struct arena other = {0};
    unsigned descriptors = open_descriptors(), files = entries(fixture_directory);
    assert_false(arena_create(&other, fixture_directory, true, 1));
    fallocate_left = mmap_left = truncate_left = open_left = -1;
    assert_null(other.header);
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(entries(fixture_directory), files);
}

static void a_file_that_cannot_be_made(void **state)
{
    (void)state;
    for (int calls = 1; calls <= 1 + WIRE_SECTIONS; calls++) {
        fallocate_left = calls; /* the header's, then each section's */
        assert_refused();
    }
    mmap_left = 1;
    assert_refused();
    truncate_left = 1;
    assert_refused();
    static const int errors[] = {EACCES, EMFILE, ENOSPC, EROFS};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        opened = 0;
        open_left = 1;
        open_error = errors[i];
        assert_refused();
        assert_int_equal(opened, 1); /* another name would not help */
    }
    struct arena other = {0};
    assert_false(arena_create(&other, "/nonexistent", false, 1));
    char longest[600];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_false(arena_create(&other, longest, false, 1));
}

/* Beyond this limit the kernel would send a signal. */
static void the_limit_of_file_sizes(void **state)
{
    (void)state;
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    struct rlimit limit = {arena.mapped_bytes - 1, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_refused();
    limit.rlim_cur++;
    setrlimit(RLIMIT_FSIZE, &limit);
    struct arena other = {0};
    assert_true(arena_create(&other, fixture_directory, true, 1));
    int fd = arena_open_again(&other);
    while (arena_append(&other, WIRE_FOOT, 1))
        ;
    arena_grow(&other, fd);
    assert_int_equal(other.header->lost[WIRE_LOST_GROW], 0);
    close(fd);
    setrlimit(RLIMIT_FSIZE, &old);
    unlink(other.path);
    arena_unmap(&other);
}

/* ---- growth ---- */

static void there_is_more_before_it_is_needed(void **state)
{
    (void)state;
    struct wire_section *s = section(WIRE_CELL);
    uint32_t first = s->committed, others = section(WIRE_NODE)->committed;
    assert_false(arena_wants_more(&arena));
    while (s->used < first / 2) {
        assert_false(arena_wants_more(&arena));
        assert_false(arena.is_hungry);
        arena_append(&arena, WIRE_CELL, 1);
    }
    assert_true(arena_wants_more(&arena));
    assert_true(arena.is_hungry); /* who sleeps on it is woken up */
    int fd = arena_open_again(&arena);
    arena_grow(&arena, fd);
    assert_int_equal(s->committed, 2 * first);
    assert_int_equal(section(WIRE_NODE)->committed, others); /* who has room gets none */
    assert_false(arena_wants_more(&arena));
    assert_false(arena.is_hungry);
    assert_int_equal(s->dropped, 0);
    close(fd);
}

/* Who comes late makes up for all that was taken meanwhile, and hears of the next half. */
static void growth_is_as_much_as_is_wanted(void **state)
{
    (void)state;
    struct wire_section *s = section(WIRE_BLOB);
    uint32_t first = s->committed;
    assert_true(arena_append(&arena, WIRE_BLOB, first / 4));
    assert_false(arena.is_hungry);
    assert_true(
        arena_append(&arena, WIRE_BLOB, first * 3 / 4 - 1)); /* past the half, not onto it */
    assert_true(arena.is_hungry);
    int fd = arena_open_again(&arena);
    arena_grow(&arena, fd);
    assert_int_equal(s->committed, 4 * first);
    assert_false(arena_wants_more(&arena));
    assert_true(arena_append(&arena, WIRE_BLOB, first - 1));
    assert_false(arena.is_hungry);
    assert_true(arena_append(&arena, WIRE_BLOB, 1));
    assert_true(arena.is_hungry);
    close(fd);
}

static void growth_ends_at_the_capacity(void **state)
{
    (void)state;
    struct wire_section *s = section(WIRE_CELL);
    uint32_t first = s->committed, taken = 0;
    while (arena_append(&arena, WIRE_CELL, 1))
        taken++;
    assert_int_equal(taken, first - 1);
    assert_int_equal(s->dropped, 1);
    int fd = arena_open_again(&arena);
    while (s->committed < s->capacity) {
        uint32_t committed = s->committed;
        arena_grow(&arena, fd);
        assert_true(s->committed > committed && s->committed <= s->capacity);
        while (arena_append(&arena, WIRE_CELL, 1))
            taken++;
    }
    assert_int_equal(taken, s->capacity - 1);
    assert_false(arena_wants_more(&arena));
    /* Every committed byte is backed: writing the last one cannot fault. */
    memset(arena_record(&arena, WIRE_CELL, s->capacity - 1), 1, sizeof(struct wire_cell));
    struct stat st;
    fstat(fd, &st);
    assert_true((uint64_t)st.st_blocks * 512 >= (uint64_t)s->capacity * sizeof(struct wire_cell));
    close(fd);
}

static void a_full_disk(void **state)
{
    (void)state;
    struct wire_section *s = section(WIRE_BLOB);
    uint32_t first = s->committed;
    assert_int_equal(arena_append(&arena, WIRE_BLOB, first - 11), 1);
    int fd = arena_open_again(&arena);
    fallocate_left = 1;
    for (unsigned i = 1; i <= 3; i++) {
        arena_grow(&arena, fd);
        assert_int_equal(arena.header->lost[WIRE_LOST_GROW], i);
        assert_int_equal(s->committed, first);
    }
    arena_grow(&arena, -1); /* nor without a descriptor */
    assert_int_equal(arena.header->lost[WIRE_LOST_GROW], 4);
    assert_int_equal(s->committed, first);
    /* What does not fit is dropped whole, what still fits is not. */
    assert_int_equal(arena_append(&arena, WIRE_BLOB, 11), 0);
    assert_int_equal(arena_append(&arena, WIRE_BLOB, 10), first - 10);
    assert_int_equal(arena_append(&arena, WIRE_BLOB, 1), 0);
    assert_int_equal(s->used, first);
    assert_int_equal(s->dropped, 2);
    fallocate_left = -1; /* somebody made room */
    arena_grow(&arena, fd);
    assert_int_equal(s->committed, 4 * first);
    assert_int_equal(arena_append(&arena, WIRE_BLOB, 11), first);
    close(fd);
}

/* ---- many writers, and one that makes room ---- */

enum { WRITERS = 4, TURNS = 30000 };
static _Atomic bool is_over;
static _Atomic uint32_t got, missed;
static uint32_t first_committed;

/* Each writer fills what it was given: two that were given the same would see each other's. */
static void *append_many(void *argument)
{
    uint64_t mine = (uintptr_t)argument;
    for (uint32_t i = 0; i < TURNS; i++) {
        uint32_t id = arena_append(&arena, WIRE_CELL, 1);
        while (i == TURNS / 10 && atomic_load(&section(WIRE_CELL)->committed) == first_committed)
            sched_yield(); /* the rest comes while it grows */
        if (!id) {
            atomic_fetch_add(&missed, 1);
            continue;
        }
        atomic_fetch_add(&got, 1);
        struct wire_cell *cell = arena_record(&arena, WIRE_CELL, id);
        if (cell->node)
            return argument;
        cell->node = (uint32_t)mine;
        cell->reserved = mine << 32 | i;
    }
    return NULL;
}

static void *keep_growing(void *argument)
{
    int fd = arena_open_again(&arena);
    while (!atomic_load(&is_over))
        if (arena_wants_more(&arena))
            arena_grow(&arena, fd);
    close(fd);
    return argument;
}

static void writers_while_it_grows(void **state)
{
    (void)state;
    pthread_t writers[WRITERS], grower;
    first_committed = section(WIRE_CELL)->committed;
    assert_int_equal(pthread_create(&grower, NULL, keep_growing, NULL), 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, append_many, (void *)(i + 1)), 0);
    for (int i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(writers[i], &failed);
        assert_null(failed);
    }
    atomic_store(&is_over, true);
    pthread_join(grower, NULL);
    const struct wire_section *s = section(WIRE_CELL);
    assert_int_equal(got + missed, WRITERS * TURNS);
    assert_int_equal(got, s->used - 1);
    assert_int_equal(missed, s->dropped);
    assert_true(s->committed > first_committed);
    uint32_t last[WRITERS + 1] = {0}, filled[WRITERS + 1] = {0};
    for (uint32_t id = 1; id < s->used; id++) {
        const struct wire_cell *cell = arena_record(&arena, WIRE_CELL, id);
        assert_in_range(cell->node, 1, WRITERS);
        assert_int_equal(cell->reserved >> 32, cell->node);
        assert_true(!filled[cell->node] || (uint32_t)cell->reserved > last[cell->node]);
        last[cell->node] = (uint32_t)cell->reserved;
        filled[cell->node]++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_file_is_private, open_all, close_all),
        cmocka_unit_test_setup_teardown(sections_do_not_overlap, open_all, close_all),
        cmocka_unit_test_setup_teardown(memory_has_no_room_where_it_is_not_followed, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_part_of_the_room, open_all, close_all),
        cmocka_unit_test_setup_teardown(names_that_are_taken, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_made, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_limit_of_file_sizes, open_all, close_all),
        cmocka_unit_test_setup_teardown(growth_is_as_much_as_is_wanted, open_all, close_all),
        cmocka_unit_test_setup_teardown(there_is_more_before_it_is_needed, open_all, close_all),
        cmocka_unit_test_setup_teardown(growth_ends_at_the_capacity, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_full_disk, open_all, close_all),
        cmocka_unit_test_setup_teardown(writers_while_it_grows, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
