/* In place of assets.c in a build without the page. */
#include "serve/assets.h"

bool assets_page(struct html_assets *assets)
{
    *assets = (struct html_assets){0};
    return false;
}
