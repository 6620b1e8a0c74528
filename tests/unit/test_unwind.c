/*
 * The unwinder against libgcc's, which is an independent implementation: the
 * same frames, program counter and stack pointer both, from the same
 * interrupted instruction.
 *
 * The interruptions are the processor's single steps: with the trap flag set
 * every instruction raises SIGTRAP, so that prologues, epilogues, linker stubs,
 * the first call of a lazily bound function and the insides of libc are all
 * met, every one, the same in each run.  A timer adds another thread's view.
 */
#include "os/guard.h"
#include "os/module.h"
#include "os/os.h"
#include "os/unwind.h"
#include "os/unwind_cfi.h"

#include <setjmp.h>
#include <stdarg.h>

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cmocka.h>

#if defined(__x86_64__)

enum { DEPTH_MAX = 256 };

struct stack {
    unsigned count;
    bool started, root;
    uintptr_t leaf;
    uintptr_t pc[DEPTH_MAX], sp[DEPTH_MAX];
};

/* What the handlers saw; a handler must not call cmocka. */
static struct {
    unsigned stacks, frames, deepest;
    unsigned different, rootless, errno_changed;
    struct stack ours, theirs; /* of the first difference */
} seen;

static struct stack ours, theirs;
static bool alone; /* do not ask libgcc */
static volatile sig_atomic_t timer_ticks, faults;
static volatile unsigned sink;

static void on_fault(int number, siginfo_t *info, void *context)
{
    faults = faults + 1;
    if (!guard_recover(context))
        signal(number, SIG_DFL); /* the instruction faults again, for good */
}

/* libgcc starts at this handler: the frames up to the interrupted instruction are left out. */
static _Unwind_Reason_Code take_theirs(struct _Unwind_Context *context, void *argument)
{
    struct stack *stack = argument;
    int before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);
    if (!stack->started && before && pc == stack->leaf)
        stack->started = true;
    if (!stack->started || !pc)
        return _URC_NO_REASON;
    if (stack->count == DEPTH_MAX)
        return _URC_END_OF_STACK;
    stack->pc[stack->count] = pc;
    stack->sp[stack->count++] = _Unwind_GetCFA(context);
    return _URC_NO_REASON;
}

static void take_ours(struct stack *stack, const void *context)
{
    struct unwind_cursor cursor;
    stack->count = 0;
    unwind_begin(&cursor, context);
    do {
        stack->pc[stack->count] = cursor.pc;
        stack->sp[stack->count++] = cursor.sp;
    } while (stack->count < DEPTH_MAX && unwind_step(&cursor));
    stack->root = cursor.root;
}

static bool same(const struct stack *a, const struct stack *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->pc[i] != b->pc[i] || a->sp[i] != b->sp[i])
            return false;
    return true;
}

static void compare(const void *context)
{
    errno = 4711;
    take_ours(&ours, context);
    seen.errno_changed += errno != 4711;
    seen.stacks++;
    seen.frames += ours.count;
    if (ours.count > seen.deepest)
        seen.deepest = ours.count;
    seen.rootless += !ours.root;
    if (alone)
        return;
    theirs.count = 0;
    theirs.started = false;
    theirs.leaf = guard_context_pc(context);
    _Unwind_Backtrace(take_theirs, &theirs);
    if (!same(&ours, &theirs) && !seen.different++) {
        seen.ours = ours;
        seen.theirs = theirs;
    }
}

static void on_step(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    compare(context);
    errno = saved;
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    on_step(number, info, context);
    timer_ticks = timer_ticks + 1;
}

/*
 * Set and clear the trap flag, 0x100.  In assembler, because they too are
 * stepped through and need frame information for what they push.
 */
void step_on(void);
void step_off(void);
__asm__(".pushsection .text\n"
        "step_on: .cfi_startproc\n"
        "pushfq\n .cfi_adjust_cfa_offset 8\n"
        "orq $0x100,(%rsp)\n"
        "popfq\n .cfi_adjust_cfa_offset -8\n"
        "ret\n .cfi_endproc\n"
        "step_off: .cfi_startproc\n"
        "pushfq\n .cfi_adjust_cfa_offset 8\n"
        "andq $~0x100,(%rsp)\n"
        "popfq\n .cfi_adjust_cfa_offset -8\n"
        "ret\n .cfi_endproc\n"
        ".popsection");

