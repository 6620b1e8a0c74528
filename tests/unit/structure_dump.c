/*
 * Prints what src/source finds in Python files, one line of JSON for each file
 * named on the command line, for check_structure.py to compare with Python's ast:
 *
 *   {"path": P, "lines": [[start_region, end_region, start_outermost, end_outermost,
 *    start_function, end_function], ...], "functions": [[qualname, first, decorator,
 *    last, is_class, is_async], ...], "imports": [[text, module, line], ...]}
 *
 * Not installed.
 */
#include "base/buf.h"
#include "base/json_out.h"
#include "source/source.h"
#include "source/structure.h"

#include <stdio.h>
#include <string.h>

static void add_string(struct buf *out, const char *text)
{
    struct json_out json;
    json_out_begin(&json, out);
    json_out_cstr(&json, text);
}

static void add_lines(struct buf *out, const struct structure *structure)
{
    for (size_t i = 1; i <= structure->line_count; i++) {
        const struct structure_lines *line = &structure->lines[i];
        buf_addf(out, "%s[%u, %u, %u, %u, %u, %u]", i > 1 ? ", " : "", line->start_region,
                 line->end_region, line->start_outermost_loop, line->end_outermost_loop,
                 line->start_function, line->end_function);
    }
}

static void add_functions(struct buf *out, const struct structure *structure)
{
    for (size_t i = 0; i < structure->function_count; i++) {
        const struct structure_function *function = &structure->functions[i];
        buf_str(out, i ? ", [" : "[");
        add_string(out, function->qualname);
        buf_addf(out, ", %u, %u, %u, %s, %s]", function->first_line, function->decorator_line,
                 function->last_line, function->is_class ? "true" : "false",
                 function->is_async ? "true" : "false");
    }
}

static void add_imports(struct buf *out, const struct structure *structure)
{
    for (size_t i = 0; i < structure->import_count; i++) {
        buf_str(out, i ? ", [" : "[");
        add_string(out, structure->imports[i].text);
        buf_str(out, ", ");
        add_string(out, structure->imports[i].module);
        buf_addf(out, ", %u]", structure->imports[i].line);
    }
}

static int dump(const char *path)
{
    struct err err;
    struct source source;
    if (source_load(&source, path, &err)) {
        fprintf(stderr, "structure_dump: %s\n", err.text);
        return -1;
    }
    struct structure structure;
    structure_parse(&structure, source.text, source.length);
    struct buf out = {0};
    buf_str(&out, "{\"path\": ");
    add_string(&out, path);
    buf_str(&out, ", \"lines\": [");
    add_lines(&out, &structure);
    buf_str(&out, "], \"functions\": [");
    add_functions(&out, &structure);
    buf_str(&out, "], \"imports\": [");
    add_imports(&out, &structure);
    buf_str(&out, "]}\n");
    fwrite(out.data, 1, out.len, stdout);
    buf_release(&out);
    structure_release(&structure);
    source_release(&source);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++)
        if (dump(argv[i]))
            status = 1;
    return status;
}
