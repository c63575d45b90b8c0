/* Writes what the machine knows as the Pod's status: phase, conditions, container statuses. Words
 * and rules are the kubelet's. See pod.h. */
#include "base/build.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "pod/machine.h"

#include <string.h>

static const char *const phase_names[] = {[POD_PHASE_PENDING] = "Pending",
                                          [POD_PHASE_RUNNING] = "Running",
                                          [POD_PHASE_SUCCEEDED] = "Succeeded",
                                          [POD_PHASE_FAILED] = "Failed"};
static const char *const condition_names[] = {[POD_INITIALIZED] = "Initialized",
                                              [POD_READY] = "Ready",
                                              [POD_CONTAINERS_READY] = "ContainersReady",
                                              [POD_HAS_NODE] = "PodScheduled"};

static bool is_incomplete(const struct container *c, bool init)
{
    return init ? c->state != CONTAINER_TERMINATED || c->end.code != 0
                : c->state != CONTAINER_RUNNING;
}

/* Makes "containers with unready status: [pytorch]". */
static json_t *list_message(const struct pod *pod, bool init, const char *what)
{
    struct buf text;
    buf_init(&text, 4096);
    buf_format(&text, "containers with %s status: [", what);
    const char *space = "";
    for (size_t i = init ? 0 : pod->init_count; i < (init ? pod->init_count : pod->count); i++) {
        if (is_incomplete(&pod->containers[i], init)) {
            buf_format(&text, "%s%s", space, pod->containers[i].name);
            space = " ";
        }
    }
    buf_text(&text, "]");
    json_t *message = json_string(buf_str(&text));
    buf_done(&text);
    return message;
}

static void explain(struct build *b, const struct pod *pod, enum pod_condition condition,
                    json_t *entry)
{
    enum pod_phase phase = pod_phase(pod);
    if (condition == POD_HAS_NODE) {
        build_text(b, entry, "reason", pod->waits_for[0] ? "Unschedulable" : NULL);
        build_text(b, entry, "message", pod->waits_for[0] ? pod->waits_for : NULL);
        return;
    }
    if (phase == POD_PHASE_SUCCEEDED || phase == POD_PHASE_FAILED) {
        build_text(b, entry, "reason", phase == POD_PHASE_SUCCEEDED ? "PodCompleted" : "PodFailed");
        return;
    }
    bool init = condition == POD_INITIALIZED;
    build_text(b, entry, "reason", init ? "ContainersNotInitialized" : "ContainersNotReady");
    build_set(b, entry, "message", list_message(pod, init, init ? "incomplete" : "unready"));
}

static json_t *make_condition(struct build *b, const struct pod *pod, enum pod_condition condition)
{
    char text[TIMESTAMP_BYTES];
    json_t *entry = build_value(b, json_object());
    bool value = pod_condition_now(pod, condition);
    build_text(b, entry, "type", condition_names[condition]);
    build_text(b, entry, "status", value ? "True" : "False");
    build_set(b, entry, "lastProbeTime", json_null());
    build_text(b, entry, "lastTransitionTime",
               timestamp_seconds(pod->turned_unix_ms[condition], text));
    if (!value) {
        explain(b, pod, condition, entry);
    }
    return entry;
}

static json_t *make_conditions(struct build *b, const struct pod *pod)
{
    json_t *list = build_value(b, json_array());
    for (enum pod_condition i = 0; i < POD_CONDITIONS; i++) {
        if (pod->scheduled || i == POD_HAS_NODE) {
            build_add(b, list, make_condition(b, pod, i));
        }
    }
    return list;
}

static json_t *container_id(const struct pod *pod, const struct container *c, int attempt)
{
    return json_sprintf("muster://%s/%s/%d", doc_text(pod->object, "metadata.uid", ""), c->name,
                        attempt);
}

/* A field of muster: Kubernetes has none for it. */
static void put_peak(struct build *b, json_t *entry, int64_t bytes)
{
    if (bytes > 0) {
        build_int(b, entry, "peakMemoryBytes", bytes);
    }
}

static json_t *make_ended(struct build *b, const struct pod *pod, const struct container *c,
                          const struct container_end *end)
{
    char text[TIMESTAMP_BYTES];
    json_t *entry = build_value(b, json_object());
    build_int(b, entry, "exitCode", end->code);
    build_text(b, entry, "reason", end->reason);
    build_text(b, entry, "message", end->message[0] ? end->message : NULL);
    build_text(b, entry, "startedAt", timestamp_text(end->started_unix_ms, text));
    build_text(b, entry, "finishedAt", timestamp_text(end->finished_unix_ms, text));
    build_set(b, entry, "containerID", container_id(pod, c, end->attempt));
    put_peak(b, entry, end->peak_memory_bytes);
    return json_pack("{s:o}", "terminated", entry);
}

