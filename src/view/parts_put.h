/* What several parts of parts.h have in common, written as JSON. */
#ifndef VIEW_PARTS_PUT_H
#define VIEW_PARTS_PUT_H

#include "base/json_out.h"
#include "view/parts.h"

/* With their keys, `generation` and `leaks`. */
void parts_put_generation(const struct parts *parts, struct json_out *out);
void parts_put_leaks(const struct profile_file *file, struct json_out *out);

#endif
