/*
 * Assertions inside the agent, at three levels.  What level a build has is the
 * Meson option `agent_checks`:
 *
 *   0   none: every build that people use
 *   1   CHECK_CHEAP     a comparison or two on values that are at hand
 *   2   CHECK_DEBUG     with books of its own, or a few more loads
 *   3   CHECK_COSTLY    walks whole tables; where that is called now and then only
 *
 * The unit tests of the agent, the sanitizers' builds and build-checked (tools/run_tests.sh) have
 * level 3.  A condition must have no effect of its own: at a lower level it is compiled, so that it
 * does not rot, and never evaluated.
 *
 * A check says what can only be false by a fault of ours.  What the program, the system or chance
 * can bring about (a full table, a stale pointer) is not checked but counted as a loss.
 *
 * One that fails writes its place to the standard error and ends the process by SIGILL, past
 * everything the program may have put around exit or abort.  From any context.
 */
#ifndef AGENT_CORE_CHECK_H
#define AGENT_CORE_CHECK_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AGENT_CHECKS
#define AGENT_CHECKS 0
#endif

_Noreturn static inline void check_failed(const char *text, size_t length)
{
    if (syscall(SYS_write, 2, text, length) < 0) { /* the sampler has descriptors of its own */
        long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd/2", O_WRONLY);
        syscall(SYS_write, fd, text, length);
    }
    __builtin_trap();
}

#define CHECK_TEXT_(line) #line
#define CHECK_TEXT(line)  CHECK_TEXT_(line)
#define CHECK_AT(level, condition, name)                                                           \
    do {                                                                                           \
        static const char text[] =                                                                 \
            "scalene: " __FILE__ ":" CHECK_TEXT(__LINE__) ": check failed: " name "\n";            \
        if (AGENT_CHECKS >= (level) && __builtin_expect(!(condition), 0))                          \
            check_failed(text, sizeof text - 1);                                                   \
    } while (0)

#define CHECK_CHEAP(condition)  CHECK_AT(1, condition, #condition)
#define CHECK_DEBUG(condition)  CHECK_AT(2, condition, #condition)
#define CHECK_COSTLY(condition) CHECK_AT(3, condition, #condition)

#endif
