/* See immutable.h. */
#include "api/immutable.h"

#include "api/api.h"

#include "base/cleanup.h"
#include "base/doc.h"

#include <stdio.h>
#include <string.h>

static void forbid(struct job_problems *problems, const char *path, const char *why)
{
    job_problem_add(problems, JOB_ERROR, path, NULL, "Forbidden: %s", why);
    job_problem_reason(problems, "FieldValueForbidden");
}

/* ---- comparing ---- */

static bool is_empty(const json_t *value)
{
    return json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Removes null, [] and {}: an API server takes them for a field that is absent. */
static void drop_empty(json_t *value)
{
    size_t i;
    const char *key;
    json_t *member;
    void *next;
    json_array_foreach (value, i, member) {
        drop_empty(member);
    }
    json_object_foreach_safe (value, next, key, member) {
        drop_empty(member);
        if (is_empty(member)) {
            json_object_del(value, key);
        }
    }
}

/* Returns the spec of a copy with defaults, without the fields that may change; NULL when out of
 * memory. */
static json_t *fixed_spec(const char *resource, const json_t *object,
                          void (*drop_free)(json_t *spec))
{
    muster_auto(doc) json_t *copy = json_deep_copy(object);
    if (!copy || api_fill(resource, copy) < 0) {
        return NULL;
    }
    json_t *spec = json_object_get(copy, "spec");
    drop_free(spec);
    drop_empty(spec);
    return spec ? json_incref(spec) : json_object();
}

static int compare_specs(const char *resource, const json_t *before, const json_t *after,
                         void (*drop_free)(json_t *spec), bool *ret_same)
{
    muster_auto(doc) json_t *was = fixed_spec(resource, before, drop_free);
    muster_auto(doc) json_t *is = fixed_spec(resource, after, drop_free);
    *ret_same = was && is && json_equal(was, is);
    return was && is ? 0 : MUSTER_ENOMEM;
}

/* ---- pods ---- */

static void drop_images(json_t *containers)
{
    size_t i;
    json_t *container;
    json_array_foreach (containers, i, container) {
        json_object_del(container, "image");
    }
}

static void drop_free_of_pod(json_t *spec)
{
    drop_images(json_object_get(spec, "containers"));
    drop_images(json_object_get(spec, "initContainers"));
    json_object_del(spec, "activeDeadlineSeconds");
    json_object_del(spec, "tolerations");
}

static bool counts_differ(const json_t *before, const json_t *after, const char *path)
{
    return json_array_size(doc_at(before, path)) != json_array_size(doc_at(after, path));
}

/* Whether the two are the same except for tolerationSeconds. */
static bool is_same_toleration(const json_t *one, const json_t *other)
{
    static const char *const fields[] = {"key", "operator", "value", "effect"};
    bool same = true;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        same = same && strcmp(doc_text(one, fields[i], ""), doc_text(other, fields[i], "")) == 0;
    }
    return same;
}

static bool is_among(const json_t *tolerations, const json_t *wanted)
{
    size_t i;
    json_t *toleration;
    json_array_foreach (tolerations, i, toleration) {
        if (is_same_toleration(toleration, wanted)) {
            return true;
        }
    }
    return false;
}

static void check_tolerations(const json_t *before, const json_t *after,
                              struct job_problems *problems)
{
    size_t i;
    json_t *toleration;
    json_array_foreach (doc_at(before, "spec.tolerations"), i, toleration) {
        if (!is_among(doc_at(after, "spec.tolerations"), toleration)) {
            forbid(problems, "spec.tolerations",
                   "existing toleration can not be modified except its tolerationSeconds");
            return;
        }
    }
}

static void check_deadline(const json_t *before, const json_t *after, struct job_problems *problems)
{
    static const char path[] = "spec.activeDeadlineSeconds";
    int64_t was = doc_int(before, path, 0);
    int64_t is = doc_int(after, path, 0);
    if (was > 0 && is == 0) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "Invalid value: null: must not update from a positive integer to nil "
                        "value");
    } else if (was > 0 && is > was) {
        job_problem_add(problems, JOB_ERROR, path, NULL,
                        "Invalid value: %lld: must be less than or equal to previous value",
                        (long long)is);
    }
}

