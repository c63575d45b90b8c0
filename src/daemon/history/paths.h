/* Where finished runs are kept: HOME/history/NAMESPACE/JOB/RUN, RUN being a number that grows with
 * each run of a name and is not used again.
 *
 *     job.json      the object as it was last          logs/POD-UID/CONTAINER/ATTEMPT/N.log
 *     pods.json     its pods, deleted ones too         events.json   what happened to it
 *     summary.json  how it ended (summary.h)
 *
 * Names become paths here and nowhere else in the history: what is no name of Kubernetes is
 * refused (MUSTER_EINVAL).
 *
 * Layer: program (daemon). Thread: any. Ownership: the caller frees.
 */
#pragma once

#include "base/home.h"

#include <jansson.h>
#include <stdint.h>

struct history_run {
    const char *namespace;
    const char *name;
    int64_t run; /* from 1 */
};

/* Makes HOME/history/NAMESPACE/JOB/RUN, or HOME/history/NAMESPACE/JOB if run is 0. */
int history_path(const struct home *home, const struct history_run *run, char **ret,
                 struct muster_err *err);

/* HOME/history/.trash: the folder of runs that are being removed. */
char *history_trash(const struct home *home);

/* history_each calls this for each run of a name, with its folder, in no order; if the name is
 * NULL, for each run of the namespace; if the namespace is NULL too, for all runs. The texts live
 * until the call returns. */
typedef void (*history_each_fn)(void *arg, const struct history_run *run, const char *folder);
void history_each(const struct home *home, const char *namespace, const char *name,
                  history_each_fn fn, void *arg);

/* Returns the highest number that a run of this name had; 0 if there was none. */
int64_t history_last(const struct home *home, const char *namespace, const char *name);

/* Must be called before the newest run of a name is deleted, so that its number is not used
 * again. */
int history_keep_last(const struct home *home, const char *namespace, const char *name,
                      struct muster_err *err);

/* Forgets the last numbers of names that have no runs any more, except for `names_max` names; names
 * that were unused longest are forgotten first, and begin at 1 again. */
void history_forget_names(const struct home *home, size_t names_max);
