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
    int64_t runs;          /* of all names: 25 times that */
    int64_t bytes;         /* MUSTER_HISTORY_BYTES, default 1Gi, of all runs; one run gets half */
};

/* A quantity of the environment ("20", "512Mi"); absent, or unreadable, which is logged: the
 * fallback. */
int64_t history_setting(const char *variable, int64_t fallback);

/* Reads the limits from the environment. */
struct history_limits history_limits_read(void);

/* Removes the oldest runs until the rest is within the limits. */
int history_prune(const struct home *home, const struct history_limits *limits,
                  struct muster_err *err);

/* Removes these runs: of a namespace, a name, a number (NULL, NULL, 0: any). *ret_count: how many.
 */
int history_remove(const struct home *home, const char *namespace, const char *name, int64_t run,
                   size_t *ret_count, struct muster_err *err);

/* Renames a folder to history/.trash/NAME and removes it: what is left of it after a kill -9 is
 * nobody's any more. A missing one is removed already. */
int history_throw_away(const struct home *home, const char *folder, const char *name,
                       struct muster_err *err);

/* What was being removed when a controller was killed. */
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

/* Marks those that must go. */
void history_choose(struct history_item *items, size_t count, const struct history_limits *limits);
