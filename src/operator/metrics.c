/* See metrics.h. */
#include "operator/metrics.h"

#include "base/doc.h"
#include "job/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uthash.h>

enum metric {
#define COUNT(name, metric, help) METRIC_##name,
#include "operator/metrics.def"
#undef COUNT
    METRICS
};

static const struct {
    const char *name, *help;
} texts[METRICS] = {
#define COUNT(name, metric, help) {metric, help},
#include "operator/metrics.def"
#undef COUNT
};

struct metrics_namespace {
    uint64_t counts[METRICS];
    UT_hash_handle hh;
    char name[];
};

void metrics_done(struct metrics *m)
{
    struct metrics_namespace *each, *next;
    HASH_ITER (hh, m->namespaces, each, next) {
        HASH_DEL(m->namespaces, each);
        free(each);
    }
    *m = (struct metrics){0};
}

/* ---- counting ---- */

static struct metrics_namespace *namespace_of(struct metrics *m, const char *name, size_t length)
{
    struct metrics_namespace *found = NULL;
    HASH_FIND(hh, m->namespaces, name, length, found);
    if (!found && m->namespace_count < METRICS_NAMESPACES_MAX) {
        found = calloc(1, sizeof *found + length + 1);
        if (found) {
            memcpy(found->name, name, length);
            HASH_ADD_KEYPTR(hh, m->namespaces, found->name, length, found);
            m->namespace_count++;
        }
    }
    return found;
}

static void count(struct metrics *m, const char *name, size_t length, enum metric metric)
{
    struct metrics_namespace *namespace = namespace_of(m, name, length);
    if (namespace) {
        namespace->counts[metric]++;
    }
}

/* Whether the condition is True now, and was not before. */
static bool has_become(const json_t *before, const json_t *after, const char *type)
{
    return job_condition(after, type) && !job_condition(before, type);
}

static void count_job(struct metrics *m, const json_t *before, const json_t *after)
{
    static const struct {
        const char *condition;
        enum metric metric;
    } rows[] = {{"Created", METRIC_created},
                {"Succeeded", METRIC_successful},
                {"Failed", METRIC_failed},
                {"Restarting", METRIC_restarted}};
    const char *namespace = doc_text(after, "metadata.namespace", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (has_become(before, after, rows[i].condition)) {
            count(m, namespace, strlen(namespace), rows[i].metric);
        }
    }
}

/* Returns the number of new failures: the status keeps how often the job's pods failed, so each
 * failure is in exactly one write. */
static uint64_t new_failures(const json_t *before, const json_t *after)
{
    int64_t was = doc_int(before, "status.counters.failures", 0);
    int64_t is = doc_int(after, "status.counters.failures", 0);
    return is > was ? (uint64_t)(is - was) : 0;
}

static bool is_on_group(const struct control_effect *effect, enum control_verb verb)
{
    return control_is(effect, verb, CONTROL_VOLCANO_GROUP) ||
           control_is(effect, verb, CONTROL_PLUGINS_GROUP);
}

void metrics_did(struct metrics *m, const struct control_effect *effect, const json_t *before,
                 const json_t *after)
{
    m->pods_created += control_is(effect, CONTROL_CREATE, CONTROL_POD);
    m->pods_deleted += control_is(effect, CONTROL_DELETE, CONTROL_POD);
    m->services_created += control_is(effect, CONTROL_CREATE, CONTROL_SERVICE);
    m->groups_created += is_on_group(effect, CONTROL_CREATE);
    m->groups_deleted += is_on_group(effect, CONTROL_DELETE);
    if (effect->verb == CONTROL_UPDATE_STATUS) {
        count_job(m, before, after);
        m->pods_failed += new_failures(before, after);
    }
}

void metrics_refused(struct metrics *m, const struct control_effect *effect)
{
    m->services_refused += control_is(effect, CONTROL_CREATE, CONTROL_SERVICE);
}

/* The limits are those of controller-runtime. */
static void begin_times(struct metrics *m)
{
    static const double limits[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                    0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                                    1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                                    8,     9,    10,    15,   20,  25,   30,  40,   50,   60};
    if (!m->took.limits) {
        histogram_init(&m->took, limits, sizeof limits / sizeof limits[0]);
    }
}

void metrics_stepped(struct metrics *m, enum driver_result result, int64_t took_ms)
{
    begin_times(m);
    m->steps[result]++;
    histogram_add(&m->took, took_ms);
}

void metrics_gone(struct metrics *m, const char *job)
{
    count(m, job, strcspn(job, "/"), METRIC_deleted);
}

/* ---- printing ---- */

static void head(struct buf *out, const char *name, const char *kind, const char *help)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void plain(struct buf *out, const char *name, const char *labels, const char *kind,
                  const char *help, double value)
{
    head(out, name, kind, help);
    buf_format(out, "%s%s %.17g\n", name, labels, value);
}

static void print_jobs(const struct metrics *m, struct buf *out)
{
    for (int i = 0; i < METRICS; i++) {
        head(out, texts[i].name, "counter", texts[i].help);
        for (const struct metrics_namespace *n = m->namespaces; n; n = n->hh.next) {
            if (n->counts[i] > 0) {
                buf_format(out, "%s{job_namespace=\"%s\",framework=\"pytorch\"} %llu\n",
                           texts[i].name, n->name, (unsigned long long)n->counts[i]);
            }
        }
    }
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lu %lu", &all, &resident) != 2) {
        resident = 0;
    }
    if (file) {
        (void)fclose(file);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void print_process(struct buf *out)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    plain(out, "process_cpu_seconds_total", "", "counter", "Processor time, user and system.",
          seconds(usage.ru_utime) + seconds(usage.ru_stime));
    plain(out, "process_resident_memory_bytes", "", "gauge", "Memory in use.", resident_bytes());
}

