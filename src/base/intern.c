#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

struct intern_text {
    const char *text;
    size_t length;
    str_id next; /* id + 1 of the next text with the same hash */
};

str_id intern_add(struct intern *intern, const char *text, size_t length)
{
    if (!intern->count)
        VEC_PUSH(intern->texts, intern->count, intern->cap) = (struct intern_text){"", 0, 0};
    if (!length)
        return 0;
    bool is_new;
    uint64_t *head = map_put(&intern->index, hash_bytes(text, length), &is_new);
    for (uint64_t at = *head; at; at = intern->texts[at - 1].next)
        if (intern->texts[at - 1].length == length &&
            !memcmp(intern->texts[at - 1].text, text, length))
            return (str_id)(at - 1);
    str_id next = (str_id)*head;
    *head = intern->count + 1;
    char *copy = pool_strndup(&intern->pool, text, length);
    VEC_PUSH(intern->texts, intern->count, intern->cap) = (struct intern_text){copy, length, next};
    return (str_id)(intern->count - 1);
}

str_id intern_cstr(struct intern *intern, const char *text)
{
    return intern_add(intern, text, strlen(text));
}

const char *intern_get(const struct intern *intern, str_id id)
{
    return id < intern->count ? intern->texts[id].text : "";
}

size_t intern_length(const struct intern *intern, str_id id)
{
    return id < intern->count ? intern->texts[id].length : 0;
}

void intern_release(struct intern *intern)
{
    pool_release(&intern->pool);
    map_release(&intern->index);
    free(intern->texts);
    *intern = (struct intern){0};
}
