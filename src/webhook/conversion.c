/* See conversion.h. Every conversion goes by way of v1: up, then down. */
#include "webhook/conversion.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdbool.h>
#include <string.h>

/* The fields of runPolicy that an old version has directly under spec. */
static const char *const moved[] = {"cleanPodPolicy", "ttlSecondsAfterFinished",
                                    "activeDeadlineSeconds", "backoffLimit"};

struct version {
    const char *name;
    size_t moved; /* how many of `moved` it has under spec; 0: it is v1 */
};

static const struct version versions[] = {
    {"kubeflow.org/v1", 0}, {"kubeflow.org/v1beta1", 2}, {"kubeflow.org/v1beta2", 4}};

static const struct version *version_named(const char *name)
{
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        if (strcmp(versions[i].name, name) == 0) {
            return &versions[i];
        }
    }
    return NULL;
}

/* Moves a field, unless the other object has one of that name already. */
static int move_field(json_t *from, json_t *to, const char *name)
{
    json_t *value = json_object_get(from, name);
    if (!value || json_object_get(to, name)) {
        return 0;
    }
    if (json_object_set(to, name, value) != 0) {
        return MUSTER_ENOMEM;
    }
    json_object_del(from, name);
    return 0;
}

/* Returns the object under that name, which is created if nothing is there; borrowed. NULL:
 * something else is there, or out of memory. */
static json_t *object_in(json_t *parent, const char *name)
{
    json_t *child = json_object_get(parent, name);
    if (!child) {
        json_object_set_new(parent, name, json_object());
        child = json_object_get(parent, name);
    }
    return json_is_object(child) ? child : NULL;
}

static void drop_if_empty(json_t *parent, const char *name)
{
    json_t *child = json_object_get(parent, name);
    if (json_is_object(child) && json_object_size(child) == 0) {
        json_object_del(parent, name);
    }
}

