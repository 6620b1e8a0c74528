/*
 * The summary: all that the page shows before a file is opened.  It is the top
 * level of the profile, one row a file, and the lines that matter most.
 */
#include "profile/json_put.h"
#include "profile/json_write.h"
#include "view/parts_columns.h"
#include "view/parts_put.h"
#include "view/rank.h"

#include <math.h>
#include <stdlib.h>

enum {
    HEAT_BUCKETS = 64, /* as in gui/src/format/parts.ts */
    HOT_MAX = 50,
    HIGH_MAX = 20,
};

static void key_short(struct json_out *out, const char *key, double value)
{
    json_out_key(out, key);
    json_out_short(out, value);
}

static void key_int(struct json_out *out, const char *key, uint64_t value)
{
    json_out_key(out, key);
    json_out_int(out, (int64_t)value);
}

/* ---- files ---- */

/* What a file has on its lines. */
struct sums {
    double at_peak_mb, live_mb, allocated_mb;
    uint32_t active_count;
    double heat_sec[HEAT_BUCKETS][3]; /* Python, native, system: TimeKind of the page */
};

static void sum_up(const struct profile_file *file, struct sums *sums)
{
    *sums = (struct sums){0};
    for (uint32_t i = 0; i < file->line_count; i++) {
        const struct profile_line *line = &file->lines[i];
        double *heat = sums->heat_sec[(uint64_t)i * HEAT_BUCKETS / file->line_count];
        sums->at_peak_mb += line->memory.at_peak_mb;
        sums->live_mb += line->memory.live_mb;
        sums->allocated_mb += line->memory.allocated_mb;
        sums->active_count += parts_is_active(line);
        heat[0] += line->time.python_sec;
        heat[1] += line->time.native_sec;
        heat[2] += line->time.system_sec;
    }
}

static void put_heat(const struct sums *sums, struct json_out *out)
{
    json_out_key(out, "heat_kind");
    json_out_array(out);
    for (int i = 0; i < HEAT_BUCKETS; i++) {
        const double *sec = sums->heat_sec[i];
        json_out_int(out, sec[2] > fmax(sec[0], sec[1]) ? 2 : sec[1] > sec[0]);
    }
    json_out_end(out);
    json_out_key(out, "heat_sec");
    json_out_array(out);
    for (int i = 0; i < HEAT_BUCKETS; i++)
        json_out_short(out, sums->heat_sec[i][0] + sums->heat_sec[i][1] + sums->heat_sec[i][2]);
    json_out_end(out);
}

static void put_file(const struct profile *profile, uint32_t id, struct json_out *out)
{
    const struct profile_file *file = &profile->files[id];
    struct sums sums;
    sum_up(file, &sums);
    json_out_object(out);
    key_int(out, "active_count", sums.active_count);
    key_short(out, "allocated_mb", sums.allocated_mb);
    key_short(out, "at_peak_mb", sums.at_peak_mb);
    key_short(out, "cpu_native_sec", file->time.native_sec);
    key_short(out, "cpu_python_sec", file->time.python_sec);
    key_int(out, "function_count", file->function_count);
    put_heat(&sums, out);
    key_int(out, "id", id);
    parts_put_leaks(file, out);
    key_int(out, "line_count", file->line_count);
    key_short(out, "live_mb", sums.live_mb);
    key_int(out, "n_samples", file->time.samples);
    json_out_key(out, "name");
    json_put_text(out, profile, file->name);
    key_short(out, "percent_cpu_time",
              fmin(profile_percent(profile, profile_time_sum(&file->time)), 100));
    key_short(out, "system_sec", file->time.system_sec);
    json_out_end(out);
}

static void put_files(const struct profile *profile, struct json_out *out)
{
    uint32_t *order = rank_files(profile);
    json_out_key(out, "files");
    json_out_array(out);
    for (uint32_t i = 0; i < profile->file_count; i++)
        put_file(profile, order[i], out);
    json_out_end(out);
    free(order);
}

/* ---- lines ---- */

static void put_ranked(const struct profile *profile, const char *key, rank_value *value,
                       size_t most, struct json_out *out)
{
    struct rank_line lines[HOT_MAX];
    size_t count = rank_lines(profile, value, lines, most);
    json_out_key(out, key);
    json_out_array(out);
    for (size_t i = 0; i < count; i++) {
        const struct profile_line *line = &profile->files[lines[i].file].lines[lines[i].row];
        json_out_object(out);
        key_short(out, "cpu_native_sec", line->time.native_sec);
        key_short(out, "cpu_python_sec", line->time.python_sec);
        key_int(out, "file", lines[i].file);
        key_short(out, "half_width_percent", line->half_width_percent);
        key_int(out, "lineno", line->lineno);
        key_short(out, "n_peak_mb", line->memory.peak_mb);
        key_int(out, "n_samples", line->time.samples);
        key_short(out, "system_sec", line->time.system_sec);
        size_t length;
        const char *text = rank_text(profile, line, &length);
        json_out_key(out, "text");
        json_out_string(out, text, length);
        json_out_end(out);
    }
    json_out_end(out);
}

bool parts_is_running(const struct profile *profile)
{
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].running)
            return true;
    return false;
}

void parts_summary(const struct parts *parts, struct buf *out)
{
    const struct profile *profile = parts->profile;
    struct json_out json;
    json_out_begin_compact(&json, out);
    json_out_object(&json);
    put_files(profile, &json);
    parts_put_generation(parts, &json);
    put_ranked(profile, "high", rank_by_peak, HIGH_MAX, &json);
    put_ranked(profile, "hot", rank_by_time, HOT_MAX, &json);
    key_int(&json, "memory_stack_count", profile->memory_stack_count);
    json_out_key(&json, "path");
    json_out_cstr(&json, parts->path);
    json_out_key(&json, "profile");
    json_write_top(profile, &json);
    key_int(&json, "run_count", profile->run_count);
    json_out_key(&json, "running");
    json_out_bool(&json, parts_is_running(profile));
    key_int(&json, "stack_count", profile->stack_count);
    json_out_end(&json);
}
