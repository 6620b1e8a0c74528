/*
 * Windows, in a world of its own: a program that allocates at a given rate, an
 * interpreter that is six words, and a clock that moves only while the sampler
 * sleeps (and then mostly too far).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/threads.h"
#include "agent/memory/duty.h"
#include "agent/waits/sampler.h"

#include <link.h>
#include <math.h>
#include <string.h>

struct agent agent;

enum {
    WORDS = 2 * DUTY_FUNCTIONS,
    OURS = 0x1000000, /* the agent's code */
    ORIGINAL = 0x5000000,
    FOREIGN = 0x9000000,
    PASS_NS = 10000000,
    CLOSED_MOST_NS = 16000000, /* a cycle takes 15 ms at most */
};
#define LOOK_SEC 2.5e-9 /* what looking costs this program, for each allocation */

/* ---- the world ---- */

static struct wire_header header;
static _Atomic uintptr_t interpreter[64]; /* its data; the words stand somewhere in it */
static struct thread thread_list[16];

static struct {
    double objects_per_sec, object_bytes;
    double kept;       /* part of what is allocated that stays */
    unsigned threads;  /* one of them computes, the others wait */
    uint64_t late_ns;  /* most by which a sleep takes longer */
    uint64_t pause_ns; /* between two passes */
    void (*in_pause)(void);

    uint64_t wall_ns, cpu_ns;
    double open_work, closed_work; /* what the program got done, in seconds without a profiler, */
    double estimate;               /* and what one would take it for by what was seen */
    double objects_owed, bytes_owed, live_bytes;
    unsigned openings, pauses;
    uint64_t longest_closed_ns, closed_ns, last_pause_ns;
    bool was_open;
} world;

static _Atomic uintptr_t *word(unsigned i)
{
    return &interpreter[10 + 7 * i];
}

static bool all_words_are(uintptr_t base)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (*word(i) != base + i)
            return false;
    return true;
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? (uint32_t)(state >> 32) % limit : 0;
}

static void advance(uint64_t ns)
{
    bool open = all_words_are(OURS);
    double work = (double)ns / 1e9 / (open ? 1 + world.objects_per_sec * LOOK_SEC : 1);
    world.wall_ns += ns;
    world.cpu_ns += ns;
    *(open ? &world.open_work : &world.closed_work) += work;
    world.live_bytes += work * world.objects_per_sec * world.object_bytes * world.kept;
    header.memory.live_python_bytes = (uint64_t)world.live_bytes;
    if (open) {
        world.estimate += work * duty_factor;
        world.objects_owed += work * world.objects_per_sec;
        world.bytes_owed += work * world.objects_per_sec * world.object_bytes;
        uint64_t objects = (uint64_t)world.objects_owed, bytes = (uint64_t)world.bytes_owed;
        duty_count(objects, bytes);
        world.objects_owed -= (double)objects;
        world.bytes_owed -= (double)bytes;
    }
    world.openings += open && !world.was_open;
    world.closed_ns = open ? 0 : world.closed_ns + ns;
    if (world.closed_ns > world.longest_closed_ns)
        world.longest_closed_ns = world.closed_ns;
    world.was_open = open;
}

uint64_t __wrap_os_mono_ns(void);
uint64_t __wrap_os_process_cpu_ns(void);
bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns);
int __wrap_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data);

uint64_t __wrap_os_mono_ns(void)
{
    return world.wall_ns;
}

uint64_t __wrap_os_process_cpu_ns(void)
{
    return world.cpu_ns;
}

bool __wrap_os_thread_cpu_of(pid_t tid, uint64_t *cpu_ns)
{
    *cpu_ns = tid == 1 ? world.cpu_ns : 1;
    return true;
}

void sampler_pause(uint64_t ns)
{
    assert_true(ns <= 1000000000);
    world.pauses++;
    world.last_pause_ns = ns;
    advance(ns / 2);
    if (world.in_pause)
        world.in_pause();
    advance(ns - ns / 2 + random_below((uint32_t)world.late_ns));
}

