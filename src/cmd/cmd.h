/* The verbs, one file each, and what they share.  Each returns the exit status of the command. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/buf.h"
#include "base/err.h"
#include "cmd/help.h"
#include "collect/sessions.h"
#include "profile/profile.h"

enum { EXIT_USAGE = 2 };

/* Each is given the words after the verb. */
int cmd_run(char *const *words);
int cmd_view(char *const *words);
int cmd_merge(char *const *words);
int cmd_on(char *const *words);
int cmd_off(char *const *words);
int cmd_snapshot(char *const *words);
int cmd_recover(char *const *words);

/* Columns of the terminal behind `fd`: $COLUMNS, else the terminal's own, else 80. */
size_t cmd_width(int fd);
/* Would colour be welcome there?  A terminal that is not dumb, and no NO_COLOR. */
bool cmd_wants_color(int fd);

/* To standard output.  A reader that went away is no failure; the result is an exit status. */
int cmd_print(const struct buf *text);

/* "scalene: " and what went wrong, to standard error. */
void cmd_say(const struct err *err);
void cmd_say_notes(const struct profile *profile);

/* The file that `-o outfile` (NULL: not given) means; the caller frees it.  NULL: it is a
 * directory, which is said.  A place that cannot be written to is said too, but is no failure yet.
 */
char *cmd_outfile(const char *outfile);
/* Write the profile there, or elsewhere if that fails, and say where it is and how to view it.
 * -1: nowhere; that is said too. */
int cmd_save(const struct profile *profile, const char *path);

/* Every session of this user, where run puts them. */
void cmd_find_sessions(struct sessions *sessions);
/* The profile of a session as it lies there.  On failure, which is said, nothing is left to
 * release. */
int cmd_build(struct profile *profile, const struct sessions_entry *entry);

/* Parse, and deal with help and mistakes: true if the verb has nothing left to do but to return
 * *status. */
bool cmd_parse(struct options *options, enum option_verb verb, char *const *words, int *status);

#endif
