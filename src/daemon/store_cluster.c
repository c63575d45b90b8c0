/* See store_cluster.h. */
#include "daemon/store_cluster.h"

#include "base/err.h"
#include "daemon/audit.h"
#include "daemon/store_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* More rounds than a step has phases; after that other work of the loop gets its turn. */
enum { ROUNDS_MAX = 8 };

struct cluster_call {
    struct embedded *embedded;
    struct cluster_call *prev, *next;
    struct cluster_request request;
    char *texts; /* the texts of the request */
    cluster_done_fn *done;
    void *arg;
    bool cancelled; /* no answer is wanted any more */
    struct muster_err err;
    json_t *object;
};

struct cluster_watch {
    struct embedded *embedded;
    struct cluster_watch *prev, *next;
    cluster_watch_fn *fn;
    void *arg;
    struct store_watch *watch;
};

struct embedded {
    struct cluster cluster; /* must be first */
    struct store *store;
    struct cluster_call *waiting; /* requests that must be carried out */
    struct cluster_call *batch;   /* requests that are being carried out and answered */
    struct cluster_watch *watches;
    uv_idle_t idle; /* runs while something waits */
    int audit_fd;   /* -1: no audit */
};

static struct embedded *embedded_of(struct cluster *cluster)
{
    return (struct embedded *)cluster;
}

/* ---- a batch ---- */

/* Fails all calls of the batch, since the transaction was undone. */
static void fail_all(struct embedded *e, const struct muster_err *why)
{
    struct cluster_call *call;
    DL_FOREACH (e->batch, call) {
        call->err = *why;
        json_decref(call->object);
        call->object = NULL;
    }
}

static void carry_out_batch(struct embedded *e)
{
    struct muster_err why = MUSTER_ERR_INIT;
    struct cluster_call *call;
    e->batch = e->waiting;
    e->waiting = NULL;
    if (store_begin(e->store, &why) < 0) {
        fail_all(e, &why);
        return;
    }
    DL_FOREACH (e->batch, call) {
        (void)store_request_carry_out(e->store, &call->request, &call->object, &call->err);
    }
    if (store_commit(e->store, &why) < 0) {
        fail_all(e, &why);
    }
}

static void free_call(struct cluster_call *call)
{
    json_decref(call->request.body);
    json_decref(call->object);
    free(call->texts);
    free(call);
}

static void answer_batch(struct embedded *e)
{
    while (e->batch) {
        struct cluster_call *call = e->batch;
        const struct cluster_answer answer = {.code = call->err.code,
                                              .reason = store_request_reason(call->err.code),
                                              .message = call->err.text,
                                              .object = call->object};
        DL_DELETE(e->batch, call);
        if (!call->cancelled) {
            call->done(call->arg, &answer);
        }
        free_call(call);
    }
}

/* Carries out requests. Answers lead to more requests; those of one step are carried out here, one
 * after another. */
static void on_idle(uv_idle_t *idle)
{
    struct embedded *e = idle->data;
    for (int i = 0; i < ROUNDS_MAX && e->waiting; i++) {
        carry_out_batch(e);
        answer_batch(e);
    }
    if (!e->waiting) {
        uv_idle_stop(idle);
    }
}

/* ---- sending ---- */

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *keep(char **at, const char *text)
{
    size_t bytes = bytes_of(text);
    char *start = bytes ? memcpy(*at, text, bytes) : NULL;
    *at += bytes;
    return start;
}

/* Copies the texts of a request, which belong to the sender, until the request is carried out. */
static bool keep_texts(struct cluster_call *call)
{
    struct cluster_request *q = &call->request;
    const char **texts[] = {&q->namespace, &q->name,   &q->subresource, &q->uid,
                            &q->version,   &q->labels, &q->fields,      &q->next};
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bytes += bytes_of(*texts[i]);
    }
    char *at = call->texts = malloc(bytes);
    for (size_t i = 0; at && i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = keep(&at, *texts[i]);
    }
    return call->texts != NULL;
}

static int send_request(struct cluster *cluster, const struct cluster_request *request,
                        cluster_done_fn *done, void *arg, struct cluster_call **ret,
                        struct muster_err *err)
{
    struct embedded *e = embedded_of(cluster);
    struct cluster_call *call = calloc(1, sizeof *call);
    if (!call) {
        return err_no_memory(err);
    }
    *call = (struct cluster_call){
        .embedded = e, .request = *request, .done = done, .arg = arg, .err = MUSTER_ERR_INIT};
    if (!keep_texts(call)) {
        free(call);
        return err_no_memory(err);
    }
    json_incref(call->request.body);
    if (e->audit_fd >= 0) {
        audit_write(e->audit_fd, request);
    }
    DL_APPEND(e->waiting, call);
    uv_idle_start(&e->idle, on_idle);
    if (ret) {
        *ret = call;
    }
    return 0;
}