static void print_frame(const char *which, const struct stack *stack, unsigned i)
{
    Dl_info info = {0};
    if (i >= stack->count)
        return;
    dladdr((void *)stack->pc[i], &info);
    print_error("  %s %u: pc %#lx sp %#lx %s %s+%#lx\n", which, i, (long)stack->pc[i],
                (long)stack->sp[i], info.dli_fname ? info.dli_fname : "?",
                info.dli_sname ? info.dli_sname : "",
                info.dli_fbase ? (long)(stack->pc[i] - (uintptr_t)info.dli_fbase) : 0);
}

static void assert_all_same(unsigned at_least)
{
    if (seen.different) {
        print_error("%u of %u stacks differ; the first:\n", seen.different, seen.stacks);
        for (unsigned i = 0; i < DEPTH_MAX; i++) {
            print_frame("ours  ", &seen.ours, i);
            print_frame("theirs", &seen.theirs, i);
        }
    }
    assert_int_equal(seen.different, 0);
    assert_int_equal(seen.rootless, 0);
    assert_int_equal(seen.errno_changed, 0);
    assert_true(seen.stacks >= at_least);
    print_message("           %u stacks, %u frames, deepest %u\n", seen.stacks, seen.frames,
                  seen.deepest);
}

/* Code of many shapes to be interrupted in. */

typedef void (*body)(void);

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void sorting(void)
{
    int values[24];
    for (int i = 0; i < 24; i++)
        values[i] = (i * 7919) % 101;
    qsort(values, 24, sizeof *values, by_value);
    sink += (unsigned)values[3];
}

static __attribute__((noinline)) unsigned recurse(unsigned depth)
{
    volatile char weight[40];
    weight[depth % 40] = (char)depth;
    unsigned below = depth ? recurse(depth - 1) + 1 : 0;
    return below + (unsigned)weight[depth % 40];
}

static void recursion(void)
{
    sink += recurse(60);
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) unsigned framed(unsigned depth)
{
    unsigned below = depth ? framed(depth - 1) + 1 : recurse(2);
    return below + sink;
}

static void frame_pointers(void)
{
    sink += framed(8);
}

static __attribute__((noinline)) unsigned dynamic(unsigned bytes)
{
    volatile char *memory = alloca(bytes);
    memory[bytes - 1] = 1;
    return recurse(2) + (unsigned)memory[bytes - 1];
}

static void dynamic_frames(void)
{
    sink += dynamic(24) + dynamic(1000) + dynamic(70000);
}

/* A local of more than the stack's own alignment, and a varying size: CFA by an expression. */
static __attribute__((noinline)) unsigned realigned(unsigned bytes)
{
    volatile char aligned[64] __attribute__((aligned(64)));
    volatile char *memory = alloca(bytes);
    aligned[bytes % 64] = 1;
    memory[0] = 2;
    return dynamic(bytes) + (unsigned)aligned[bytes % 64] + (unsigned)memory[0];
}

static void realigned_frames(void)
{
    sink += realigned(100) + realigned(3000);
}

static __attribute__((noinline)) unsigned realigned_around(body run)
{
    volatile char aligned[64] __attribute__((aligned(64)));
    volatile char *memory = alloca(sink % 64 + 100);
    aligned[0] = memory[0] = 1;
    step_on();
    run();
    step_off();
    return (unsigned)aligned[0] + (unsigned)memory[0];
}

/* A realigned frame under one that is found by rbp, stepped from inside. */
static void realigned_under_dynamic(void)
{
    step_off();
    volatile char *memory = alloca(sink % 64 + 100);
    memory[0] = 1;
    sink += realigned_around(recursion) + (unsigned)memory[0];
}

/*
 * All of it: after the `leave` of realigned functions compilers describe rbp
 * wrongly, and libgcc loses its way.
 */
static void realigned_to_the_end(void)
{
    volatile char *memory = alloca(sink % 64 + 100);
    memory[0] = 1;
    sink += realigned(100) + (unsigned)memory[0];
}

static jmp_buf way_out;

static __attribute__((noinline, noreturn)) void leave(void)
{
    sorting();
    step_off();
    longjmp(way_out, 1);
}

/* Ends with the call: the return address is in no function, or in the next. */
static __attribute__((noinline, noreturn)) void last_call(unsigned bytes)
{
    volatile char *memory = alloca(bytes);
    memory[0] = 1;
    leave();
}

