/* Saving a profile and saying so: what run, merge, snapshot and recover share. */
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "profile/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cmd_say(const struct err *err)
{
    fprintf(stderr, "scalene: %s\n", err->text);
}

char *cmd_outfile(const char *outfile)
{
    struct err err;
    char *path = output_name(outfile);
    if ((outfile && output_is_directory(outfile)) || output_is_directory(path)) {
        fprintf(stderr, "Scalene: outfile %s is a directory\n", outfile ? outfile : path);
        free(path);
        return NULL;
    }
    if (output_check(path, &err))
        fprintf(stderr, "scalene: %s; another place will be tried\n", err.text);
    return path;
}

void cmd_say_notes(const struct profile *profile)
{
    for (uint32_t i = 0; i < profile->note_count; i++)
        fprintf(stderr, "scalene: %s\n", profile_str(profile, profile->notes[i]));
}

static void say_saved(const char *path)
{
    bool is_default = !strcmp(path, OUTPUT_DEFAULT);
    const char *blank = is_default ? "" : " ", *name = is_default ? "" : path;
    fprintf(stderr,
            "\nScalene: profile saved to %s\n"
            "  To view in browser:  scalene view%s%s\n"
            "  To view in terminal: scalene view --cli%s%s\n",
            path, blank, name, blank, name);
}

int cmd_save(const struct profile *profile, const char *path)
{
    const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    const char *const fallbacks[] = {".", home ? home : "", temporary ? temporary : "", "/tmp",
                                     NULL};
    struct err err;
    struct buf text = {0};
    json_write_profile(profile, &text);
    char *used = output_write(path, fallbacks, &text, &err);
    if (!used)
        fprintf(stderr, "scalene: %s; no other place is writable either, the profile is lost\n",
                err.text);
    else if (strcmp(used, path) != 0)
        cmd_say(&err);
    if (used && !profile->empty)
        say_saved(used);
    int rc = used ? 0 : -1;
    free(used);
    buf_release(&text);
    return rc;
}
