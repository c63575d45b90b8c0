/* One attempt of a container, as its supervisor sees it: record, log, control group, monitor.
 *
 * Layer: services; private to the supervisor. Thread: the loop's. Ownership: attempt_start makes
 * it, attempt_free (after on_over) takes it.
 */
#pragma once

#include "process/cgroup.h"
#include "process/record.h"

#include <jansson.h>
#include <muster/err.h>
#include <stdbool.h>
#include <uv.h>

struct attempt;

/* What all attempts of a job share. */
struct attempt_place {
    uv_loop_t *loop;
    const char *job_folder;
    const char *staging;
    bool namespaces;
    int lock_fd;
    const struct cgroup_job *cgroups;

    /* What happened: "started", "exited", "start_failed", "note" (docs/processes.md); borrowed. */
    void (*on_event)(void *data, const json_t *event);
    /* Nothing of it is left and its record is written: free it. */
    void (*on_over)(void *data, struct attempt *attempt);
    void *data;
};

/* Starts it. MUSTER_EEXIST: it was started before; nothing happened. A failure after its record was
 * made is recorded and told as one: 0 with *ret NULL. `err` must not be NULL. */
int attempt_start(const struct attempt_place *place, const char *id, const json_t *spec,
                  struct attempt **ret, struct muster_err *err);

const char *attempt_id(const struct attempt *attempt);

/* To its process group; SIGKILL to all that descends from it. */
void attempt_signal(struct attempt *attempt, int number);

void attempt_free(struct attempt *attempt);

/* The entry of the environment that marks an attempt's processes; the caller frees. */
char *attempt_mark(const char *attempt_folder);

/* The events of an attempt, from its record; new references. *ret_end is NULL while it runs. */
void attempt_events(const char *id, const char *folder, json_t **ret_started, json_t **ret_end);
