/* Chooses which runs of the history are removed when there are too many, and removes them.
 *
 * A run is renamed into history/.trash first: readers see all of it or nothing.
 *
 * Layer: program (daemon); does I/O but for the choice. Thread: any.
 */
#pragma once

#include "base/home.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_limits {
    int64_t runs_per_name; /* MUSTER_HISTORY_RUNS, default 20; 0: nothing is kept */
    int64_t runs;          /* limit for all names together: 25 times runs_per_name */
    int64_t bytes;         /* MUSTER_HISTORY_BYTES, default 1Gi, of all runs; one run gets half */
};

/* Reads a quantity from the environment ("20", "512Mi"). Returns the fallback if the variable is
 * missing, or cannot be read, which is logged. */
int64_t history_setting(const char *variable, int64_t fallback);

/* Reads the limits from the environment. */
struct history_limits history_limits_read(void);

/* Removes the oldest runs until the rest is within the limits. */
int history_prune(const struct home *home, const struct history_limits *limits,
                  struct muster_err *err);

/* Removes the runs of a namespace, a name, a number (NULL, NULL, 0: any). *ret_count: how many were
 * removed. */
int history_remove(const struct home *home, const char *namespace, const char *name, int64_t run,
                   size_t *ret_count, struct muster_err *err);

/* Renames a folder to history/.trash/NAME and removes it: after a kill -9 the rest of it is in no
 * run. A missing folder counts as removed. */
int history_throw_away(const struct home *home, const char *folder, const char *name,
                       struct muster_err *err);

/* Removes what was being removed when a controller was killed. */
void history_empty_trash(const struct home *home);

/* ---- The choice, pure ---- */

struct history_item {
    char *namespace;
    char *name;
    int64_t run;
    int64_t finished_unix_ms;
    int64_t bytes;
    bool goes;
};

/* Marks the runs that must go. */
void history_choose(struct history_item *items, size_t count, const struct history_limits *limits);