/* Adds to `to` what only `from` has, at each level of objects: existing values of `to` win. */
static int add_missing(json_t *to, const json_t *from)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)from, name, value) {
        json_t *there = json_object_get(to, name);
        int r = 0;
        if (!there) {
            r = json_object_set(to, name, value) == 0 ? 0 : MUSTER_ENOMEM;
        } else if (json_is_object(there) && json_is_object(value)) {
            r = add_missing(there, value);
        }
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

/* ---- Up, to v1 ---- */

/* Restores the fields that an earlier conversion down has put aside. An annotation that is not a
 * JSON object was changed by somebody else, and stays. */
static int restore_v1_fields(json_t *job, json_t *spec)
{
    json_t *metadata = json_object_get(job, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    const char *text = json_string_value(json_object_get(notes, WEBHOOK_ANNOTATION_V1_FIELDS));
    muster_auto(doc) json_t *fields = NULL;
    int r = text ? doc_parse(text, strlen(text), &fields, NULL) : MUSTER_EDATA;
    if (r == MUSTER_ENOMEM) {
        return r;
    }
    if (r != 0 || !json_is_object(fields)) {
        return 0;
    }
    r = add_missing(spec, fields);
    if (r == 0) {
        json_object_del(notes, WEBHOOK_ANNOTATION_V1_FIELDS);
        drop_if_empty(metadata, "annotations");
    }
    return r;
}

static int raise(const struct version *from, json_t *job, json_t *spec)
{
    json_t *policy = object_in(spec, "runPolicy");
    int r = 0;
    for (size_t i = 0; policy && r == 0 && i < from->moved; i++) {
        r = move_field(spec, policy, moved[i]);
    }
    drop_if_empty(spec, "runPolicy");
    return r == 0 ? restore_v1_fields(job, spec) : r;
}

/* ---- Down, to an old version ---- */

static bool is_known_below(const char *name)
{
    bool known = strcmp(name, "pytorchReplicaSpecs") == 0;
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        known = known || strcmp(name, moved[i]) == 0;
    }
    return known;
}

/* Moves the fields of spec that an old version does not have into a new object. */
static json_t *take_v1_fields(json_t *spec)
{
    json_t *fields = json_object();
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe (spec, next, name, value) {
        if (!is_known_below(name) && move_field(spec, fields, name) != 0) {
            json_decref(fields);
            return NULL;
        }
    }
    return fields;
}

static int put_aside(json_t *job, const json_t *fields)
{
    json_t *metadata = object_in(job, "metadata");
    json_t *notes = metadata ? object_in(metadata, "annotations") : NULL;
    if (!notes) {
        return 0; /* malformed: no place to store them */
    }
    muster_auto(free) char *text = doc_print(fields);
    json_t *value = text ? json_string(text) : NULL;
    return json_object_set_new(notes, WEBHOOK_ANNOTATION_V1_FIELDS, value) == 0 ? 0 : MUSTER_ENOMEM;
}

static int lower(const struct version *to, json_t *job, json_t *spec)
{
    json_t *policy = json_object_get(spec, "runPolicy");
    int r = 0;
    for (size_t i = 0; policy && r == 0 && i < to->moved; i++) {
        r = move_field(policy, spec, moved[i]);
    }
    drop_if_empty(spec, "runPolicy");
    muster_auto(doc) json_t *fields = r == 0 ? take_v1_fields(spec) : NULL;
    if (!fields) {
        return r == 0 ? MUSTER_ENOMEM : r;
    }
    return json_object_size(fields) > 0 ? put_aside(job, fields) : 0;
}

/* ---- One job ---- */

static int convert_in_place(json_t *job, const struct version *from, const struct version *to)
{
    int r = doc_set_text(job, "apiVersion", to->name);
    json_t *spec = json_object_get(job, "spec");
    if (r != 0 || from == to || !json_is_object(spec)) {
        return r;
    }
    r = from->moved > 0 ? raise(from, job, spec) : 0;
    return r == 0 && to->moved > 0 ? lower(to, job, spec) : r;
}

int webhook_convert(const json_t *job, const char *version, json_t **ret, struct muster_err *err)
{
    if (!json_is_object(job)) {
        return muster_fail(err, MUSTER_EDATA, "an object to be converted is no JSON object");
    }
    const char *name = doc_text(job, "apiVersion", "");
    const struct version *from = version_named(name);
    const struct version *to = version_named(version);
    if (!from || !to) {
        return muster_fail(err, MUSTER_EDATA,
                           "'%s' is no version of PyTorchJob that is known here: they are "
                           "kubeflow.org/v1, kubeflow.org/v1beta2 and kubeflow.org/v1beta1",
                           from ? version : name);
    }
    muster_auto(doc) json_t *copy = json_deep_copy(job);
    int r = copy ? convert_in_place(copy, from, to) : MUSTER_ENOMEM;
    if (r != 0) {
        return muster_fail(err, r, "out of memory");
    }
    *ret = muster_take(copy);
    return 0;
}

/* ---- A review ---- */

static json_t *answer(const json_t *review, const char *status, const char *message,
                      json_t *converted)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s*}, s:o}}", "apiVersion",
                     doc_text(review, "apiVersion", "apiextensions.k8s.io/v1"), "kind",
                     "ConversionReview", "response", "uid", doc_text(review, "request.uid", ""),
                     "result", "status", status, "message", message, "convertedObjects", converted);
}

json_t *webhook_answer_conversion(const json_t *review)
{
    struct muster_err err = MUSTER_ERR_INIT;
    const char *version = doc_text(review, "request.desiredAPIVersion", "");
    muster_auto(doc) json_t *converted = json_array();
    size_t index;
    json_t *job;
    json_array_foreach (doc_at(review, "request.objects"), index, job) {
        json_t *done = NULL;
        int r = webhook_convert(job, version, &done, &err);
        if (r != 0) {
            return answer(review, "Failed", err.text, json_array());
        }
        json_array_append_new(converted, done);
    }
    return answer(review, "Success", NULL, muster_take(converted));
}
