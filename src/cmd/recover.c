/*
 * `scalene recover`: profiles of sessions whose launcher was killed.  A session
 * is removed only after its profile is safely in a file, and never while one of
 * its processes runs.
 */
#include "base/mem.h"
#include "cmd/cmd.h"
#include "collect/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMMAND_SHOWN = 60 }; /* bytes */

static void print_header(void)
{
    printf("%-8s %-10s %8s  %-19s  %s\n", "PID", "STATE", "SIZE", "STARTED", "COMMAND");
}

/* One line a session, and the directory below it: that is what `recover` can be given. */
static void print_entry(const struct sessions_entry *entry)
{
    char started[40] = "?", size[40];
    time_t when = (time_t)entry->started_real;
    struct tm local;
    if (localtime_r(&when, &local))
        strftime(started, sizeof started, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(size, sizeof size, "%.1f MB", (double)entry->size_bytes / 1048576);
    const struct sessions_process *first = entry->process_count ? entry->processes : NULL;
    printf("%-8d %-10s %8s  %-19s  %.*s\n         %s\n", first ? (int)first->pid : 0,
           entry->running ? "running" : "ended", size, started, COMMAND_SHOWN,
           first ? first->command : "(nothing was recorded)", entry->directory);
}

/* NAME-PID.json for /path/NAME.py, in the current directory. */
static char *default_name(const struct sessions_entry *entry)
{
    struct facts facts;
    facts_load(&facts, entry->directory, NULL);
    const char *program = facts.config.program, *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program, *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    char *path = mem_format("%.*s-%d.json", length ? (int)length : 7, length ? name : "scalene",
                            (int)(entry->process_count ? entry->processes[0].pid : 0));
    facts_release(&facts);
    return path;
}

static int save(const struct sessions_entry *entry, const char *outfile)
{
    struct profile profile;
    if (cmd_build(&profile, entry))
        return -1;
    int rc = 0;
    if (profile.empty) {
        fprintf(stderr, "scalene: nothing was profiled in '%s'\n", entry->directory);
    } else {
        char *path = outfile ? cmd_outfile(outfile) : default_name(entry);
        rc = path ? cmd_save(&profile, path) : -1;
        free(path);
    }
    cmd_say_notes(&profile);
    profile_release(&profile);
    return rc;
}

static int recover_one(const struct sessions_entry *entry, const char *outfile)
{
    struct err err;
    if (save(entry, outfile))
        return -1;
    if (entry->running || !entry->orphaned)
        return 0;
    if (!sessions_remove(entry, &err))
        return 0;
    cmd_say(&err);
    return -1;
}

static int recover_directory(const char *directory, const struct recover_options *options)
{
    struct sessions_entry entry;
    struct err err;
    if (sessions_look_at(&entry, directory, &err)) {
        cmd_say(&err);
        return EXIT_FAILURE;
    }
    int rc = 0;
    if (options->list) {
        print_header();
        print_entry(&entry);
    } else {
        rc = recover_one(&entry, options->outfile);
    }
    sessions_entry_release(&entry);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int recover_all(const struct sessions *sessions, const struct recover_options *options)
{
    size_t ended = 0, listed = 0;
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < sessions->count; i++)
        ended += sessions->items[i].orphaned && !sessions->items[i].running;
    if (options->outfile && ended > 1 && !options->list) {
        fprintf(stderr,
                "scalene: %zu sessions are to be recovered, which cannot share the file "
                "'%s': name one directory, or leave -o out\n",
                ended, options->outfile);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < sessions->count; i++) {
        const struct sessions_entry *entry = &sessions->items[i];
        if (!entry->orphaned)
            continue;
        if (options->list || entry->running) {
            if (!listed++)
                print_header();
            print_entry(entry);
        } else if (recover_one(entry, options->outfile)) {
            status = EXIT_FAILURE;
        }
    }
    if (!ended && !listed)
        puts("Scalene: there is nothing to recover.");
    return status;
}

int cmd_recover(char *const *words)
{
    struct options options;
    int status;
    if (!cmd_parse(&options, VERB_RECOVER, words, &status)) {
        if (options.word_count) {
            status = recover_directory(options.words[0], &options.recover);
        } else {
            struct sessions sessions;
            cmd_find_sessions(&sessions);
            status = recover_all(&sessions, &options.recover);
            sessions_release(&sessions);
        }
    }
    options_release(&options);
    return status;
}
