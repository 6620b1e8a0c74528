/* The page's bundle, which the build made and put into the executable. */
#ifndef SERVE_ASSETS_H
#define SERVE_ASSETS_H

#include "view/html.h"

/* False: this build has no page (meson -Dpage=false). */
bool assets_page(struct html_assets *assets);

#endif
