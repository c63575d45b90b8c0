/* A watch: sends its requests one after the other, each in its turn, and reports news.
 * wire/follow.c decides what is asked next. */
#include "kube/cluster/internal.h"

#include "base/doc.h"
#include "base/err.h"
#include "kube/wire/answer.h"
#include "kube/wire/follow.h"
#include "kube/wire/managers.h"

#include <stdlib.h>
#include <utlist.h>

enum {
    LINE_BYTES_MAX = 16 << 20,
    PAGE_BYTES_MAX = 256 << 20,
    LASTS_MIN_S = 300, /* as in client-go: the server ends a watch after 5 to 10 minutes */
    PAGE_MS = 60000,
    SILENCE_MS = 150000, /* bookmarks come each minute */
    BACKOFF_FIRST = 100,
    BACKOFF_MAX = 30000,
    BACKOFF_UNHEARD_MAX = 10000, /* while no server answers */
};

struct cluster_watch {
    struct turn turn; /* must be the first member */
    struct kube_cluster *k;
    struct cluster_scope scope;
    char *texts[3]; /* the strings that scope points to */
    cluster_watch_fn *fn;
    void *arg;
    struct watch_follow follow;
    struct watch_decoder decoder;
    struct buf page; /* of a list, or of a refusal */
    struct transfer *transfer;
    int64_t started_ms;
    bool is_page; /* the request in progress asks for a page */
    bool unheard; /* the last request got no answer */
    int busy;     /* its owner is being called */
    bool stopped;
    struct cluster_watch *prev, *next;
};

static void free_watch(struct cluster_watch *w)
{
    watch_follow_done(&w->follow);
    watch_decoder_done(&w->decoder);
    buf_done(&w->page);
    for (size_t i = 0; i < sizeof w->texts / sizeof w->texts[0]; i++) {
        free(w->texts[i]);
    }
    free(w);
}

static void tell(struct cluster_watch *w, const struct cluster_change *change)
{
    if (!w->stopped) {
        w->fn(w->arg, change);
    }
}

static void tell_begin(struct cluster_watch *w)
{
    if (watch_follow_begins(&w->follow)) {
        tell(w, &(struct cluster_change){.news = CLUSTER_BEGIN});
    }
}

/* Ends the watch's request; the next one waits until due_ms. */
static void ask_again(struct cluster_watch *w, int64_t due_ms)
{
    transfer_cancel(w->transfer);
    w->transfer = NULL;
    buf_clear(&w->page);
    watch_decoder_reset(&w->decoder);
    w->turn.item.is_stream = w->follow.how != WIRE_PAGE;
    pace_wait(&w->k->queue, &w->turn.item, due_ms);
    kube_cluster_pump(w->k);
}

static void wait_longer(struct cluster_watch *w)
{
    int64_t delay_ms =
        retry_backoff_ms(w->follow.failures, BACKOFF_FIRST,
                         w->unheard ? BACKOFF_UNHEARD_MAX : BACKOFF_MAX, &w->k->chance);
    ask_again(w, kube_cluster_now_ms() + delay_ms);
}

static void tell_news(struct cluster_watch *w, enum follow_news news, json_t *object)
{
    static const enum cluster_news told[] = {
        [FOLLOW_OBJECT] = CLUSTER_OBJECT,
        [FOLLOW_GONE] = CLUSTER_GONE,
        [FOLLOW_SYNCED] = CLUSTER_SYNCED,
        [FOLLOW_BOOKMARK] = CLUSTER_BOOKMARK,
    };
    bool has_object = news == FOLLOW_OBJECT || news == FOLLOW_GONE;
    if (news != FOLLOW_NOTHING) {
        tell(w, &(struct cluster_change){.news = told[news],
                                         .object = has_object ? object : NULL,
                                         .version = has_object ? NULL : w->follow.version});
    }
}

static void tell_trouble(struct cluster_watch *w, int code, const char *message)
{
    tell(w, &(struct cluster_change){.news = CLUSTER_TROUBLE, .code = code, .message = message});
}

