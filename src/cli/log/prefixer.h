/* Cuts the bytes of a log into lines, and keeps progress bars apart.
 *
 * A program that draws a bar writes carriage returns: each one starts the line anew. Such a line is
 * reported as progress, over and over, until a newline ends it; other text is reported once it is a
 * whole line.
 *
 * Layer: cli; pure. Ownership: init/done. Lines over PREFIXER_LINE_BYTES_MAX come in pieces of
 * whole UTF-8 characters.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { PREFIXER_LINE_BYTES_MAX = 64 << 10 };

struct prefixer {
    struct buf line;
    bool bar;      /* the line has had a carriage return */
    bool returned; /* the last byte was a carriage return: the next text replaces the line */
};

/* The functions that get text, without its newline and valid only for the call. */
struct prefixer_sink {
    void (*line)(void *context, const char *text, size_t bytes);
    /* gets a part of a line that is too long; the next piece or line continues it */
    void (*piece)(void *context, const char *text, size_t bytes);
    void (*progress)(void *context, const char *text, size_t bytes);
    void *context;
};

/* The unfinished line, if it is not a progress bar; NULL if there is none. Borrowed. */
const char *prefixer_partial(const struct prefixer *p, size_t *ret_bytes);

void prefixer_init(struct prefixer *p);
void prefixer_done(struct prefixer *p);
void prefixer_feed(struct prefixer *p, const char *bytes, size_t count,
                   const struct prefixer_sink *sink);
/* Ends the log: an unfinished line is reported as a line. */
void prefixer_end(struct prefixer *p, const struct prefixer_sink *sink);
