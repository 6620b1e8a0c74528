/*
 * Shows what it was started with, for test_environment.c and test_shell.c: its words, its
 * environment, each as "=text" with a NUL behind it and one more behind the last, and the signals
 * it has blocked and ignores.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static uint64_t ignored(void)
{
    uint64_t mask = 0;
    for (int number = 1; number <= 64; number++) {
        struct {
            void (*handler)(int);
            unsigned long flags;
            void *restorer;
            uint64_t mask;
        } action = {0};
        if (!syscall(SYS_rt_sigaction, number, NULL, &action, sizeof action.mask) &&
            action.handler == SIG_IGN)
            mask |= (uint64_t)1 << (number - 1);
    }
    return mask;
}

static void show(char *const *list)
{
    for (; *list; list++)
        printf("=%s%c", *list, '\0');
    printf("%c", '\0');
}

int main(int argc, char **argv)
{
    uint64_t blocked = 0;
    (void)argc;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked);
    show(argv);
    show(environ);
    printf("%llx %llx", (unsigned long long)blocked, (unsigned long long)ignored());
    return 0;
}
