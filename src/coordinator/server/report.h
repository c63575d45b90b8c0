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
    int64_t last_ms; /* when it was printed last */
    uint64_t last_generation;
    uint32_t last_members;
    bool is_open; /* a line that is written over by the next */
    char last[REPORT_LINE_BYTES];
};

void report_init(struct report *report, bool progress, int64_t now_ms);

/* Prints at most a line each second, and each five seconds where the output is no terminal and the
 * same workers train; nothing when nothing has changed. */
void report_progress(struct report *report, const struct arbiter *arbiter, const struct pace *pace,
                     int64_t now_ms);
/* What a recovery was for, and what it cost. */
void report_recovery(struct report *report, const struct pace_recovery *recovery);
/* name: "" where none is known; how: the process ended, "" where nobody knows. */
void report_lost(struct report *report, const char *name, uint64_t incarnation,
                 enum rendezvous_reason reason, const char *how);
/* A line of its own on standard error, in whatever state the progress line is. */
void report_say(struct report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints to standard output. MUSTER_EIO. */
int report_summary(struct report *report, const struct arbiter *arbiter, int64_t now_ms,
                   struct muster_err *err);

/* What somebody else gave as a name, with a '?' for what does not belong on a terminal. */
void report_clean_name(const char *name, char *ret, size_t size);
/* The same of a text of several lines, in its place. NULL is fine. */
void report_clean_text(char *text);