static void calls_without_return(void)
{
    if (!setjmp(way_out))
        last_call(sink % 64 + 100);
}

static void formatting(void)
{
    char text[200];
    snprintf(text, sizeof text, "%d %s %-12lu %#lx %c", 42, "text", 7777777777ul, 255L, 'c');
    sink += (unsigned)strlen(text) + (unsigned)strtol("-1234", NULL, 10);
}

/*
 * Multi-precision numbers are libc's hand-written assembler, which pushes
 * registers without saying so in its frame information: libgcc crashes there.
 */
static void floats(void)
{
    char text[200];
    snprintf(text, sizeof text, "%.12g %10.3e", 3.25e-7, 1e100);
    sink += (unsigned)strlen(text) + (unsigned)strtod("1.25e-3", NULL);
}

static void allocating(void)
{
    void *blocks[12];
    for (unsigned i = 0; i < 12; i++)
        blocks[i] = calloc(1, 16 + 97 * i);
    for (unsigned i = 0; i < 12; i += 2)
        blocks[i] = realloc(blocks[i], 1500);
    for (unsigned i = 0; i < 12; i++)
        free(blocks[i]);
}

static void matching(void)
{
    regex_t pattern;
    regmatch_t found[2];
    if (regcomp(&pattern, "a(b|c)*d+", REG_EXTENDED))
        return;
    sink += (unsigned)regexec(&pattern, "xxabcbcddd", 2, found, 0);
    regfree(&pattern);
}

/* System calls, and the kernel's own code in the vDSO. */
static void asking_the_kernel(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    sink += (unsigned)now.tv_nsec + (unsigned)getppid();
}

/* Called nowhere else, so that each call goes through the dynamic linker's trampoline. */
static void binding_lazily(void)
{
    char text[8] = "hello";
    sink += (unsigned)a64l("abc") + (unsigned)strverscmp("a1", "a2");
    sink += (unsigned)strlen(strfry(text)) + (unsigned)strcspn(text, "l");
}

static void in_a_handler(int number)
{
    step_on();
    sorting();
    step_off();
}

/* The kernel clears the trap flag for the handler and sets it again after. */
static void signalled(void)
{
    raise(SIGUSR1);
}

