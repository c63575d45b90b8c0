/* How the pods of a job start together: a PodGroup tells a scheduler (Volcano, or
 * scheduler-plugins' coscheduling) which pods belong together, and the pods name the group. Both
 * are upstream's (training-operator v1.9.4,
 * pkg/controller.v1/control/{volcano,scheduler-plugins}.go).
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

enum control_gang_kind {
    CONTROL_GANG_NONE, /* pods are scheduled one by one */
    CONTROL_GANG_VOLCANO,
    CONTROL_GANG_PLUGINS,
};

struct control_gang {
    enum control_gang_kind kind;
    const char *scheduler; /* its name, for pods */
};

/* True when its scheduler places a pod of the job: not where all pods name another scheduler. */
bool control_has_gang(const struct control_gang *gang, const struct job *job);
/* True when some of them name another scheduler: the group may never be complete then. */
bool control_splits_gang(const struct control_gang *gang, const struct job *job);

/* The spec of its PodGroup: a new reference, NULL when out of memory. */
json_t *control_gang_spec(const struct control_gang *gang, const struct job *job);

/* True when pods may be made for that PodGroup: Volcano admits it first. */
bool control_gang_admits(const struct control_gang *gang, const json_t *group);

/* Writes the scheduler's and the PodGroup's name into the pod (taken): a new reference, NULL when
 * out of memory. */
json_t *control_join_gang(const struct control_gang *gang, const struct job *job,
                          enum job_role role, json_t *pod);
