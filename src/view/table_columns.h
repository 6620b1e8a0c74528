/*
 * The columns of the terminal's tables.  A new figure is a new row in
 * `table_columns`: its two header texts, its width, from which terminal width on it
 * appears, and the function that fills its cell.  table.c lays them out.
 */
#ifndef VIEW_TABLE_COLUMNS_H
#define VIEW_TABLE_COLUMNS_H

#include "view/table.h"

#include <stddef.h>

enum { TABLE_TIMELINE_COLUMNS = 16 };

struct table_cell {
    char text[TABLE_TIMELINE_COLUMNS * 3 + 16];
    enum style style;
};

struct table_row {
    const struct table_context *context;
    const struct profile_line *line;
    double percent;       /* of total time, all kinds */
    double usage_percent; /* of all that was allocated */
    bool active;          /* has numbers */
};

struct table_column {
    const char *group; /* first header line; NULL: same group as the column before */
    const char *name;  /* second header line */
    int width;
    int lines_from, functions_from; /* columns of the terminal, in the two tables */
    int until;                      /* beyond this width another column replaces it */
    int rank;       /* the highest go first where code has too little room; 0: stays */
    unsigned needs; /* enum table_data: without it the column is left out */
    void (*fill)(const struct table_row *row, struct table_cell *cell);
    const char *legend; /* NULL: the header says it all */
};

extern const struct table_column table_columns[];
extern const size_t table_column_count;

/* The cause most waited for, when it is worth a word; table.c puts it beside the code where it has
 * no column. */
void table_fill_wait(const struct table_row *row, struct table_cell *cell);

#endif
