/* `scalene on`, `scalene off`, `scalene snapshot`: what can be done to a session while it runs. */
#include "cmd/cmd.h"
#include "collect/facts.h"
#include "collect/harvest.h"
#include "collect/process.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

void cmd_find_sessions(struct sessions *sessions)
{
    const char *temporary = getenv("TMPDIR");
    const char *const parents[] = {temporary ? temporary : "", "/tmp", "/dev/shm", NULL};
    sessions_find(sessions, parents);
}

int cmd_build(struct profile *profile, const struct sessions_entry *entry)
{
    struct facts facts;
    struct err err;
    int facts_missing = facts_load(&facts, entry->directory, &err);
    if (facts_missing)
        fprintf(stderr, "scalene: %s; the program is taken from the recording\n", err.text);
    profile_init(profile);
    int rc = harvest_build(profile, &facts.config, &err);
    if (rc) {
        cmd_say(&err);
        profile_release(profile);
    }
    facts_release(&facts);
    return rc;
}

/* The session that the pid belongs to.  By what the process has mapped; if that may not be looked
 * at, by the recordings' names. */
static int find_session(struct sessions_entry *entry, pid_t pid)
{
    struct err err;
    char *directory = sessions_directory_of(pid);
    int rc = directory ? sessions_look_at(entry, directory, &err) : -1;
    free(directory);
    if (!rc)
        return 0;
    struct sessions sessions;
    cmd_find_sessions(&sessions);
    const struct sessions_entry *found = sessions_with(&sessions, pid);
    rc = found ? sessions_look_at(entry, found->directory, &err) : -1;
    sessions_release(&sessions);
    if (rc && !process_start_ticks(pid))
        fprintf(stderr, "Process %d not found.\n", (int)pid);
    else if (rc)
        fprintf(stderr, "scalene: process %d is not being profiled\n", (int)pid);
    return rc;
}

static int turn(enum option_verb verb, char *const *words)
{
    struct options options;
    struct sessions_entry entry;
    struct err err;
    int status;
    if (!cmd_parse(&options, verb, words, &status)) {
        status = EXIT_FAILURE;
        if (!find_session(&entry, (pid_t)options.control.pid)) {
            if (sessions_switch(&entry, verb == VERB_ON, &err)) {
                cmd_say(&err);
            } else {
                printf("Scalene: profiling turned %s.\n", verb_table[verb].name);
                status = EXIT_SUCCESS;
            }
            sessions_entry_release(&entry);
        }
    }
    options_release(&options);
    return status;
}

int cmd_on(char *const *words)
{
    return turn(VERB_ON, words);
}

int cmd_off(char *const *words)
{
    return turn(VERB_OFF, words);
}

static int save_snapshot(const struct sessions_entry *entry, const char *path)
{
    struct profile profile;
    if (cmd_build(&profile, entry))
        return EXIT_FAILURE;
    int status = EXIT_FAILURE;
    if (profile.empty)
        fputs("scalene: nothing has been profiled yet\n", stderr);
    else if (!cmd_save(&profile, path))
        status = EXIT_SUCCESS;
    cmd_say_notes(&profile);
    profile_release(&profile);
    return status;
}

int cmd_snapshot(char *const *words)
{
    struct options options;
    struct sessions_entry entry;
    int status;
    if (!cmd_parse(&options, VERB_SNAPSHOT, words, &status)) {
        status = EXIT_FAILURE;
        char *path = cmd_outfile(options.control.outfile);
        if (path && !find_session(&entry, (pid_t)options.control.pid)) {
            status = save_snapshot(&entry, path);
            sessions_entry_release(&entry);
        }
        free(path);
    }
    options_release(&options);
    return status;
}