/* Reports one event after the other; returns false if the stream cannot be used any more. */
static bool take_events(struct cluster_watch *w)
{
    struct watch_event event;
    struct muster_err err = MUSTER_ERR_INIT;
    int r = 0;
    while (!w->stopped && (r = watch_decoder_next(&w->decoder, &event, &err)) > 0) {
        tell_begin(w);
        enum follow_news news = watch_follow_event(&w->follow, &event);
        if (news != FOLLOW_BROKEN) {
            tell_news(w, news, event.object);
        }
        json_decref(event.object);
        if (news == FOLLOW_BROKEN) {
            return false;
        }
    }
    if (r < 0) {
        w->follow.failures++;
        tell_trouble(w, r, err.text);
    }
    return r >= 0;
}

static void on_data(void *context, const char *bytes, size_t count)
{
    struct cluster_watch *w = context;
    if (w->is_page || transfer_status(w->transfer) >= 300) {
        buf_add(&w->page, bytes, count);
        return;
    }
    w->busy++;
    watch_decoder_feed(&w->decoder, bytes, count);
    bool good = take_events(w);
    w->busy--;
    if (w->stopped) {
        free_watch(w);
    } else if (!good) {
        wait_longer(w);
    }
}

/* Adds kind and apiVersion to an item, because a list does not repeat them for each item. */
static void name_kind(const struct cluster_resource *resource, json_t *object)
{
    char group_version[128];
    snprintf(group_version, sizeof group_version, "%s%s%s", resource->group,
             *resource->group ? "/" : "", resource->version);
    if (!json_object_get(object, "kind")) {
        (void)json_object_set_new(object, "kind", json_string(resource->kind));
        (void)json_object_set_new(object, "apiVersion", json_string(group_version));
    }
}

static void take_page(struct cluster_watch *w, const json_t *list)
{
    size_t i;
    json_t *item;
    enum follow_news news = FOLLOW_NOTHING;
    tell_begin(w);
    json_array_foreach (json_object_get(list, "items"), i, item) {
        if (json_is_object(item)) {
            name_kind(w->scope.resource, item);
            tell_news(w, FOLLOW_OBJECT, item);
        }
    }
    if (watch_follow_page(&w->follow, list, &news) < 0) {
        w->follow.failures++; /* out of memory: request the same page again */
        tell_trouble(w, MUSTER_ENOMEM, "out of memory");
        return;
    }
    tell_news(w, news, NULL);
}

/* Processes a whole answer that is a page, or a refusal. */
static void take_answer(struct cluster_watch *w, const struct transfer_result *result)
{
    struct cluster_answer answer;
    if (w->scope.without_managers) {
        buf_truncate(&w->page, wire_drop_managers(w->page.data, w->page.used));
    }
    wire_answer(result->http_status, buf_str(&w->page), w->page.used, false, &answer);
    if (answer.code == 0) {
        take_page(w, answer.object);
    } else if (answer.code == MUSTER_EUNAUTH) {
        (void)kube_endpoint_token_refused(w->k->endpoint, result->sent_ms, kube_cluster_now_ms());
    }
    if (answer.code < 0 && answer.code != MUSTER_EGONE &&
        !(w->follow.how == WIRE_STREAM && answer.code == MUSTER_EINVAL)) {
        tell_trouble(w, answer.code, answer.message);
    }
    json_decref(answer.object);
}

static void on_end(void *context, const struct transfer_result *result)
{
    struct cluster_watch *w = context;
    bool complete = result->curl_code == CURLE_OK;
    kube_cluster_count(w->k, "GET", result);
    if (w->is_page) {
        kube_cluster_took(w->k, "GET", w->started_ms);
    }
    int64_t lasted_ms = kube_cluster_now_ms() - w->started_ms;
    w->transfer = NULL; /* the transfer frees itself */
    w->unheard = result->http_status == 0;
    w->busy++;
    if (complete && (w->is_page || result->http_status >= 300)) {
        take_answer(w, result);
    } else if (!complete && result->http_status == 0) {
        tell_trouble(w, transfer_code(result), result->problem);
    }
    w->busy--;
    if (w->stopped) {
        free_watch(w);
        return;
    }
    if (watch_follow_end(&w->follow, result->http_status, complete, lasted_ms)) {
        wait_longer(w);
    } else {
        ask_again(w, kube_cluster_now_ms());
    }
}

