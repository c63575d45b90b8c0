/* A job whose pods are to start together: the PodGroup by which a scheduler knows them, Volcano's
 * or that of scheduler-plugins (coscheduling), and what their pods say of it. As upstream
 * (training-operator v1.9.4, pkg/controller.v1/control/{volcano,scheduler-plugins}.go).
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

/* Does its scheduler place a pod of the job? Not where all name another one. */
bool control_has_gang(const struct control_gang *gang, const struct job *job);
/* And does a pod of the job name another one? The group may never be complete then. */
bool control_splits_gang(const struct control_gang *gang, const struct job *job);

/* The spec of its PodGroup: a new reference, NULL when out of memory. */
json_t *control_gang_spec(const struct control_gang *gang, const struct job *job);

/* May pods be made for that PodGroup? Volcano admits one first. */
bool control_gang_admits(const struct control_gang *gang, const json_t *group);

/* Writes the scheduler's and the PodGroup's name into the pod (taken): a new reference, NULL when
 * out of memory. */
json_t *control_join_gang(const struct control_gang *gang, const struct job *job,
                          enum job_role role, json_t *pod);
