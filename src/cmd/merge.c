/* `scalene merge`: several saved profiles become one. */
#include "profile/merge.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "profile/json_read.h"

#include <stdio.h>
#include <stdlib.h>

static int read_profile(struct profile *profile, const char *path)
{
    struct buf text = {0};
    struct err err;
    int rc = file_read(path, &text, &err);
    if (rc) {
        cmd_say(&err);
    } else {
        rc = json_read_profile(profile, text.data, text.len, &err);
        if (rc)
            fprintf(stderr, "scalene: '%s' is not a profile: %s\n", path, err.text);
    }
    buf_release(&text);
    return rc;
}

static int merge_and_save(const struct profile *runs, size_t count, const char *path)
{
    struct profile merged;
    merge_profiles(&merged, runs, count);
    int rc = -1;
    if (merged.empty)
        fputs("scalene: all of these profiles are empty\n", stderr);
    else
        rc = cmd_save(&merged, path);
    cmd_say_notes(&merged);
    profile_release(&merged);
    return rc;
}

static int merge_files(char *const *paths, size_t count, const char *outfile)
{
    int rc = -1;
    size_t opened = 0;
    struct profile *runs = mem_zalloc(count, sizeof *runs);
    char *path = cmd_outfile(outfile);
    if (path) {
        while (opened < count && !read_profile(&runs[opened], paths[opened]))
            opened++;
        if (opened == count)
            rc = merge_and_save(runs, count, path);
    }
    for (size_t i = 0; i < opened; i++)
        profile_release(&runs[i]);
    free(runs);
    free(path);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

int cmd_merge(char *const *words)
{
    struct options options;
    int status;
    if (!cmd_parse(&options, VERB_MERGE, words, &status)) {
        if (options.word_count < 2) {
            fputs("scalene merge: error: at least two profiles are needed\n", stderr);
            status = EXIT_USAGE;
        } else {
            status = merge_files(options.words, options.word_count, options.merge.outfile);
        }
    }
    options_release(&options);
    return status;
}
