/*
 * Errors of the library zone: a function that can fail returns 0 or a negative
 * number and takes a `struct err *` last.  It is untouched on success; on
 * failure it holds one line of text, without the program's name and without a
 * newline, ready for "scalene: %s".
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    char text[1024];
};

/* Fill `err` (which may be NULL) and return -1, so that `return err_set(...)` reads well. */
int err_set(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
