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

/* A job named "mnist" with uid "job-1": `workers` < 0 for no Worker; `policy` is the run policy. */
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

/* One object is the same as the text, printed side by side when it is not. */
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
