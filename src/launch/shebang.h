/*
 * What the beginning of an executable says about the interpreter it wants: the
 * kernel's #! line, also through env(1), and the two-line shell scripts that
 * pip and uv write where such a line cannot hold the path.
 */
#ifndef LAUNCH_SHEBANG_H
#define LAUNCH_SHEBANG_H

#include <stdbool.h>
#include <stddef.h>

struct shebang {
    bool present; /* there is a #! line */
    char *python; /* path or name of the Python wanted; NULL: it is not a Python program */
    char *flag;   /* for the interpreter, or NULL */
    bool shim;    /* a script of pyenv that will find and exec the real one */
};

/* Never fails: what cannot be read has no shebang. */
struct shebang shebang_read(const char *path);
void shebang_release(struct shebang *shebang); /* idempotent */

/* The top-level module that an installed command imports to do its work: "black" for pip's
 * `from black import patched_main`.  The caller frees it; "" if the script does not tell, or does
 * its work itself. */
char *shebang_module(const char *path);

/* How a regular file begins, as text; empty for what must not be read from (a pipe). */
void shebang_head(const char *path, char *head, size_t size);

#endif
