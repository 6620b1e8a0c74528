/* Guarded loads: right where memory is, harmless where it is not. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void test_good_loads(void **state)
{
    (void)state;
    uint64_t word = 0x1122334455667788u;
    unsigned bad = 0;
    assert_int_equal(guard_u64((uintptr_t)&word, &bad), 0x1122334455667788u);
    assert_int_equal(guard_u32((uintptr_t)&word, &bad), 0x55667788u);
    assert_int_equal(guard_u8((uintptr_t)&word, &bad), 0x88);
    assert_int_equal(bad, 0);
}

static void test_bad_loads(void **state)
{
    faults_install(state);
    char *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t addresses[] = {
        0, 8, 0x1000, (uintptr_t)hole, UINTPTR_MAX - 7, (uintptr_t)1 << 62};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        unsigned bad = 0;
        assert_int_equal(guard_u64(addresses[i], &bad), 0);
        assert_int_equal(bad, 1);
        bad = 0;
        assert_int_equal(guard_u32(addresses[i], &bad), 0);
        assert_int_equal(guard_u8(addresses[i], &bad), 0);
        assert_int_equal(bad, 1);
    }
    munmap(hole, 4096);
}

static void test_a_file_cut_short(void **state)
{
    faults_install(state);
    char name[] = "/tmp/guard-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(ftruncate(fd, 8192), 0);
    char *map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(ftruncate(fd, 4096), 0); /* the second page now raises SIGBUS */
    unsigned bad = 0;
    guard_u64((uintptr_t)map, &bad);
    assert_int_equal(bad, 0);
    guard_u64((uintptr_t)map + 4096, &bad);
    assert_int_equal(bad, 1);
    munmap(map, 8192);
    close(fd);
}

static void test_copy(void **state)
{
    faults_install(state);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'x', 4096);
    munmap(pages + 4096, 4096);
    char out[64] = {0};
    assert_true(guard_copy(out, (uintptr_t)pages + 4096 - 32, 32));
    assert_int_equal(out[31], 'x');
    assert_int_equal(out[32], 0);
    assert_false(guard_copy(out, (uintptr_t)pages + 4096 - 16, 32));
    assert_true(guard_copy(out, 0, 0));
    munmap(pages, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_loads),
        cmocka_unit_test(test_bad_loads),
        cmocka_unit_test(test_a_file_cut_short),
        cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
