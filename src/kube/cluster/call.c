/* A request: it waits for its turn, is tried, perhaps again, and gets its answer. */
#include "kube/cluster/internal.h"

#include "base/err.h"
#include "kube/wire/answer.h"
#include "kube/wire/managers.h"
#include "kube/wire/request.h"

#include <stdlib.h>
#include <utlist.h>

enum { REPLY_BYTES_MAX = 256 << 20 };

struct cluster_call {
    struct turn turn; /* must be the first member */
    struct kube_cluster *k;
    struct wire_request wire;
    cluster_done_fn *done;
    void *arg;
    struct transfer *transfer; /* while it is sent */
    struct buf reply;
    bool without_managers;
    char *namespace; /* NULL: the request has none */
    int tried;
    bool repeated; /* a write, and an earlier try may have been carried out */
    bool finished; /* its owner is being called */
    struct cluster_call *prev, *next;
};

/* Takes the call out of everything; only its memory is left. */
static void detach(struct cluster_call *call)
{
    transfer_cancel(call->transfer);
    call->transfer = NULL;
    if (call->turn.item.place != PACE_NOWHERE) {
        pace_remove(&call->k->queue, &call->turn.item);
    }
    DL_DELETE(call->k->calls, call);
}

static void free_call(struct cluster_call *call)
{
    wire_request_done(&call->wire);
    free(call->namespace);
    buf_done(&call->reply);
    free(call);
}

/* Gives the owner the answer; the owner may send, cancel and close in its callback. Then requests
 * that waited may be sent. */
static void finish(struct cluster_call *call, const struct cluster_answer *answer)
{
    struct kube_cluster *k = call->k;
    detach(call);
    call->finished = true;
    call->done(call->arg, answer);
    json_decref(answer->object);
    free_call(call);
    if (!uv_is_closing((uv_handle_t *)&k->tick)) {
        kube_cluster_pump(k);
    }
}

static void on_data(void *context, const char *bytes, size_t count)
{
    struct cluster_call *call = context;
    buf_add(&call->reply, bytes, count);
}

/* Returns the answer for a request that got none, or only a part of one. */
static struct cluster_answer no_answer(const struct cluster_call *call,
                                       const struct transfer_result *result)
{
    return (struct cluster_answer){
        .code = transfer_code(result),
        .reason = "",
        .message = result->problem,
        .unsure = result->was_sent && !call->wire.only_reads,
    };
}

static struct cluster_answer understand(struct cluster_call *call,
                                        const struct transfer_result *result)
{
    struct cluster_answer answer;
    bool writes = !call->wire.only_reads;
    if (result->curl_code != CURLE_OK) {
        return no_answer(call, result);
    }
    if (buf_failed(&call->reply)) {
        return (struct cluster_answer){.code = MUSTER_EPROTO,
                                       .reason = "",
                                       .message = "the answer is too large",
                                       .http_status = (int)result->http_status,
                                       .unsure = writes};
    }
    if (call->without_managers) {
        buf_truncate(&call->reply, wire_drop_managers(call->reply.data, call->reply.used));
    }
    wire_answer(result->http_status, buf_str(&call->reply), call->reply.used, writes, &answer);
    answer.retry_after_ms = result->retry_after_ms > 0 ? result->retry_after_ms : 0;
    answer.repeated = call->repeated;
    return answer;
}

/* Whether the next try would fail in the same way: a certificate that is not trusted or cannot be
 * read. */
static bool is_permanent(int curl_code)
{
    return curl_code == CURLE_PEER_FAILED_VERIFICATION || curl_code == CURLE_SSL_CERTPROBLEM ||
           curl_code == CURLE_SSL_CACERT_BADFILE;
}

/* Returns the time of the next try; < 0: this was the last one. */
static int64_t next_try_ms(struct cluster_call *call, const struct transfer_result *result)
{
    struct kube_cluster *k = call->k;
    bool answered = result->curl_code == CURLE_OK;
    int64_t now_ms = kube_cluster_now_ms();
    if (answered && result->http_status == RETRY_UNAUTHORIZED) {
        return kube_endpoint_token_refused(k->endpoint, result->sent_ms, now_ms) ? now_ms : -1;
    }
    if (is_permanent(result->curl_code)) {
        return -1;
    }
    const struct retry_outcome outcome = {
        .http_status = answered ? result->http_status : 0,
        .retry_after_ms = result->retry_after_ms,
        .connected = result->was_sent,
        .only_reads = call->wire.only_reads,
        .tried = call->tried,
    };
    int64_t delay_ms = retry_delay_ms(&outcome, &k->chance);
    return delay_ms < 0 || now_ms + delay_ms >= call->turn.item.deadline_ms ? -1
                                                                            : now_ms + delay_ms;
}

