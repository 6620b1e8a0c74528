#include "base/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, "cannot open '%s': %s", path, strerror(errno));
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int saved = errno;
            close(fd);
            errno = saved;
            return err_set(err, "cannot read '%s': %s", path, strerror(saved));
        }
        if (n == 0)
            break;
        buf_add(out, chunk, (size_t)n);
    }
    close(fd);
    buf_add(out, "", 0);
    return 0;
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

int file_write_atomic(const char *path, const void *bytes, size_t length, struct err *err)
{
    /* A link is followed, so that the user's link stays one. */
    char *real = realpath(path, NULL);
    const char *target = real ? real : path;
    struct stat st;
    if (!stat(target, &st) && !S_ISREG(st.st_mode)) {
        /* A pipe or a device (/dev/stdout) cannot be replaced by a rename. */
        int fd = open(target, O_WRONLY | O_CLOEXEC);
        int rc = fd < 0 ? -1 : write_all(fd, bytes, length);
        int saved = errno;
        if (fd >= 0)
            close(fd);
        free(real);
        return rc ? err_set(err, "cannot write '%s': %s", path, strerror(saved)) : 0;
    }
    unsigned long long salt = 0;
    if (getrandom(&salt, sizeof salt, 0) < 0)
        salt = (unsigned long long)getpid();
    char *temporary = mem_format("%s.%016llx.tmp", target, salt);
    int rc = 0, fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = err_set(err, "cannot write '%s': %s", path, strerror(errno));
        goto out;
    }
    int failed = write_all(fd, bytes, length);
    int saved = errno;
    if (close(fd) && !failed) {
        failed = -1;
        saved = errno;
    }
    if (!failed && rename(temporary, target)) {
        failed = -1;
        saved = errno;
    }
    if (failed) {
        unlink(temporary);
        rc = err_set(err, "cannot write '%s': %s", path, strerror(saved));
    }
out:
    free(temporary);
    free(real);
    return rc;
}
