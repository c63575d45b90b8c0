/* Requests that block, with one answer each. If a controller has died, another is started and
 * asked again, where asking twice does no harm. */
#include "kube/internal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "kube/pace/retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIES = 3,
    US_PER_MS = 1000,
    PAUSE_MAX_MS = 5000, /* if the server asks for a longer pause, there is no further try */
};

struct exchange {
    const char *method;
    const char *path;
    const char *content_type;
    const char *body; /* or NULL */
    size_t body_bytes;
    bool table;
    const struct kube *kube; /* has hurry_when and say_slow */
    int64_t hurried_ms;      /* when hurry_when was first seen set; 0: not yet */
    curl_off_t moved_bytes;
    int64_t moved_ms; /* when bytes last moved */
    bool said_slow;
    struct buf reply;
    long http_status;
    int64_t sent_ms;        /* when it was authorized */
    int64_t retry_after_ms; /* < 0: the server named no time */
    char problem[CURL_ERROR_SIZE];
};

static size_t collect(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *x = context;
    buf_add(&x->reply, bytes, size * count);
    return buf_failed(&x->reply) ? 0 : size * count;
}

const char *kube_accept(bool table)
{
    return table ? "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
                 : "application/json";
}

static int add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char line[160];
    snprintf(line, sizeof line, "%s:%s%s", name, *value ? " " : "", value);
    struct curl_slist *more = curl_slist_append(*headers, line);
    *headers = more ? more : *headers;
    return more ? 0 : MUSTER_ENOMEM;
}

/* Makes the headers; on failure *ret has those that were made until then. */
static int make_headers(struct kube *kube, struct exchange *x, struct curl_slist **ret,
                        struct muster_err *err)
{
    int r = add_header(ret, "Accept", kube_accept(x->table));
    r = r < 0 ? r
              : add_header(ret, x->content_type ? "Content-Type" : "Expect",
                           x->content_type ? x->content_type : "");
    x->sent_ms = clock_ms();
    return r < 0 ? err_no_memory(err)
                 : kube_endpoint_authorize(kube->endpoint, x->sent_ms, ret, err);
}

static long limit_ms(const struct kube *kube)
{
    return kube->hurried ? KUBE_HURRIED_MS : KUBE_REQUEST_MS;
}

/* Calls say_slow after a silence, but not in a hurry: then the limit is short, and the error names
 * it. */
static void watch_for_silence(struct exchange *x, curl_off_t bytes)
{
    const struct kube *kube = x->kube;
    if (bytes != x->moved_bytes) {
        x->moved_bytes = bytes;
        x->moved_ms = clock_ms();
    }
    if (kube->say_slow && !kube->is_cluster && !kube->hurried && !x->said_slow &&
        clock_ms() - x->moved_ms >= KUBE_SLOW_MS) {
        x->said_slow = true;
        kube->say_slow(kube, KUBE_SLOW_MS / 1000);
    }
}

/* curl calls this at least once a second. */
static int on_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    (void)down_total, (void)up_total;
    struct exchange *x = context;
    watch_for_silence(x, down + up);
    if (!x->kube->hurry_when || !*x->kube->hurry_when) {
        return 0;
    }
    x->hurried_ms = x->hurried_ms ? x->hurried_ms : clock_ms();
    return clock_ms() - x->hurried_ms > KUBE_HURRIED_MS;
}

static CURLcode transfer(struct kube *kube, struct exchange *x, struct curl_slist *headers)
{
    CURL *easy = kube->easy;
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, x->method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, limit_ms(kube));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    x->kube = kube;
    x->moved_ms = clock_ms();
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, x);
    if (x->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_bytes);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, x->body);
    }
    x->problem[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, x->problem);
    CURLcode result = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &x->http_status);
    x->retry_after_ms = transfer_retry_after_ms(easy);
    return result;
}

/* Whether a request may be sent again after a broken connection: not a POST, which might create an
 * object twice. */
static bool may_repeat(const struct exchange *x, CURLcode result)
{
    return result == CURLE_COULDNT_CONNECT ||
           (strcmp(x->method, "POST") != 0 &&
            (result == CURLE_GOT_NOTHING || result == CURLE_RECV_ERROR ||
             result == CURLE_SEND_ERROR || result == CURLE_PARTIAL_FILE));
}

