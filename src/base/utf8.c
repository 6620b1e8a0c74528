#include "base/utf8.h"

uint32_t utf8_decode(const char *text, size_t length, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text + *at;
    size_t left = length - *at;
    unsigned lead = *p;
    ++*at;
    if (lead < 0x80)
        return lead;
    unsigned more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || left <= more)
        return 0xFFFD;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t value = lead & (0x3Fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0xFFFD;
        value = value << 6 | (p[i] & 0x3F);
    }
    if (value < least[more] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0xFFFD;
    *at += more;
    return value;
}