int immutable_pod(const json_t *before, const json_t *after, struct job_problems *problems)
{
    static const char fields[] =
        "pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
        "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be "
        "set to 1 if it was previously negative)";
    bool same;
    if (counts_differ(before, after, "spec.containers") ||
        counts_differ(before, after, "spec.initContainers")) {
        forbid(problems,
               counts_differ(before, after, "spec.containers") ? "spec.containers"
                                                               : "spec.initContainers",
               "pod updates may not add or remove containers");
        return 0;
    }
    check_deadline(before, after, problems);
    check_tolerations(before, after, problems);
    int r = compare_specs("pods", before, after, drop_free_of_pod, &same);
    if (r == 0 && !same) {
        forbid(problems, "spec", fields);
    }
    return r;
}

/* ---- claims ---- */

static void drop_free_of_claim(json_t *spec)
{
    json_object_del(json_object_get(spec, "resources"), "requests");
    json_object_del(spec, "volumeAttributesClassName");
}

int immutable_claim(const json_t *before, const json_t *after, struct job_problems *problems)
{
    bool same;
    int r = compare_specs("persistentvolumeclaims", before, after, drop_free_of_claim, &same);
    if (r == 0 && !same) {
        forbid(problems, "spec",
               "spec is immutable after creation except resources.requests and "
               "volumeAttributesClassName for bound claims");
    }
    return r;
}

/* ---- config maps and secrets ---- */

int immutable_data(const json_t *before, const json_t *after, struct job_problems *problems)
{
    static const char *const fields[] = {"immutable", "data", "binaryData"};
    bool fixed = doc_bool(before, "immutable", false);
    for (size_t i = 0; fixed && i < sizeof fields / sizeof fields[0]; i++) {
        json_t *was = json_object_get(before, fields[i]);
        json_t *is = json_object_get(after, fields[i]);
        if (was != is && !json_equal(was, is)) {
            forbid(problems, fields[i], "field is immutable when `immutable` is set");
        }
    }
    const char *type = doc_text(after, "type", "");
    if (*type && strcmp(type, doc_text(before, "type", type)) != 0) {
        job_problem_add(problems, JOB_ERROR, "type", NULL,
                        "Invalid value: \"%.100s\": field is immutable", type);
    }
    return 0;
}

/* ---- finalizers ---- */

/* Returns the alphabetically first name after `last` that is in `after` and not in `before`, or
 * NULL if there is none. */
static const char *next_new(const json_t *before, const json_t *after, const char *last)
{
    const char *found = NULL;
    size_t i;
    json_t *item;
    json_array_foreach (after, i, item) {
        const char *name = json_string_value(item);
        if (name && strcmp(name, last) > 0 && (!found || strcmp(name, found) < 0) &&
            !doc_has_text(before, name)) {
            found = name;
        }
    }
    return found;
}

/* The message has the names as Go prints a slice, like the message of an API server. */
void immutable_finalizers(const json_t *before, const json_t *after, struct job_problems *problems)
{
    const json_t *kept = doc_at(before, "metadata.finalizers");
    const json_t *given = doc_at(after, "metadata.finalizers");
    char names[512] = "";
    size_t used = 0;
    if (!doc_at(before, "metadata.deletionTimestamp")) {
        return;
    }
    for (const char *name = ""; (name = next_new(kept, given, name)) && used < sizeof names;) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s\"%.253s\"",
                                 used > 0 ? ", " : "", name);
    }
    if (used > 0) {
        char why[640];
        (void)snprintf(why, sizeof why,
                       "no new finalizers can be added if the object is being deleted, found new "
                       "finalizers []string{%s}",
                       names);
        forbid(problems, "metadata.finalizers", why);
    }
}
