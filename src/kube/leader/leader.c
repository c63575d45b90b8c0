/* See leader.h. */
#include "kube/leader/leader.h"

#include "base/build.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/time/clock.h"
#include "kube/leader/election.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { RELEASE_MS = 2000, HOST_BYTES = 128, TEXT_BYTES = 1024 };

static const struct cluster_resource leases = {"coordination.k8s.io", "v1", "leases", "Lease",
                                               true};

struct leader {
    struct leader_options options;
    char *namespace, *name;
    struct election election;
    uv_timer_t tick;
    struct cluster_call *call; /* in progress */
    bool busy;                 /* a call is in progress */
    json_t *lease;             /* as last written or read; NULL: must be read */
    int64_t changes;           /* changes of the holder, as of the last time that we held it */
    int64_t sent_ms;           /* when the write in progress was sent */
    bool heard;
    bool lost;
    char waited_for[ELECTION_TEXT_BYTES]; /* the holder that was reported last */
    void (*released)(void *arg);          /* not NULL: the Lease is being given up */
};

static void release(struct leader *l);

static void say(const struct leader *l, enum leader_news news, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const struct leader *l, enum leader_news news, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    l->options.say(l->options.arg, news, text);
}

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
        say(l, LEADER_TROUBLE, "%s", err.text);
    }
}

static bool answered(struct leader *l, const struct cluster_answer *answer)
{
    l->busy = false;
    l->call = NULL;
    l->heard = l->heard || answer->http_status > 0;
    if (answer->code < 0 && answer->code != MUSTER_ENOENT && answer->code != MUSTER_ECONFLICT &&
        answer->code != MUSTER_EEXIST) {
        say(l, LEADER_TROUBLE, "lease %s/%s: %s", l->namespace, l->name, answer->message);
    }
    if (l->released) {
        release(l);
    }
    return l->released == NULL;
}

static void on_written(void *arg, const struct cluster_answer *answer)
{
    struct leader *l = arg;
    bool first = !l->election.leads, won = answer->code == 0;
    keep(l, won ? answer->object : NULL);
    if (won) {
        election_won(&l->election, l->sent_ms);
        l->changes = doc_int(l->lease, "spec.leaseTransitions", 0);
    }
    if (first && won && !election_may_send(&l->election, clock_boot_ms())) {
        l->election.leads = won = false; /* too late: the next tick reads who holds it */
    }
    if (answered(l, answer) && won && first) {
        say(l, LEADER_LEADS, "%s holds lease %s/%s", l->election.identity, l->namespace, l->name);
        l->options.led(l->options.arg);
    }
}

/* Completes the Lease to write. A Lease of an earlier owner gets a new owner reference: a program
 * that removes that owner's objects must not remove the Lease. */
static int complete(const struct leader *l, json_t *body)
{
    struct build b = {0};
    json_t *metadata = build_object_at(&b, body, "metadata");
    build_text(&b, metadata, "name", l->name);
    if (l->options.owner) {
        build_set(&b, metadata, "ownerReferences", json_pack("[O]", l->options.owner));
    }
    return b.failed ? MUSTER_ENOMEM : 0;
}

static void wait_for_holder(struct leader *l)
{
    const char *holder = doc_text(l->lease, "spec.holderIdentity", "");
    if (l->election.leads) { /* somebody has written another name */
        l->election.until_ms = clock_boot_ms();
        (void)leader_may_send(l);
    } else if (strncmp(l->waited_for, holder, sizeof l->waited_for - 1) != 0) {
        (void)snprintf(l->waited_for, sizeof l->waited_for, "%s", holder);
        say(l, LEADER_WAITS, "%s holds lease %s/%s", l->waited_for, l->namespace, l->name);
    }
}

static void decide(struct leader *l)
{
    enum election_do what = ELECTION_WAIT;
    json_t *body = NULL;
    int r = election_step(&l->election, l->lease, clock_boot_ms(), clock_unix_ms(), &what, &body);
    r = r < 0 || what == ELECTION_WAIT ? r : complete(l, body);
    if (r < 0) {
        say(l, LEADER_TROUBLE, "out of memory");
    } else if (what == ELECTION_WAIT) {
        wait_for_holder(l);
    } else {
        ask(l, what == ELECTION_CREATE ? CLUSTER_CREATE : CLUSTER_REPLACE, body, on_written);
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

/* The leader knows the Lease; the other replicas read it each time. */
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
    say(l, LEADER_GIVES_UP, "lease %s/%s: %s", l->namespace, l->name,
        answer->code == 0 ? "given up" : answer->message);
    l->released(l->options.arg);
}

/* Gives the Lease up; no request is in progress. */
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

void leader_stand_again(struct leader *l)
{
    l->lost = false;
    l->election.leads = false;
    l->waited_for[0] = 0;
    keep(l, NULL);
}

bool leader_leads(const struct leader *l)
{
    return l->election.leads;
}

int64_t leader_changes(const struct leader *l)
{
    return l->changes;
}

bool leader_has_heard(const struct leader *l)
{
    return l->heard;
}

/* ---- life ---- */

/* Makes our identity. A pod's name is its host name; the number distinguishes a container that was
 * restarted. */
static void name_ourselves(struct leader *l)
{
    char host[HOST_BYTES] = "host";
    uint64_t number = 0;
    char drawn[2 * sizeof number + 1];
    (void)gethostname(host, sizeof host - 1);
    (void)!getrandom(&number, sizeof number, 0);
    (void)snprintf(drawn, sizeof drawn, "%016llx", (unsigned long long)number);
    (void)snprintf(l->election.identity, sizeof l->election.identity, "%s_%s", host,
                   l->options.process ? l->options.process : drawn);
}

static void free_self(uv_handle_t *handle)
{
    struct leader *l = handle->data;
    json_decref(l->lease);
    json_decref(l->options.owner);
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
    json_incref(l->options.owner);
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
