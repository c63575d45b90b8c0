/* See admission.h. */
#include "webhook/admission.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/doc.h"
#include "job/check/check.h"

#include <string.h>

enum {
    PROBLEMS_MAX = 50,
    MESSAGE_BYTES_MAX = 16 << 10,
    WARNINGS_MAX = 16,
    WARNING_BYTES_MAX = 256, /* Kubernetes' recommended limit */
    HTTP_UNPROCESSABLE = 422,
    HTTP_FORBIDDEN = 403
};

/* The result for one request. */
struct judgement {
    int status; /* 0: allowed */
    const char *reason;
    struct buf message; /* the reasons against it */
    json_t *warnings;
};

static void refuse(struct judgement *j, int status, const char *reason)
{
    if (j->status == 0) {
        j->status = status;
        j->reason = reason;
    }
}

static void add_sentence(struct judgement *j, const char *path, const char *says, const char *hint)
{
    buf_format(&j->message, "%s%s%s%s%s%s%s", j->message.used ? "; " : "", path, *path ? ": " : "",
               says, hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
}

/* ---- Jobs ---- */

static void add_warning(struct judgement *j, const struct job_problem *problem)
{
    char text[WARNING_BYTES_MAX];
    if (json_array_size(j->warnings) < WARNINGS_MAX) {
        snprintf(text, sizeof text, "%s: %s", problem->path, problem->message);
        json_array_append_new(j->warnings, json_string(text));
    }
}

static void add_problems(struct judgement *j, const struct job_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct job_problem *problem = &problems->list[i];
        if (problem->severity == JOB_ERROR) {
            add_sentence(j, problem->path, problem->message, problem->hint);
        } else if (problem->severity == JOB_WARNING) {
            add_warning(j, problem);
        }
    }
    if (problems->errors > 0) {
        refuse(j, HTTP_UNPROCESSABLE, "Invalid");
    }
}

static void judge_job(struct judgement *j, const json_t *job, const json_t *before)
{
    struct job_problems problems;
    job_problems_init(&problems, PROBLEMS_MAX);
    problems.cluster = true;
    job_check(job, NULL, &problems);
    if (before) {
        job_check_update(before, job, &problems);
    }
    add_problems(j, &problems);
    job_problems_done(&problems);
}

/* ---- Images ---- */

static bool has_image(const json_t *pod_spec, const char *list, const char *name, const char *image)
{
    const json_t *container = doc_find(json_object_get(pod_spec, list), "name", name);
    return strcmp(doc_text(container, "image", ""), image) == 0;
}

/* Judges the images of a pod spec. A container that had the same image before is not judged again;
 * `before` may be NULL. */
static void judge_images(struct judgement *j, const struct images *images, const char *where,
                         const json_t *pod_spec, const json_t *before)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t index;
        json_t *container;
        json_array_foreach (json_object_get(pod_spec, lists[i]), index, container) {
            const char *name = doc_text(container, "name", "");
            const char *image = doc_text(container, "image", "");
            if (images_allow(images, image) ||
                (before && has_image(before, lists[i], name, image))) {
                continue;
            }
            char path[128];
            snprintf(path, sizeof path, "%s%s[%zu].image", where, lists[i], index);
            char says[IMAGES_NAME_BYTES_MAX];
            snprintf(says, sizeof says, "'%.400s' is not among the images that may be run here",
                     image);
            add_sentence(j, path, says,
                         "ask the cluster's administrator, or use one from the list");
            refuse(j, HTTP_FORBIDDEN, "Forbidden");
        }
    }
}

static void judge_images_of_job(struct judgement *j, const struct images *images, const json_t *job,
                                const json_t *before)
{
    static const char *const roles[] = {"Master", "Worker"};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        char path[80];
        snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s.template.spec", roles[i]);
        const json_t *old = before ? doc_at(before, path) : NULL;
        const json_t *spec = doc_at(job, path);
        snprintf(path, sizeof path, "spec.pytorchReplicaSpecs.%s.template.spec.", roles[i]);
        judge_images(j, images, path, spec, old);
    }
}

/* ---- A review ---- */

/* Whether nothing that is judged was changed. */
static bool is_unchanged(const json_t *object, const json_t *before)
{
    return before && json_equal(json_object_get(object, "spec"), json_object_get(before, "spec"));
}

static void judge(struct judgement *j, const json_t *request, const struct images *images)
{
    const char *operation = doc_text(request, "operation", "");
    const char *kind = doc_text(request, "kind.kind", "");
    const json_t *object = doc_at(request, "object");
    const json_t *before = doc_at(request, "oldObject");
    bool write = strcmp(operation, "CREATE") == 0 || strcmp(operation, "UPDATE") == 0;
    if (!write || !json_is_object(object) || is_unchanged(object, before)) {
        return;
    }
    if (strcmp(kind, "PyTorchJob") == 0 && !*doc_text(request, "subResource", "")) {
        judge_job(j, object, before);
        judge_images_of_job(j, images, object, before);
    } else if (strcmp(kind, "Pod") == 0) {
        judge_images(j, images, "spec.", doc_at(object, "spec"),
                     before ? doc_at(before, "spec") : NULL);
    }
}

static json_t *answer(const json_t *review, const struct judgement *j)
{
    json_t *response = json_pack("{s:s, s:b}", "uid", doc_text(review, "request.uid", ""),
                                 "allowed", j->status == 0);
    if (j->status != 0) {
        json_object_set_new(response, "status",
                            json_pack("{s:s, s:s, s:i, s:s, s:s}", "kind", "Status", "status",
                                      "Failure", "code", j->status, "reason", j->reason, "message",
                                      buf_str(&j->message)));
    }
    if (json_array_size(j->warnings) > 0) {
        json_object_set(response, "warnings", j->warnings);
    }
    return json_pack("{s:s, s:s, s:o}", "apiVersion",
                     doc_text(review, "apiVersion", "admission.k8s.io/v1"), "kind",
                     "AdmissionReview", "response", response);
}

json_t *webhook_answer_admission(const json_t *review, const struct images *images)
{
    struct judgement j = {.warnings = json_array()};
    buf_init(&j.message, MESSAGE_BYTES_MAX);
    judge(&j, json_object_get(review, "request"), images);
    json_t *result = answer(review, &j);
    buf_done(&j.message);
    json_decref(j.warnings);
    return result;
}
