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
    const char *scheduler; /* the scheduler's name, for pods */
};

/* Whether the gang's scheduler places a pod of the job: false if all pods name another
 * scheduler. */
bool control_has_gang(const struct control_gang *gang, const struct job *job);
/* Whether some pods name another scheduler: then the group may never be complete. */
bool control_splits_gang(const struct control_gang *gang, const struct job *job);

/* Returns the spec of the job's PodGroup: a new reference, NULL when out of memory. */
json_t *control_gang_spec(const struct control_gang *gang, const struct job *job);

/* Whether pods may be created for that PodGroup: Volcano must admit it first. */
bool control_gang_admits(const struct control_gang *gang, const json_t *group);

/* Writes the names of the scheduler and the PodGroup into the pod (taken): returns a new reference,
 * NULL when out of memory. */
json_t *control_join_gang(const struct control_gang *gang, const struct job *job,
                          enum job_role role, json_t *pod);
