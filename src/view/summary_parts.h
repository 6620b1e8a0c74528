/*
 * What the files of the terminal's summary share: summary.c drives, summary_memory.c
 * and summary_async.c have paragraphs of their own.  Nobody else includes this.
 *
 * `text` is where a paragraph is put together; it is empty before and after.
 */
#ifndef VIEW_SUMMARY_PARTS_H
#define VIEW_SUMMARY_PARTS_H

#include "base/buf.h"
#include "profile/profile.h"
#include "view/screen.h"

enum { SUMMARY_LABEL_COLUMNS = 13 };

void summary_label(struct screen *screen, enum style style, const char *text);
/* Writes `text` beside the label, and empties it. */
void summary_paragraph(struct screen *screen, enum style style, const char *name, struct buf *text);
const char *summary_base_name(const char *path);
void summary_add_plural(struct buf *text, uint64_t count, const char *one, const char *many);

/* Each writes nothing if the profile has nothing of the kind. */
void summary_async(struct screen *screen, const struct profile *profile, struct buf *text);
void summary_memory(struct screen *screen, const struct profile *profile, struct buf *text);
void summary_footprint(struct screen *screen, const struct profile *profile);
void summary_resident(struct screen *screen, const struct profile *profile, struct buf *text);
void summary_leaks(struct screen *screen, const struct profile *profile, struct buf *text);

#endif
