/* See phase.h. */
#include "control/projection/phase.h"

#include "base/doc.h"

#include <string.h>

enum control_phase control_phase_of(const json_t *pod)
{
    const char *phase = doc_text(pod, "status.phase", "Pending");
    if (strcmp(phase, "Running") == 0 || strcmp(phase, "Unknown") == 0) {
        return CONTROL_RUNNING; /* Unknown: its node is silent, but the pod may still run */
    }
    if (strcmp(phase, "Succeeded") == 0) {
        return CONTROL_SUCCEEDED;
    }
    return strcmp(phase, "Failed") == 0 ? CONTROL_FAILED_PHASE : CONTROL_PENDING;
}

static bool has_others(const json_t *own, const json_t *statuses)
{
    size_t index;
    json_t *each;
    json_array_foreach (statuses, index, each) {
        if (!doc_find(own, "name", doc_text(each, "name", ""))) {
            return true;
        }
    }
    return false;
}

/* Whether a container has ended for good. If it has a policy of its own, its kubelet may restart it
 * for reasons that only the kubelet knows. */
static bool has_ended(const struct job_replica *replica, const json_t *container, const json_t *end)
{
    if (!end || doc_at(container, "restartPolicy") || doc_at(container, "restartPolicyRules")) {
        return false;
    }
    switch (replica->restart_policy) {
    case JOB_NEVER:
    case JOB_EXIT_CODE: return true;
    case JOB_ON_FAILURE: return doc_int(end, "exitCode", 0) == 0;
    case JOB_ALWAYS: return false;
    }
    return false;
}

enum control_phase control_own_phase(const struct job_replica *replica, const json_t *pod)
{
    const json_t *own = doc_at(replica->template, "spec.containers");
    const json_t *statuses = doc_at(pod, "status.containerStatuses");
    enum control_phase phase = control_phase_of(pod);
    bool as_a_whole = phase == CONTROL_FAILED_PHASE && *doc_text(pod, "status.reason", "");
    if (phase == CONTROL_SUCCEEDED || as_a_whole || json_array_size(own) == 0 ||
        !has_others(own, statuses)) {
        return phase;
    }
    enum control_phase result = CONTROL_SUCCEEDED;
    size_t index;
    json_t *each;
    json_array_foreach (own, index, each) {
        const json_t *status = doc_find(statuses, "name", doc_text(each, "name", ""));
        const json_t *end = doc_at(status, "state.terminated");
        if (!has_ended(replica, each, end)) {
            return phase;
        }
        result = doc_int(end, "exitCode", 0) == 0 ? result : CONTROL_FAILED_PHASE;
    }
    return result;
}
