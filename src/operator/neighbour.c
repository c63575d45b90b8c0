/* See neighbour.h. */
#include "operator/neighbour.h"

#include "base/doc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "loop/alarm.h"
#include "operator/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_WEBHOOKS "muster-operator" /* the name in deploy/overlays/webhook */

enum { LOOK_MS = 30000, WAIT_MS = 2000, ANSWER_MS = 5000, NAMESPACE_BYTES = 64 };
enum state { UNKNOWN, WORKING, WAITING };

struct neighbour {
    struct neighbour_options options;
    struct alarm_clock alarm;
    enum state state;
    int webhook; /* index in the configuration, as the last look found it; -1: none */
    char namespace[NAMESPACE_BYTES]; /* of the other operator */
    bool webhook_said;
};

static const struct cluster_resource configurations = {"admissionregistration.k8s.io", "v1",
                                                       "validatingwebhookconfigurations",
                                                       "ValidatingWebhookConfiguration", false};
static const struct cluster_resource deployments = {"apps", "v1", "deployments", "Deployment",
                                                    true};
/* The path of the group itself, which lists its kinds. */
static const struct cluster_resource kinds = {"kubeflow.org", "v1", "", "APIResourceList", false};

static void free_neighbour(void *arg)
{
    free(arg);
}

static int ask(struct neighbour *n, const struct cluster_resource *resource, const char *namespace,
               const char *name, cluster_done_fn *done, struct muster_err *err)
{
    struct cluster *cluster = n->options.cluster;
    const struct cluster_request request = {.verb = *resource->plural ? CLUSTER_GET : CLUSTER_LIST,
                                            .lane = CLUSTER_LANE_JOBS,
                                            .resource = resource,
                                            .namespace = namespace,
                                            .name = name,
                                            .timeout_ms = ANSWER_MS};
    return cluster->backend->send(cluster, &request, done, n, NULL, err);
}

static void look_again_in(struct neighbour *n, int64_t ms)
{
    alarm_set(&n->alarm, clock_ms() + ms);
}

static void work(struct neighbour *n)
{
    look_again_in(n, LOOK_MS);
    if (n->state == WORKING) {
        return;
    }
    if (n->state == WAITING) {
        log_event(LOG_INFO, "operator.upstream", "the training-operator is gone: this one works");
    }
    n->state = WORKING;
    n->options.may_work(n->options.arg);
}

static void wait_for_it(struct neighbour *n)
{
    enum state before = n->state;
    look_again_in(n, WAIT_MS);
    if (before == WAITING) {
        return;
    }
    n->state = WAITING;
    log_event(
        LOG_WARN, "operator.upstream",
        "the training-operator (deployment %s/" UPSTREAM_DEPLOYMENT ") works on these jobs: "
        "this operator waits until it is gone, and pods run on: kubectl -n %s scale deployment " UPSTREAM_DEPLOYMENT
        " --replicas=0",
        n->namespace, n->namespace);
    if (before == WORKING) {
        n->options.must_wait(n->options.arg);
    }
}

/* If upstream's operator is gone, an API server that calls its webhook gets no answer, and refuses
 * every new PyTorchJob. If upstream's operator still runs for other kinds, only its webhook for
 * PyTorchJobs must be deleted. */
static void say_webhook(struct neighbour *n, bool other_kinds)
{
    if (n->webhook < 0 || n->webhook_said) {
        return;
    }
    n->webhook_said = true;
    if (other_kinds) {
        log_event(LOG_WARN, "operator.upstream",
                  "the training-operator does not judge PyTorchJobs any more, but its webhook is "
                  "asked about them, so that none can be created: kubectl patch "
                  "validatingwebhookconfiguration " UPSTREAM_WEBHOOKS " --type=json -p "
                  "'[{\"op\":\"remove\",\"path\":\"/webhooks/%d\"}]'",
                  n->webhook);
        return;
    }
    log_event(LOG_WARN, "operator.upstream",
              "the training-operator is gone, but its webhooks are not, so that no job can be "
              "created: kubectl delete validatingwebhookconfiguration " UPSTREAM_WEBHOOKS);
}

/* Whether the Deployment of that name, with its image replaced, is this operator's own. */
static bool is_ours(const struct neighbour *n)
{
    const struct neighbour_options *o = &n->options;
    return o->own_namespace && o->pod && strcmp(o->own_namespace, n->namespace) == 0 &&
           strncmp(o->pod, UPSTREAM_DEPLOYMENT "-", sizeof UPSTREAM_DEPLOYMENT) == 0;
}

