/* The operator's life: reads the options, runs the driver over an API server, and ends. */
#include "operator/operator.h"

#include "base/err.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/config/kubeconfig.h"
#include "kube/leader/leader.h"
#include "operator/endpoints.h"
#include "operator/metrics.h"
#include "operator/neighbour.h"
#include "operator/options.h"
#include "operator/webhook/hooks.h"
#include "operator/work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long API servers may continue to call the webhooks of a pod that is ending: after that time
 * each node knows that the Service no longer has the pod. */
enum { LINGER_MS = 5000 };

struct program {
    struct operator_options options;
    uv_loop_t loop;
    uv_signal_t on_term, on_interrupt;
    struct cluster *cluster;
    struct work work;            /* the work of a leader */
    struct leader *leader;       /* NULL: there is no election */
    struct neighbour *neighbour; /* opened when this program leads, or needs no election */
    char *own_namespace;         /* the namespace of the lease */
    bool in_pod;
    char *host; /* of the API server, with its port */
    struct endpoints *endpoints;
    struct hooks *hooks; /* NULL: no webhooks */
    int end;             /* why the program ends: 0, or a code with its sentence in err */
    struct muster_err *err;
    struct metrics metrics;
    struct alarm_clock linger; /* when it ends after it has begun to leave */
    bool leaving;              /* nothing new is begun */
};

/* ---- one of several ---- */

static void may_work(void *arg)
{
    struct program *o = arg;
    o->end = o->leaving ? 0 : work_begin(&o->work, o->cluster, o->err);
    if (o->end < 0) {
        uv_stop(&o->loop);
    }
}

static void must_wait(void *arg)
{
    struct program *o = arg;
    work_end(&o->work);
}

/* Begins to work as soon as no other operator works on these jobs. */
static int begin(struct program *o, struct muster_err *err)
{
    const struct neighbour_options options = {
        .cluster = o->cluster,
        .namespace = o->options.namespace,
        .own_namespace = o->in_pod ? o->own_namespace : NULL,
        .serves_webhooks = o->hooks != NULL,
        .pod = getenv("HOSTNAME"),
        .may_work = may_work,
        .must_wait = must_wait,
        .arg = o,
    };
    return neighbour_open(&o->loop, &options, &o->neighbour, err);
}

static bool may_send(void *arg)
{
    const struct program *o = arg;
    return leader_may_send(o->leader);
}

static void on_led(void *arg)
{
    struct program *o = arg;
    o->end = begin(o, o->err);
    if (o->end < 0) {
        uv_stop(&o->loop);
    }
}

/* Ends the program: another operator may work by now, so requests in progress must not continue. */
static void on_lost(void *arg)
{
    struct program *o = arg;
    o->metrics.leads = false;
    o->end = muster_fail(o->err, MUSTER_EUNAVAIL,
                         "the lease %s could not be renewed within its time: another operator may "
                         "take it; start this one again",
                         o->options.lease);
    uv_stop(&o->loop);
}

static void say(void *arg, enum leader_news news, const char *text)
{
    (void)arg;
    log_event(news == LEADER_TROUBLE ? LOG_WARN : LOG_INFO,
              news == LEADER_LEADS ? "operator.leads" : "operator.lease", "%s", text);
}

static void on_lingered(void *arg)
{
    struct program *o = arg;
    uv_stop(&o->loop);
}

/* Another program may work at once; this one still answers reviews. */
static void on_released(void *arg)
{
    struct program *o = arg;
    alarm_set(&o->linger, o->hooks && o->in_pod ? clock_ms() + LINGER_MS : INT64_MIN);
}

static int stand_for_election(struct program *o, struct muster_err *err)
{
    const struct leader_options options = {
        .cluster = o->cluster,
        .namespace = o->own_namespace,
        .name = o->options.lease,
        .led = on_led,
        .lost = on_lost,
        .say = say,
        .arg = o,
    };
    o->metrics.lease = o->options.lease;
    return leader_open(&o->loop, &options, &o->leader, err);
}

/* ---- health ---- */

static const char *trouble(void *arg)
{
    const struct program *o = arg;
    bool heard = o->work.driver ? driver_is_synced(o->work.driver)
                                : o->leaving || neighbour_is_waited_for(o->neighbour) ||
                                      (o->leader && leader_has_heard(o->leader));
    return heard ? hooks_trouble(o->hooks) : "the API server has not answered yet";
}

static void print_metrics(void *arg, struct buf *out)
{
    const struct program *o = arg;
    struct metrics_others others = {.host = o->host};
    if (o->work.driver) {
        others.driver = driver_numbers(o->work.driver);
    }
    others.requests = kube_cluster_counts(o->cluster, &others.request_count);
    others.times = kube_cluster_times(o->cluster, &others.time_count);
    metrics_print(&o->metrics, &others, out);
}

static const char *or_usual(const char *given, bool in_pod, const char *in_a_pod,
                            const char *elsewhere)
{
    return given ? given : in_pod ? in_a_pod : elsewhere;
}

