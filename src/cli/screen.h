/* Where logs and notes go: standard output (or error), a terminal or not.
 *
 * On a terminal notes stand between the logs, above the progress bars; elsewhere they go to
 * standard error, and the output holds the logs alone.
 *
 * Layer: cli. Ownership: init/done.
 */
#pragma once

#include "base/buf.h"
#include "cli/logview.h"

#include <muster/err.h>
#include <stdbool.h>

struct screen {
    int fd;
    struct buf out;
    struct logview view;
    int write_errno; /* the output is lost: a closed pipe, a full disk; 0: fine */
};

void screen_init(struct screen *screen, int fd);
void screen_done(struct screen *screen);

/* Writes what the view has put out since the last call. */
void screen_flush(struct screen *screen);

/* "muster: …" */
void screen_note(struct screen *screen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
