/* Lines of "Label:  value" whose values are in one column as long as no other line is between them,
 * like the output of Go's tabwriter in kubectl's describe.
 *
 * Layer: cli; pure. Ownership: init/done.
 */
#pragma once

#include "base/buf.h"

struct columns {
    struct buf *out;
    struct buf held; /* "label\0value\0" of the lines that wait for their width */
    size_t lines;
    size_t width;
};

void columns_init(struct columns *c, struct buf *out);
void columns_done(struct columns *c); /* prints the lines that wait */

/* Adds "  Label:  value", indented by 2 * level; without a value it is a heading, which ends the
 * run of lines. */
void columns_line(struct columns *c, int level, const char *label, const char *value);
/* Adds a value alone, in the column of the line above. */
void columns_more(struct columns *c, const char *value);
/* Adds a line of text, indented. */
void columns_text(struct columns *c, int level, const char *text);
