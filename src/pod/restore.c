/* Builds a machine again from the status that a former agent wrote. For what the status does not
 * hold (crashes in a row, signals sent) the most careful value is taken. See pod.h. */
#include "base/doc.h"
#include "base/text.h"
#include "base/time/timestamp.h"
#include "pod/machine.h"

#include <string.h>

static int64_t time_at(const json_t *doc, const char *path)
{
    int64_t at = timestamp_read(doc_text(doc, path, NULL));
    return at == TIMESTAMP_NONE ? 0 : at;
}

static int small(int64_t value)
{
    return value < 0 ? 0 : value > INT32_MAX / 2 ? INT32_MAX / 2 : (int)value;
}

static void restore_end(const json_t *terminated, int attempt, struct container_end *ret)
{
    *ret = (struct container_end){.known = terminated != NULL,
                                  .attempt = attempt,
                                  .code = small(doc_int(terminated, "exitCode", 0)),
                                  .started_unix_ms = time_at(terminated, "startedAt"),
                                  .finished_unix_ms = time_at(terminated, "finishedAt"),
                                  .peak_memory_bytes = doc_int(terminated, "peakMemoryBytes", 0)};
    text_copy(ret->reason, sizeof ret->reason, doc_text(terminated, "reason", "Error"));
    text_copy(ret->message, sizeof ret->message, doc_text(terminated, "message", ""));
}

/* "CrashLoopBackOff" means that the attempt has ended and the next one waits. */
static void restore_waiting(struct container *c, const json_t *waiting)
{
    const char *reason = doc_text(waiting, "reason", "");
    c->state = CONTAINER_STARTING;
    if (strcmp(reason, "CrashLoopBackOff") == 0 && c->last.known) {
        c->state = CONTAINER_WAITING;
        c->crashed = true;
        c->end = c->last;
        c->end.attempt = c->last.attempt = c->attempt;
        c->not_before_unix_ms = c->last.finished_unix_ms;
    }
}

static void restore_container(struct container *c, const json_t *status)
{
    c->attempt = small(doc_int(status, "restartCount", 0));
    c->crashes = c->attempt < 32 ? c->attempt : 32;
    c->peak_memory_bytes = doc_int(status, "peakMemoryBytes", 0);
    const json_t *last = doc_at(status, "lastState.terminated");
    restore_end(last, c->attempt - 1, &c->last);
    const json_t *running = doc_at(status, "state.running");
    const json_t *terminated = doc_at(status, "state.terminated");
    if (running) {
        c->state = CONTAINER_RUNNING;
        c->started_unix_ms = time_at(running, "startedAt");
    } else if (terminated) {
        c->state = CONTAINER_TERMINATED;
        restore_end(terminated, c->attempt, &c->end);
    } else {
        restore_waiting(c, doc_at(status, "state.waiting"));
    }
}

static void restore_list(struct pod *pod, const json_t *statuses)
{
    size_t index;
    json_t *status;
    json_array_foreach (statuses, index, status) {
        for (size_t i = 0; i < pod->count; i++) {
            if (strcmp(pod->containers[i].name, doc_text(status, "name", "")) == 0) {
                restore_container(&pod->containers[i], status);
            }
        }
    }
}

static void restore_conditions(struct pod *pod, const json_t *conditions)
{
    static const char *const names[] = {[POD_INITIALIZED] = "Initialized",
                                        [POD_READY] = "Ready",
                                        [POD_CONTAINERS_READY] = "ContainersReady",
                                        [POD_HAS_NODE] = "PodScheduled"};
    size_t index;
    json_t *each;
    json_array_foreach (conditions, index, each) {
        for (enum pod_condition i = 0; i < POD_CONDITIONS; i++) {
            if (strcmp(doc_text(each, "type", ""), names[i]) == 0) {
                pod->conditions[i] = strcmp(doc_text(each, "status", ""), "True") == 0;
                pod->turned_unix_ms[i] = time_at(each, "lastTransitionTime");
            }
        }
    }
}

void pod_restore(struct pod *pod)
{
    const json_t *status = doc_at(pod->object, "status");
    int64_t start = time_at(status, "startTime");
    if (start == 0) {
        return; /* it was never scheduled */
    }
    pod->scheduled = true;
    pod->start_unix_ms = start;
    text_copy(pod->reason, sizeof pod->reason, doc_text(status, "reason", ""));
    text_copy(pod->message, sizeof pod->message, doc_text(status, "message", ""));
    pod->ending = pod->reason[0] != '\0';
    restore_list(pod, doc_at(status, "initContainerStatuses"));
    restore_list(pod, doc_at(status, "containerStatuses"));
    restore_conditions(pod, doc_at(status, "conditions"));
}