static json_t *make_waiting(struct build *b, const struct pod *pod, const struct container *c)
{
    json_t *entry = build_value(b, json_object());
    const char *usual = !c->init && !pod_init_done(pod) ? "PodInitializing" : "ContainerCreating";
    if (c->init && pod->init_count > 1) {
        usual = "PodInitializing";
    }
    build_text(b, entry, "reason",
               c->reason[0] ? c->reason
               : c->crashed ? "CrashLoopBackOff"
                            : usual);
    if (c->crashed && !c->reason[0]) {
        build_set(b, entry, "message",
                  json_sprintf("back-off %llds restarting failed container=%s pod=%s",
                               (long long)(c->not_before_unix_ms - c->last.finished_unix_ms) / 1000,
                               c->name, doc_text(pod->object, "metadata.name", "")));
    } else if (c->message[0]) {
        build_text(b, entry, "message", c->message);
    }
    return json_pack("{s:o}", "waiting", entry);
}

static json_t *make_state(struct build *b, const struct pod *pod, const struct container *c)
{
    char text[TIMESTAMP_BYTES];
    switch (c->state) {
    case CONTAINER_RUNNING:
        return json_pack("{s:{s:s}}", "running", "startedAt",
                         timestamp_text(c->started_unix_ms, text));
    case CONTAINER_TERMINATED: return make_ended(b, pod, c, &c->end);
    case CONTAINER_WAITING:
    case CONTAINER_STARTING: return make_waiting(b, pod, c);
    }
    return NULL;
}

static json_t *make_container(struct build *b, const struct pod *pod, const struct container *c)
{
    bool running = c->state == CONTAINER_RUNNING;
    bool ended_well = c->state == CONTAINER_TERMINATED && c->end.code == 0;
    json_t *entry = build_value(b, json_object());
    build_text(b, entry, "name", c->name);
    build_set(b, entry, "state", make_state(b, pod, c));
    put_peak(b, entry, c->peak_memory_bytes);
    build_set(b, entry, "lastState",
              c->last.known ? make_ended(b, pod, c, &c->last) : json_object());
    build_set(b, entry, "ready", json_boolean(c->init ? ended_well : running));
    build_int(b, entry, "restartCount", c->attempt);
    build_text(b, entry, "image", doc_text(c->spec, "image", ""));
    build_text(b, entry, "imageID", "");
    if (running || c->state == CONTAINER_TERMINATED) {
        build_set(b, entry, "containerID", container_id(pod, c, c->attempt));
    }
    build_set(b, entry, "started", json_boolean(running));
    return entry;
}

static void set_containers(struct build *b, const struct pod *pod, json_t *status)
{
    for (size_t i = 0; i < pod->count; i++) {
        const char *list = i < pod->init_count ? "initContainerStatuses" : "containerStatuses";
        build_add(b, build_array_at(b, status, list), make_container(b, pod, &pod->containers[i]));
    }
}

static void set_addresses(struct build *b, const struct pod *pod, json_t *status)
{
    if (pod->host_ip[0]) {
        build_text(b, status, "hostIP", pod->host_ip);
        build_set(b, status, "hostIPs", json_pack("[{s:s}]", "ip", pod->host_ip));
    }
    if (pod->pod_ip[0]) {
        build_text(b, status, "podIP", pod->pod_ip);
        build_set(b, status, "podIPs", json_pack("[{s:s}]", "ip", pod->pod_ip));
    }
}

json_t *pod_status(const struct pod *pod)
{
    struct build b = {0};
    char text[TIMESTAMP_BYTES];
    json_t *status = build_value(&b, json_object());
    build_text(&b, status, "phase", phase_names[pod_phase(pod)]);
    build_set(&b, status, "conditions", make_conditions(&b, pod));
    build_text(&b, status, "reason", pod->reason[0] ? pod->reason : NULL);
    build_text(&b, status, "message", pod->message[0] ? pod->message : NULL);
    if (pod->scheduled) {
        set_addresses(&b, pod, status);
        build_text(&b, status, "startTime", timestamp_text(pod->start_unix_ms, text));
        set_containers(&b, pod, status);
    }
    build_text(&b, status, "qosClass", pod_qos_class(pod));
    return build_end(&b, status);
}