static int attempt(struct kube *kube, struct exchange *x, CURLcode *ret_result,
                   struct muster_err *err)
{
    struct curl_slist *headers = NULL;
    curl_easy_reset(kube->easy);
    int r = kube_endpoint_apply(kube->endpoint, kube->easy, x->path, err);
    r = r < 0 ? r : make_headers(kube, x, &headers, err);
    if (r == 0) {
        buf_clear(&x->reply);
        *ret_result = transfer(kube, x, headers);
    }
    curl_slist_free_all(headers);
    curl_easy_setopt(kube->easy, CURLOPT_HTTPHEADER, NULL);
    return r;
}

/* If an answer is not final (a busy server, or a token that was renewed meanwhile), returns how
 * long to wait before the next try; < 0: the answer is final. */
static int64_t next_try_ms(struct kube *kube, const struct exchange *x)
{
    if (x->http_status == RETRY_UNAUTHORIZED) {
        return kube_endpoint_token_refused(kube->endpoint, x->sent_ms, clock_ms()) ? 0 : -1;
    }
    bool busy = x->http_status == RETRY_TOO_MANY || x->http_status >= RETRY_SERVER_ERROR;
    return kube->is_cluster && busy && x->retry_after_ms <= PAUSE_MAX_MS ? x->retry_after_ms : -1;
}

static int explain(struct kube *kube, const struct exchange *x, CURLcode result,
                   struct muster_err *err)
{
    bool late = result == CURLE_OPERATION_TIMEDOUT || result == CURLE_ABORTED_BY_CALLBACK;
    long waited_s = (x->hurried_ms ? KUBE_HURRIED_MS : limit_ms(kube)) / 1000;
    if (late && kube->is_cluster) {
        return muster_fail(err, MUSTER_ETIMEDOUT, "%s has not answered %s %s for %ld s: %s",
                           kube->peer, x->method, x->path, waited_s, x->problem);
    }
    if (late) {
        return muster_fail(err, MUSTER_ETIMEDOUT,
                           "the controller (process %d) has not answered %s %s for %ld s; if it "
                           "hangs: muster down --force",
                           (int)kube_controller_pid(kube), x->method, x->path, waited_s);
    }
    return muster_fail(err, MUSTER_EUNAVAIL, "no answer from %s to %s %s: %s", kube->peer,
                       x->method, x->path,
                       kube->is_cluster && *x->problem ? x->problem : curl_easy_strerror(result));
}

static int exchange(struct kube *kube, struct exchange *x, struct muster_err *err)
{
    CURLcode result = CURLE_OK;
    int r = attempt(kube, x, &result, err);
    for (int tried = 1; r == 0 && tried < TRIES; tried++) {
        int64_t pause_ms = result != CURLE_OK ? 0 : next_try_ms(kube, x);
        if (pause_ms < 0 || (result != CURLE_OK && !may_repeat(x, result))) {
            break;
        }
        (void)usleep((useconds_t)pause_ms * US_PER_MS);
        r = kube_ensure(kube, err);
        r = r < 0 ? r : attempt(kube, x, &result, err);
    }
    return r < 0 || result == CURLE_OK ? r : explain(kube, x, result, err);
}

static int understand(struct kube *kube, struct exchange *x, json_t **ret, struct muster_err *err)
{
    if (x->http_status >= HTTP_REFUSED) {
        return kube_refuse(kube, x->http_status, buf_str(&x->reply), x->reply.used, err);
    }
    json_t *answer = NULL;
    if (x->reply.used > 0 && doc_parse(x->reply.data, x->reply.used, &answer, err) < 0) {
        return muster_wrap(err, "%s's answer to %s %s", kube->peer, x->method, x->path);
    }
    if (answer && !json_is_object(answer)) {
        json_decref(answer);
        return muster_fail(err, MUSTER_EPROTO, "%s's answer to %s %s is not a JSON object",
                           kube->peer, x->method, x->path);
    }
    if (ret) {
        *ret = answer ? answer : json_object();
    } else {
        json_decref(answer);
    }
    return 0;
}

static int ask(struct kube *kube, struct exchange *x, json_t **ret, struct muster_err *err)
{
    buf_init(&x->reply, KUBE_REPLY_BYTES_MAX);
    int r = exchange(kube, x, err);
    r = r < 0 ? r : understand(kube, x, ret, err);
    buf_done(&x->reply);
    return r;
}

