/* What the control tests share: a job from a few lines of JSON, and a step whose trace they
 * compare.
 *
 * Tests only.
 */
#pragma once

#include "base/buf.h"
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "control/control.h"
#include "control/projection/projection.h"

/* Returns a job named "mnist" with uid "job-1": `workers` < 0 for no Worker; `policy` is the run
 * policy. */
static inline json_t *make_job(bool master, int workers, const char *restart, const char *policy)
{
    json_t *job = parse("{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': "
                        "{'name': 'mnist', 'namespace': 'default', 'uid': 'job-1', 'annotations': "
                        "{}}, 'spec': {'pytorchReplicaSpecs': {}}}");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    json_t *replica = parse("{'template': {'spec': {'containers': [{'name': 'pytorch', 'image': "
                            "'mnist:1', 'command': ['train']}]}}}");
    doc_set_text(replica, "restartPolicy", restart);
    if (master) {
        json_object_set_new(specs, "Master", json_deep_copy(replica));
    }
    if (workers >= 0) {
        json_object_set_new(specs, "Worker", json_deep_copy(replica));
        doc_set_int(specs, "Worker.replicas", workers);
    }
    json_decref(replica);
    doc_set(job, "spec.runPolicy", parse(policy));
    return job;
}

/* Asserts that one object is equal to the text; prints both if it is not. */
static inline void assert_document(const json_t *doc, const char *text)
{
    json_t *expected = parse(text);
    if (!json_equal(doc, expected)) {
        char *got = doc_print(doc);
        char *wanted = doc_print(expected);
        fail_msg("got      %s\nexpected %s", got, wanted);
    }
    json_decref(expected);
}

static inline json_t *project(const json_t *list, json_t *(*each)(const json_t *object))
{
    json_t *out = json_array();
    size_t index;
    json_t *object;
    json_array_foreach (list, index, object) {
        json_array_append_new(out, each(object));
    }
    return out;
}

static inline bool same_trace(const struct control_effects *a, const struct control_effects *b)
{
    struct buf one, other;
    buf_init(&one, 1 << 24);
    buf_init(&other, 1 << 24);
    control_trace(a, &one);
    control_trace(b, &other);
    bool same = strcmp(buf_str(&one), buf_str(&other)) == 0;
    buf_done(&one);
    buf_done(&other);
    return same;
}

/* Runs the step again on what a driver keeps of the objects. Returns NULL, or what differs. */
static inline const char *differs_on_projections(const struct control_view *whole,
                                                 const struct control_effects *fx)
{
    json_t *pods = project(whole->pods, control_project_pod);
    json_t *services = project(whole->services, control_project_object);
    json_t *claims = project(whole->claims, control_project_object);
    json_t *scalers =
        whole->autoscalers ? project(whole->autoscalers, control_project_companion) : NULL;
    json_t *groups =
        whole->pod_groups ? project(whole->pod_groups, control_project_companion) : NULL;
    struct control_view view = *whole;
    view.pods = pods;
    view.services = services;
    view.claims = claims;
    view.autoscalers = scalers;
    view.pod_groups = groups;
    struct control_effects again;
    assert_int_equal(control_reconcile(&view, &again, NULL), 0);
    bool same = same_trace(fx, &again);
    control_effects_done(&again);
    json_decref(pods);
    json_decref(services);
    json_decref(claims);
    json_decref(scalers);
    json_decref(groups);
    return same ? NULL : "decides otherwise on projections";
}