/* ---- controller-runtime's ---- */

#define OURS "controller=\"pytorchjob-controller\""
#define IN_QUEUE OURS ",name=\"pytorchjob-controller\""
#define QUEUE "{" IN_QUEUE "}"

/* Leaves out a histogram in which nothing has been counted yet. */
static void print_times(const struct histogram *times, const char *name, const char *labels,
                        const char *help, struct buf *out)
{
    if (times && times->limits) {
        head(out, name, "histogram", help);
        histogram_print(times, name, labels, out);
    }
}

static void print_queue(const struct driver_numbers *n, struct buf *out)
{
    plain(out, "workqueue_depth", QUEUE, "gauge", "Jobs that wait for a step.",
          (double)n->queue_depth);
    plain(out, "workqueue_adds_total", QUEUE, "counter", "How often a job came to wait for one.",
          (double)n->queue_adds);
    plain(out, "workqueue_retries_total", QUEUE, "counter", "How often that was after a failure.",
          (double)n->queue_retries);
    print_times(n->queue_waited, "workqueue_queue_duration_seconds", IN_QUEUE,
                "How long jobs waited for a step, once it was due.", out);
    print_times(n->queue_worked, "workqueue_work_duration_seconds", IN_QUEUE,
                "How long steps took, until the watches had shown what they wrote.", out);
    plain(out, "controller_runtime_active_workers", "{" OURS "}", "gauge", "Steps under way.",
          (double)n->steps);
    plain(out, "controller_runtime_max_concurrent_reconciles", "{" OURS "}", "gauge",
          "Steps that may be under way.", (double)n->steps_max);
}

static void print_steps(const struct metrics *m, struct buf *out)
{
    static const char *const words[DRIVER_RESULTS] = {"success", "requeue", "error"};
    head(out, "controller_runtime_reconcile_total", "counter", "Steps, by how they ended.");
    for (int i = 0; i < DRIVER_RESULTS; i++) {
        buf_format(out, "controller_runtime_reconcile_total{" OURS ",result=\"%s\"} %llu\n",
                   words[i], (unsigned long long)m->steps[i]);
    }
    plain(out, "controller_runtime_reconcile_errors_total", "{" OURS "}", "counter",
          "Steps that failed.", (double)m->steps[DRIVER_FAILED]);
    print_times(&m->took, "controller_runtime_reconcile_time_seconds", OURS,
                "How long steps took, until their requests were answered.", out);
}

static void print_requests(const struct metrics_others *others, struct buf *out)
{
    head(out, "rest_client_requests_total", "counter", "Requests to the API server, by answer.");
    for (size_t i = 0; i < others->request_count; i++) {
        const struct kube_cluster_count *c = &others->requests[i];
        char code[16] = "<error>";
        if (c->http_status > 0) {
            (void)snprintf(code, sizeof code, "%d", c->http_status);
        }
        buf_format(out, "rest_client_requests_total{code=\"%s\",host=\"%s\",method=\"%s\"} %llu\n",
                   code, others->host, c->method, (unsigned long long)c->count);
    }
}

static void print_request_times(const struct metrics_others *others, struct buf *out)
{
    static const char name[] = "rest_client_request_duration_seconds";
    head(out, name, "histogram", "How long requests took, each try by itself; without watches.");
    for (size_t i = 0; i < others->time_count; i++) {
        char labels[320];
        (void)snprintf(labels, sizeof labels, "verb=\"%s\",host=\"%s\"", others->times[i].method,
                       others->host);
        histogram_print(&others->times[i].took, name, labels, out);
    }
}

/* ---- all ---- */

static void print_parts(const struct metrics *m, struct buf *out)
{
    const struct {
        const char *name, *help;
        uint64_t count;
    } rows[] = {
        {"created_pods_total", "Pods that were created.", m->pods_created},
        {"deleted_pods_total", "Pods that were deleted by the operator.", m->pods_deleted},
        {"failed_pods_total", "Failures of pods, restarts in place among them.", m->pods_failed},
        {"succeeded_service_creation_total", "Services that were created.", m->services_created},
        {"failed_service_creation_total", "Services that were refused.", m->services_refused},
        {"created_pod_groups_total", "PodGroups that were created.", m->groups_created},
        {"deleted_pod_groups_total", "PodGroups that were deleted.", m->groups_deleted},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plain(out, rows[i].name, "", "counter", rows[i].help, (double)rows[i].count);
    }
}

void metrics_print(const struct metrics *m, const struct metrics_others *others, struct buf *out)
{
    print_jobs(m, out);
    print_parts(m, out);
    plain(out, "muster_operator_live_jobs", "", "gauge",
          "Jobs that are not finished, and finished ones with something under way.",
          (double)others->driver.live_jobs);
    plain(out, "muster_operator_events_left_out_total", "", "counter",
          "Events that were not sent, as too many waited.", (double)others->driver.events_left_out);
    print_queue(&others->driver, out);
    print_steps(m, out);
    print_requests(others, out);
    print_request_times(others, out);
    if (m->lease) {
        head(out, "leader_election_master_status", "gauge",
             "1: this operator is the one that works.");
        buf_format(out, "leader_election_master_status{name=\"%s\"} %d\n", m->lease, m->leads);
    }
    print_process(out);
}