/* Whether the write may have been carried out: an API server that has lost its etcd asks for a
 * repetition, although etcd may have done the write. */
static bool may_have_written(const struct cluster_call *call, const struct transfer_result *result)
{
    bool answered = result->curl_code == CURLE_OK;
    return !call->wire.only_reads && answered && result->http_status >= RETRY_SERVER_ERROR;
}

static void on_end(void *context, const struct transfer_result *result)
{
    struct cluster_call *call = context;
    call->transfer = NULL; /* the transfer frees itself */
    kube_cluster_count(call->k, call->wire.method, result);
    kube_cluster_took(call->k, call->wire.method, result->sent_ms);
    int64_t due_ms = next_try_ms(call, result);
    if (due_ms < 0) {
        const struct cluster_answer answer = understand(call, result);
        finish(call, &answer);
        return;
    }
    buf_clear(&call->reply);
    call->repeated = call->repeated || may_have_written(call, result);
    pace_wait(&call->k->queue, &call->turn.item, due_ms);
    kube_cluster_pump(call->k);
}

/* Starts the call. If there is no memory to start it, it is tried again until its deadline. */
static void start(struct turn *turn)
{
    struct cluster_call *call = (struct cluster_call *)turn;
    struct kube_cluster *k = call->k;
    int64_t now_ms = kube_cluster_now_ms();
    int64_t left_ms = turn->item.deadline_ms - now_ms;
    const struct transfer_order order = {
        .endpoint = k->endpoint,
        .method = call->wire.method,
        .path = call->wire.path,
        .content_type = call->wire.content_type,
        .body = call->wire.body,
        .body_bytes = call->wire.body_bytes,
        .limit_ms = left_ms > 0 ? left_ms : 1,
    };
    const struct transfer_events events = {.data = on_data, .end = on_end, .context = call};
    call->tried++;
    if (transport_start(k->transport, &order, &events, &call->transfer, NULL) < 0) {
        pace_wait(&k->queue, &turn->item, now_ms + RETRY_FIRST_MS);
    }
}

static void late(struct turn *turn)
{
    const struct cluster_answer answer = {
        .code = MUSTER_ETIMEDOUT,
        .reason = "",
        .message = "the request waited for its turn until its time was over",
    };
    finish((struct cluster_call *)turn, &answer);
}

int call_send(struct cluster *cluster, const struct cluster_request *request, cluster_done_fn *done,
              void *arg, struct cluster_call **ret, struct muster_err *err)
{
    struct kube_cluster *k = (struct kube_cluster *)cluster;
    struct cluster_call *call = calloc(1, sizeof *call);
    int64_t timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : CLUSTER_TIMEOUT_MS;
    if (!call) {
        return err_no_memory(err);
    }
    call->k = k;
    call->done = done;
    call->arg = arg;
    call->without_managers = request->without_managers;
    call->turn = (struct turn){.start = start, .late = late};
    call->turn.item.lane = (int)request->lane;
    call->turn.item.deadline_ms = kube_cluster_now_ms() + timeout_ms;
    buf_init(&call->reply, REPLY_BYTES_MAX);
    int r = wire_request_make(request, &call->wire, err);
    if (r == 0 && request->namespace) {
        call->namespace = strdup(request->namespace);
        r = call->namespace ? 0 : err_no_memory(err);
    }
    call->turn.item.group = call->namespace;
    if (r == 0 && !pace_add(&k->queue, &call->turn.item)) {
        r = muster_fail(err, MUSTER_ENOMEM, "too many requests wait for the API server");
    }
    if (r < 0) {
        free_call(call);
        return r;
    }
    DL_APPEND(k->calls, call);
    if (ret) {
        *ret = call;
    }
    kube_cluster_pump(k);
    return 0;
}

void call_cancel(struct cluster_call *call)
{
    if (!call->finished) {
        struct kube_cluster *k = call->k;
        detach(call);
        free_call(call);
        if (!uv_is_closing((uv_handle_t *)&k->tick)) {
            kube_cluster_pump(k);
        }
    }
}
