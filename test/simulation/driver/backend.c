/* Requests and watches of the make-believe cluster. See fake.h. */
#include "internal.h"

#include "base/testing/test.h"
#include "job/job.h"

#include <stdio.h>
#include <utlist.h>

enum fate { ANSWERED, LOST, UNANSWERED, REFUSED, THROTTLED };

struct fake_request {
    struct fake *fake;
    struct fake_request *prev, *next;
    struct cluster_request request; /* texts are copied */
    char *texts;
    cluster_done_fn *done; /* NULL: cancelled */
    void *arg;
    enum fate fate;
    bool carried_out;
    int64_t due_ms;
    int code;
    json_t *object;
};

/* ---- what the server does ---- */

static bool matches(const json_t *object, const char *uid, const char *version)
{
    return (!uid || !*uid || strcmp(uid, doc_text(object, "metadata.uid", "")) == 0) &&
           (!version || !*version ||
            strcmp(version, doc_text(object, "metadata.resourceVersion", "")) == 0);
}

static void check_creation(struct fake *f, const char *resource)
{
    const json_t *job = fake_get(f, "pytorchjobs", "case");
    if (strcmp(resource, "pods") != 0 || !job || f->late || f->excused) {
        return;
    }
    if (job_is_finished(job)) {
        f->broken = "a pod was made for a job that is over";
    } else if (doc_bool(job, "spec.runPolicy.suspend", false) && job_condition(job, "Suspended")) {
        f->broken = "a pod was made for a job that is suspended";
    }
}

static int do_create(struct fake *f, const struct cluster_request *q, json_t **ret)
{
    const char *resource = q->resource->plural;
    if (fake_get(f, resource, doc_text(q->body, "metadata.name", ""))) {
        return MUSTER_EEXIST;
    }
    check_creation(f, resource);
    *ret = json_deep_copy(fake_create(f, resource, q->body));
    return 0;
}

static int do_write(struct fake *f, const struct cluster_request *q, json_t *old, json_t **ret)
{
    if (!matches(old, doc_text(q->body, "metadata.uid", NULL),
                 doc_text(q->body, "metadata.resourceVersion", NULL))) {
        return MUSTER_ECONFLICT;
    }
    bool was_over = job_is_finished(old);
    json_t *copy = json_deep_copy(old);
    if (q->verb == CLUSTER_REPLACE) {
        assert_string_equal(q->subresource, "status");
        doc_set(copy, "status", json_deep_copy(doc_at(q->body, "status")));
    } else {
        json_object_update_recursive(copy, q->body);
    }
    fake_put(f, q->resource->plural, copy);
    f->excused |= f->late;
    if (was_over && !job_is_finished(copy)) {
        f->broken = "a job that was over is not any more";
    }
    if (doc_int(copy, "status.counters.failures", 0) > f->failures) {
        f->broken = "a failure was counted twice";
    }
    *ret = json_deep_copy(copy);
    return 0;
}

/* Checks that the deleted pod is the one that was meant, and not a new one under its name. */
static void check_deletion(struct fake *f, const struct cluster_request *q, const json_t *old)
{
    const char *owner = doc_text(old, "metadata.ownerReferences.0.uid", "");
    const char *job = doc_text(fake_get(f, "pytorchjobs", "case"), "metadata.uid", owner);
    if (strcmp(q->resource->plural, "pods") == 0 && strcmp(owner, job) != 0) {
        f->broken = "a stranger's pod was deleted";
    }
}

/* The node may be back between the look at it and the deletion: this cannot be avoided. */
static void check_force(struct fake *f, const json_t *pod)
{
    int64_t in_between_ms = 2 * (int64_t)f->faults.lag_ms;
    bool lost = f->now_ms >= f->lost_from_ms || f->now_ms <= f->lost_until_ms + in_between_ms;
    if (!lost || strcmp(doc_text(pod, "spec.nodeName", ""), "node-1") != 0) {
        f->broken = "a pod was deleted while it may run";
    }
}

static int do_delete(struct fake *f, const struct cluster_request *q, json_t *old, json_t **ret)
{
    if (!matches(old, q->uid, q->version)) {
        return MUSTER_ECONFLICT;
    }
    check_deletion(f, q, old);
    if (q->grace_s == 0) {
        check_force(f, old);
    }
    if (q->grace_s != 0 && strcmp(q->resource->plural, "pods") == 0) {
        fake_mark_deleted(f, old);
        *ret = json_deep_copy(fake_get(f, "pods", q->name));
    } else {
        fake_delete(f, q->resource->plural, q->name);
        *ret = json_pack("{s:s, s:s}", "kind", "Status", "status", "Success");
    }
    return 0;
}