/* One module, with its code and its data. */
int __wrap_dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    ElfW(Phdr) segments[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = ORIGINAL, .p_memsz = 0x1000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_W,
         .p_vaddr = (uintptr_t)interpreter,
         .p_memsz = sizeof interpreter},
    };
    struct dl_phdr_info other = {0}, info = {.dlpi_phdr = segments, .dlpi_phnum = 2};
    return callback(&other, sizeof other, data) || callback(&info, sizeof info, data);
}

unsigned threads_used(void)
{
    return world.threads;
}

struct thread *threads_at(unsigned index)
{
    return &thread_list[index];
}

/* ---- around each test ---- */

static void put_in_front(void)
{
    struct duty_word words[WORDS];
    for (unsigned i = 0; i < WORDS; i++) {
        words[i] = (struct duty_word){OURS + i, ORIGINAL + i, NULL};
        *word(i) = OURS + i;
    }
    duty_init(ORIGINAL + 16, words, WORDS);
}

static int begin(void **state)
{
    (void)state;
    agent.arena.header = &header;
    agent.regions.agent = (struct py_range){OURS, OURS + 0x1000};
    memset(&header, 0, sizeof header);
    memset(&world, 0, sizeof world);
    memset((void *)interpreter, 0, sizeof interpreter);
    world.wall_ns = 5000000000;
    world.object_bytes = 40;
    world.threads = 1;
    world.pause_ns = PASS_NS;
    world.was_open = true;
    for (int i = 0; i < 16; i++) {
        thread_list[i].state = THREAD_LIVE;
        thread_list[i].tid = i + 1;
    }
    put_in_front();
    duty_in_child();
    return 0;
}

static void run(double seconds)
{
    uint64_t end = world.wall_ns + (uint64_t)(seconds * 1e9);
    while (world.wall_ns < end)
        duty_sleep(world.pause_ns);
}

static void run_at(double objects_per_sec, double seconds)
{
    world.objects_per_sec = objects_per_sec;
    run(seconds);
}

/* Until windows have begun, and their share from then on. */
static void forget_the_past(void)
{
    world.open_work = world.closed_work = world.estimate = 0;
    world.openings = 0;
    world.longest_closed_ns = 0;
}

static double open_share(void)
{
    return world.open_work / (world.open_work + world.closed_work);
}

/* ---- when there are windows ---- */

/* Has to be the first: the objects of all tests are counted together. */
static void the_start_is_seen_whole(void **state)
{
    (void)state;
    world.objects_per_sec = 20e6;
    while (world.open_work * world.objects_per_sec < 3.9e6) {
        duty_sleep(PASS_NS);
        assert_int_equal(duty_factor, 1);
        assert_true(all_words_are(OURS));
    }
    assert_true(world.closed_work == 0);
    run(0.3);
    assert_int_equal(duty_factor, 5);
}

static void a_calm_program_is_seen_all_the_time(void **state)
{
    (void)state;
    run_at(5e6, 3);
    assert_int_equal(duty_factor, 1);
    assert_true(world.closed_work == 0);
    unsigned pauses = world.pauses;
    duty_sleep(12345678); /* in one piece */
    assert_int_equal(world.pauses, pauses + 1);
    assert_int_equal(world.last_pause_ns, 12345678);
}

static void a_short_burst_is_seen_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        run_at(50e6, 0.06);
        run_at(1e5, 0.1);
    }
    assert_true(world.closed_work == 0);
}

static void windows_open_and_close(void **state)
{
    (void)state;
    run_at(20e6, 0.3);
    assert_int_equal(duty_factor, 5);
    forget_the_past();
    run(2);
    assert_in_range(world.openings, 160, 240); /* a cycle is 10 ms */
    assert_true(world.longest_closed_ns < CLOSED_MOST_NS);
    assert_true(fabs(open_share() - 1. / 5) < 0.005);
    assert_int_equal(header.flags, 0);
}

