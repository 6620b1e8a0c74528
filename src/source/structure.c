/*
 * Finds blocks and imports in Python text (structure.h) from its tokens.  Called
 * by the collector for each file of a report.
 *
 * The parser is statement-wise and has no recursion.  Each compound statement is
 * a block; blocks are kept in order of their first lines, so a nested block comes
 * after the one around it.  A level is one indentation: the block whose suite it
 * is (owner) and the compound statement that was last there (pending), which a
 * following `else` may still continue:
 *
 *   if a:          block 1, pending of level 0
 *       f()        level 1, owner 1
 *   elif b:        block 2 inside block 1 (as ast nests it), pending of level 0
 *       g()        level 1, owner 2
 *   h()            closes 2, then 1: both end with g()
 *
 * What a line needs to know (innermost loop, function, ...) is inherited by each
 * block when it opens, so that one pass over the lines fills them all.
 */
#include "source/structure.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "source/tokenize.h"

#include <stdlib.h>
#include <string.h>

enum { QUALNAME_MAX = 4096 };

enum block_kind {
    BLOCK_CLAUSE, /* the module, `case`, and clauses that continue nothing: lines ignore them */
    BLOCK_PLAIN,  /* with, try, match, if */
    BLOCK_LOOP,
    BLOCK_FUNCTION,
    BLOCK_CLASS,
};

static const struct block_word {
    const char *text;
    enum block_kind kind;
    bool continues; /* belongs to the compound statement before it */
} block_words[] = {
    {"case", BLOCK_CLAUSE, false},   {"class", BLOCK_CLASS, false}, {"def", BLOCK_FUNCTION, false},
    {"elif", BLOCK_PLAIN, true},     {"else", BLOCK_CLAUSE, true},  {"except", BLOCK_CLAUSE, true},
    {"finally", BLOCK_CLAUSE, true}, {"for", BLOCK_LOOP, false},    {"if", BLOCK_PLAIN, false},
    {"match", BLOCK_PLAIN, false},   {"try", BLOCK_PLAIN, false},   {"while", BLOCK_LOOP, false},
    {"with", BLOCK_PLAIN, false},
};

/* Indices of blocks; 0 is the module and doubles as "none". */
typedef uint32_t block_id;

struct block {
    enum block_kind kind;
    bool chained;   /* an `elif`: its parent is the `if` at the same level */
    uint32_t first; /* line of its keyword */
    uint32_t body;  /* line of the first statement inside it, 0 while unknown */
    uint32_t last;
    block_id parent;
    block_id loop, function, class; /* innermost around its lines, itself included */
    block_id scope;                 /* innermost function (async too) or class */
    block_id outer_loop;            /* outermost loop inside the scope */
    uint32_t entry;                 /* scope blocks: index + 1 in structure->functions */
};

struct level {
    block_id owner, pending;
};

enum line_state {
    LINE_START,     /* no token yet */
    LINE_ASYNC,     /* after `async` */
    LINE_DECORATOR, /* after '@' */
    LINE_HEADER,    /* before the colon of a compound statement */
    LINE_SIMPLE,    /* simple statements, on their own line or after the colon */
};

struct parser {
    struct structure *out;
    const char *text;
    struct block *blocks;
    size_t block_count, block_cap;
    struct level *levels;
    size_t level_count, level_cap;
    struct map globals; /* names declared global in a scope, see global_key() */

    enum line_state state;
    block_id current;        /* the compound statement of this line */
    uint32_t decorator_line; /* first of the decorators seen before this line */
    uint32_t async_line;
    uint32_t line_end; /* last line of the code of this logical line */
    size_t depth;      /* open brackets */
    size_t lambdas;    /* at depth 0 in a header, whose colons are still to come */
    bool wants_name;   /* after `def` or `class` */
    bool is_async;
    bool at_head;       /* the next token begins a simple statement */
    bool keeps;         /* tokens of this simple statement are kept */
    struct token *kept; /* ... here: imports and `global` */
    size_t kept_count, kept_cap;
};

static bool token_is(const struct parser *p, const struct token *token, const char *text)
{
    size_t length = strlen(text);
    return token->length == length && !memcmp(p->text + token->start, text, length);
}

