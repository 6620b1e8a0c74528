/*
 * From the JSON document to struct profile, by the tables of json_tables.h.  Called
 * by the view command and by whatever works on finished profiles.
 */
#include "profile/json_read.h"

#include "profile/json_reader.h"
#include "profile/json_stacks.h"
#include "profile/json_tables.h"

#include <stdlib.h>
#include <string.h>

/* Line number as text -> likelihood and velocity. */
static int read_leaks(struct reader *reader, const json_t *object, const struct json_path *path,
                      struct profile_file *file)
{
    const struct json_path leaks_path = {.up = path, .key = "leaks"};
    json_t *leaks = json_object_get(object, "leaks");
    const char *key;
    json_t *value;
    json_object_foreach(leaks, key, value)
    {
        const struct json_path here = {.up = &leaks_path, .key = key};
        unsigned long lineno = strtoul(key, NULL, 10);
        struct profile_leak leak = {0};
        if (reader_fields(reader, &json_table_leak, value, &here, &leak))
            return -1;
        struct profile_line *line =
            lineno <= LINENO_MAX ? profile_line_at(file, (uint32_t)lineno) : NULL;
        if (line)
            line->memory.leak = leak;
    }
    return 0;
}

/* The six-character texts that stand for &, < and > become those characters. */
static str_id unescaped(struct intern *strings, const char *text, size_t length)
{
    if (!memmem(text, length, "\\u00", 4))
        return intern_add(strings, text, length);
    struct buf plain = {0};
    for (size_t i = 0; i < length; i++) {
        static const struct {
            char escape[7], plain;
        } known[] = {{"\\u0026", '&'}, {"\\u003c", '<'}, {"\\u003e", '>'}};
        char c = text[i];
        for (size_t k = 0; k < 3 && length - i >= 6 && text[i] == '\\'; k++) {
            if (!strncasecmp(text + i, known[k].escape, 6)) {
                c = known[k].plain;
                i += 5;
                break;
            }
        }
        buf_char(&plain, c);
    }
    str_id id = intern_add(strings, plain.data, plain.len);
    buf_release(&plain);
    return id;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int read_stamps(struct reader *reader, const json_t *object, const struct json_path *path,
                       struct profile_line *line)
{
    double *all = NULL;
    uint32_t count = 0;
    if (reader_list(reader, object, path, "cpu_samples_list", sizeof *all, reader_real, &all,
                    &count))
        return -1;
    if (count)
        qsort(all, count, sizeof *all, compare_reals);
    /* Too many are thinned evenly, so that the shape over time stays. */
    uint32_t kept = count < PROFILE_STAMPS_MAX ? count : PROFILE_STAMPS_MAX;
    for (uint32_t i = 0; i < kept; i++)
        all[i] = all[(uint64_t)i * count / kept];
    line->stamps = all;
    line->stamp_count = kept;
    return 0;
}

static double seconds_of(const struct reader *reader, double sec, double percent)
{
    return sec >= 0 ? sec : percent / 100 * reader->profile->total_sec;
}

/* What follows from the fields, and the timelines; the original has only the program's. */
static int read_memory(struct reader *reader, const json_t *value, const struct json_path *path,
                       struct json_raw_line *raw)
{
    struct profile_memory *memory = &raw->line.memory;
    uint32_t own_count = 0;
    memory->python_mb = raw->python_fraction * memory->allocated_mb;
    if (!json_object_get(value, "n_copy_mb"))
        memory->copied_mb = raw->copy_mb_s * reader->profile->elapsed_sec;
    /* The usage fraction of any line tells the whole that no other field of the original does. */
    struct profile_memory *all = &reader->profile->all_memory;
    if (!(all->allocated_mb > 0) && raw->usage_fraction > 0)
        all->allocated_mb = memory->allocated_mb / raw->usage_fraction;
    if (reader_points(reader, value, path, "memory_samples", &memory->points,
                      &memory->point_count) ||
        reader_points(reader, value, path, "live_samples", &memory->own, &own_count))
        return -1;
    if (own_count != memory->point_count)
        memory->own = memory->points;
    return 0;
}

/* The original tells no seconds of awaiting, but how it is shared out: of a time that is at most
 * the elapsed one. */
static int read_async(struct reader *reader, const json_t *value, const struct json_path *path,
                      struct json_raw_line *raw)
{
    struct profile_async *async = &raw->line.async;
    struct profile_loops *loops = &reader->profile->loops;
    if (!json_object_get(value, "async_await_sec") && raw->await_percent > 0) {
        if (!(loops->await_sec > 0))
            loops->await_sec = reader->profile->total_sec;
        async->await_sec = raw->await_percent / 100 * loops->await_sec;
    }
    if (raw->concurrency_mean > 0)
        async->present_sec = (async->await_sec + async->join_sec) / raw->concurrency_mean;
    if (reader_list(reader, value, path, "async_task_names", sizeof *async->names, reader_string,
                    &async->names, &async->name_count))
        return -1;
    if (async->name_count > PROFILE_TASK_NAMES_MAX)
        async->name_count = PROFILE_TASK_NAMES_MAX;
    return 0;
}

static int read_line(struct reader *reader, const json_t *value, const struct json_path *path,
                     void *item)
{
    struct json_raw_line raw = {.python_sec = -1, .native_sec = -1, .system_sec = -1};
    if (reader_fields(reader, &json_table_line, value, path, &raw))
        return -1;
    if (!raw.line.lineno)
        return json_field_fail(path, reader->err, "\"lineno\" is missing");
    double percent = raw.python_percent + raw.native_percent + raw.system_percent;
    if (percent >= 101)
        return json_field_fail(path, reader->err,
                               "n_cpu_percent_python, n_cpu_percent_c and n_sys_percent add up to "
                               "%.1f, expected at most 100",
                               percent);
    const json_t *text = json_object_get(value, "line");
    const struct json_path text_path = {.up = path, .key = "line"};
    if (text && !json_is_string(text))
        return json_field_expected(&text_path, "text", text, reader->err);
    if (text)
        raw.line.text =
            unescaped(&reader->profile->strings, json_string_value(text), json_string_length(text));
    raw.line.time.python_sec = seconds_of(reader, raw.python_sec, raw.python_percent);
    raw.line.time.native_sec = seconds_of(reader, raw.native_sec, raw.native_percent);
    raw.line.time.system_sec = seconds_of(reader, raw.system_sec, raw.system_percent);
    if (reader_waits(reader, value, path, &raw.line.time) ||
        read_stamps(reader, value, path, &raw.line) || read_memory(reader, value, path, &raw) ||
        read_async(reader, value, path, &raw))
        return -1;
    *(struct profile_line *)item = raw.line;
    return 0;
}

static int check_order(struct reader *reader, const struct json_path *path,
                       const struct profile_file *file)
{
    const struct json_path lines_path = {.up = path, .key = "lines"};
    for (uint32_t i = 1; i < file->line_count; i++) {
        const struct json_path here = {.up = &lines_path, .index = i};
        if (file->lines[i].lineno <= file->lines[i - 1].lineno)
            return json_field_fail(&here, reader->err, "line numbers do not ascend");
    }
    return 0;
}

/* Of a file everything but its lines and functions, which are nearly all of it. */
static int read_file_rest(struct reader *reader, const json_t *value, const struct json_path *path,
                          struct profile_file *file)
{
    if (reader_fields(reader, &json_table_file, value, path, file) ||
        reader_waits(reader, value, path, &file->time) ||
        reader_list(reader, value, path, "imports", sizeof *file->imports, reader_string,
                    &file->imports, &file->import_count) ||
        read_leaks(reader, value, path, file))
        return -1;
    /* The original tells no seconds of files, and neither of us the waits: they are the lines'. */
    struct profile_time sum = {0};
    for (uint32_t i = 0; i < file->line_count; i++)
        profile_time_add(&sum, &file->lines[i].time);
    if (!json_object_get(value, "cpu_python_sec"))
        file->time = sum;
    else if (!json_object_get(value, "waits"))
        memcpy(file->time.wait_sec, sum.wait_sec, sizeof sum.wait_sec);
    return 0;
}

static int read_file(struct reader *reader, struct json_slice slice, const struct json_path *path,
                     struct profile_file *file)
{
    enum { LINES, FUNCTIONS, LARGE };
    static const char *const large[] = {[LINES] = "lines", [FUNCTIONS] = "functions", NULL};
    struct json_slice slices[LARGE];
    if (json_walk_type(reader->document, slice) != '{')
        return reader_wrong_type(reader, slice, path, "an object");
    json_t *rest = json_walk_object(reader->document, slice, large, slices);
    int rc =
        !rest ||
        reader_long_list(reader, slices[LINES], path, large[LINES], sizeof *file->lines, read_line,
                         &file->lines, &file->line_count) ||
        check_order(reader, path, file) ||
        reader_long_list(reader, slices[FUNCTIONS], path, large[FUNCTIONS], sizeof *file->functions,
                         read_line, &file->functions, &file->function_count) ||
        read_file_rest(reader, rest, path, file);
    json_decref(rest);
    return rc ? -1 : 0;
}

static int compare_files(const void *a, const void *b, void *context)
{
    const struct profile *profile = context;
    const struct profile_file *x = a, *y = b;
    return strcmp(profile_str(profile, x->name), profile_str(profile, y->name));
}

/* The place for a file of that name; of two in the document the last one counts. */
static struct profile_file *place_file(struct reader *reader, const char *name)
{
    struct profile *profile = reader->profile;
    str_id id = intern_cstr(&profile->strings, name);
    uint64_t *place = map_put(&reader->traced, id, NULL);
    if (!*place)
        *place = ++profile->file_count;
    struct profile_file *file = &profile->files[*place - 1];
    *file = (struct profile_file){.name = id};
    return file;
}

static int read_files(struct reader *reader, struct json_slice files)
{
    struct profile *profile = reader->profile;
    const struct json_path files_path = {.key = "files"};
    struct json_walk walk;
    struct json_slice slice;
    json_t *name;
    size_t count = 0;
    int more;
    if (!files.end)
        return err_set(reader->err, "this is no Scalene profile: it has no \"files\"");
    if (json_walk_type(reader->document, files) != '{')
        return reader_wrong_type(reader, files, &files_path, "an object");
    json_walk_begin(&walk, reader->document, files);
    while ((more = json_walk_next(&walk, NULL, &slice)) > 0)
        count++;
    profile->files = pool_alloc(&profile->pool, count * sizeof *profile->files);
    json_walk_begin(&walk, reader->document, files);
    while (!more && json_walk_next(&walk, &name, &slice) > 0) {
        const struct json_path path = {.up = &files_path, .key = json_string_value(name)};
        more = read_file(reader, slice, &path, place_file(reader, path.key));
        json_decref(name);
    }
    if (more)
        return -1;
    if (profile->file_count)
        qsort_r(profile->files, profile->file_count, sizeof *profile->files, compare_files,
                profile);
    return 0;
}

static int read_process(struct reader *reader, const json_t *value, const struct json_path *path,
                        void *item)
{
    struct json_raw_process raw = {.process = {.count = 1, .exit_status = -1}};
    if (reader_fields(reader, &json_table_process, value, path, &raw))
        return -1;
    raw.process.peak_rss_bytes = (uint64_t)(raw.peak_rss_mb * 1048576.0);
    const json_t *memory = json_object_get(value, "memory");
    const struct json_path memory_path = {.up = path, .key = "memory"};
    raw.process.has_memory = memory && !json_is_null(memory);
    if (raw.process.has_memory &&
        reader_fields(reader, &json_table_resident, memory, &memory_path, &raw.process))
        return -1;
    *(struct profile_process *)item = raw.process;
    return 0;
}

static int read_thread(struct reader *reader, const json_t *value, const struct json_path *path,
                       void *item)
{
    ((struct profile_thread *)item)->count = 1;
    return reader_fields(reader, &json_table_thread, value, path, item);
}

static int read_loss(struct reader *reader, const json_t *value, const struct json_path *path,
                     void *item)
{
    return reader_fields(reader, &json_table_loss, value, path, item);
}

static int read_section(struct reader *reader, const json_t *root, const char *key,
                        const struct json_fields *fields)
{
    const json_t *object = json_object_get(root, key);
    const struct json_path path = {.key = key};
    return object ? reader_fields(reader, fields, object, &path, reader->profile) : 0;
}

/* [seconds, tasks] */
static int read_crowd(struct reader *reader, const json_t *value, const struct json_path *path,
                      void *item)
{
    static const struct json_field at_sec = {"", SECONDS, AT(profile_crowd, at_sec)};
    static const struct json_field tasks = {"", COUNT, AT(profile_crowd, tasks)};
    const json_t *at = json_array_get(value, 0), *count = json_array_get(value, 1);
    if (!at || !count)
        return json_field_expected(path, "a time and a number of tasks", value, reader->err);
    return json_field_store(&at_sec, at, path, NULL, item, reader->err) ||
                   json_field_store(&tasks, count, path, NULL, item, reader->err)
               ? -1
               : 0;
}

static int read_loops(struct reader *reader, const json_t *root)
{
    struct profile_loops *loops = &reader->profile->loops;
    if (read_section(reader, root, "async", &json_table_async) ||
        reader_list(reader, json_object_get(root, "async"), &(struct json_path){.key = "async"},
                    "tasks", sizeof *loops->crowd, read_crowd, &loops->crowd, &loops->crowd_count))
        return -1;
    if (loops->crowd_count > PROFILE_POINTS_MAX)
        loops->crowd_count = PROFILE_POINTS_MAX;
    return 0;
}

static int read_place(struct reader *reader, const json_t *value, const struct json_path *path,
                      void *item)
{
    return reader_fields(reader, &json_table_place, value, path, item);
}

static int read_frame(struct reader *reader, const json_t *value, const struct json_path *path,
                      void *item)
{
    struct profile_frame *frame = item;
    if (reader_fields(reader, &json_table_frame, value, path, frame))
        return -1;
    const char *kind = json_string_value(json_object_get(value, "kind"));
    frame->is_native = kind && !strcmp(kind, "native");
    frame->traced = map_get(&reader->traced, frame->file) != NULL;
    return 0;
}

static int read_frames(struct reader *reader, const json_t *list, const struct json_path *path,
                       struct profile_frame **frames, uint32_t *count)
{
    const struct json_path list_path = {.up = path, .index = 0};
    size_t size = json_array_size(list);
    *frames = pool_alloc(&reader->profile->pool, size * sizeof **frames);
    *count = (uint32_t)size;
    for (size_t i = 0; i < size; i++) {
        const struct json_path here = {.up = &list_path, .index = i};
        if (read_frame(reader, json_array_get(list, i), &here, &(*frames)[i]))
            return -1;
    }
    return 0;
}

/* [[frame, ...], MB] */
static int read_memory_stack(struct reader *reader, const json_t *value,
                             const struct json_path *path, void *item)
{
    static const struct json_field mb = {"", AMOUNT, AT(profile_memory_stack, mb)};
    struct profile_memory_stack *stack = item;
    const json_t *frames = json_array_get(value, 0), *amount = json_array_get(value, 1);
    if (!json_is_array(frames) || !amount)
        return json_field_expected(path, "a list of frames and megabytes", value, reader->err);
    const struct json_path amount_path = {.up = path, .index = 1};
    if (json_field_store(&mb, amount, &amount_path, NULL, stack, reader->err))
        return -1;
    return read_frames(reader, frames, path, &stack->frames, &stack->frame_count);
}

/* [[frame, ...], hits] */
static int read_stack(struct reader *reader, const json_t *value, const struct json_path *path,
                      void *item)
{
    static const struct json_field hits = {"", COUNT, AT(profile_stack, hits)};
    struct profile_stack *stack = item;
    const json_t *frames = json_array_get(value, 0), *count = json_array_get(value, 1);
    if (!json_is_array(frames) || !count)
        return json_field_expected(path, "a list of frames and a count", value, reader->err);
    const struct json_path count_path = {.up = path, .index = 1};
    if (json_field_store(&hits, count, &count_path, NULL, stack, reader->err))
        return -1;
    return read_frames(reader, frames, path, &stack->frames, &stack->frame_count);
}

static int read_run(struct reader *reader, const json_t *value, const struct json_path *path,
                    void *item)
{
    struct profile_run *run = item;
    if (reader_fields(reader, &json_table_run, value, path, run))
        return -1;
    if (run->stack >= reader->profile->stack_count)
        return json_field_fail(path, reader->err, "there is no stack %u in combined_stacks",
                               run->stack);
    return 0;
}

/* What may be large in a profile, and is read member by member. */
enum { FILES, STACKS, TIMELINE, MEMORY_STACKS, LARGE };
static const char *const large_keys[] = {[FILES] = "files",
                                         [STACKS] = "combined_stacks",
                                         [TIMELINE] = "combined_stacks_timeline",
                                         [MEMORY_STACKS] = "memory_stacks",
                                         NULL};

static int read_long_lists(struct reader *reader, const struct json_slice *large)
{
    struct profile *profile = reader->profile;
    return reader_long_list(reader, large[STACKS], NULL, large_keys[STACKS],
                            sizeof *profile->stacks, read_stack, &profile->stacks,
                            &profile->stack_count) ||
                   reader_long_list(reader, large[TIMELINE], NULL, large_keys[TIMELINE],
                                    sizeof *profile->runs, read_run, &profile->runs,
                                    &profile->run_count) ||
                   reader_long_list(reader, large[MEMORY_STACKS], NULL, large_keys[MEMORY_STACKS],
                                    sizeof *profile->memory_stacks, read_memory_stack,
                                    &profile->memory_stacks, &profile->memory_stack_count)
               ? -1
               : 0;
}

static int read_lists(struct reader *reader, const json_t *root)
{
    struct profile *profile = reader->profile;
    const json_t *args = json_object_get(root, "args");
    profile->has_args = args && !json_is_null(args);
    if (profile->has_args && reader_list(reader, root, NULL, "args", sizeof *profile->args,
                                         reader_string, &profile->args, &profile->arg_count))
        return -1;
    if (reader_list(reader, root, NULL, "processes", sizeof *profile->processes, read_process,
                    &profile->processes, &profile->process_count) ||
        reader_list(reader, root, NULL, "threads", sizeof *profile->threads, read_thread,
                    &profile->threads, &profile->thread_count) ||
        reader_list(reader, root, NULL, "losses", sizeof *profile->losses, read_loss,
                    &profile->losses, &profile->loss_count) ||
        reader_list(reader, json_object_get(root, "untraced"),
                    &(struct json_path){.key = "untraced"}, "hottest", sizeof *profile->elsewhere,
                    read_place, &profile->elsewhere, &profile->elsewhere_count) ||
        reader_list(reader, root, NULL, "notes", sizeof *profile->notes, reader_string,
                    &profile->notes, &profile->note_count))
        return -1;
    return 0;
}

static int check_schema(const struct reader *reader, const json_t *root)
{
    static const struct json_field version_field = {"", FIELD_U32, 1, UINT32_MAX, false, 0};
    const json_t *value = json_object_get(root, "schema_version");
    const struct json_path path = {.key = "schema_version"};
    uint32_t version = 0;
    if (!value)
        return 0;
    if (json_field_store(&version_field, value, &path, NULL, &version, reader->err))
        return -1;
    if (version > JSON_READ_SCHEMA)
        return err_set(reader->err,
                       "this profile was written by a newer scalene (schema_version %u; this one "
                       "reads up to %d)",
                       version, JSON_READ_SCHEMA);
    return 0;
}

static int read_root(struct reader *reader, const json_t *root, const struct json_slice *large)
{
    struct profile *profile = reader->profile;
    if (check_schema(reader, root) || reader_fields(reader, &json_table_top, root, NULL, profile))
        return -1;
    if (!json_object_get(root, "total_time_sec")) {
        if (!json_object_get(root, "elapsed_time_sec"))
            return err_set(reader->err, "\"elapsed_time_sec\" is missing");
        profile->total_sec = profile->elapsed_sec;
    }
    if (read_section(reader, root, "untraced", &json_table_untraced) ||
        read_section(reader, root, "overhead", &json_table_overhead) ||
        read_section(reader, root, "sampling", &json_table_sampling) ||
        read_section(reader, root, "memory_total", &json_table_memory_total) ||
        read_section(reader, root, "memory_untraced", &json_table_memory_untraced) ||
        read_loops(reader, root) ||
        reader_points(reader, root, NULL, "samples", &profile->all_memory.points,
                      &profile->all_memory.point_count) ||
        reader_waits(reader, root, NULL, &profile->time) || read_files(reader, large[FILES]) ||
        read_long_lists(reader, large) || read_lists(reader, root))
        return -1;
    json_stacks_read(profile, json_object_get(root, "stacks"));
    if (!json_object_get(root, "cpu_python_sec"))
        for (uint32_t i = 0; i < profile->file_count; i++)
            profile_time_add(&profile->time, &profile->files[i].time);
    profile->empty = !profile->file_count && !(profile_time_sum(&profile->time) > 0);
    return 0;
}

/* A document that is no object is small, or none of ours: jansson tells what is wrong with it. */
static int refuse_root(struct reader *reader)
{
    json_error_t error;
    json_t *value = json_loadb(reader->document->text, reader->document->length, 0, &error);
    if (!value) {
        reader->document->is_broken = true;
        return err_set(reader->err, "line %d, column %d: %s", error.line, error.column, error.text);
    }
    json_decref(value);
    return err_set(reader->err, "this is no Scalene profile: expected an object, got a list");
}

static int read_document(struct reader *reader)
{
    struct json_slice slice, large[LARGE];
    if (json_walk_root(reader->document, &slice))
        return -1;
    json_t *root = json_walk_object(reader->document, slice, large_keys, large);
    if (!root)
        return -1;
    bool is_empty = !json_object_size(root);
    for (size_t i = 0; i < LARGE; i++)
        is_empty = is_empty && !large[i].end;
    int rc = 0;
    if (is_empty)
        reader->profile->empty = true;
    else
        rc = read_root(reader, root, large);
    json_decref(root);
    return rc;
}

int json_read_profile(struct profile *profile, const char *text, size_t length, struct err *err)
{
    struct json_document document = {.text = text, .length = length, .err = err};
    struct reader reader = {.document = &document, .profile = profile, .err = err};
    profile_init(profile);
    int rc = json_walk_first(&document) == '{' ? read_document(&reader) : refuse_root(&reader);
    map_release(&reader.traced);
    if (!rc)
        return 0;
    profile_release(profile);
    return document.is_broken ? JSON_READ_SYNTAX : JSON_READ_INVALID;
}
