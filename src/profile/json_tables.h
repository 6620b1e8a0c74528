/*
 * The list of everything that is known in a profile's JSON document, as tables of
 * fields (json_field.h); docs/format.md says what each means.  json_read.c reads a
 * profile by them.
 */
#ifndef PROFILE_JSON_TABLES_H
#define PROFILE_JSON_TABLES_H

#include "profile/json_field.h"
#include "profile/profile.h"

/* A line or function before percents are turned into seconds; -1 = absent. */
struct json_raw_line {
    struct profile_line line;
    double python_sec, native_sec, system_sec;
    double python_percent, native_percent, system_percent;
    double python_fraction, usage_fraction, copy_mb_s;
    double await_percent, concurrency_mean;
};

struct json_raw_process {
    struct profile_process process;
    double peak_rss_mb;
};

/* Their targets: struct profile of the first ones, */
extern const struct json_fields json_table_top, json_table_untraced, json_table_memory_total,
    json_table_memory_untraced, json_table_overhead, json_table_sampling, json_table_async;
/* json_raw_line, json_raw_process and its profile_process, */
extern const struct json_fields json_table_line, json_table_process, json_table_resident;
/* and of the others the struct of that name: profile_file, ... */
extern const struct json_fields json_table_file, json_table_place, json_table_leak,
    json_table_thread, json_table_loss, json_table_frame, json_table_run;

#endif
