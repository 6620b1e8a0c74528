/* Finding text in the source of all files, for pages that have only some of them. */
#include "view/parts_put.h"
#include "view/rank.h"

#include <stdlib.h>
#include <string.h>

enum { MATCHES_MAX = 500 };

static void add_lower(struct buf *out, const char *text, size_t length)
{
    buf_reset(out);
    for (size_t i = 0; i < length; i++)
        buf_char(out, text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 'a' - 'A') : text[i]);
}

struct search {
    const struct profile *profile;
    struct buf wanted, line; /* in small letters */
    size_t found;
    struct json_out *out;
};

/* False when there are more than fit. */
static bool search_file(struct search *search, uint32_t id)
{
    const struct profile_file *file = &search->profile->files[id];
    for (uint32_t row = 0; row < file->line_count; row++) {
        str_id text = file->lines[row].text;
        add_lower(&search->line, profile_str(search->profile, text),
                  intern_length(&search->profile->strings, text));
        if (!search->line.len ||
            !memmem(search->line.data, search->line.len, search->wanted.data, search->wanted.len))
            continue;
        if (search->found++ == MATCHES_MAX)
            return false;
        json_out_array(search->out);
        json_out_int(search->out, id);
        json_out_int(search->out, row);
        json_out_end(search->out);
    }
    return true;
}

void parts_search(const struct parts *parts, const char *text, size_t length, struct buf *out)
{
    const struct profile *profile = parts->profile;
    struct json_out json;
    struct search search = {.profile = profile, .out = &json};
    uint32_t *order = rank_files(profile);
    bool is_all = true;
    add_lower(&search.wanted, text, length);
    json_out_begin_compact(&json, out);
    json_out_object(&json);
    parts_put_generation(parts, &json);
    json_out_key(&json, "matches");
    json_out_array(&json);
    for (uint32_t i = 0; i < profile->file_count && length && is_all; i++)
        is_all = search_file(&search, order[i]);
    json_out_end(&json);
    json_out_key(&json, "more");
    json_out_bool(&json, !is_all);
    json_out_end(&json);
    free(order);
    buf_release(&search.wanted);
    buf_release(&search.line);
}
