/* The verbs, one file each, and what they share.  Each returns the exit status of the command. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/buf.h"
#include "base/err.h"
#include "cmd/help.h"

enum { EXIT_USAGE = 2 };

int cmd_run(char *const *words);  /* the words after "run" */
int cmd_view(char *const *words); /* the words after "view" */

/* Columns of the terminal behind `fd`: $COLUMNS, else the terminal's own, else 80. */
size_t cmd_width(int fd);
/* Would colour be welcome there?  A terminal that is not dumb, and no NO_COLOR. */
bool cmd_wants_color(int fd);

/* To standard output.  A reader that went away is no failure; the result is an exit status. */
int cmd_print(const struct buf *text);

/* Parse, and deal with help and mistakes: true if the verb has nothing left to do but to return
 * *status. */
bool cmd_parse(struct options *options, enum option_verb verb, char *const *words, int *status);

#endif
