/* Checks what may be stored: metadata, and the rules of each kind.
 *
 * All mistakes are reported at once, as problems with field paths. Jobs are checked by
 * job/check/check.h.
 *
 * Layer: services. Source: k8s.io/apimachinery validation.
 */
#include "api/internal.h"

#include "api/fields.h"
#include "api/immutable.h"
#include "api/shape/shape.h"
#include "api/validate/validate.h"
#include "base/base64.h"
#include "base/doc.h"
#include "base/err.h"
#include "job/check/check.h"

#include <stdio.h>
#include <string.h>

enum { SECRET_BYTES_MAX = 2 << 20 };

/* ---- kinds: checks of each kind; they return 0 or MUSTER_ENOMEM ---- */

static int set_encoded(json_t *data, const char *key, const char *text)
{
    struct buf encoded;
    buf_init(&encoded, SECRET_BYTES_MAX);
    base64_encode(text, strlen(text), &encoded);
    int failed =
        buf_failed(&encoded) || json_object_set_new(data, key, json_string(buf_str(&encoded))) != 0;
    buf_done(&encoded);
    return failed ? MUSTER_ENOMEM : 0;
}

/* Moves stringData, which clients can only write, into data, in base64. */
static int admit_secret(const json_t *before, json_t *object, struct job_problems *problems)
{
    json_t *plain = json_object_get(object, "stringData");
    const char *key;
    json_t *value;
    if (problems->errors > 0) {
        return 0;
    }
    if (json_object_size(plain) > 0 && !doc_at(object, "data") &&
        doc_set(object, "data", json_object()) < 0) {
        return MUSTER_ENOMEM;
    }
    json_object_foreach (plain, key, value) {
        int r = set_encoded(json_object_get(object, "data"), key, json_string_value(value));
        if (r < 0) {
            return r;
        }
    }
    json_object_del(object, "stringData");
    return before ? immutable_data(before, object, problems) : 0;
}

static int admit_config_map(const json_t *before, json_t *object, struct job_problems *problems)
{
    return before ? immutable_data(before, object, problems) : 0;
}

static int admit_pod(const json_t *before, json_t *object, struct job_problems *problems)
{
    validate_pod(before, object, problems);
    return before ? immutable_pod(before, object, problems) : 0;
}

static int admit_service(const json_t *before, json_t *object, struct job_problems *problems)
{
    validate_service(before, object, problems);
    return 0;
}

static int admit_event(const json_t *before, json_t *object, struct job_problems *problems)
{
    validate_event(before, object, problems);
    return 0;
}

static int admit_claim(const json_t *before, json_t *object, struct job_problems *problems)
{
    return before ? immutable_claim(before, object, problems) : 0;
}

static int admit_job(const json_t *before, json_t *object, struct job_problems *problems)
{
    if (before) {
        job_check_update(before, object, problems);
    }
    return 0;
}

static void check_whole(const json_t *object, struct job_problems *problems)
{
    job_check(object, NULL, problems);
}

static const struct rule {
    const char *resource;
    void (*check)(const json_t *object, struct job_problems *problems);
    int (*admit)(const json_t *before, json_t *object, struct job_problems *problems);
} rules[] = {
    {"pods", job_check_pod, admit_pod},
    {"configmaps", check_whole, admit_config_map},
    {"secrets", check_whole, admit_secret},
    {"persistentvolumeclaims", check_whole, admit_claim},
    {"namespaces", check_whole, NULL},
    {"pytorchjobs", check_whole, admit_job},
    {"services", job_check_metadata, admit_service},
    {"events", job_check_metadata, admit_event},
};

static const struct rule *find_rule(const struct api_call *call)
{
    static const struct rule others = {NULL, job_check_metadata, NULL};
    const struct resource *resource = call->route.resource;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].resource, resource->plural) == 0 && !resource->shape->check) {
            return &rules[i];
        }
    }
    return &others;
}

int admit(struct api_call *call, const json_t *before, json_t *object, struct muster_err *err)
{
    const struct rule *rule = find_rule(call);
    const struct shape *shape = call->route.resource->shape;
    rule->check(object, &call->problems);
    if (before) {
        immutable_finalizers(before, object, &call->problems);
    }
    if (!before && shape->check) {
        shape->check(object, &call->problems);
    }
    if (rule->admit && rule->admit(before, object, &call->problems) < 0) {
        return err_no_memory(err);
    }
    int r = fields_admit(call, err);
    return r < 0 || call->problems.errors == 0
               ? r
               : muster_fail(err, MUSTER_EDATA, "the object is invalid");
}
