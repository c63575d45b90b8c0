/* The phase of a pod: as its cluster has it, and by the containers that its job gave it. The two
 * differ where somebody else has put a container into the pod (a service mesh, a log shipper),
 * which runs on when the job's own have ended: the kubelet goes on calling such a pod Running.
 *
 * Layer: pure.
 */
#pragma once

#include "job/job.h"

enum control_phase {
    CONTROL_PENDING,
    CONTROL_RUNNING,
    CONTROL_SUCCEEDED,
    CONTROL_FAILED_PHASE, /* of a pod; not to be confused with the job's condition */
};

/* Returns the phase that the cluster reports. */
enum control_phase control_phase_of(const json_t *pod);

/* Returns the phase by the job's own containers: once all of them have ended for good, their ends
 * decide it for ever, and injected containers no longer count. A pod that failed as a whole
 * (evicted, or its node was shut down), or that has no other containers, has the cluster's
 * phase. */
enum control_phase control_own_phase(const struct job_replica *replica, const json_t *pod);