static int carry_out(struct fake *f, const struct cluster_request *q, json_t **ret)
{
    json_t *old = q->name ? fake_get(f, q->resource->plural, q->name) : NULL;
    if (q->verb == CLUSTER_CREATE) {
        return do_create(f, q, ret);
    }
    if (!old) {
        return MUSTER_ENOENT;
    }
    switch (q->verb) {
    case CLUSTER_GET: *ret = json_deep_copy(old); return 0;
    case CLUSTER_REPLACE:
    case CLUSTER_PATCH: return do_write(f, q, old, ret);
    case CLUSTER_DELETE: return do_delete(f, q, old, ret);
    case CLUSTER_LIST:
    case CLUSTER_CREATE: break;
    }
    return MUSTER_EMETHOD;
}

/* ---- requests ---- */

static enum fate draw_fate(struct fake *f)
{
    const struct fake_faults *x = &f->faults;
    return fake_chance(f, x->lost)         ? LOST
           : fake_chance(f, x->unanswered) ? UNANSWERED
           : fake_chance(f, x->refused)    ? REFUSED
           : fake_chance(f, x->throttled)  ? THROTTLED
                                           : ANSWERED;
}

static const char *keep(char **at, const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    char *start = *at;
    if (!text) {
        return NULL;
    }
    memcpy(start, text, bytes);
    *at += bytes;
    return start;
}

static void keep_texts(struct fake_request *r)
{
    struct cluster_request *q = &r->request;
    const char **texts[] = {&q->namespace, &q->name, &q->subresource, &q->uid, &q->version};
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bytes += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    }
    char *at = r->texts = malloc(bytes);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = keep(&at, *texts[i]);
    }
}

static int send_request(struct cluster *cluster, const struct cluster_request *request,
                        cluster_done_fn *done, void *arg, struct cluster_call **ret,
                        struct muster_err *err)
{
    (void)err;
    struct fake *f = (struct fake *)cluster;
    struct fake_request *r = calloc(1, sizeof *r);
    *r = (struct fake_request){.fake = f,
                               .request = *request,
                               .done = done,
                               .arg = arg,
                               .fate = draw_fate(f),
                               .due_ms = fake_lag(f)};
    bool event = strcmp(request->resource->plural, "events") == 0;
    f->sent += !event;
    f->creations += !event && request->verb == CLUSTER_CREATE;
    f->events += event;
    keep_texts(r);
    r->request.body = json_deep_copy(request->body);
    DL_APPEND(f->requests, r);
    *ret = (struct cluster_call *)r;
    return 0;
}

static void cancel_request(struct cluster_call *call)
{
    ((struct fake_request *)call)->done = NULL;
}

static void forget(struct fake_request *r)
{
    DL_DELETE(r->fake->requests, r);
    json_decref(r->request.body);
    json_decref(r->object);
    free(r->texts);
    free(r);
}

void fake_forget_requests(struct fake *f)
{
    while (f->requests) {
        forget(f->requests);
    }
}

static struct fake_request *next_request(const struct fake *f)
{
    struct fake_request *next = NULL;
    for (struct fake_request *r = f->requests; r; r = r->next) {
        next = !next || r->due_ms < next->due_ms ? r : next;
    }
    return next;
}

int64_t fake_requests_next(const struct fake *f)
{
    const struct fake_request *next = next_request(f);
    return next ? next->due_ms : INT64_MAX;
}

static struct cluster_answer answer_of(const struct fake_request *r)
{
    static const struct cluster_answer answers[] = {
        [LOST] = {.code = MUSTER_EUNAVAIL, .message = "cut off", .unsure = true},
        [UNANSWERED] = {.code = MUSTER_ETIMEDOUT, .message = "timed out", .unsure = true},
        [REFUSED] = {.code = MUSTER_EUNAVAIL, .message = "internal", .http_status = 500},
        [THROTTLED] = {.code = MUSTER_EAGAIN, .message = "slow down", .retry_after_ms = 200},
    };
    if (r->fate != ANSWERED) {
        return answers[r->fate];
    }
    return (struct cluster_answer){
        .code = r->code, .message = muster_code_text(r->code), .object = r->object};
}

/* A request is first carried out, and later answered. */
void fake_requests_run(struct fake *f)
{
    struct fake_request *r = next_request(f);
    if (!r->carried_out) {
        r->carried_out = true;
        if (r->fate == ANSWERED || r->fate == UNANSWERED) {
            f->late = r->done == NULL; /* it is of a driver that has died: this cannot be avoided */
            r->code = carry_out(f, &r->request, &r->object);
        }
        r->due_ms = fake_lag(f);
        return;
    }
    struct cluster_answer answer = answer_of(r);
    answer.reason = "";
    if (r->done) {
        r->done(r->arg, &answer);
    }
    forget(r);
}

