/* What exists for a job, as the rules see it: its own pods and Services, sorted, and their counts.
 *
 * Layer: pure. Ownership: borrows from job and view; control_observed_done frees the lists.
 */
#pragma once

#include "control/control.h"
#include "control/projection/phase.h"
#include "job/job.h"

/* A pod or a Service that the job controls. */
struct control_member {
    const json_t *object;
    const char *name;
    const char *uid;
    bool known; /* the name is that of a replica: see role and index */
    enum job_role role;
    int index;
    bool in_range;
    bool earlier; /* belongs to an earlier attempt of the whole job (attempt.h); never in range */
    bool terminating;
    enum control_phase phase;         /* of a pod: as the job's own containers decide (phase.h) */
    enum control_phase cluster_phase; /* of a pod: as the cluster reports it */
};

/* Counts the replicas in range: pods that scale-down removes do not count. */
struct control_count {
    int active;    /* Running, and not terminating */
    int succeeded; /* phase Succeeded */
    int failed;    /* phase Failed */
    int broken;    /* phase Failed and not terminating: something must be done about it */
};

struct control_observed {
    const struct job *job;
    const struct control_view *view;
    struct control_member *pods; /* by role and index */
    size_t pod_count;
    struct control_member *services;
    size_t service_count;
    struct control_count count[JOB_ROLE_COUNT];
};

/* MUSTER_ENOMEM. */
int control_observe(const struct job *job, const struct control_view *view,
                    struct control_observed *ret, struct muster_err *err);
void control_observed_done(struct control_observed *o);

/* Returns NULL if the replica has none. */
const struct control_member *control_find_pod(const struct control_observed *o, enum job_role role,
                                              int index);
const struct control_member *control_find_service(const struct control_observed *o,
                                                  enum job_role role, int index);

/* Whether the object is controlled by the job of that uid. Labels alone prove nothing (#1976). */
bool control_owns(const char *job_uid, const json_t *object);