static bool is_keyword(const struct parser *p, const struct token *token, const char *text)
{
    return token->kind == TOKEN_KEYWORD && token_is(p, token, text);
}

static bool is_name(const struct token *token)
{
    return token->kind == TOKEN_NAME || token->kind == TOKEN_BUILTIN;
}

static const struct block_word *find_block_word(const struct parser *p, const struct token *token)
{
    if (token->kind != TOKEN_KEYWORD)
        return NULL;
    for (size_t i = 0; i < sizeof block_words / sizeof *block_words; i++)
        if (token_is(p, token, block_words[i].text))
            return &block_words[i];
    return NULL;
}

static struct level *top_level(struct parser *p)
{
    return &p->levels[p->level_count - 1];
}

static void extend(struct parser *p, block_id block, uint32_t last)
{
    if (p->blocks[block].last < last)
        p->blocks[block].last = last;
}

/* The compound statement pending at this level (and the ifs it is an elif of) ends for good. */
static void close_pending(struct parser *p)
{
    block_id id = top_level(p)->pending;
    while (id) {
        const struct block *block = &p->blocks[id];
        extend(p, block->parent, block->last);
        if (block->entry)
            p->out->functions[block->entry - 1].last_line = block->last;
        id = block->chained ? block->parent : 0;
    }
    top_level(p)->pending = 0;
}

static void note_body(struct parser *p, block_id block, uint32_t line)
{
    if (!p->blocks[block].body)
        p->blocks[block].body = line;
}

static block_id add_block(struct parser *p, enum block_kind kind, uint32_t line, block_id parent)
{
    block_id id = (block_id)p->block_count;
    struct block block = p->blocks[parent];
    block.kind = kind;
    block.chained = false;
    block.first = block.last = line;
    block.body = 0;
    block.parent = parent;
    block.entry = 0;
    if (kind == BLOCK_LOOP) {
        block.loop = id;
        block.outer_loop = block.outer_loop ? block.outer_loop : id;
    } else if (kind == BLOCK_FUNCTION || kind == BLOCK_CLASS) {
        block.scope = id;
        block.outer_loop = 0;
        if (kind == BLOCK_CLASS)
            block.class = id;
        else if (!p->is_async)
            block.function = id;
    }
    VEC_PUSH(p->blocks, p->block_count, p->block_cap) = block;
    return id;
}

/* The line's first keyword is `word`: open its block, or go on with the one it continues. */
static void begin_compound(struct parser *p, const struct block_word *word, uint32_t line)
{
    struct level *level = top_level(p);
    p->state = LINE_HEADER;
    p->wants_name = word->kind == BLOCK_FUNCTION || word->kind == BLOCK_CLASS;
    if (word->continues && level->pending) {
        p->current = level->pending;
        if (word->kind == BLOCK_CLAUSE)
            return;
        p->current = add_block(p, word->kind, line, level->pending);
        p->blocks[p->current].chained = true;
    } else {
        close_pending(p);
        note_body(p, level->owner, line);
        p->current = add_block(p, word->kind, line, level->owner);
    }
    level->pending = p->current;
}

static void begin_simple(struct parser *p, uint32_t line, enum line_state state)
{
    close_pending(p);
    note_body(p, top_level(p)->owner, line);
    p->state = state;
    p->at_head = true;
    if (state == LINE_DECORATOR && !p->decorator_line)
        p->decorator_line = line;
}

/* A scope and a name as a map key: a clash would only shorten a qualified name. */
static uint64_t global_key(const struct parser *p, block_id scope, const struct token *name)
{
    return hash_mix(scope, hash_bytes(p->text + name->start, name->length));
}

