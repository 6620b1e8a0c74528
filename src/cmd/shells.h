/*
 * What shells and man know of the command, made from the option table: completions
 * for bash, zsh and fish, and the manual page.  The build installs them.
 */
#ifndef CMD_SHELLS_H
#define CMD_SHELLS_H

#include "base/buf.h"

void shells_bash(struct buf *out);
void shells_zsh(struct buf *out);
void shells_fish(struct buf *out);
void shells_man(struct buf *out);

#endif