/* A sampler that sleeps longer is not woken more often for them. */
static void windows_are_as_long_as_pauses(void **state)
{
    static const struct {
        uint64_t pause_ms;
        unsigned cycle_ms;
    } cases[] = {{2, 8}, {10, 10}, {40, 40}, {64, 64}, {350, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(state);
        world.pause_ns = cases[i].pause_ms * 1000000;
        run_at(20e6, 2);
        forget_the_past();
        run(40);
        unsigned cycles = 40000 / cases[i].cycle_ms;
        assert_in_range(world.openings, cycles * 9 / 10, cycles * 11 / 10);
        assert_true(fabs(open_share() - 1. / 5) < 0.005);
    }
}

/* ---- how long they are open ---- */

/*
 * A sampler that gets its processor late closes and opens late; what one window
 * has too much or too little is made up for, so that what is seen, as often as it
 * counts, is what was done.
 */
static void what_is_owed_is_made_up_for(void **state)
{
    static const struct {
        double objects_per_sec;
        unsigned factor;
    } cases[] = {{8e6, 3}, {20e6, 5}, {60e6, 8}};
    static const uint64_t late[] = {0, 300000, 1000000, 3000000, 10000000};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof late / sizeof *late; k++) {
            begin(state);
            world.late_ns = late[k];
            run_at(cases[i].objects_per_sec, 0.5);
            forget_the_past();
            run(30);
            assert_int_equal(duty_factor, cases[i].factor);
            assert_true(fabs(open_share() * cases[i].factor - 1) < 0.01);
            assert_true(fabs(world.estimate / (world.open_work + world.closed_work) - 1) < 0.01);
        }
}

/* Of many threads the time on the wall must do. */
static void many_threads(void **state)
{
    (void)state;
    world.threads = 12;
    world.late_ns = 1000000;
    run_at(20e6, 0.5);
    forget_the_past();
    run(10);
    assert_true(fabs(open_share() * 5 - 1) < 0.01);
}

/* ---- how many there are ---- */

static void the_factor_has_steps(void **state)
{
    (void)state;
    static const struct {
        double objects_per_sec;
        unsigned factor;
    } course[] = {
        {5.5e6, 1}, {8e6, 3},  {14e6, 3},  {17e6, 5},   {10e6, 5}, /* kept a while */
        {8e6, 3},   {50e6, 8}, {26e6, 8},  {22e6, 5},   {4e6, 3},
        {3e6, 1},   {5e6, 1},  {100e6, 8}, {0.01e6, 1},
    };
    for (size_t i = 0; i < sizeof course / sizeof *course; i++) {
        run_at(course[i].objects_per_sec, 1);
        assert_int_equal(duty_factor, course[i].factor);
        assert_int_equal(all_words_are(OURS) && !world.was_open, 0);
    }
    assert_true(all_words_are(OURS));
}

static void a_program_that_keeps_things_is_seen_all_the_time(void **state)
{
    (void)state;
    world.kept = 0.2;
    run_at(50e6, 2);
    assert_true(world.closed_work == 0);
    world.kept = 0.05;
    run(0.5);
    assert_int_equal(duty_factor, 8);
    world.kept = 0.2; /* now it begins to */
    run(0.06);
    assert_int_equal(duty_factor, 1);
    forget_the_past();
    run(1);
    assert_true(world.closed_work == 0 && all_words_are(OURS));
}

/* ---- who else is in front ---- */

static uintptr_t kept_word;

static void put_foreign(void)
{
    kept_word = *word(4);
    *word(4) = FOREIGN;
}

static void put_foreign_while_closed(void)
{
    if (all_words_are(ORIGINAL)) {
        put_foreign();
        world.in_pause = NULL;
    }
}

static void put_foreign_while_open(void)
{
    if (all_words_are(OURS)) {
        put_foreign();
        world.in_pause = NULL;
    }
}

