/* The bundle; its bytes are in the file that tools/embed.py writes. */
#include "serve/assets.h"

extern const char page_js[], page_css[];
extern const uint64_t page_js_length, page_css_length;

bool assets_page(struct html_assets *assets)
{
    *assets = (struct html_assets){page_js, page_js_length, page_css, page_css_length};
    return true;
}