static int open_endpoints(struct program *o, struct muster_err *err)
{
    const struct endpoints_options options = {
        .metrics_address =
            or_usual(o->options.metrics_address, o->in_pod, ":8080", "127.0.0.1:8080"),
        .health_address = or_usual(o->options.health_address, o->in_pod, ":8081", "127.0.0.1:8081"),
        .trouble = trouble,
        .print_metrics = print_metrics,
        .arg = o,
    };
    return endpoints_open(&o->loop, &options, &o->endpoints, err);
}

static int open_hooks(struct program *o, struct muster_err *err)
{
    const struct hooks_options options = {.flags = &o->options.hooks,
                                          .cluster = o->cluster,
                                          .namespace = o->own_namespace,
                                          .in_pod = o->in_pod};
    return o->options.hooks.on ? hooks_open(&o->loop, &options, &o->hooks, err) : 0;
}

/* ---- life ---- */

static int open_cluster(struct program *o, struct muster_err *err)
{
    const struct kube_cluster_options options = {
        .qps = o->options.qps, .burst = o->options.burst, .may_send = may_send, .arg = o};
    struct target target = {0};
    int r = kubeconfig_find(o->options.kubeconfig, o->options.context, &target, &o->in_pod, err);
    if (r == 0) {
        o->own_namespace = strdup(target.namespace);
        const char *slashes = strstr(target.server, "://");
        o->host = strdup(slashes ? slashes + 3 : target.server);
        r = o->own_namespace && o->host ? 0 : err_no_memory(err);
    }
    if (r == 0) {
        log_event(LOG_INFO, "operator.start", "muster %s runs PyTorchJobs of %s%s on %s",
                  MUSTER_VERSION, *o->options.namespace ? "namespace " : "all namespaces",
                  o->options.namespace, target.server);
        r = kube_cluster_open(&o->loop, &target, &options, &o->cluster, err);
    }
    target_done(&target);
    return r;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *o = handle->data;
    log_event(LOG_INFO, "operator.signal", "signal %d: leaving; pods run on", number);
    o->leaving = true;
    uv_signal_stop(handle); /* a second signal ends the program at once */
    work_end(&o->work);
    hooks_leave(o->hooks);
    if (o->leader) {
        leader_release(o->leader, on_released);
    } else {
        on_released(o);
    }
}

static void watch_signals(struct program *o)
{
    signal(SIGPIPE, SIG_IGN);
    o->on_term.data = o->on_interrupt.data = o;
    uv_signal_init(&o->loop, &o->on_term);
    uv_signal_init(&o->loop, &o->on_interrupt);
    uv_signal_start(&o->on_term, on_signal, SIGTERM);
    uv_signal_start(&o->on_interrupt, on_signal, SIGINT);
}

/* Closes the parts that receive requests first. */
static void close_parts(struct program *o)
{
    endpoints_close(o->endpoints);
    hooks_close(o->hooks);
    work_end(&o->work);
    leader_close(o->leader);
    o->leader = NULL;
    kube_cluster_close(o->cluster);
    neighbour_close(o->neighbour);
    work_close(&o->work);
    uv_close((uv_handle_t *)&o->on_term, NULL);
    uv_close((uv_handle_t *)&o->on_interrupt, NULL);
    alarm_close(&o->linger, NULL);
    uv_run(&o->loop, UV_RUN_DEFAULT);
    uv_loop_close(&o->loop);
    metrics_done(&o->metrics);
    free(o->own_namespace);
    free(o->host);
}

static int run(struct program *o, struct muster_err *err)
{
    o->err = err;
    int r = uv_loop_init(&o->loop);
    if (r < 0) {
        return muster_fail(err, MUSTER_EOS, "cannot start an event loop: %s", uv_strerror(r));
    }
    work_init(&o->work, &o->loop, &o->options, &o->metrics);
    alarm_init(&o->loop, on_lingered, o, &o->linger);
    watch_signals(o);
    r = open_cluster(o, err);
    r = r < 0 ? r : open_endpoints(o, err);
    r = r < 0 ? r : open_hooks(o, err);
    r = r < 0 ? r : o->options.leader_elect ? stand_for_election(o, err) : begin(o, err);
    if (r == 0) {
        uv_run(&o->loop, UV_RUN_DEFAULT);
        r = o->end;
    }
    close_parts(o);
    return r;
}

int operator_main(int argc, char **argv)
{
    struct program o = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    int r = operator_options_read(argc, argv, &o.options, &err);
    if (r < 0) {
        fprintf(stderr, "muster operator: %s\n", err.text);
        return muster_code_exit(r);
    }
    const char *level = o.options.log_level;
    log_to(STDERR_FILENO, *level == 'd' ? LOG_DEBUG : *level == 'i' ? LOG_INFO : LOG_ERROR);
    log_as(o.options.logs_json ? LOG_JSON : LOG_LOGFMT);
    for (size_t i = 0; i < o.options.unused_count; i++) {
        log_event(LOG_INFO, "operator.flag", "--%s means nothing here: %s",
                  o.options.unused[i].flag, o.options.unused[i].why);
    }
    r = run(&o, &err);
    if (r < 0) {
        log_event(LOG_ERROR, "operator.end", "%s", err.text);
    }
    return r < 0 ? muster_code_exit(r) : 0;
}

void operator_help(const char *program)
{
    operator_options_help(program);
}