/* ---- watches ---- */

static int start_watch(struct cluster *cluster, const struct cluster_scope *scope,
                       cluster_watch_fn *fn, void *arg, struct cluster_watch **ret,
                       struct muster_err *err)
{
    (void)err;
    struct fake *f = (struct fake *)cluster;
    struct fake_watch *w = f->watches;
    while (w->open) {
        w++;
    }
    assert_true(w < f->watches + FAKE_WATCHES);
    *w = (struct fake_watch){
        .fake = f, .scope = *scope, .fn = fn, .arg = arg, .due_ms = fake_lag(f), .open = true};
    *ret = (struct cluster_watch *)w;
    return 0;
}

static void stop_watch(struct cluster_watch *watch)
{
    if (watch) {
        ((struct fake_watch *)watch)->open = false;
    }
}

const struct cluster_backend fake_backend = {send_request, cancel_request, start_watch, stop_watch};

static bool is_about(const struct fake_watch *w, const json_t *entry)
{
    return strcmp(doc_text(entry, "resource", ""), w->scope.resource->plural) == 0;
}

static void skip_others(struct fake_watch *w)
{
    const json_t *log = w->fake->log;
    while (w->next < json_array_size(log) && !is_about(w, json_array_get(log, w->next))) {
        w->next++;
    }
}

static struct fake_watch *next_watch(const struct fake *f)
{
    struct fake_watch *next = NULL;
    for (int i = 0; i < FAKE_WATCHES; i++) {
        struct fake_watch *w = (struct fake_watch *)&f->watches[i];
        if (w->open) {
            skip_others(w);
        }
        bool due = w->open && (!w->listed || w->listing || w->next < json_array_size(f->log));
        next = due && (!next || w->due_ms < next->due_ms) ? w : next;
    }
    return next;
}

int64_t fake_watches_next(const struct fake *f)
{
    const struct fake_watch *next = next_watch(f);
    return next ? next->due_ms : INT64_MAX;
}

static void tell(struct fake_watch *w, enum cluster_news news, json_t *object)
{
    char version[32];
    snprintf(version, sizeof version, "%lld", (long long)w->version);
    const struct cluster_change change = {.news = news, .object = object, .version = version};
    if (w->open) {
        w->fn(w->arg, &change);
    }
}

/* Sends the listing. Its end comes with a later delivery: changes in the meantime may be sent
 * before it. */
static void list(struct fake_watch *w)
{
    const char *name;
    json_t *object;
    json_t *map = json_object_get(w->fake->objects, w->scope.resource->plural);
    tell(w, CLUSTER_BEGIN, NULL);
    json_object_foreach (map, name, object) {
        tell(w, CLUSTER_OBJECT, object);
    }
    w->listed = w->listing = true;
    w->next = json_array_size(w->fake->log);
    w->version = w->fake->version;
}

static void end_listing(struct fake_watch *w)
{
    w->listing = false;
    tell(w, CLUSTER_SYNCED, NULL);
}

/* Whether another state of the same object follows. */
static bool may_skip(const struct fake_watch *w)
{
    const json_t *log = w->fake->log;
    const json_t *one = doc_at(json_array_get(log, w->next), "object.metadata");
    for (size_t i = w->next + 1; i < json_array_size(log); i++) {
        const json_t *other = json_array_get(log, i);
        if (is_about(w, other) &&
            strcmp(doc_text(other, "object.metadata.name", ""), doc_text(one, "name", "")) == 0) {
            return strcmp(doc_text(other, "object.metadata.uid", ""), doc_text(one, "uid", "")) ==
                   0;
        }
    }
    return false;
}

static void deliver(struct fake_watch *w)
{
    struct fake *f = w->fake;
    const json_t *entry = json_array_get(f->log, w->next);
    bool gone = doc_bool(entry, "gone", false);
    json_t *object = json_incref(doc_at(entry, "object"));
    if (!may_skip(w) || !fake_chance(f, f->faults.skipped)) {
        tell(w, gone ? CLUSTER_GONE : CLUSTER_OBJECT, object);
    }
    if (!gone && fake_chance(f, f->faults.repeated)) {
        tell(w, CLUSTER_OBJECT, object);
    }
    json_decref(object);
    w->next++;
}

void fake_watches_run(struct fake *f)
{
    struct fake_watch *w = next_watch(f);
    bool more = w->next < json_array_size(f->log);
    if (!w->listed || (more && !w->listing && fake_chance(f, f->faults.relisted))) {
        list(w);
    } else if (w->listing && (!more || fake_chance(f, 50))) {
        end_listing(w);
    } else {
        deliver(w);
    }
    w->due_ms = fake_lag(f);
}
