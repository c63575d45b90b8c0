/* See jobs.h. */
#include "daemon/object/jobs.h"

#include "base/cleanup.h"
#include "base/doc.h"
#include "base/time/timestamp.h"
#include "control/control.h"
#include "job/annotations.h"
#include "job/job.h"

#include <string.h>

bool jobs_is_finished(const json_t *job)
{
    return !control_manages(job) || job_is_finished(job);
}

bool jobs_is_past_deadline(const json_t *job, int64_t now_unix_ms)
{
    int64_t started = control_started_unix_ms(job);
    int64_t deadline_s = doc_int(job, "spec.runPolicy.activeDeadlineSeconds", -1);
    return started != TIMESTAMP_NONE && deadline_s >= 0 && !job_condition(job, "Succeeded") &&
           now_unix_ms >= started + deadline_s * 1000;
}

const json_t *jobs_owner(const json_t *object)
{
    size_t i;
    json_t *owner;
    json_array_foreach (doc_at(object, "metadata.ownerReferences"), i, owner) {
        if (doc_bool(owner, "controller", false) &&
            strcmp(doc_text(owner, "kind", ""), "PyTorchJob") == 0) {
            return owner;
        }
    }
    return NULL;
}

int jobs_fetch_owner(struct store *store, const json_t *object, json_t **ret,
                     struct muster_err *err)
{
    const json_t *reference = jobs_owner(object);
    const struct store_key key = {"pytorchjobs", doc_text(object, "metadata.namespace", ""),
                                  doc_text(reference, "name", "")};
    muster_auto(doc) json_t *job = NULL;
    int r = reference ? store_get(store, key, &job, err) : MUSTER_ENOENT;
    if (r < 0 && r != MUSTER_ENOENT) {
        return r;
    }
    const char *uid = doc_text(job, "metadata.uid", "");
    *ret = job && strcmp(uid, doc_text(reference, "uid", "")) == 0 ? muster_take(job) : NULL;
    return 0;
}

const char *jobs_folder_uid(const json_t *pod)
{
    const char *own = doc_text(pod, "metadata.uid", "");
    return doc_text(jobs_owner(pod), "uid", own);
}

const char *jobs_annotation(const json_t *job, const char *annotation)
{
    return json_string_value(json_object_get(doc_at(job, "metadata.annotations"), annotation));
}

json_t *jobs_annotated(const json_t *job, const json_t *notes)
{
    muster_auto(doc) json_t *copy = json_deep_copy(job);
    json_t *all = doc_at(copy, "metadata.annotations");
    if (copy && !all) {
        all = json_object();
        if (doc_set(copy, "metadata.annotations", all) < 0) {
            return NULL;
        }
    }
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)notes, key, value) {
        if (json_is_null(value)) {
            json_object_del(all, key);
        } else if (json_object_set(all, key, value) != 0) {
            return NULL;
        }
    }
    return muster_take(copy);
}
