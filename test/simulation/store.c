/* See store.h. */
#include "store.h"

#include "base/doc.h"
#include "base/testing/test.h"
#include "base/time/timestamp.h"

void sim_store_init(struct sim_store *s, json_t *job)
{
    *s = (struct sim_store){.job = json_deep_copy(job),
                            .pods = json_array(),
                            .services = json_array(),
                            .claims = json_array(),
                            .events = json_array(),
                            .made = json_object(),
                            .version = 1,
                            .job_version = 1};
}

void sim_store_done(struct sim_store *s)
{
    json_decref(s->job);
    json_decref(s->pods);
    json_decref(s->services);
    json_decref(s->claims);
    json_decref(s->events);
    json_decref(s->made);
}

void sim_store_look(const struct sim_store *s, int64_t now_unix_ms, struct sim_view *ret)
{
    ret->view = (struct control_view){.job = json_deep_copy(s->job),
                                      .pods = json_deep_copy(s->pods),
                                      .services = json_deep_copy(s->services),
                                      .claims = json_deep_copy(s->claims),
                                      .now_unix_ms = now_unix_ms};
    ret->job_version = s->job_version;
}

void sim_view_done(struct sim_view *v)
{
    json_decref(v->view.job);
    json_decref((json_t *)v->view.pods);
    json_decref((json_t *)v->view.services);
    json_decref((json_t *)v->view.claims);
    *v = (struct sim_view){.job_version = 0};
}

static void changed(struct sim_store *s, json_t *object)
{
    s->version++;
    doc_set(object, "metadata.resourceVersion", json_sprintf("%lld", (long long)s->version));
}

static size_t find(const json_t *list, const char *field, const char *value)
{
    size_t index;
    json_t *each;
    json_array_foreach ((json_t *)list, index, each) {
        if (strcmp(doc_text(each, field, ""), value) == 0) {
            break;
        }
    }
    return index;
}

static int create(struct sim_store *s, json_t *list, const json_t *object, int64_t now)
{
    if (find(list, "metadata.name", doc_text(object, "metadata.name", "")) <
        json_array_size(list)) {
        return MUSTER_EEXIST;
    }
    char text[TIMESTAMP_BYTES];
    json_t *copy = json_deep_copy(object);
    doc_set(copy, "metadata.uid", json_sprintf("uid-%lld", (long long)++s->uids));
    doc_set_text(copy, "metadata.creationTimestamp", timestamp_seconds(now, text));
    json_array_append_new(list, copy);
    changed(s, copy);
    return 0;
}

static int create_pod(struct sim_store *s, const json_t *object, int64_t now)
{
    int rc = create(s, s->pods, object, now);
    if (rc == 0) {
        const char *name = doc_text(object, "metadata.name", "");
        json_int_t count = json_integer_value(json_object_get(s->made, name));
        json_object_set_new(s->made, name, json_integer(count + 1));
    }
    return rc;
}

static int remove_service(struct sim_store *s, const struct control_effect *e)
{
    size_t index = find(s->services, "metadata.uid", e->uid);
    if (json_array_remove(s->services, index) != 0) {
        return MUSTER_ENOENT;
    }
    s->version++;
    return 0;
}

static void mark_deleted(struct sim_store *s, json_t *pod, int64_t now)
{
    char text[TIMESTAMP_BYTES];
    if (pod && !doc_at(pod, "metadata.deletionTimestamp")) {
        doc_set_text(pod, "metadata.deletionTimestamp", timestamp_text(now, text));
        changed(s, pod);
    }
}

static int write_job(struct sim_store *s, int64_t *job_version, const char *path, json_t *value)
{
    if (!s->job || s->job_version != *job_version) {
        json_decref(value);
        return MUSTER_ECONFLICT;
    }
    doc_set(s->job, path, value);
    s->version++;
    *job_version = ++s->job_version;
    return 0;
}

static int delete_job(struct sim_store *s, const int64_t *job_version)
{
    if (!s->job || s->job_version != *job_version) {
        return MUSTER_ECONFLICT;
    }
    json_decref(s->job);
    s->job = NULL;
    s->version++;
    return 0;
}

static void record(struct sim_store *s, const struct control_effect *e, int64_t now)
{
    json_array_append_new(s->events, json_pack("{s:s, s:s, s:s, s:I}", "type",
                                               e->warning ? "Warning" : "Normal", "reason", e->name,
                                               "message", e->text, "at", (json_int_t)now));
}

static int create_effect(struct sim_store *s, const struct control_effect *e, int64_t now)
{
    bool is_service = e->resource == CONTROL_SERVICE;
    return e->resource == CONTROL_POD
               ? create_pod(s, e->object, now)
               : create(s, is_service ? s->services : s->claims, e->object, now);
}

static int delete_effect(struct sim_store *s, const struct control_effect *e,
                         const int64_t *job_version, int64_t now)
{
    if (e->resource == CONTROL_POD) {
        mark_deleted(s, sim_store_pod(s, e->uid), now);
        return 0;
    }
    return e->resource == CONTROL_JOB ? delete_job(s, job_version) : remove_service(s, e);
}

int sim_store_apply(struct sim_store *s, const struct control_effect *e, int64_t *job_version,
                    int64_t now)
{
    switch (e->verb) {
    case CONTROL_CREATE: return create_effect(s, e, now);
    case CONTROL_DELETE: return delete_effect(s, e, job_version, now);
    case CONTROL_UPDATE: break; /* companions are not made here */
    case CONTROL_UPDATE_STATUS:
        return write_job(s, job_version, "status", json_deep_copy(e->object));
    case CONTROL_RECORD_EVENT: record(s, e, now); return 0;
    case CONTROL_WAKE_AT: return 0;
    }
    return MUSTER_EINTERNAL;
}

json_t *sim_store_pod(const struct sim_store *s, const char *uid)
{
    return json_array_get(s->pods, find(s->pods, "metadata.uid", uid));
}

void sim_store_remove_pod(struct sim_store *s, const char *uid)
{
    if (json_array_remove(s->pods, find(s->pods, "metadata.uid", uid)) == 0) {
        s->version++;
    }
}

void sim_store_delete_pod(struct sim_store *s, const char *name, int64_t now)
{
    mark_deleted(s, json_array_get(s->pods, find(s->pods, "metadata.name", name)), now);
}

void sim_store_set_status(struct sim_store *s, const char *uid, json_t *status)
{
    json_t *pod = sim_store_pod(s, uid);
    if (!pod) {
        json_decref(status);
        return;
    }
    doc_set(pod, "status", status);
    changed(s, pod);
}

void sim_store_patch_job(struct sim_store *s, json_t *patch)
{
    if (s->job) {
        json_object_update_recursive(s->job, patch);
        s->version++;
        s->job_version++;
    }
    json_decref(patch);
}
