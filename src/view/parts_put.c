#include "view/parts_put.h"

void parts_put_generation(const struct parts *parts, struct json_out *out)
{
    json_out_key(out, "generation");
    json_out_int(out, (int64_t)parts->generation);
}

void parts_put_leaks(const struct profile_file *file, struct json_out *out)
{
    json_out_key(out, "leaks");
    json_out_array(out);
    for (uint32_t i = 0; i < file->line_count; i++) {
        const struct profile_leak *leak = &file->lines[i].memory.leak;
        if (!(leak->likelihood > 0))
            continue;
        json_out_object(out);
        json_out_key(out, "likelihood");
        json_out_short(out, leak->likelihood);
        json_out_key(out, "lineno");
        json_out_int(out, file->lines[i].lineno);
        json_out_key(out, "velocity_mb_s");
        json_out_short(out, leak->velocity_mb_s);
        json_out_end(out);
    }
    json_out_end(out);
}
