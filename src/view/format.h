/* Numbers as people read them, for the terminal view.  Pure functions, ASCII results. */
#ifndef VIEW_FORMAT_H
#define VIEW_FORMAT_H

#include <stdint.h>

struct format {
    char text[32];
};

struct format format_time(double sec);        /* 12.300ms, 1.335s, 2m:3.000s, 1h:2m:3.000s */
struct format format_short_time(double sec);  /* at most six columns: 12ms, 1.34s, 123s, 1h02m */
struct format format_percent(double percent); /* 4.5%, 45%, 100% */
struct format format_count(uint64_t count);   /* 1,234,567 */
struct format format_memory(double mb);       /* of MiB: 0.4 MB, 12 MB, 1.5 GB */
struct format format_short_memory(double mb); /* at most five columns: 0.4M, 12M, 1.5G */

#endif
