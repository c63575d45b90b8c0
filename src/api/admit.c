/* What may be stored: metadata, and what is asked of each kind.
 *
 * Everything wrong is said at once, as problems with field paths. Jobs go through job/check.h.
 *
 * Layer: services. Source: k8s.io/apimachinery validation.
 */
#include "api/internal.h"

#include "api/base64.h"
#include "base/doc.h"
#include "job/check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_BYTES_MAX = 63, NAME_BYTES_MAX = 253, ANNOTATIONS_BYTES_MAX = 256 * 1024 };

enum { PATH_BYTES = 512, SECRET_BYTES_MAX = 2 << 20 };

/* ---- names ---- */

static bool is_alnum_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* RFC 1123 subdomain: lower case, digits, '-' and '.', alphanumeric at both ends of each part. */
static bool is_subdomain(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool edge = i == 0 || i == length - 1 || name[i - 1] == '.' || name[i + 1] == '.';
        bool fine =
            is_alnum_lower(name[i]) || (!edge && (name[i] == '-' || name[i] == '.')) ||
            (name[i] == '.' && i > 0 && i < length - 1 && name[i - 1] != '.' && name[i + 1] != '.');
        if (!fine) {
            return false;
        }
    }
    return true;
}

/* "", or up to 63 of [A-Za-z0-9-_.], alphanumeric at both ends. */
static bool is_label_value(const char *value)
{
    size_t length = strlen(value);
    if (length == 0) {
        return true;
    }
    if (length > LABEL_BYTES_MAX || !isalnum((unsigned char)value[0]) ||
        !isalnum((unsigned char)value[length - 1])) {
        return false;
    }
    return strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
           length;
}

/* [subdomain/]name */
static bool is_qualified(const char *key)
{
    const char *slash = strchr(key, '/');
    char prefix[NAME_BYTES_MAX + 1];
    if (slash) {
        size_t length = (size_t)(slash - key);
        if (length > NAME_BYTES_MAX) {
            return false;
        }
        memcpy(prefix, key, length);
        prefix[length] = '\0';
        if (!is_subdomain(prefix)) {
            return false;
        }
        key = slash + 1;
    }
    return *key && is_label_value(key);
}

/* ---- metadata ---- */

static void check_name(const json_t *metadata, struct job_problems *problems)
{
    const char *name = doc_text(metadata, "name", "");
    if (*name && !is_subdomain(name)) {
        job_problem_add(problems, JOB_ERROR, "metadata.name", NULL,
                        "Invalid value: \"%.253s\": must be lower case letters, digits, '-' and "
                        "'.', start and end with a letter or digit, and be %d characters at most",
                        name, NAME_BYTES_MAX);
    }
    if (!*name && !*doc_text(metadata, "generateName", "")) {
        job_problem_add(problems, JOB_ERROR, "metadata.name", NULL,
                        "Required value: name or generateName is required");
    }
}

static void check_labels(const json_t *labels, struct job_problems *problems)
{
    const char *key;
    json_t *value;
    if (labels && !json_is_object(labels)) {
        job_problem_add(problems, JOB_ERROR, "metadata.labels", NULL, "must be a map of strings");
    }
    json_object_foreach ((json_t *)labels, key, value) {
        if (!is_qualified(key)) {
            job_problem_add(problems, JOB_ERROR, "metadata.labels", NULL,
                            "Invalid value: \"%.100s\": a label's name is [domain/]name, name of "
                            "63 letters, digits, '-', '_', '.' at most",
                            key);
        }
        if (!json_is_string(value) || !is_label_value(json_string_value(value))) {
            job_problem_add(problems, JOB_ERROR, "metadata.labels", NULL,
                            "Invalid value: the value of \"%.100s\" must be text of 63 letters, "
                            "digits, '-', '_', '.' at most",
                            key);
        }
    }
}

static void check_annotations(const json_t *annotations, struct job_problems *problems)
{
    const char *key;
    json_t *value;
    size_t total = 0;
    if (annotations && !json_is_object(annotations)) {
        job_problem_add(problems, JOB_ERROR, "metadata.annotations", NULL,
                        "must be a map of strings");
    }
    json_object_foreach ((json_t *)annotations, key, value) {
        total += strlen(key) + json_string_length(value);
        if (!is_qualified(key) || !json_is_string(value)) {
            job_problem_add(problems, JOB_ERROR, "metadata.annotations", NULL,
                            "Invalid value: \"%.100s\": an annotation is [domain/]name: text", key);
        }
    }
    if (total > ANNOTATIONS_BYTES_MAX) {
        job_problem_add(problems, JOB_ERROR, "metadata.annotations", NULL,
                        "Too long: may have at most %d bytes", ANNOTATIONS_BYTES_MAX);
    }
}

