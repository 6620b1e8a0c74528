/* `scalene view`: show a profile that was saved, in the terminal, as JSON, or as the page. */
#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/view_page.h"
#include "profile/json_read.h"
#include "view/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_text(const char *path, struct buf *text)
{
    struct err err;
    if (!file_read(path, text, &err))
        return 0;
    if (errno == ENOENT || errno == ENOTDIR)
        fprintf(stderr, "Scalene: profile file '%s' not found.\n", path);
    else
        fprintf(stderr, "Scalene: error reading profile: %s\n", err.text);
    return -1;
}

void view_say_failure(int code, const struct err *err)
{
    fprintf(stderr,
            code == JSON_READ_SYNTAX ? "Scalene: invalid JSON in profile file: %s\n"
                                     : "Scalene: error reading profile: %s\n",
            err->text);
}

/* What the user's locale says of the terminal; only asked, the program stays in the C locale. */
static bool is_utf8_terminal(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
    if (locale)
        freelocale(locale);
    return utf8;
}

static void render(const struct profile *profile, const struct view_options *view, struct buf *out)
{
    struct terminal_options options = {
        .columns = (int)cmd_width(STDOUT_FILENO),
        .color = !strcmp(view->color, "always") ||
                 (!strcmp(view->color, "auto") && cmd_wants_color(STDOUT_FILENO)),
        .ascii = !is_utf8_terminal(),
        .reduced = view->reduced,
        .cpu_percent_threshold = 1,
    };
    terminal_render(profile, &options, out);
}

/* The rendered profile in `out`: as JSON, or for the terminal. */
static int show(const struct buf *text, const struct view_options *view, struct buf *out)
{
    struct err err;
    int rc;
    if (view->json) {
        rc = json_check_and_dump(text->data, text->len, out, &err);
    } else {
        struct profile profile;
        rc = json_read_profile(&profile, text->data, text->len, &err);
        if (!rc) {
            render(&profile, view, out);
            profile_release(&profile);
        }
    }
    if (rc)
        view_say_failure(rc, &err);
    return rc;
}

static int view_file(const struct options *options)
{
    const struct view_options *view = &options->view;
    const char *path = options->word_count ? options->words[0] : OUTPUT_DEFAULT;
    struct buf text = {0}, out = {0};
    int status = EXIT_FAILURE;
    if (read_text(path, &text))
        goto out;
    if (view->html || view->standalone || !(view->cli || view->json))
        status = view_page(path, &text, view);
    else if (!show(&text, view, &out))
        status = cmd_print(&out);
out:
    buf_release(&text);
    buf_release(&out);
    return status;
}

int cmd_view(char *const *words)
{
    struct options options;
    int status;
    if (!cmd_parse(&options, VERB_VIEW, words, &status))
        status = view_file(&options);
    options_release(&options);
    return status;
}