static void add_function(struct parser *p, const struct token *name)
{
    struct structure *out = p->out;
    struct block *block = &p->blocks[p->current];
    block_id scope = p->blocks[block->parent].scope;
    while (scope && !p->blocks[scope].entry) /* a broken `def` without a name */
        scope = p->blocks[p->blocks[scope].parent].scope;
    const char *around = "", *separator = "";
    size_t length = name->length < QUALNAME_MAX ? name->length : QUALNAME_MAX;
    uint32_t parent = p->blocks[scope].entry;
    if (parent && !map_get(&p->globals, global_key(p, scope, name))) {
        around = out->functions[parent - 1].qualname;
        separator = out->functions[parent - 1].is_class ? "." : ".<locals>.";
    }
    char *qualname = mem_format("%.*s%s%.*s", QUALNAME_MAX, around, separator, (int)length,
                                p->text + name->start);
    if (strlen(qualname) > QUALNAME_MAX)
        qualname[QUALNAME_MAX] = '\0';
    VEC_PUSH(out->functions, out->function_count, out->function_cap) = (struct structure_function){
        .qualname = qualname,
        .first_line = block->first,
        .decorator_line = p->decorator_line ? p->decorator_line : block->first,
        .last_line = block->first,
        .parent = parent,
        .is_class = block->kind == BLOCK_CLASS,
        .is_async = p->is_async,
    };
    block->entry = (uint32_t)out->function_count;
}

static void add_import(struct parser *p, const char *text, const char *module)
{
    VEC_PUSH(p->out->imports, p->out->import_count, p->out->import_cap) = (struct structure_import){
        .text = mem_strdup(text), .module = mem_strdup(module), .line = p->kept[0].line};
}

static void add_token(const struct parser *p, struct buf *buf, const struct token *token)
{
    buf_add(buf, p->text + token->start, token->length);
}

/* A dotted name, from kept[i] on; returns where it ended. */
static size_t read_dotted(const struct parser *p, size_t i, struct buf *out)
{
    buf_reset(out);
    for (; i < p->kept_count; i++) {
        const struct token *token = &p->kept[i];
        if (!is_name(token) && !token_is(p, token, ".") && !token_is(p, token, "..."))
            break;
        add_token(p, out, token);
    }
    return i;
}

/* `NAME [as NAME]` from kept[*i] on, which is moved behind it; false: a comma or a bracket. */
static bool read_imported(const struct parser *p, size_t *i, struct buf *name, struct buf *text)
{
    size_t start = *i;
    *i = read_dotted(p, start, name);
    if (*i == start) {
        if (token_is(p, &p->kept[start], "*"))
            buf_str(name, "*");
        ++*i;
    }
    if (!name->len)
        return false;
    buf_add(text, name->data, name->len);
    if (*i + 1 < p->kept_count && is_keyword(p, &p->kept[*i], "as") && is_name(&p->kept[*i + 1])) {
        buf_str(text, " as ");
        add_token(p, text, &p->kept[*i + 1]);
        *i += 2;
    }
    return true;
}

/* kept[i...] is a list of modules: an import of each. */
static void read_modules(struct parser *p, size_t i)
{
    struct buf name = {0}, text = {0};
    while (i < p->kept_count) {
        buf_reset(&text);
        buf_str(&text, "import ");
        if (read_imported(p, &i, &name, &text))
            add_import(p, text.data, name.data);
    }
    buf_release(&name);
    buf_release(&text);
}

/* kept[i...] is a list of names from that module: one import of all. */
static void read_names(struct parser *p, size_t i, const char *module)
{
    struct buf name = {0}, names = {0}, one = {0};
    while (i < p->kept_count) {
        buf_reset(&one);
        if (read_imported(p, &i, &name, &one))
            buf_addf(&names, "%s%s", names.len ? ", " : "", one.data);
    }
    if (names.len) {
        buf_reset(&one);
        buf_addf(&one, "from %s import %s", module, names.data);
        add_import(p, one.data, module);
    }
    buf_release(&name);
    buf_release(&names);
    buf_release(&one);
}

/* A simple statement has ended; look into the kinds we care about. */
static void end_simple(struct parser *p)
{
    size_t i = p->kept_count && token_is(p, &p->kept[0], "lazy") ? 1 : 0;
    if (i >= p->kept_count)
        return;
    if (is_keyword(p, &p->kept[i], "import")) {
        read_modules(p, i + 1);
    } else if (is_keyword(p, &p->kept[i], "from")) {
        struct buf module = {0};
        i = read_dotted(p, i + 1, &module);
        if (module.len && i < p->kept_count && is_keyword(p, &p->kept[i], "import"))
            read_names(p, i + 1, module.data);
        buf_release(&module);
    } else {
        block_id owner = p->current ? p->current : top_level(p)->owner;
        for (i = 1; i < p->kept_count; i++)
            if (is_name(&p->kept[i]))
                map_put(&p->globals, global_key(p, p->blocks[owner].scope, &p->kept[i]),
                        &(bool){0});
    }
    p->kept_count = 0;
}