static void signalled_on_another_stack(void)
{
    raise(SIGUSR2);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

/* In each test, because cmocka takes SIGSEGV and SIGBUS for itself before it. */
static void begin(void)
{
    static bool first = true;
    static char other_stack[1 << 16] __attribute__((aligned(64)));
    handle(SIGSEGV, on_fault, SA_NODEFER);
    handle(SIGBUS, on_fault, SA_NODEFER);
    handle(SIGTRAP, on_step, 0);
    struct sigaction inner = {.sa_handler = in_a_handler};
    assert_int_equal(sigaction(SIGUSR1, &inner, NULL), 0);
    inner.sa_flags = SA_ONSTACK;
    assert_int_equal(sigaction(SIGUSR2, &inner, NULL), 0);
    stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    assert_int_equal(sigaltstack(&other, NULL), 0);
    if (first) {
        unwind_init();
        raise(SIGTRAP); /* what the handler calls is bound now, not inside the dynamic linker */
    }
    first = false;
    memset(&seen, 0, sizeof seen);
}

static void every_instruction_of(body run, unsigned at_least)
{
    begin();
    step_on();
    run();
    step_off();
    assert_all_same(at_least);
}

/* Where each instruction was stepped through, at least so many. */
#define STEP_TEST(name, at_least)                                                                  \
    static void steps_through_##name(void **state)                                                 \
    {                                                                                              \
        every_instruction_of(name, at_least);                                                      \
    }
STEP_TEST(sorting, 1000)
STEP_TEST(recursion, 300)
STEP_TEST(frame_pointers, 50)
STEP_TEST(dynamic_frames, 50)
STEP_TEST(realigned_frames, 50)
STEP_TEST(realigned_under_dynamic, 300)
STEP_TEST(calls_without_return, 1000)
STEP_TEST(formatting, 2000)
STEP_TEST(allocating, 1000)
STEP_TEST(matching, 5000)
STEP_TEST(asking_the_kernel, 50)
STEP_TEST(binding_lazily, 1000)
STEP_TEST(signalled, 1000)
STEP_TEST(signalled_on_another_stack, 1000)

static void knows_better_after_leave(void **state)
{
    begin();
    alone = true;
    step_on();
    realigned_to_the_end();
    step_off();
    alone = false;
    assert_all_same(50);
}

/* A damaged walk may end anywhere, but most of them are good. */
static void survives_wrong_frame_information(void **state)
{
    begin();
    alone = true;
    step_on();
    floats();
    step_off();
    alone = false;
    assert_true(seen.stacks > 1000);
    assert_true(seen.rootless < seen.stacks / 2);
    print_message("           %u stacks, %u not to the root\n", seen.stacks, seen.rootless);
}

static void *work_until_sampled(void *argument)
{
    static const body bodies[] = {sorting,    recursion,  frame_pointers, dynamic_frames,
                                  formatting, allocating, matching,       asking_the_kernel};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    for (unsigned i = 0; timer_ticks < 3000; i++)
        bodies[i % (sizeof bodies / sizeof *bodies)]();
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    return NULL;
}

static void timer_samples_of_a_thread(void **state)
{
    const struct itimerval often = {{0, 150}, {0, 150}}, never = {0};
    pthread_t thread;
    sigset_t alarm;
    begin();
    handle(SIGALRM, on_timer, 0);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &alarm, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, work_until_sampled, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    pthread_join(thread, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_all_same(3000);
}

static uint64_t random_word(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

struct unwind_module {
    uintptr_t code, code_bytes;   /* the segment that can be executed */
    uintptr_t table, table_bytes; /* .eh_frame_hdr, and from there to the end of its segment */
};
static struct unwind_module modules[64];
static unsigned module_count;

static int take_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct unwind_module *module = &modules[module_count];
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
            module->code = info->dlpi_addr + segment->p_vaddr;
            module->code_bytes = segment->p_memsz;
        } else if (segment->p_type == PT_GNU_EH_FRAME) {
            module->table = info->dlpi_addr + segment->p_vaddr;
        }
    }
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && module->table - start < segment->p_memsz)
            module->table_bytes = start + segment->p_memsz - module->table;
    }
    module_count += module->code && module->table && module->table_bytes;
    return module_count == sizeof modules / sizeof *modules;
}

static uintptr_t random_code(void)
{
    const struct unwind_module *module = &modules[random_word() % module_count];
    return module->code + random_word() % module->code_bytes;
}

static uintptr_t random_address(void)
{
    char here;
    switch (random_word() % 6) {
    case 0:
        return random_word();
    case 1:
        return random_word() >> 17;
    case 2:
        return random_word() % 4096;
    case 3:
        return random_code();
    default:
        return ((uintptr_t)&here + random_word() % 16384) & ~(uintptr_t)7;
    }
}

static void garbage_ends_the_walk(void **state)
{
    unsigned steps = 0;
    begin();
    module_count = 0;
    dl_iterate_phdr(take_module, NULL);
    assert_true(module_count >= 3);
    for (unsigned i = 0; i < 100000; i++) {
        struct unwind_cursor cursor = {
            .pc = i % 4 ? random_code() : random_address(),
            .sp = random_address(),
            .rbp = random_address(),
            .rbx = random_address(),
            .registers = i % 2 ? random_address() : 0,
        };
        unsigned room = 64;
        while (--room && unwind_step(&cursor))
            steps++;
    }
    assert_true(steps > 1000); /* else nothing was tried */
    assert_true(faults > 1000);
}

/* libgcc's search and ours agree above; here the one for libcs without _dl_find_object(). */
static void list_of_modules_is_as_good(void **state)
{
    begin();
    module_count = 0;
    dl_iterate_phdr(take_module, NULL);
    for (unsigned i = 0; i < 2000; i++) {
        uintptr_t pc = random_code();
        struct module by_list, by_libc;
        assert_true(module_find_by_list(pc, &by_list));
        assert_true(module_find(pc, &by_libc));
        assert_true(by_list.unwind_table);
        assert_true(by_list.unwind_table == by_libc.unwind_table);
        assert_true(by_list.start <= pc && pc < by_list.end);
        assert_string_equal(by_list.name, by_libc.name);
    }
    char *outside = malloc(1);
    assert_non_null(outside);
    struct module none;
    assert_false(module_find_by_list((uintptr_t)outside, &none));
    assert_false(module_find_by_list(16, &none));
    free(outside);
}

