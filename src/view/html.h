/*
 * The page's HTML: the shell that `scalene view` serves, which fetches the parts,
 * and the report in one file, which carries them.
 *
 * The report works from disk and offline: style and script are inside, a policy
 * in it allows those two by their hashes and forbids any other, and all network.
 * Without JavaScript it still shows the summary and the lines that matter most.
 * Everything that comes from the profile is escaped; parts above 256 kB are
 * compressed.  There is nothing secret in either.
 */
#ifndef VIEW_HTML_H
#define VIEW_HTML_H

#include "base/buf.h"
#include "view/parts.h"

/* The bundle that is the page.  Neither may hold what ends its element: the build sees to it. */
struct html_assets {
    const char *script;
    size_t script_length;
    const char *style;
    size_t style_length;
};

/* For a server, from which the bundle comes as /page.js and /page.css. */
void html_shell(struct buf *out);
void html_report(const struct parts *parts, const struct html_assets *assets, struct buf *out);

/* What the summary says in words, as HTML: the part of the report that needs no script. */
void html_summary(const struct profile *profile, struct buf *out);
/* Text for an element or a quoted attribute; characters that do something become U+FFFD. */
void html_escape(const char *text, size_t length, struct buf *out);

#endif
