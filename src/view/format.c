/* Numbers as text; see format.h.  Rounding comes first, so that 59.9996 s is 1m:0.000s. */
#include "view/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static double sane(double value)
{
    return value > 0 ? fmin(value, 1e12) : 0; /* a NaN gives 0 */
}

struct format format_time(double sec)
{
    struct format out;
    sec = sane(sec);
    if (sec < 0.9999995) {
        snprintf(out.text, sizeof out.text, "%.3fms", sec * 1000);
        return out;
    }
    int64_t ms = llround(sec * 1000);
    int64_t hours = ms / 3600000, minutes = ms / 60000 % 60;
    double rest = (double)(ms % 60000) / 1000;
    if (hours)
        snprintf(out.text, sizeof out.text, "%" PRId64 "h:%" PRId64 "m:%.3fs", hours, minutes,
                 rest);
    else if (minutes)
        snprintf(out.text, sizeof out.text, "%" PRId64 "m:%.3fs", minutes, rest);
    else
        snprintf(out.text, sizeof out.text, "%.3fs", rest);
    return out;
}

struct format format_short_time(double sec)
{
    struct format out;
    sec = sane(sec);
    if (sec < 0.00995)
        snprintf(out.text, sizeof out.text, "%.1fms", sec * 1000);
    else if (sec < 0.9995)
        snprintf(out.text, sizeof out.text, "%.0fms", sec * 1000);
    else if (sec < 9.995)
        snprintf(out.text, sizeof out.text, "%.2fs", sec);
    else if (sec < 99.95)
        snprintf(out.text, sizeof out.text, "%.1fs", sec);
    else if (sec < 3599.5)
        snprintf(out.text, sizeof out.text, "%.0fs", sec);
    else if (sec < 3600 * 99)
        snprintf(out.text, sizeof out.text, "%ldh%02ldm", lround(sec / 60) / 60,
                 lround(sec / 60) % 60);
    else
        snprintf(out.text, sizeof out.text, "%.0fh", sec / 3600);
    return out;
}

struct format format_percent(double percent)
{
    struct format out;
    percent = sane(percent);
    snprintf(out.text, sizeof out.text, percent < 9.95 ? "%.1f%%" : "%.0f%%", percent);
    return out;
}

struct format format_count(uint64_t count)
{
    struct format out = {0};
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *at = out.text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

static struct format with_unit(double mb, const char *megabytes, const char *gigabytes)
{
    struct format out;
    mb = sane(mb);
    bool is_giga = mb >= 1023.5;
    double amount = is_giga ? mb / 1024 : mb;
    snprintf(out.text, sizeof out.text, amount < 9.95 ? "%.1f%s" : "%.0f%s", amount,
             is_giga ? gigabytes : megabytes);
    return out;
}

struct format format_memory(double mb)
{
    return with_unit(mb, " MB", " GB");
}

struct format format_short_memory(double mb)
{
    return with_unit(mb, "M", "G");
}