static void check_owners(const json_t *owners, struct job_problems *problems)
{
    size_t i;
    json_t *owner;
    if (owners && !json_is_array(owners)) {
        job_problem_add(problems, JOB_ERROR, "metadata.ownerReferences", NULL, "must be a list");
    }
    json_array_foreach (owners, i, owner) {
        static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
        for (size_t n = 0; n < sizeof needed / sizeof needed[0]; n++) {
            if (!*doc_text(owner, needed[n], "")) {
                char path[PATH_BYTES];
                (void)snprintf(path, sizeof path, "metadata.ownerReferences[%zu].%s", i, needed[n]);
                job_problem_add(problems, JOB_ERROR, path, NULL, "Required value");
            }
        }
    }
}

/* job_check looks at a job's name itself: it must be shorter than others. */
static void check_metadata(const json_t *object, struct job_problems *problems, bool with_name)
{
    const json_t *metadata = json_object_get(object, "metadata");
    if (with_name) {
        check_name(metadata, problems);
    }
    check_labels(doc_at(metadata, "labels"), problems);
    check_annotations(doc_at(metadata, "annotations"), problems);
    check_owners(doc_at(metadata, "ownerReferences"), problems);
}

/* ---- kinds: what is wrong with each; they return 0 or MUSTER_ENOMEM ---- */

static int admit_pod(const json_t *before, json_t *pod, struct job_problems *problems)
{
    (void)before;
    const json_t *containers = doc_at(pod, "spec.containers");
    if (!json_is_array(containers) || json_array_size(containers) == 0) {
        job_problem_add(problems, JOB_ERROR, "spec.containers", NULL, "Required value");
    }
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        if (!*doc_text(container, "name", "")) {
            char path[PATH_BYTES];
            (void)snprintf(path, sizeof path, "spec.containers[%zu].name", i);
            job_problem_add(problems, JOB_ERROR, path, NULL, "Required value");
        }
    }
    return 0;
}

static void check_text_map(const json_t *map, const char *path, struct job_problems *problems)
{
    const char *key;
    json_t *value;
    if (map && !json_is_object(map)) {
        job_problem_add(problems, JOB_ERROR, path, NULL, "must be a map of strings");
    }
    json_object_foreach ((json_t *)map, key, value) {
        if (!json_is_string(value)) {
            job_problem_add(problems, JOB_ERROR, path, NULL, "the value of \"%.100s\" must be text",
                            key);
        }
    }
}

static int admit_config_map(const json_t *before, json_t *object, struct job_problems *problems)
{
    check_text_map(doc_at(object, "data"), "data", problems);
    check_text_map(doc_at(object, "binaryData"), "binaryData", problems);
    if (before && doc_bool(before, "immutable", false) &&
        !json_equal(json_object_get(before, "data"), json_object_get(object, "data"))) {
        job_problem_add(problems, JOB_ERROR, "data", NULL,
                        "Forbidden: field is immutable when `immutable` is set");
    }
    return 0;
}

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

/* stringData is for writing only: it goes into data, in base64. */
static int admit_secret(const json_t *before, json_t *object, struct job_problems *problems)
{
    (void)before;
    check_text_map(doc_at(object, "data"), "data", problems);
    check_text_map(doc_at(object, "stringData"), "stringData", problems);
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
    return 0;
}

static int admit_claim(const json_t *before, json_t *object, struct job_problems *problems)
{
    (void)before;
    if (json_array_size(doc_at(object, "spec.accessModes")) == 0) {
        job_problem_add(problems, JOB_ERROR, "spec.accessModes", NULL,
                        "Required value: at least 1 access mode is required");
    }
    return 0;
}

static int admit_job(const json_t *before, json_t *object, struct job_problems *problems)
{
    job_check(object, NULL, problems);
    if (before) {
        job_check_update(before, object, problems);
    }
    return 0;
}

static const struct rule {
    const char *resource;
    int (*admit)(const json_t *before, json_t *object, struct job_problems *problems);
} rules[] = {
    {"pods", admit_pod},        {"configmaps", admit_config_map},
    {"secrets", admit_secret},  {"persistentvolumeclaims", admit_claim},
    {"pytorchjobs", admit_job},
};

static int admit_kind(struct api_call *call, const json_t *before, json_t *object)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i].resource, call->route.resource->plural) == 0) {
            return rules[i].admit(before, object, &call->problems);
        }
    }
    return 0;
}

int admit(struct api_call *call, const json_t *before, json_t *object, struct muster_err *err)
{
    check_metadata(object, &call->problems, !*call->route.resource->group);
    if (admit_kind(call, before, object) < 0) {
        return muster_fail(err, MUSTER_ENOMEM, "out of memory");
    }
    if (call->problems.errors > 0) {
        return muster_fail(err, MUSTER_EDATA, "the object is invalid");
    }
    return 0;
}
