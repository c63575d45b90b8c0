/* See work.h. */
#include "operator/work.h"

#include "base/doc.h"
#include "base/log.h"
#include "base/time/clock.h"
#include "controller/fair_share.h"
#include "operator/deed.h"
#include "operator/definition.h"
#include "operator/upstream.h"

#include <stdio.h>

/* The label of every pod and Service of ours (control/objects.c): only objects with it are
 * watched. */
#define OUR_LABEL "training.kubeflow.org/operator-name=pytorchjob-controller"

/* ---- the driver's world ---- */

static int64_t now_ms(void *arg)
{
    (void)arg;
    return clock_ms();
}

static int64_t now_unix_ms(void *arg)
{
    (void)arg;
    return clock_unix_ms();
}

static void call_at(void *arg, int64_t at_ms)
{
    struct work *w = arg;
    alarm_set(&w->alarm, at_ms);
}

static void on_alarm(void *arg)
{
    struct work *w = arg;
    driver_turn(w->driver);
}

static void say(void *arg, const char *what, const char *key, const char *sentence)
{
    (void)arg;
    log_about(LOG_WARN, what, key, "%s", sentence);
}

/* Reports once that the definition drops the counters. Without the permission to read the CRD
 * (another overlay, upstream's roles) the first written status shows this. */
static void say_drops(struct work *w)
{
    if (!w->drops_said) {
        log_event(
            LOG_WARN, "operator.definition",
            "the cluster's definition of PyTorchJobs drops .status.counters: backoffLimit and "
            "restarts are not counted rightly; install muster's: muster deploy --print | "
            "kubectl apply --server-side --force-conflicts -f -");
    }
    w->drops_said = true;
}

/* Reports another operator, if this one may not look for others (neighbour.h): a job's
 * managedFields show it. */
static void say_other(struct work *w, const json_t *job)
{
    const char *other = upstream_other_writer(job, w->began_unix_ms);
    char name[512];
    if (!other || w->other_said) {
        return;
    }
    w->other_said = true;
    (void)snprintf(name, sizeof name, "%s/%s", doc_text(job, "metadata.namespace", ""),
                   doc_text(job, "metadata.name", ""));
    log_about(LOG_WARN, "operator.other", name,
              "'%s' writes the status of this job, too: two operators work on it, of which one is "
              "too many; stop it, or give it other namespaces",
              other);
}

static void did(void *arg, const struct control_effect *effect, const json_t *before,
                const json_t *after)
{
    struct work *w = arg;
    metrics_did(w->metrics, effect, before, after);
    if (effect->verb == CONTROL_UPDATE_STATUS) {
        say_other(w, before);
    }
    if (effect->verb == CONTROL_UPDATE_STATUS && json_object_get(effect->object, "counters") &&
        !doc_at(after, "status.counters")) {
        say_drops(w);
    }
    deed_log(effect, before, after);
}

static void gone(void *arg, const char *key)
{
    struct work *w = arg;
    metrics_gone(w->metrics, key);
    log_about(LOG_INFO, "operator.gone", key, "the job was deleted");
}

static void refused(void *arg, const struct control_effect *effect)
{
    struct work *w = arg;
    metrics_refused(w->metrics, effect);
}

static void stepped(void *arg, enum driver_result result, int64_t took_ms)
{
    struct work *w = arg;
    metrics_stepped(w->metrics, result, took_ms);
}

static void on_definition(void *arg, const struct cluster_answer *answer)
{
    if (answer->code == 0 && !definition_keeps_counters(answer->object)) {
        say_drops(arg);
    }
}

static int look_at_definition(struct work *w, struct muster_err *err)
{
    static const struct cluster_resource definitions = {"apiextensions.k8s.io", "v1",
                                                        "customresourcedefinitions",
                                                        "CustomResourceDefinition", false};
    const struct cluster_request request = {.verb = CLUSTER_GET,
                                            .lane = CLUSTER_LANE_JOBS,
                                            .resource = &definitions,
                                            .name = "pytorchjobs.kubeflow.org"};
    return w->cluster->backend->send(w->cluster, &request, on_definition, w, NULL, err);
}

static void on_version(void *arg, const struct cluster_answer *answer)
{
    struct work *w = arg;
    if (answer->code == 0 && version_has_restart_rules(answer->object) && w->driver) {
        driver_use_restart_rules(w->driver);
    }
}

static int look_at_version(struct work *w, struct muster_err *err)
{
    static const struct cluster_resource server = {"", NULL, "version", "Info", false};
    const struct cluster_request request = {
        .verb = CLUSTER_GET, .lane = CLUSTER_LANE_JOBS, .resource = &server};
    return w->cluster->backend->send(w->cluster, &request, on_version, w, NULL, err);
}

/* ---- life ---- */

void work_init(struct work *work, uv_loop_t *loop, const struct operator_options *options,
               struct metrics *metrics)
{
    *work = (struct work){.options = options, .metrics = metrics};
    alarm_init(loop, on_alarm, work, &work->alarm);
}

int work_begin(struct work *w, struct cluster *cluster, struct muster_err *err)
{
    const struct driver_options options = {
        .cluster = cluster,
        .clock = {now_ms, now_unix_ms, call_at, w},
        .target = CONTROL_TARGET_CLUSTER,
        .namespace = w->options->namespace,
        .labels = OUR_LABEL,
        .autoscalers = true,
        .gang = w->options->gang,
        .jobs_side_by_side = fair_share_places((size_t)w->options->side_by_side),
        .watch_nodes = w->options->watch_nodes,
        .lost_after_ms = w->options->lost_after_ms,
        .say = say,
        .did = did,
        .gone = gone,
        .refused = refused,
        .stepped = stepped,
        .arg = w,
    };
    w->cluster = cluster;
    w->began_unix_ms = clock_unix_ms();
    int r = look_at_definition(w, err);
    r = r < 0 ? r : look_at_version(w, err);
    r = r < 0 ? r : driver_new(&options, &w->driver, err);
    w->metrics->leads = r == 0;
    return r;
}

void work_end(struct work *work)
{
    work->driver = driver_free(work->driver);
    work->metrics->leads = false;
}

void work_close(struct work *work)
{
    work_end(work);
    alarm_close(&work->alarm, NULL);
}
