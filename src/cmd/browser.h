/* Opening the user's browser. */
#ifndef CMD_BROWSER_H
#define CMD_BROWSER_H

#include <stdbool.h>

/*
 * Show this address in a browser: $BROWSER, else what the desktop has.  Every user may read the
 * words of a command, and the address holds a secret: the browser is given a file that only this
 * user can read, which sends it there.  Its name is the result, to be removed and freed when the
 * page has come; NULL if there is no browser.
 */
char *browser_open(const char *url);

#endif