/* The module with the largest tables: libc, or a sanitizer's. */
static const struct unwind_module *largest_module(void)
{
    const struct unwind_module *largest = &modules[0];
    for (unsigned i = 1; i < module_count; i++)
        if (modules[i].table_bytes > largest->table_bytes)
            largest = &modules[i];
    return largest;
}

/*
 * All references inside the tables are relative, so that a copy of them
 * describes functions at the same distance from the copy.
 */
static void damaged_tables_do_no_harm(void **state)
{
    begin();
    module_count = 0;
    dl_iterate_phdr(take_module, NULL);
    const struct unwind_module *module = largest_module();
    uint8_t *copy = malloc(module->table_bytes);
    assert_non_null(copy);
    memcpy(copy, (void *)module->table, module->table_bytes);
    uintptr_t distance = (uintptr_t)copy - module->table;
    int32_t *entries = (int32_t *)(copy + 12);
    uint32_t count = *(uint32_t *)(copy + 8);
    unsigned changed = 0;
    for (unsigned i = 0; i < 100000; i++) {
        union unwind_rule good, bad;
        uint32_t chosen = (uint32_t)(random_word() % count);
        uintptr_t pc =
            module->table + (uintptr_t)(intptr_t)entries[2 * chosen] + random_word() % 64;
        assert_true(unwind_cfi_rule(module->table, pc, &good));
        assert_true(unwind_cfi_rule((uintptr_t)copy, pc + distance, &bad));
        if (good.type != UNWIND_SIGNAL) /* recognised by its code, which was not copied */
            assert_true(good.word == bad.word);

        uint8_t *victim = copy + entries[2 * chosen + 1] + random_word() % 48;
        if (victim >= copy + module->table_bytes)
            continue;
        uint8_t before = *victim;
        *victim = (uint8_t)random_word();
        changed += !unwind_cfi_rule((uintptr_t)copy, pc + distance, &bad) || bad.word != good.word;
        *victim = before;
    }
    assert_true(changed > 1000);
    free(copy);
}

static void on_probe(int number, siginfo_t *info, void *context)
{
    compare(context);
}

static void probe(void)
{
    raise(SIGURG);
}

/* Two modules, one after the other at one address, with frames of different size. */
static void forgets_unloaded_modules(void **state)
{
    static const char *const paths[] = {PLUGIN_SMALL, PLUGIN_LARGE};
    void *function = NULL;
    begin();
    handle(SIGURG, on_probe, 0);
    for (unsigned i = 0; i < 4; i++) {
        void *plugin = dlopen(paths[i % 2], RTLD_NOW);
        assert_non_null(plugin);
        void (*enter)(void (*)(void));
        *(void **)&enter = dlsym(plugin, "plugin_enter");
        if (i && function != (void *)enter)
            skip(); /* the kernel chose another address: nothing to mix up */
        function = (void *)enter;
        enter(probe);
        assert_int_equal(dlclose(plugin), 0);
        unwind_forget();
    }
    assert_all_same(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_through_sorting),
        cmocka_unit_test(steps_through_recursion),
        cmocka_unit_test(steps_through_frame_pointers),
        cmocka_unit_test(steps_through_dynamic_frames),
        cmocka_unit_test(steps_through_realigned_frames),
        cmocka_unit_test(steps_through_realigned_under_dynamic),
        cmocka_unit_test(steps_through_calls_without_return),
        cmocka_unit_test(steps_through_formatting),
        cmocka_unit_test(steps_through_allocating),
        cmocka_unit_test(steps_through_matching),
        cmocka_unit_test(steps_through_asking_the_kernel),
        cmocka_unit_test(steps_through_binding_lazily),
        cmocka_unit_test(steps_through_signalled),
        cmocka_unit_test(steps_through_signalled_on_another_stack),
        cmocka_unit_test(knows_better_after_leave),
        cmocka_unit_test(survives_wrong_frame_information),
        cmocka_unit_test(timer_samples_of_a_thread),
        cmocka_unit_test(garbage_ends_the_walk),
        cmocka_unit_test(list_of_modules_is_as_good),
        cmocka_unit_test(damaged_tables_do_no_harm),
        cmocka_unit_test(forgets_unloaded_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* meson: skipped */
}

#endif
