/* A job with its pods, services and claims at one moment, for tests of single steps: the trace of
 * the effects comes out, and the invariants are checked.
 *
 * Tests only. */
#pragma once

#include "base/time/timestamp.h"
#include "control/fixture.h"

#include <stdio.h>

#define EPOCH 1767225600000 /* 2026-01-01T00:00:00Z */

struct scene {
    json_t *job;
    json_t *pods;
    json_t *services;
    json_t *claims;
    json_t *autoscalers; /* NULL: cannot be created */
    json_t *pod_groups;  /* NULL: cannot be created */
    struct control_gang gang;
    int64_t now_s;  /* since EPOCH */
    int64_t now_ms; /* in addition to now_s */
    enum control_target target;
    bool restart_rules;
    struct control_node node; /* without a name: there is no such node */
    int64_t lost_after_ms;
    struct buf trace;
    json_t *status; /* of the last step; NULL if it was not written */
};

static inline void open_scene(struct scene *s, json_t *job)
{
    *s = (struct scene){
        .job = job, .pods = json_array(), .services = json_array(), .claims = json_array()};
    buf_init(&s->trace, 1 << 20);
}

static inline void close_scene(struct scene *s)
{
    json_decref(s->job);
    json_decref(s->pods);
    json_decref(s->services);
    json_decref(s->claims);
    json_decref(s->autoscalers);
    json_decref(s->pod_groups);
    json_decref(s->status);
    buf_done(&s->trace);
}

static inline struct control_effects effects_of(const struct scene *s)
{
    const struct control_view view = {.job = s->job,
                                      .pods = s->pods,
                                      .services = s->services,
                                      .claims = s->claims,
                                      .autoscalers = s->autoscalers,
                                      .pod_groups = s->pod_groups,
                                      .gang = s->gang,
                                      .now_unix_ms = EPOCH + s->now_s * 1000 + s->now_ms,
                                      .target = s->target,
                                      .restart_rules = s->restart_rules,
                                      .nodes = &s->node,
                                      .node_count = s->node.name != NULL,
                                      .lost_after_ms = s->lost_after_ms};
    struct control_effects fx;
    struct muster_err err = MUSTER_ERR_INIT;
    if (control_reconcile(&view, &fx, &err) != 0) {
        fail_msg("%s", err.text);
    }
    const char *broken = control_check_invariants(&view, &fx);
    broken = broken ? broken : differs_on_projections(&view, &fx);
    if (broken) {
        fail_msg("%s", broken);
    }
    return fx;
}

/* Writes the effects of a step into the job, so that the next step sees them. */
static inline void step(struct scene *s)
{
    struct control_effects fx = effects_of(s);
    json_decref(s->status);
    s->status = NULL;
    buf_clear(&s->trace);
    for (size_t i = 0; i < fx.count; i++) {
        struct control_effect *e = &fx.list[i];
        if (e->verb == CONTROL_UPDATE_STATUS) {
            s->status = json_incref(e->object);
            doc_set(s->job, "status", json_deep_copy(e->object));
        } else if (e->verb == CONTROL_WAKE_AT) {
            e->at_unix_ms = (e->at_unix_ms - EPOCH) / 1000;
        }
    }
    control_trace(&fx, &s->trace);
    control_effects_done(&fx);
}

static inline const char *trace(const struct scene *s)
{
    return buf_str(&s->trace);
}

static inline json_t *add_pod(struct scene *s, const char *role, int index, const char *phase)
{
    json_t *service = NULL;
    json_t *claims = NULL;
    json_t *pod = NULL;
    char uid[32];
    assert_int_equal(control_render(s->job, role, index, &pod, &service, &claims, NULL), 0);
    snprintf(uid, sizeof uid, "pod-%zu", json_array_size(s->pods));
    doc_set_text(pod, "metadata.uid", uid);
    doc_set_text(service, "metadata.uid", uid);
    doc_set_text(pod, "status.phase", phase);
    json_array_append_new(s->pods, pod);
    json_array_append_new(s->services, service);
    json_decref(claims);
    return pod;
}

static inline void set_ended(json_t *pod, int code, const char *reason, const char *at)
{
    json_t *list =
        json_pack("[{s:s, s:i, s:{s:{s:i, s:s, s:s}}}]", "name", "pytorch", "restartCount", 0,
                  "state", "terminated", "exitCode", code, "reason", reason, "finishedAt", at);
    assert_int_equal(doc_set(pod, "status.containerStatuses", list), 0);
}

static inline void set_condition(struct scene *s, const char *type, const char *completion)
{
    doc_set(s->job, "status.conditions",
            json_pack("[{s:s, s:s, s:s}]", "type", type, "status", "True", "reason", "Any"));
    doc_set_text(s->job, "status.completionTime", completion);
}

static inline size_t count(const struct scene *s, const char *word)
{
    size_t found = 0;
    for (const char *at = trace(s); (at = strstr(at, word)) != NULL; at++) {
        found++;
    }
    return found;
}
