/* See followed.h. */
#include "cli/follow/followed.h"

#include "base/doc.h"
#include "cli/pod/ranks.h"
#include "control/control.h"
#include "job/annotations.h"

#include <string.h>

json_t *follow_pods(const struct followed_job *job)
{
    muster_auto(doc) json_t *list = json_array();
    const char *name;
    json_t *pod;
    json_object_foreach (job->pods, name, pod) {
        json_array_append(list, pod);
    }
    return ranks_sort(list);
}

bool follow_pod_ended(const struct followed_job *j, const json_t *pod)
{
    const char *phase = control_rank_phase(j->object, pod);
    const char *uid = doc_text(pod, "metadata.uid", "");
    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0 ||
           json_object_get(j->gone, uid) || json_object_get(j->late, uid);
}

size_t follow_count_running(const struct followed_job *j, bool terminating)
{
    size_t count = 0;
    const char *name;
    json_t *pod;
    json_object_foreach (j->pods, name, pod) {
        count += !follow_pod_ended(j, pod) &&
                 (terminating || !doc_at(pod, "metadata.deletionTimestamp"));
    }
    return count;
}

bool follow_deleted_end(const struct followed_job *j)
{
    return j->deleted && follow_count_running(j, true) > follow_count_running(j, false);
}

bool follow_is_stopped(const struct followed_job *j)
{
    return json_object_get(doc_at(j->object, "metadata.annotations"), JOB_ANNOTATION_STOP) != NULL;
}
