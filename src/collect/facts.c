/* The facts file of a session; see facts.h.  Written by the run command, read by snapshot and
 * recover. */
#include "collect/facts.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fact_kind { FACT_TEXT, FACT_FLAG, FACT_REAL, FACT_WHOLE };

static const struct fact {
    const char *name;
    enum fact_kind kind;
    size_t field; /* in struct report_config */
} fact_table[] = {
    {"program", FACT_TEXT, offsetof(struct report_config, program)},
    {"is_module", FACT_FLAG, offsetof(struct report_config, is_module)},
    {"program_path", FACT_TEXT, offsetof(struct report_config, program_path)},
    {"work_directory", FACT_TEXT, offsetof(struct report_config, work_directory)},
    {"script", FACT_TEXT, offsetof(struct report_config, script)},
    {"script_is_command", FACT_FLAG, offsetof(struct report_config, script_is_command)},
    {"tool", FACT_TEXT, offsetof(struct report_config, tool)},
    {"profile_only", FACT_TEXT, offsetof(struct report_config, profile_only)},
    {"profile_exclude", FACT_TEXT, offsetof(struct report_config, profile_exclude)},
    {"profile_all", FACT_FLAG, offsetof(struct report_config, profile_all)},
    {"profile_system_libraries", FACT_FLAG,
     offsetof(struct report_config, profile_system_libraries)},
    {"cpu_percent_threshold", FACT_REAL, offsetof(struct report_config, cpu_percent_threshold)},
    {"stacks", FACT_FLAG, offsetof(struct report_config, stacks)},
    {"async_profile", FACT_FLAG, offsetof(struct report_config, async_profile)},
    {"memory", FACT_FLAG, offsetof(struct report_config, memory)},
    {"leaks", FACT_FLAG, offsetof(struct report_config, leaks)},
    {"malloc_threshold", FACT_WHOLE, offsetof(struct report_config, malloc_threshold)},
    {"gpu", FACT_FLAG, offsetof(struct report_config, gpu)},
    {"program_text", FACT_TEXT, offsetof(struct report_config, program_text)},
    {"reduced", FACT_FLAG, offsetof(struct report_config, reduced)},
    {"program_is_stdin", FACT_FLAG, offsetof(struct report_config, program_is_stdin)},
};
enum { FACT_COUNT = sizeof fact_table / sizeof *fact_table };

#define ARGUMENT "arg" /* one entry a word, in order */

static void put_entry(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=", name);
    buf_add(out, value, strlen(value) + 1);
}

static void put_fact(struct buf *out, const struct fact *fact, const struct report_config *config)
{
    const void *field = (const char *)config + fact->field;
    char number[40];
    switch (fact->kind) {
    case FACT_TEXT:
        if (*(const char *const *)field)
            put_entry(out, fact->name, *(const char *const *)field);
        break;
    case FACT_FLAG:
        put_entry(out, fact->name, *(const bool *)field ? "1" : "0");
        break;
    case FACT_REAL:
        snprintf(number, sizeof number, "%.17g", *(const double *)field);
        put_entry(out, fact->name, number);
        break;
    case FACT_WHOLE:
        snprintf(number, sizeof number, "%" PRIu64, *(const uint64_t *)field);
        put_entry(out, fact->name, number);
        break;
    }
}

int facts_save(const struct report_config *config, struct err *err)
{
    struct buf text = {0};
    for (size_t i = 0; i < FACT_COUNT; i++)
        put_fact(&text, &fact_table[i], config);
    for (char *const *arg = config->args; arg && *arg; arg++)
        put_entry(&text, ARGUMENT, *arg);
    char *path = mem_format("%s/%s", config->session_directory, FACTS_NAME);
    int rc = file_write_atomic(path, text.data, text.len, err);
    free(path);
    buf_release(&text);
    return rc;
}

static void take_fact(struct facts *facts, const char *name, size_t name_length, char *value)
{
    for (size_t i = 0; i < FACT_COUNT; i++) {
        const struct fact *fact = &fact_table[i];
        if (strlen(fact->name) != name_length || strncmp(fact->name, name, name_length) != 0)
            continue;
        void *field = (char *)&facts->config + fact->field;
        if (fact->kind == FACT_TEXT)
            *(const char **)field = value;
        else if (fact->kind == FACT_FLAG)
            *(bool *)field = value[0] == '1';
        else if (fact->kind == FACT_REAL)
            *(double *)field = strtod(value, NULL);
        else
            *(uint64_t *)field = strtoull(value, NULL, 10);
    }
}

/* `text` is in the pool and ends with NUL: entries and the argument list point into it. */
static void take_entries(struct facts *facts, char *text, size_t length)
{
    size_t entries = 0, arg_count = 0;
    for (size_t i = 0; i < length; i++)
        entries += !text[i];
    char **args = pool_alloc(&facts->pool, (entries + 1) * sizeof *args);
    for (char *entry = text; entry < text + length; entry += strlen(entry) + 1) {
        char *equals = strchr(entry, '=');
        if (!equals)
            continue;
        size_t name_length = (size_t)(equals - entry);
        if (name_length == strlen(ARGUMENT) && !strncmp(entry, ARGUMENT, name_length))
            args[arg_count++] = equals + 1;
        else
            take_fact(facts, entry, name_length, equals + 1);
    }
    if (arg_count)
        facts->config.args = args;
}

int facts_load(struct facts *facts, const char *directory, struct err *err)
{
    *facts = (struct facts){.config = {.session_directory = directory,
                                       .program = "",
                                       .program_path = "",
                                       .work_directory = "",
                                       .script = "",
                                       .tool = "",
                                       .profile_only = "",
                                       .profile_exclude = "",
                                       .cpu_percent_threshold = 1,
                                       .stacks = true}};
    struct buf text = {0};
    char *path = mem_format("%s/%s", directory, FACTS_NAME);
    int rc = file_read(path, &text, err);
    if (!rc && text.len) {
        buf_char(&text, '\0'); /* a file that was cut off ends here */
        char *copy = pool_alloc(&facts->pool, text.len);
        memcpy(copy, text.data, text.len);
        take_entries(facts, copy, text.len);
    }
    free(path);
    buf_release(&text);
    return rc;
}

void facts_release(struct facts *facts)
{
    pool_release(&facts->pool);
    *facts = (struct facts){0};
}
