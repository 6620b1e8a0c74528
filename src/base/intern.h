/*
 * Strings as small ids: equal texts get equal ids, id 0 is the empty string.
 * Texts are NUL-terminated and live until release.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/map.h"
#include "base/mem.h"

typedef uint32_t str_id;

struct intern {
    struct pool pool;
    struct map index; /* hash -> first id + 1 of the chain */
    struct intern_text *texts;
    size_t count, cap;
};

str_id intern_add(struct intern *intern, const char *text, size_t length);
str_id intern_cstr(struct intern *intern, const char *text);
const char *intern_get(const struct intern *intern, str_id id);
size_t intern_length(const struct intern *intern, str_id id);
void intern_release(struct intern *intern);

#endif