static void track_depth(struct parser *p, const struct token *token)
{
    if (token->kind != TOKEN_OPERATOR || token->length != 1)
        return;
    char c = p->text[token->start];
    if (c == '(' || c == '[' || c == '{')
        p->depth++;
    else if ((c == ')' || c == ']' || c == '}') && p->depth)
        p->depth--;
}

static void simple_token(struct parser *p, const struct token *token)
{
    if (!p->depth && token_is(p, token, ";")) {
        end_simple(p);
        p->at_head = true;
        return;
    }
    p->line_end = token->end_line;
    if (p->current)
        note_body(p, p->current, token->line); /* a suite on the line of its header */
    if (p->at_head)
        p->keeps = is_keyword(p, token, "import") || is_keyword(p, token, "from") ||
                   is_keyword(p, token, "global") || is_keyword(p, token, "lazy");
    p->at_head = false;
    if (p->keeps)
        VEC_PUSH(p->kept, p->kept_count, p->kept_cap) = *token;
    track_depth(p, token);
}

static void header_token(struct parser *p, const struct token *token)
{
    p->line_end = token->end_line;
    if (p->wants_name && is_name(token))
        add_function(p, token);
    p->wants_name = false;
    if (!p->depth && is_keyword(p, token, "lambda")) {
        p->lambdas++;
    } else if (!p->depth && token_is(p, token, ":")) {
        if (p->lambdas) {
            p->lambdas--;
            return;
        }
        p->state = LINE_SIMPLE;
        p->at_head = true;
    }
    track_depth(p, token);
}

static void first_token(struct parser *p, const struct token *token)
{
    p->current = 0;
    p->depth = p->lambdas = 0;
    p->is_async = p->keeps = false;
    p->line_end = token->end_line;
    const struct block_word *word = find_block_word(p, token);
    if (word) {
        begin_compound(p, word, token->line);
    } else if (token->kind == TOKEN_DECORATOR) {
        begin_simple(p, token->line, LINE_DECORATOR);
    } else if (is_keyword(p, token, "async")) {
        p->state = LINE_ASYNC;
        p->async_line = token->line;
    } else {
        begin_simple(p, token->line, LINE_SIMPLE);
        simple_token(p, token);
    }
}

static void async_token(struct parser *p, const struct token *token)
{
    const struct block_word *word = find_block_word(p, token);
    if (word && !word->continues) {
        p->is_async = true;
        p->line_end = token->end_line;
        begin_compound(p, word, p->async_line);
    } else {
        begin_simple(p, p->async_line, LINE_SIMPLE);
        simple_token(p, token);
    }
}

static void end_line(struct parser *p)
{
    if (p->state == LINE_ASYNC)
        begin_simple(p, p->async_line, LINE_SIMPLE);
    if (p->state == LINE_SIMPLE)
        end_simple(p);
    if (p->state != LINE_START && p->state != LINE_DECORATOR) {
        extend(p, p->current ? p->current : top_level(p)->owner, p->line_end);
        p->decorator_line = 0;
    }
    p->state = LINE_START;
}

/* The suite of the compound statement before it; an indent for no reason goes with the rest. */
static void open_level(struct parser *p)
{
    const struct level *level = top_level(p);
    block_id owner = level->pending ? level->pending : level->owner;
    VEC_PUSH(p->levels, p->level_count, p->level_cap) = (struct level){.owner = owner};
}

