/* Where logs and notes go: standard output (or error), a terminal or not.
 *
 * On a terminal notes stand between the logs, above the progress bars; elsewhere they go to
 * standard error, and the output holds the logs alone.
 *
 * Layer: cli. Ownership: init/done.
 */
#pragma once

#include "base/buf.h"
#include "cli/log/log_view.h"

#include <muster/err.h>
#include <stdbool.h>

struct screen {
    int fd;
    struct buf out;
    struct log_view view;
    bool with_notes; /* standard error is the same file: notes must not land within a line */
    bool hurried;    /* the end was requested: no wait for a slow reader */
    int write_errno; /* why the output is lost: a closed pipe, a full disk; 0: it is not */
};

void screen_init(struct screen *screen, int fd);
void screen_done(struct screen *screen);

/* Reads the terminal's size, which may have changed. */
void screen_measure(struct screen *screen);

/* Writes what the view has put out, as far as there is room; the next call writes the rest. */
void screen_flush(struct screen *screen);
/* Writes all of it, however long the reader takes, until a signal comes. */
void screen_drain(struct screen *screen);

/* Prints "muster: …". */
void screen_note(struct screen *screen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
