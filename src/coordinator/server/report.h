/* Prints lines for people: while the job goes on, about lost workers and why, and the summary at
 * the end.
 *
 * Layer: program (coordinator). Memory: the caller's. Thread: one.
 */
#pragma once

#include "base/buf.h"
#include "coordinator/arbiter/arbiter.h"
#include "coordinator/server/pace.h"

#include <stdint.h>

enum { REPORT_LINE_BYTES = 160 };

struct report {
    bool progress;
    bool is_terminal;
    int64_t began_ms;
    int64_t last_ms; /* when a line was printed last */
    uint64_t last_generation;
    uint32_t last_members;
    bool is_open; /* the next line overwrites the last one */
    char last[REPORT_LINE_BYTES];
};

void report_init(struct report *report, bool progress, int64_t now_ms);

/* Prints at most a line each second, and each five seconds if the output is not a terminal and the
 * same workers train; prints nothing if nothing has changed. */
void report_progress(struct report *report, const struct arbiter *arbiter, const struct pace *pace,
                     int64_t now_ms);
/* Reports the cause and the cost of a recovery. */
void report_recovery(struct report *report, const struct pace_recovery *recovery);
/* Reports a lost worker. name: "" if not known; how: the way in which the process ended, "" if not
 * known. */
void report_lost(struct report *report, const char *name, uint64_t incarnation,
                 enum rendezvous_reason reason, const char *how);
/* Prints a separate line on standard error, whatever the state of the progress line is. */
void report_say(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the summary to standard output. MUSTER_EIO. */
int report_summary(struct report *report, const struct arbiter *arbiter, int64_t now_ms,
                   struct muster_err *err);

/* Writes a name that was received, with '?' for characters that must not be printed on a
 * terminal. */
void report_clean_name(const char *name, char *ret, size_t size);
/* Does the same for a text of several lines, in place. The argument may be NULL. */
void report_clean_text(char *text);
