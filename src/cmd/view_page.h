/* `scalene view` with the page: served to a browser, or written to one file. */
#ifndef CMD_VIEW_PAGE_H
#define CMD_VIEW_PAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "cmd/options.h"

/* `text`, the content of the file at `path`, is released as soon as it is read.  Returns an exit
 * status. */
int view_page(const char *path, struct buf *text, const struct view_options *view);

/* Why a text is no profile; `code` is one of json_read.h. */
void view_say_failure(int code, const struct err *err);

#endif
