/* From a deleted job's folder to a run of the history, in steps that a kill -9 may come between.
 *
 *     jobs/UID/record.json        the job and its pods: written in the transaction that deletes it
 *     jobs/UID/archive/…          the run as it will be, made beside it (a thread)
 *     history/NS/JOB/RUN          … and renamed, whole
 *
 * record.json is removed when archive/ is complete, so the content of the folder shows which steps
 * are left, and each step may be repeated. The rename makes the run visible: before it there is no
 * run, and after it there is nothing left to rename.
 *
 * Layer: program (daemon). Thread: the loop's, but for archive_prepare. Ownership: task new/free.
 */
#pragma once

#include "base/home.h"
#include "store/store.h"

struct archive_task;

/* Writes jobs/UID/record.json. `run` is the number that the run gets. */
int archive_record(const struct home *home, struct store *store, const json_t *job, int64_t run,
                   struct muster_err *err);
/* Returns {"run", "job", "pods"} of a job that was deleted and is not in the history yet: a new
 * reference, NULL when there is none. Pods that ended after their job was deleted are in it as they
 * ended. */
json_t *archive_pending(const struct home *home, const char *uid);
/* Returns the pod with this uid as it was when its job was deleted, from the jobs of
 * archive_pending: a new reference, or NULL. */
json_t *archive_pending_pod(const struct home *home, const char *pod_uid);
/* Removes the record of a job that was not deleted after all. */
int archive_forget(const struct home *home, const char *uid, struct muster_err *err);

/* Makes the task for a deleted job. Returns NULL if nothing of this job must be kept, or was kept
 * already, or if `err` is set. */
struct archive_task *archive_task_new(const struct home *home, struct store *store, const char *uid,
                                      struct muster_err *err);
void archive_task_free(struct archive_task *task);
/* Runs in a thread: makes jobs/UID/archive. A run keeps at most `bytes_max`; the oldest of its logs
 * are deleted first. */
int archive_prepare(struct archive_task *task, int64_t bytes_max, struct muster_err *err);
/* Renames the archive. After this the run is in the history. */
int archive_publish(struct archive_task *task, struct muster_err *err);

/* Returns the events of a job and its pods that are in the store: a new reference, or NULL. */
json_t *archive_events(struct store *store, const char *uid);
/* Removes the events from the store that are now in the run. */
int archive_remove_events(struct store *store, const char *uid, struct muster_err *err);

/* Renames an archive that is whole and was not renamed; must be called before anybody reads the
 * history. */
int archive_finish(const struct home *home, const char *uid, struct muster_err *err);