static void cancel_request(struct cluster_call *call)
{
    call->cancelled = true; /* the request is carried out all the same */
}

/* ---- watches ---- */

static void on_change(void *arg, const struct store_change *change)
{
    struct cluster_watch *w = arg;
    bool gone = change->kind == STORE_DELETED;
    w->fn(w->arg, &(struct cluster_change){.news = gone ? CLUSTER_GONE : CLUSTER_OBJECT,
                                           .object = change->object});
}

static void tell_page(struct cluster_watch *w, const struct store_page *page)
{
    char version[32];
    size_t index;
    json_t *each;
    snprintf(version, sizeof version, "%" PRId64, page->version);
    w->fn(w->arg, &(struct cluster_change){.news = CLUSTER_BEGIN});
    json_array_foreach (page->items, index, each) {
        w->fn(w->arg, &(struct cluster_change){.news = CLUSTER_OBJECT, .object = each});
    }
    w->fn(w->arg, &(struct cluster_change){.news = CLUSTER_SYNCED, .version = version});
}

static int start(struct cluster_watch *w, const struct cluster_scope *scope, struct muster_err *err)
{
    struct store *store = w->embedded->store;
    const char *namespace = scope->namespace && *scope->namespace ? scope->namespace : NULL;
    const struct store_query query = {.resource = scope->resource->plural, .namespace = namespace};
    const struct store_watch_options options = {.resource = scope->resource->plural,
                                                .namespace = namespace,
                                                .after_version = STORE_FROM_NOW};
    struct store_page page = {0};
    int r = store_list(store, &query, &page, err);
    r = r < 0 ? r : store_watch(store, &options, on_change, w, &w->watch, err);
    if (r == 0) {
        tell_page(w, &page);
    }
    store_page_done(&page);
    return r;
}

static int start_watch(struct cluster *cluster, const struct cluster_scope *scope,
                       cluster_watch_fn *fn, void *arg, struct cluster_watch **ret,
                       struct muster_err *err)
{
    struct embedded *e = embedded_of(cluster);
    if (scope->labels || scope->fields) {
        return muster_fail(err, MUSTER_EUNSUPPORTED, "the store watches whole collections only");
    }
    struct cluster_watch *w = calloc(1, sizeof *w);
    if (!w) {
        return err_no_memory(err);
    }
    *w = (struct cluster_watch){.embedded = e, .fn = fn, .arg = arg};
    int r = start(w, scope, err);
    if (r < 0) {
        free(w);
        return r;
    }
    DL_APPEND(e->watches, w);
    *ret = w;
    return 0;
}

static void stop_watch(struct cluster_watch *w)
{
    if (w) {
        store_unwatch(w->watch);
        DL_DELETE(w->embedded->watches, w);
        free(w);
    }
}

/* ---- life ---- */

static const struct cluster_backend backend = {send_request, cancel_request, start_watch,
                                               stop_watch};

int store_cluster_new(uv_loop_t *loop, struct store *store, struct cluster **ret,
                      struct muster_err *err)
{
    struct embedded *e = calloc(1, sizeof *e);
    if (!e) {
        return err_no_memory(err);
    }
    e->cluster.backend = &backend;
    e->store = store;
    e->audit_fd = -1;
    e->idle.data = e;
    uv_idle_init(loop, &e->idle);
    *ret = &e->cluster;
    return 0;
}

void store_cluster_audit(struct cluster *cluster, int fd)
{
    embedded_of(cluster)->audit_fd = fd;
}

static void free_self(uv_handle_t *handle)
{
    free(handle->data);
}

struct cluster *store_cluster_free(struct cluster *cluster)
{
    if (!cluster) {
        return NULL;
    }
    struct embedded *e = embedded_of(cluster);
    while (e->watches) {
        stop_watch(e->watches);
    }
    while (e->waiting) {
        struct cluster_call *call = e->waiting;
        DL_DELETE(e->waiting, call);
        free_call(call);
    }
    uv_close((uv_handle_t *)&e->idle, free_self);
    return NULL;
}
