/* One job on this machine: its supervisor, its placement, and whose events are whose. See
 * agent_internal.h. */
#include "daemon/agent_internal.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs.h"
#include "job/annotations.h"

#include <stdlib.h>
#include <string.h>

bool agent_port_taken(void *data, int port)
{
    const struct agent *agent = data;
    for (const struct agent_job *job = agent->jobs; job; job = job->hh.next) {
        if (placement_holds(&job->placement, port)) {
            return true;
        }
    }
    return false;
}

/* ---- What the supervisor says ---- */

static struct agent_pod *pod_named(struct agent_job *job, const char *name, size_t length)
{
    for (struct agent_pod *pod = job->agent->pods; pod; pod = pod->hh.next) {
        if (pod->job == job && strlen(pod->name) == length &&
            memcmp(pod->name, name, length) == 0) {
            return pod;
        }
    }
    return NULL;
}

/* "pod/container/attempt" to whom it is about; false when it is about none of ours (an earlier pod
 * of that name). */
static bool find_attempt(struct agent_job *job, const char *id, struct agent_pod **ret_pod,
                         struct pod_event *ret_event)
{
    const char *first = strchr(id, '/');
    const char *last = strrchr(id, '/');
    struct agent_pod *pod =
        first && first != last ? pod_named(job, id, (size_t)(first - id)) : NULL;
    size_t length = pod ? (size_t)(last - first - 1) : 0;
    for (size_t i = 0; pod && i < pod_container_count(pod->machine); i++) {
        const char *name = pod_container_name(pod->machine, i);
        if (strlen(name) == length && memcmp(name, first + 1, length) == 0) {
            ret_event->now_unix_ms = jobs_now_unix_ms();
            ret_event->container = i;
            ret_event->attempt = (int)strtol(last + 1, NULL, 10);
            *ret_pod = pod;
            return true;
        }
    }
    return false;
}
