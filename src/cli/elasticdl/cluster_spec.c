/* See cluster_spec.h. */
#include "cli/elasticdl/cluster_spec.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/command/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path in the pod template of each field of a spec. */
static const struct {
    const char *field;
    const char *path;
    json_type type;
} fields[] = {
    {"labels", "metadata.labels", JSON_OBJECT},
    {"annotations", "metadata.annotations", JSON_OBJECT},
    {"affinity", "spec.affinity", JSON_OBJECT},
    {"tolerations", "spec.tolerations", JSON_ARRAY},
    {"env", "spec.containers.0.env", JSON_ARRAY},
};
enum { FIELDS = sizeof fields / sizeof fields[0], NAME_BYTES = 32 };

static const char *const parts[] = {"pod_spec", "master_pod_spec", "worker_pod_spec"};
enum { PARTS = sizeof parts / sizeof parts[0] };

static int unknown(const char *key, const char *const *known, size_t count, struct muster_err *err)
{
    const char *near = text_nearest(key, known, count);
    return muster_fail(err, MUSTER_EINVAL, "--cluster_spec_json: muster does not use %.80s%s%s",
                       key, near ? "; did you mean " : "", near ? near : "");
}

static int check_part(const char *part, const json_t *spec, struct muster_err *err)
{
    const char *names[FIELDS];
    const char *key;
    json_t *value;
    if (!json_is_object(spec)) {
        return muster_fail(err, MUSTER_EINVAL, "--cluster_spec_json: %s must be an object", part);
    }
    for (size_t i = 0; i < FIELDS; i++) {
        names[i] = fields[i].field;
    }
    json_object_foreach ((json_t *)(uintptr_t)spec, key, value) {
        size_t i = 0;
        while (i < FIELDS && strcmp(fields[i].field, key) != 0) {
            i++;
        }
        if (i == FIELDS) {
            return unknown(key, names, FIELDS, err);
        }
        if (json_typeof(value) != fields[i].type) {
            return muster_fail(err, MUSTER_EINVAL, "--cluster_spec_json: %s.%s must be %s", part,
                               key, fields[i].type == JSON_ARRAY ? "a list" : "an object");
        }
    }
    return 0;
}

static int check(const json_t *spec, struct muster_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)spec, key, value) {
        size_t i = 0;
        while (i < PARTS && strcmp(parts[i], key) != 0) {
            i++;
        }
        int r = i == PARTS ? unknown(key, parts, PARTS, err) : check_part(key, value, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int cluster_spec_read(const char *text, json_t **ret, struct muster_err *err)
{
    muster_auto(free) char *bytes = NULL;
    muster_auto(doc) json_t *spec = NULL;
    size_t count = strlen(text);
    text += strspn(text, " \t\n");
    if (!*text) {
        *ret = json_object();
        return *ret ? 0 : err_no_memory(err);
    }
    if (*text != '{') {
        struct muster_err why = MUSTER_ERR_INIT;
        if (base64_decode(text, &bytes, &count, &why) < 0) {
            return muster_fail(err, MUSTER_EINVAL,
                               "--cluster_spec_json must be a JSON object, or one in base64");
        }
        text = bytes;
    }
    struct muster_err why = MUSTER_ERR_INIT;
    if (doc_parse(text, bytes ? count : strlen(text), &spec, &why) < 0 || !json_is_object(spec)) {
        return muster_fail(err, MUSTER_EINVAL, "--cluster_spec_json is no JSON object: %s",
                           why.text[0] ? why.text : "it is another value");
    }
    int r = check(spec, err);
    *ret = r < 0 ? NULL : muster_take(spec);
    return r;
}

/* Objects are joined key by key, lists are appended. */
static int merge(json_t *template, const char *path, const json_t *value)
{
    json_t *there = doc_at(template, path);
    if (!there) {
        return doc_set(template, path, json_deep_copy(value));
    }
    muster_auto(doc) json_t *copy = json_deep_copy(value);
    int r = json_is_array(there) ? json_array_extend(there, copy) : json_object_update(there, copy);
    return copy && r == 0 ? 0 : MUSTER_ENOMEM;
}

int cluster_spec_apply(const json_t *spec, const char *kind, json_t *template,
                       struct muster_err *err)
{
    char own[NAME_BYTES];
    snprintf(own, sizeof own, "%s_pod_spec", kind);
    const json_t *sources[] = {json_object_get(spec, "pod_spec"), json_object_get(spec, own)};
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < FIELDS; i++) {
            const json_t *value = json_object_get(sources[s], fields[i].field);
            if (value && merge(template, fields[i].path, value) < 0) {
                return err_no_memory(err);
            }
        }
    }
    return 0;
}
