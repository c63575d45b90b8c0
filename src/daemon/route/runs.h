/* The runs of jobs, wherever they are: of a job that is there (current), of one that was deleted
 * and whose folder is still to be moved (pending), or in the history's folders (archived).
 *
 * Layer: program (daemon). Thread: the loop's.
 */
#pragma once

#include "daemon/history/paths.h"
#include "daemon/history/sweep.h"

/* The places where runs are kept. */
struct run_places {
    const struct home *home;
    struct store *store;
    const struct sweep *sweep;
};

struct found_run {
    json_t *summary;
    json_t *job;
    json_t *pods;
    json_t *events;
    char *logs; /* the folder of logs: POD-UID/CONTAINER/ATTEMPT */
};

void found_run_done(struct found_run *found);

/* Appends a summary of each run to `runs`, in no order, with "current". A NULL namespace or name
 * means all of them. */
int runs_list(const struct run_places *places, const char *namespace, const char *name,
              json_t *runs, struct muster_err *err);

/* Fills *ret, which found_run_done empties; parts of an archived run that cannot be read are NULL.
 * Returns MUSTER_ENOENT if there is no such run. */
int runs_find(const struct run_places *places, const struct history_run *run, struct found_run *ret,
              struct muster_err *err);