/* Reports that the server answers: if nothing changes on the server, a resumed watch reports
 * nothing else. */
static void on_head(void *context)
{
    struct cluster_watch *w = context;
    if (!w->is_page && transfer_status(w->transfer) < 300) {
        w->busy++;
        tell(w, &(struct cluster_change){.news = CLUSTER_ANSWERED});
        w->busy--;
    }
    if (w->stopped) {
        free_watch(w);
    }
}

static void start(struct turn *turn)
{
    struct cluster_watch *w = (struct cluster_watch *)turn;
    struct kube_cluster *k = w->k;
    int64_t now_ms = kube_cluster_now_ms();
    int64_t lasts_s =
        LASTS_MIN_S + retry_backoff_ms(1, 2 * LASTS_MIN_S, 2 * LASTS_MIN_S, &k->chance) / 2;
    char *path = wire_follow_path(&w->scope, w->follow.how, watch_follow_from(&w->follow), lasts_s);
    w->is_page = w->follow.how == WIRE_PAGE;
    w->started_ms = now_ms;
    const struct transfer_order order = {
        .endpoint = k->endpoint,
        .method = "GET",
        .path = path,
        .limit_ms = w->is_page ? PAGE_MS : 0,
        .silence_ms = w->is_page ? 0 : SILENCE_MS,
    };
    const struct transfer_events events = {
        .data = on_data, .end = on_end, .context = w, .head = on_head};
    if (!path || transport_start(k->transport, &order, &events, &w->transfer, NULL) < 0) {
        pace_wait(&k->queue, &turn->item, now_ms + BACKOFF_FIRST); /* out of memory */
    }
    free(path);
}

static int copy_scope(struct cluster_watch *w, const struct cluster_scope *scope)
{
    const char *const given[] = {scope->namespace, scope->labels, scope->fields};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        w->texts[i] = given[i] ? strdup(given[i]) : NULL;
        if (given[i] && !w->texts[i]) {
            return MUSTER_ENOMEM;
        }
    }
    w->scope = (struct cluster_scope){scope->resource, w->texts[0], w->texts[1], w->texts[2],
                                      scope->without_managers};
    return 0;
}

int watch_open(struct cluster *cluster, const struct cluster_scope *scope, cluster_watch_fn *fn,
               void *arg, struct cluster_watch **ret, struct muster_err *err)
{
    struct kube_cluster *k = (struct kube_cluster *)cluster;
    struct cluster_watch *w = calloc(1, sizeof *w);
    if (!w) {
        return err_no_memory(err);
    }
    w->k = k;
    w->fn = fn;
    w->arg = arg;
    w->turn = (struct turn){.start = start};
    w->turn.item =
        (struct pace_item){.lane = CLUSTER_LANE_JOBS, .is_stream = true, .deadline_ms = PACE_NEVER};
    watch_follow_init(&w->follow);
    watch_decoder_init(&w->decoder, LINE_BYTES_MAX, scope->without_managers);
    buf_init(&w->page, PAGE_BYTES_MAX);
    if (copy_scope(w, scope) < 0 || !pace_add(&k->queue, &w->turn.item)) {
        free_watch(w);
        return err_no_memory(err);
    }
    DL_APPEND(k->watches, w);
    *ret = w;
    kube_cluster_pump(k);
    return 0;
}

void watch_close(struct cluster_watch *watch)
{
    if (!watch || watch->stopped) {
        return;
    }
    struct kube_cluster *k = watch->k;
    watch->stopped = true;
    DL_DELETE(k->watches, watch);
    transfer_cancel(watch->transfer);
    watch->transfer = NULL;
    pace_remove(&k->queue, &watch->turn.item);
    if (!uv_is_closing((uv_handle_t *)&k->tick)) {
        kube_cluster_pump(k);
    }
    if (watch->busy == 0) {
        free_watch(watch);
    }
}