static int request(struct kube *kube, struct exchange *x, const json_t *body, json_t **ret,
                   struct muster_err *err)
{
    muster_auto(free) char *text = body ? doc_print(body) : NULL;
    if (body && !text) {
        return err_no_memory(err);
    }
    if (body && !x->content_type) {
        x->content_type = "application/json";
    }
    x->body = text;
    x->body_bytes = text ? strlen(text) : 0;
    return ask(kube, x, ret, err);
}

/* Refuses a missing name: the path would be that of all objects of the kind. */
static int check_name(const struct exchange *x, const struct kube_ref *ref, struct muster_err *err)
{
    bool of_one = strcmp(x->method, "DELETE") == 0 || strcmp(x->method, "PATCH") == 0;
    return (ref->name && *ref->name) || (!ref->name && !of_one)
               ? 0
               : muster_fail(err, MUSTER_EINVAL, "%s of a %s without a name", x->method,
                             ref->resource->kind);
}

static int on_ref(struct kube *kube, struct exchange *x, const struct kube_ref *ref,
                  const struct kube_query *query, const json_t *body, json_t **ret,
                  struct muster_err *err)
{
    int r = check_name(x, ref, err);
    if (r < 0) {
        return r;
    }
    muster_auto(free) char *path = kube_path(ref, query);
    if (!path) {
        return muster_fail(err, MUSTER_ETOOBIG, "the request's path is too long");
    }
    x->path = path;
    return request(kube, x, body, ret, err);
}

int kube_get(struct kube *kube, const struct kube_ref *ref, json_t **ret, struct muster_err *err)
{
    return on_ref(kube, &(struct exchange){.method = "GET"}, ref, NULL, NULL, ret, err);
}

int kube_list(struct kube *kube, const struct kube_ref *ref, const struct kube_query *query,
              json_t **ret, struct muster_err *err)
{
    struct exchange x = {.method = "GET", .table = query && query->table};
    return on_ref(kube, &x, ref, query, NULL, ret, err);
}

static struct kube_query write_query(const struct kube *kube)
{
    return (struct kube_query){.more = kube->dry_run ? "dryRun=All" : NULL};
}

/* Removes resourceVersion, as kubectl does: a file that was written by get has one, and an API
 * server refuses it. */
static json_t *without_version(const json_t *object)
{
    json_t *copy = json_copy((json_t *)object);
    json_t *metadata = json_copy(doc_at(object, "metadata"));
    if (metadata) {
        json_object_del(metadata, "resourceVersion");
        json_object_set_new(copy, "metadata", metadata);
    }
    return copy;
}

int kube_create(struct kube *kube, const struct kube_ref *ref, const json_t *object, json_t **ret,
                struct muster_err *err)
{
    struct kube_ref collection = *ref;
    collection.name = NULL;
    const struct kube_query query = write_query(kube);
    struct exchange x = {.method = "POST"};
    muster_auto(doc) json_t *unversioned = without_version(object);
    return unversioned ? on_ref(kube, &x, &collection, &query, unversioned, ret, err)
                       : err_no_memory(err);
}

int kube_patch(struct kube *kube, const struct kube_ref *ref, const json_t *patch, json_t **ret,
               struct muster_err *err)
{
    const struct kube_query query = write_query(kube);
    struct exchange x = {.method = "PATCH", .content_type = "application/merge-patch+json"};
    return on_ref(kube, &x, ref, &query, patch, ret, err);
}

int kube_delete(struct kube *kube, const struct kube_ref *ref, int64_t grace_s,
                struct muster_err *err)
{
    char grace[48];
    snprintf(grace, sizeof grace, "gracePeriodSeconds=%lld", (long long)grace_s);
    struct kube_query query = {.more = grace_s < 0 ? NULL : grace};
    return on_ref(kube, &(struct exchange){.method = "DELETE"}, ref, &query, NULL, NULL, err);
}

int kube_call(struct kube *kube, const char *method, const char *path, const json_t *body,
              json_t **ret, struct muster_err *err)
{
    return request(kube, &(struct exchange){.method = method, .path = path}, body, ret, err);
}

int kube_put_bytes(struct kube *kube, const char *path, const void *bytes, size_t count,
                   struct muster_err *err)
{
    struct exchange x = {.method = "PUT",
                         .path = path,
                         .content_type = "application/octet-stream",
                         .body = bytes,
                         .body_bytes = count};
    return ask(kube, &x, NULL, err);
}
