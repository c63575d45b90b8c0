/* See layout.h. Source: kubeflow/pytorch-operator, pkg/apis/pytorch, its branches v0.4 to v0.6 and
 * master. */
#include "job/file/layout.h"

#include "base/doc.h"
#include "job/check/context.h"

#include <stdio.h>
#include <string.h>

static const char *const moved[] = {"cleanPodPolicy", "ttlSecondsAfterFinished",
                                    "activeDeadlineSeconds", "backoffLimit"};

static int move_fields(struct check *c, json_t *spec)
{
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        json_t *value = json_object_get(spec, moved[i]);
        json_t *policy = doc_at(spec, "runPolicy");
        if (!value || (policy && !json_is_object(policy))) {
            continue;
        }
        char hint[64];
        snprintf(hint, sizeof hint, "write spec.runPolicy.%s", moved[i]);
        size_t mark = check_enter(c, "spec");
        if (json_object_get(policy, moved[i])) {
            check_say(c, JOB_WARNING, moved[i], hint,
                      "is ignored: spec.runPolicy has this field, too");
        } else {
            check_say(c, JOB_INFO, moved[i], hint,
                      "old layout, read as spec.runPolicy.%s; a cluster ignores it", moved[i]);
            json_incref(value);
            if (!policy) {
                policy = json_object();
                json_object_set_new(spec, "runPolicy", policy);
            }
            if (json_object_set_new(policy, moved[i], value) != 0) {
                return MUSTER_ENOMEM;
            }
        }
        check_leave(c, mark);
        json_object_del(spec, moved[i]);
    }
    return 0;
}

static int upgrade(struct check *c, json_t *object)
{
    const char *version = doc_text(object, "apiVersion", "");
    if (strcmp(version, "kubeflow.org/v1beta1") == 0 ||
        strcmp(version, "kubeflow.org/v1beta2") == 0) {
        check_say(c, JOB_INFO, "apiVersion", "write kubeflow.org/v1",
                  "%s is an old layout, read as kubeflow.org/v1; a cluster refuses it", version);
        int r = doc_set_text(object, "apiVersion", "kubeflow.org/v1");
        if (r != 0) {
            return r;
        }
    } else if (strncmp(version, "kubeflow.org/v1alpha", strlen("kubeflow.org/v1alpha")) == 0) {
        check_say(c, JOB_ERROR, "apiVersion", "rewrite it as kubeflow.org/v1",
                  "%s (spec.replicaSpecs as a list) is not supported", version);
        return doc_set_text(object, "apiVersion", "kubeflow.org/v1");
    }
    json_t *spec = doc_at(object, "spec");
    return json_is_object(spec) ? move_fields(c, spec) : 0;
}

int job_upgrade(json_t *object, const struct yaml_document *source, struct job_problems *problems)
{
    if (strcmp(doc_text(object, "kind", ""), "PyTorchJob") != 0) {
        return 0;
    }
    struct check c;
    check_init(&c, source, problems);
    int r = upgrade(&c, object);
    check_done(&c);
    return r;
}