/* Whether there was no answer at all: the API server is away, so the state is unknown. */
static bool is_unknown(const struct cluster_answer *answer)
{
    return answer->code == MUSTER_EUNAVAIL || answer->code == MUSTER_ETIMEDOUT ||
           answer->code == MUSTER_EAGAIN;
}

static void on_deployment(void *arg, const struct cluster_answer *answer)
{
    struct neighbour *n = arg;
    bool there = answer->code == 0 && !is_ours(n);
    bool runs = there && upstream_runs(answer->object);
    if (is_unknown(answer)) {
        look_again_in(n, WAIT_MS);
    } else if (runs && upstream_is_in(answer->object, n->options.namespace)) {
        wait_for_it(n);
    } else {
        bool scaled_down = doc_int(answer->object, "spec.replicas", 1) == 0;
        if (!runs && (answer->code == 0 || answer->code == MUSTER_ENOENT)) {
            say_webhook(n, there && !scaled_down);
        }
        work(n);
    }
    if (answer->code == MUSTER_EPERM) {
        alarm_set(&n->alarm, INT64_MAX); /* not permitted: there will be nothing to see */
    }
}

static void on_configuration(void *arg, const struct cluster_answer *answer)
{
    struct neighbour *n = arg;
    const char *namespace = UPSTREAM_NAMESPACE;
    if (is_unknown(answer)) {
        log_event(LOG_WARN, "operator.upstream", "the API server does not answer: %s",
                  answer->message);
        look_again_in(n, WAIT_MS);
        return;
    }
    n->webhook = answer->code == 0 ? upstream_find_webhook(answer->object, &namespace) : -1;
    (void)snprintf(n->namespace, sizeof n->namespace, "%s", namespace);
    if (ask(n, &deployments, n->namespace, UPSTREAM_DEPLOYMENT, on_deployment, NULL) < 0) {
        look_again_in(n, WAIT_MS);
    }
}

/* Another overlay was applied over one with webhooks; their configuration is left, and must be
 * deleted. */
static void on_own_configuration(void *arg, const struct cluster_answer *answer)
{
    const struct neighbour *n = arg;
    const char *namespace = NULL;
    if (answer->code == 0 && upstream_find_webhook(answer->object, &namespace) >= 0 &&
        strcmp(namespace, n->options.own_namespace) == 0) {
        log_event(LOG_WARN, "operator.webhook",
                  "the API server asks the webhooks of the overlay webhook about PyTorchJobs, and "
                  "this operator serves none, so that no job can be created: kubectl delete "
                  "validatingwebhookconfiguration " OWN_WEBHOOKS " " OWN_WEBHOOKS
                  "-images --ignore-not-found");
    }
}

static int look_for_own_webhooks(struct neighbour *n, struct muster_err *err)
{
    return n->options.serves_webhooks || !n->options.own_namespace
               ? 0
               : ask(n, &configurations, NULL, OWN_WEBHOOKS, on_own_configuration, err);
}

static int look(struct neighbour *n, struct muster_err *err)
{
    return ask(n, &configurations, NULL, UPSTREAM_WEBHOOKS, on_configuration, err);
}

static void on_alarm(void *arg)
{
    struct neighbour *n = arg;
    if (look(n, NULL) < 0) {
        look_again_in(n, WAIT_MS);
    }
}

static void on_kinds(void *arg, const struct cluster_answer *answer)
{
    struct buf others;
    (void)arg;
    buf_init(&others, 1024);
    if (answer->code == 0) {
        upstream_say_kinds(answer->object, &others);
    }
    if (others.used > 0) {
        log_event(LOG_INFO, "operator.kinds",
                  "this cluster has %s, too: they are left alone, and need the training-operator",
                  buf_str(&others));
    }
    buf_done(&others);
}

int neighbour_open(uv_loop_t *loop, const struct neighbour_options *options, struct neighbour **ret,
                   struct muster_err *err)
{
    struct neighbour *n = calloc(1, sizeof *n);
    if (!n) {
        return err_no_memory(err);
    }
    n->options = *options;
    alarm_init(loop, on_alarm, n, &n->alarm);
    int r = ask(n, &kinds, NULL, NULL, on_kinds, err);
    r = r < 0 ? r : look_for_own_webhooks(n, err);
    r = r < 0 ? r : look(n, err);
    if (r < 0) {
        neighbour_close(n);
        return r;
    }
    *ret = n;
    return 0;
}

bool neighbour_is_waited_for(const struct neighbour *n)
{
    return n && n->state == WAITING;
}

void neighbour_close(struct neighbour *n)
{
    if (n) {
        alarm_close(&n->alarm, free_neighbour);
    }
}
