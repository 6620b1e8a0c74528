/* Reading the configuration file with libyaml; see config_file.h.  Called by run.c. */
#include "cmd/config_file.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static bool is_null(const yaml_node_t *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++) {
        if (!strcmp(scalar(node), nulls[i]))
            return true;
    }
    return false;
}

/* What Python would call the type of a document that is not a mapping. */
static const char *type_name(const yaml_node_t *node)
{
    if (node->type == YAML_SEQUENCE_NODE)
        return "list";
    const char *text = scalar(node);
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return "str";
    static const char *const bools[] = {"true", "false", "yes", "no", "on", "off"};
    for (size_t i = 0; i < sizeof bools / sizeof *bools; i++) {
        if (!strcasecmp(text, bools[i]))
            return "bool";
    }
    char *end;
    (void)strtod(text, &end);
    if (end == text || *end)
        return "str";
    return strpbrk(text, ".eE") ? "float" : "int";
}

static int apply_pair(struct options *options, const char *path, const yaml_node_t *key,
                      const yaml_node_t *value, struct buf *warnings, struct err *err)
{
    const char *name = key->type == YAML_SCALAR_NODE ? scalar(key) : "?";
    const struct option *option = option_by_key(name);
    if (!option) {
        buf_addf(warnings, "Scalene: warning: unknown config option '%s' (ignored)\n", name);
        return 0;
    }
    if (is_null(value))
        return 0; /* a key without a value: the default */
    struct err cause = {"it needs a single value"};
    const char *text = value->type == YAML_SCALAR_NODE ? scalar(value) : NULL;
    if (text && option->type == OPTION_REAL && !strcasecmp(text, ".inf"))
        text++; /* YAML's spelling of infinity */
    if (text && !option_set_from_file(options, option, text, &cause))
        return 0;
    err_set(err, "config file '%s', line %zu: %s: %s", path, key->start_mark.line + 1, name,
            cause.text);
    return CONFIG_FILE_OTHER;
}

static int apply_document(struct options *options, const char *path, yaml_document_t *document,
                          struct buf *warnings, struct err *err)
{
    yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root || is_null(root))
        return 0; /* an empty file */
    if (root->type != YAML_MAPPING_NODE)
        return err_set(err, "config file must contain a YAML mapping (got %s)", type_name(root));
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        int rc = apply_pair(options, path, yaml_document_get_node(document, pair->key),
                            yaml_document_get_node(document, pair->value), warnings, err);
        if (rc)
            return rc;
    }
    return 0;
}

int config_text_apply(struct options *options, const char *path, const char *text, size_t length,
                      struct buf *warnings, struct err *err)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, "invalid YAML in config file: out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    int rc;
    if (yaml_parser_load(&parser, &document)) {
        rc = apply_document(options, path, &document, warnings, err);
        yaml_document_delete(&document);
    } else {
        size_t line = parser.problem_mark.line + 1, column = parser.problem_mark.column + 1;
        rc = err_set(err, "invalid YAML in config file: %s, line %zu, column %zu",
                     parser.problem ? parser.problem : "not readable", line, column);
    }
    yaml_parser_delete(&parser);
    return rc;
}

int config_file_apply(struct options *options, const char *path, struct buf *warnings,
                      struct err *err)
{
    struct buf text = {0};
    struct stat st;
    if (stat(path, &st) && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, "config file '%s' not found.", path);
    int rc = file_read(path, &text, err) ? CONFIG_FILE_OTHER : 0;
    if (!rc)
        rc = config_text_apply(options, path, text.data, text.len, warnings, err);
    buf_release(&text);
    return rc;
}
