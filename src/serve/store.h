/*
 * The profiles that the page can ask for, by number: 0 is the file that was
 * named, others were opened in the page.  A file that changes is read again; one
 * that cannot be read then, because it is half written or gone, leaves the last
 * good reading in place.
 */
#ifndef SERVE_STORE_H
#define SERVE_STORE_H

#include "base/err.h"
#include "profile/profile.h"
#include "view/parts.h"

#include <sys/stat.h>

enum { STORE_PROFILES_MAX = 16 };

struct store_entry {
    struct profile profile;
    char *path; /* as it was named; "" if it was opened in the page */
    char *text; /* of one opened in the page: there is no file to send back */
    size_t text_length;
    uint64_t generation; /* 1 for the first reading */
    struct stat seen;    /* the file when it was last looked at */
};

struct store {
    struct store_entry entries[STORE_PROFILES_MAX];
    uint32_t count;
};

/* Read the next profile from its text, which is that of the file at `path`, or came from the page
 * if that is NULL; then the text is copied.  0, or one of json_read.h. */
int store_open(struct store *store, const char *path, const char *text, size_t length,
               struct err *err);
/* Has the file of profile 0 changed, and does it have a new reading? */
bool store_refresh(struct store *store);
void store_release(struct store *store);

struct parts store_parts(const struct store_entry *entry);

#endif
