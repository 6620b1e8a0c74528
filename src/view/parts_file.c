/* The part of one file: its text with colours, and the figures of its lines and functions. */
#include "profile/json_put.h"
#include "view/colours.h"
#include "view/parts_columns.h"
#include "view/parts_put.h"

#include <stdlib.h>
#include <string.h>

/* null where the lines are all there, which is nearly always. */
static void put_numbers(const struct profile_file *file, struct json_out *out)
{
    bool is_plain = true;
    for (uint32_t i = 0; i < file->line_count && is_plain; i++)
        is_plain = file->lines[i].lineno == i + 1;
    json_out_key(out, "numbers");
    if (is_plain) {
        json_out_null(out);
        return;
    }
    json_out_array(out);
    for (uint32_t i = 0; i < file->line_count; i++)
        json_out_int(out, file->lines[i].lineno);
    json_out_end(out);
}

static void put_colours(const struct colours *colours, struct json_out *out)
{
    json_out_key(out, "colours");
    json_out_array(out);
    for (uint32_t i = 0; i < colours->line_count; i++)
        colours_put_line(colours, i, out);
    json_out_end(out);
}

static void put_columns(const struct profile *profile, const struct profile_line *lines,
                        uint32_t count, bool are_functions, struct json_out *out)
{
    struct parts_rows rows = {.profile = profile, .lines = lines, .are_functions = are_functions};
    uint32_t *chosen = mem_zalloc(count, sizeof *chosen);
    for (uint32_t i = 0; i < count; i++)
        if (parts_is_active(&lines[i]))
            chosen[rows.count++] = i;
    rows.rows = chosen;
    json_out_key(out, are_functions ? "functions" : "lines");
    json_out_object(out);
    parts_columns(&rows, out);
    json_out_end(out);
    free(chosen);
}

static void put_imports(const struct profile *profile, const struct profile_file *file,
                        struct json_out *out)
{
    json_out_key(out, "imports");
    json_out_array(out);
    for (uint32_t i = 0; i < file->import_count; i++)
        json_put_text(out, profile, file->imports[i]);
    json_out_end(out);
}

void parts_file(const struct parts *parts, uint32_t id, struct buf *out)
{
    const struct profile *profile = parts->profile;
    const struct profile_file *file = &profile->files[id];
    struct colours colours;
    struct json_out json;
    colours_init(&colours, profile, file);
    json_out_begin_compact(&json, out);
    json_out_object(&json);
    put_colours(&colours, &json);
    put_columns(profile, file->functions, file->function_count, true, &json);
    parts_put_generation(parts, &json);
    json_out_key(&json, "id");
    json_out_int(&json, id);
    put_imports(profile, file, &json);
    parts_put_leaks(file, &json);
    put_columns(profile, file->lines, file->line_count, false, &json);
    json_out_key(&json, "name");
    json_put_text(&json, profile, file->name);
    put_numbers(file, &json);
    json_out_key(&json, "text");
    colours_put_text(&colours, &json);
    json_out_end(&json);
    colours_release(&colours);
}
