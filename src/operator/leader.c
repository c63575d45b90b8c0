/* See leader.h. */
#include "operator/leader.h"

#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "operator/election.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { RELEASE_MS = 2000, HOST_BYTES = 128 };

static const struct cluster_resource leases = {"coordination.k8s.io", "v1", "leases", "Lease",
                                               true};

struct leader {
    struct leader_options options;
    char *namespace, *name;
    struct election election;
    uv_timer_t tick;
    struct cluster_call *call; /* under way */
    bool busy;                 /* one is */
    json_t *lease;             /* as we have written it, or seen it; NULL: to be asked for */
    int64_t sent_ms;           /* the write that is under way */
    bool heard;
    bool lost;
    void (*released)(void *arg); /* it is to be given up */
};

static void release(struct leader *l);

static void keep(struct leader *l, json_t *lease)
{
    json_incref(lease);
    json_decref(l->lease);
    l->lease = lease;
}

/* ---- requests ---- */

static int64_t patience_ms(const struct leader *l, int64_t now_ms)
{
    int64_t left_ms = l->election.until_ms - now_ms;
    return l->released ? RELEASE_MS : l->election.leads ? left_ms : ELECTION_DEADLINE_MS;
}

static void ask(struct leader *l, enum cluster_verb verb, json_t *body, cluster_done_fn *done)
{
    const struct cluster *cluster = l->options.cluster;
    struct muster_err err = MUSTER_ERR_INIT;
    int64_t now_ms = clock_boot_ms();
    const struct cluster_request request = {
        .verb = verb,
        .lane = CLUSTER_LANE_LEASE,
        .resource = &leases,
        .namespace = l->namespace,
        .name = l->name,
        .body = body,
        .timeout_ms = patience_ms(l, now_ms),
    };
    l->sent_ms = now_ms;
    l->busy = cluster->backend->send(l->options.cluster, &request, done, l, &l->call, &err) == 0;
    if (!l->busy) {
        log_event(LOG_WARN, "operator.lease", "%s", err.text);
    }
}

static bool answered(struct leader *l, const struct cluster_answer *answer)
{
    l->busy = false;
    l->call = NULL;
    l->heard = l->heard || answer->http_status > 0;
    if (answer->code < 0 && answer->code != MUSTER_ENOENT && answer->code != MUSTER_ECONFLICT &&
        answer->code != MUSTER_EEXIST) {
        log_event(LOG_WARN, "operator.lease", "lease %s/%s: %s", l->namespace, l->name,
                  answer->message);
    }
    if (l->released) {
        release(l);
    }
    return l->released == NULL;
}

static void on_written(void *arg, const struct cluster_answer *answer)
{
    struct leader *l = arg;
    int64_t sent_ms = l->sent_ms;
    bool first = !l->election.leads;
    keep(l, answer->code == 0 ? answer->object : NULL);
    if (answer->code == 0) {
        election_won(&l->election, sent_ms);
    }
    if (answered(l, answer) && answer->code == 0 && first) {
        log_event(LOG_INFO, "operator.leads", "%s holds lease %s/%s", l->election.identity,
                  l->namespace, l->name);
        l->options.led(l->options.arg);
    }
}

static void decide(struct leader *l)
{
    enum election_do what = ELECTION_WAIT;
    json_t *body = NULL;
    if (election_step(&l->election, l->lease, clock_boot_ms(), clock_unix_ms(), &what, &body) < 0) {
        log_event(LOG_WARN, "operator.lease", "out of memory");
    } else if (what == ELECTION_WAIT && l->election.leads) { /* somebody wrote another name */
        l->election.until_ms = clock_boot_ms();
        (void)leader_may_send(l);
    } else if (what != ELECTION_WAIT) {
        if (what == ELECTION_CREATE && doc_set_text(body, "metadata.name", l->name) < 0) {
            log_event(LOG_WARN, "operator.lease", "out of memory");
        } else {
            ask(l, what == ELECTION_CREATE ? CLUSTER_CREATE : CLUSTER_REPLACE, body, on_written);
        }
    }
    json_decref(body);
}

static void on_got(void *arg, const struct cluster_answer *answer)
{
    struct leader *l = arg;
    bool known = answer->code == 0 || answer->code == MUSTER_ENOENT;
    keep(l, answer->code == 0 ? answer->object : NULL);
    if (answered(l, answer) && known) {
        decide(l);
    }
}

/* Whoever leads knows the Lease; the others ask for it each time. */
static void on_tick(uv_timer_t *timer)
{
    struct leader *l = timer->data;
    if (!leader_may_send(l) || l->busy || l->released) {
        return;
    }
    if (l->election.leads && l->lease) {
        decide(l);
    } else {
        ask(l, CLUSTER_GET, NULL, on_got);
    }
}

/* ---- the end ---- */

bool leader_may_send(struct leader *l)
{
    if (!l || election_may_send(&l->election, clock_boot_ms())) {
        return true;
    }
    if (!l->lost) {
        l->lost = true;
        l->options.lost(l->options.arg);
    }
    return false;
}

static void on_released(void *arg, const struct cluster_answer *answer)
{
    struct leader *l = arg;
    l->busy = false;
    l->call = NULL;
    log_event(LOG_INFO, "operator.lease", "lease %s/%s: %s", l->namespace, l->name,
              answer->code == 0 ? "given up" : answer->message);
    l->released(l->options.arg);
}

/* Nothing is under way. */
static void release(struct leader *l)
{
    json_t *body =
        l->lease && l->election.leads ? election_release(l->lease, clock_unix_ms()) : NULL;
    if (body) {
        ask(l, CLUSTER_REPLACE, body, on_released);
    }
    if (!body || !l->busy) {
        l->released(l->options.arg);
    }
    json_decref(body);
}

void leader_release(struct leader *l, void (*done)(void *arg))
{
    l->released = done;
    uv_timer_stop(&l->tick);
    if (!l->busy) {
        release(l);
    }
}

bool leader_leads(const struct leader *l)
{
    return l->election.leads;
}

bool leader_has_heard(const struct leader *l)
{
    return l->heard;
}

/* ---- life ---- */

/* A pod's name is its host's; the number makes a container that was started again another one. */
static void name_ourselves(struct leader *l)
{
    char host[HOST_BYTES] = "operator";
    uint64_t number = 0;
    (void)gethostname(host, sizeof host - 1);
    (void)!getrandom(&number, sizeof number, 0);
    (void)snprintf(l->election.identity, sizeof l->election.identity, "%s_%016llx", host,
                   (unsigned long long)number);
}

static void free_self(uv_handle_t *handle)
{
    struct leader *l = handle->data;
    json_decref(l->lease);
    free(l->namespace);
    free(l->name);
    free(l);
}

int leader_open(uv_loop_t *loop, const struct leader_options *options, struct leader **ret,
                struct muster_err *err)
{
    struct leader *l = calloc(1, sizeof *l);
    if (!l) {
        return err_no_memory(err);
    }
    l->options = *options;
    l->namespace = strdup(options->namespace);
    l->name = strdup(options->name);
    uv_timer_init(loop, &l->tick);
    l->tick.data = l;
    if (!l->namespace || !l->name) {
        leader_close(l);
        return err_no_memory(err);
    }
    name_ourselves(l);
    uv_timer_start(&l->tick, on_tick, 0, ELECTION_RETRY_MS);
    *ret = l;
    return 0;
}

void leader_close(struct leader *l)
{
    if (l) {
        if (l->busy) {
            l->options.cluster->backend->cancel(l->call);
        }
        uv_close((uv_handle_t *)&l->tick, free_self);
    }
}