/* Above ours: all comes through to ours, nothing can be switched. */
static void others_above_us(void **state)
{
    (void)state;
    run_at(20e6, 0.5);
    world.in_pause = put_foreign_while_open;
    run(0.5);
    assert_int_equal(kept_word, OURS + 4);
    assert_int_equal(duty_factor, 1);
    assert_int_equal(*word(4), FOREIGN);
    for (unsigned i = 0; i < WORDS; i++)
        assert_true(i == 4 || *word(i) == OURS + i);
    assert_int_equal(header.flags, 0); /* nothing is hidden */
    *word(4) = kept_word;
    run(0.5);
    assert_int_equal(duty_factor, 5);
}

/* Above the original: small objects are not seen any more, and the profile says so. */
static void others_above_the_original(void **state)
{
    (void)state;
    run_at(20e6, 0.5);
    assert_int_equal(header.flags, 0);
    world.in_pause = put_foreign_while_closed;
    run(0.5);
    assert_int_equal(kept_word, ORIGINAL + 4);
    assert_int_equal(*word(4), FOREIGN); /* not ours to change */
    assert_int_equal(header.flags, WIRE_PROCESS_HIDDEN_OBJECTS);
    *word(4) = kept_word;
    run(0.5);
    assert_true(duty_factor > 1 || all_words_are(OURS));
    forget_the_past();
    run(2);
    assert_true(world.openings > 100); /* and all is as before */
}

/* A word that is not there, or there twice: better no windows. */
static void words_that_are_not_where_they_should_be(void **state)
{
    for (int twice = 0; twice < 2; twice++) {
        begin(state);
        struct duty_word words[WORDS];
        for (unsigned i = 0; i < WORDS; i++)
            words[i] = (struct duty_word){OURS + i, ORIGINAL + i, NULL};
        if (twice)
            interpreter[63] = OURS + 2;
        else
            *word(2) = FOREIGN;
        duty_init(ORIGINAL + 16, words, WORDS);
        run_at(50e6, 2);
        assert_int_equal(duty_factor, 1);
        assert_true(*word(0) == OURS && *word(5) == OURS + 5);
        assert_int_equal(header.flags, 0);
    }
}

/* ---- forks ---- */

static bool has_forked;

static void fork_while_closed(void)
{
    if (!all_words_are(ORIGINAL))
        return;
    duty_in_child();
    has_forked = all_words_are(OURS) && duty_factor == 1;
    for (unsigned i = 0; i < WORDS; i++)
        *word(i) = ORIGINAL + i; /* the parent's own */
    world.in_pause = NULL;
}

static void a_child_of_a_closed_parent_is_open(void **state)
{
    (void)state;
    run_at(20e6, 0.5);
    world.in_pause = fork_while_closed;
    run(0.1);
    assert_true(has_forked);
}

/* It decides by itself, and not from what its parent did. */
static void a_child_begins_anew(void **state)
{
    (void)state;
    run_at(50e6, 0.5);
    assert_int_equal(duty_factor, 8);
    duty_in_child();
    world.cpu_ns = 0; /* a child's clock begins anew, too */
    forget_the_past();
    assert_int_equal(duty_factor, 1);
    run_at(50e6, 0.06);
    assert_int_equal(duty_factor, 1);
    assert_true(world.closed_work == 0);
    run(0.5);
    assert_int_equal(duty_factor, 8);
    world.late_ns = 1000000;
    forget_the_past();
    run(10);
    assert_true(fabs(open_share() * 8 - 1) < 0.01);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_start_is_seen_whole),
        TEST(a_calm_program_is_seen_all_the_time),
        TEST(a_short_burst_is_seen_whole),
        TEST(windows_open_and_close),
        TEST(windows_are_as_long_as_pauses),
        TEST(what_is_owed_is_made_up_for),
        TEST(many_threads),
        TEST(the_factor_has_steps),
        TEST(a_program_that_keeps_things_is_seen_all_the_time),
        TEST(others_above_us),
        TEST(others_above_the_original),
        TEST(words_that_are_not_where_they_should_be),
        TEST(a_child_of_a_closed_parent_is_open),
        TEST(a_child_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