static void take_token(struct parser *p, const struct token *token)
{
    switch (token->kind) {
    case TOKEN_COMMENT:
        return;
    case TOKEN_INDENT:
        open_level(p);
        return;
    case TOKEN_DEDENT:
        close_pending(p);
        p->level_count--;
        return;
    case TOKEN_NEWLINE:
        end_line(p);
        return;
    default:
        break;
    }
    switch (p->state) {
    case LINE_START:
        first_token(p, token);
        break;
    case LINE_ASYNC:
        async_token(p, token);
        break;
    case LINE_HEADER:
        header_token(p, token);
        break;
    case LINE_SIMPLE:
        simple_token(p, token);
        break;
    case LINE_DECORATOR:
        break;
    }
}

static bool in_header(const struct block *block, uint32_t line)
{
    return block->kind != BLOCK_CLAUSE && block->kind != BLOCK_LOOP &&
           (line == block->first || line < block->body);
}

/* What line `line` gets, whose innermost block is `inner`. */
static struct structure_lines describe_line(const struct parser *p, uint32_t line, block_id inner)
{
    const struct block *blocks = p->blocks, *block = &blocks[inner];
    struct structure_lines out = {line, line, line, line, 0, 0};
    block_id region = block->loop ? block->loop : block->function ? block->function : block->class;
    if (region) {
        out.start_region = blocks[region].first;
        out.end_region = blocks[region].last;
    }
    block_id outer = block->outer_loop;
    if (!outer && inner && in_header(block, line))
        outer = inner;
    if (outer) {
        out.start_outermost_loop = blocks[outer].first;
        out.end_outermost_loop = blocks[outer].last;
    }
    if (block->scope) {
        out.start_function = blocks[block->scope].first;
        out.end_function = blocks[block->scope].last;
    }
    return out;
}

static void fill_lines(struct parser *p)
{
    struct structure *out = p->out;
    out->lines = mem_zalloc(out->line_count + 1, sizeof *out->lines);
    block_id inner = 0;
    size_t next = 1;
    for (uint32_t line = 1; line <= out->line_count; line++) {
        while (inner && p->blocks[inner].last < line)
            inner = p->blocks[inner].parent;
        if (next < p->block_count && p->blocks[next].first == line)
            inner = (block_id)next++;
        out->lines[line] = describe_line(p, line, inner);
    }
}

void structure_parse(struct structure *structure, const char *text, size_t length)
{
    *structure = (struct structure){0};
    struct parser p = {.out = structure, .text = text};
    VEC_PUSH(p.blocks, p.block_count, p.block_cap) = (struct block){.kind = BLOCK_CLAUSE};
    VEC_PUSH(p.levels, p.level_count, p.level_cap) = (struct level){0};
    struct tokenizer *tokenizer = tokenizer_new(text, length);
    struct token token;
    while (tokenizer_next(tokenizer, &token))
        take_token(&p, &token);
    tokenizer_free(tokenizer);
    close_pending(&p);
    bool ends_open = length && text[length - 1] != '\n' && text[length - 1] != '\r';
    structure->line_count = token.line - 1 + ends_open;
    fill_lines(&p);
    free(p.blocks);
    free(p.levels);
    free(p.kept);
    map_release(&p.globals);
}

static bool has_name(const struct structure_function *function, const char *name)
{
    const char *dot = strrchr(function->qualname, '.');
    return !function->is_class && !strcmp(dot ? dot + 1 : function->qualname, name);
}

const struct structure_function *structure_find(const struct structure *structure, uint32_t line,
                                                const char *name)
{
    size_t low = 0, high = structure->function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (structure->functions[middle].decorator_line <= line)
            low = middle + 1;
        else
            high = middle;
    }
    /* Whatever is around the line is, or is around, the last function begun before it. */
    for (size_t i = low; i; i = structure->functions[i - 1].parent) {
        const struct structure_function *function = &structure->functions[i - 1];
        if (line <= function->last_line && has_name(function, name))
            return function;
    }
    return NULL;
}

void structure_release(struct structure *structure)
{
    for (size_t i = 0; i < structure->function_count; i++)
        free(structure->functions[i].qualname);
    for (size_t i = 0; i < structure->import_count; i++) {
        free(structure->imports[i].text);
        free(structure->imports[i].module);
    }
    free(structure->functions);
    free(structure->imports);
    free(structure->lines);
    *structure = (struct structure){0};
}
