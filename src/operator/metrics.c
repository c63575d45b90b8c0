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

/* The condition is there now, and was not. */
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

void metrics_did(struct metrics *m, const struct control_effect *effect, const json_t *before,
                 const json_t *after)
{
    m->pods_created += control_is(effect, CONTROL_CREATE, CONTROL_POD);
    m->pods_deleted += control_is(effect, CONTROL_DELETE, CONTROL_POD);
    m->services_created += control_is(effect, CONTROL_CREATE, CONTROL_SERVICE);
    if (effect->verb == CONTROL_UPDATE_STATUS) {
        count_job(m, before, after);
    }
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

static void plain(struct buf *out, const char *name, const char *kind, const char *help,
                  double value)
{
    head(out, name, kind, help);
    buf_format(out, "%s %.17g\n", name, value);
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
    plain(out, "process_cpu_seconds_total", "counter", "Processor time, user and system.",
          seconds(usage.ru_utime) + seconds(usage.ru_stime));
    plain(out, "process_resident_memory_bytes", "gauge", "Memory in use.", resident_bytes());
}

void metrics_print(const struct metrics *m, size_t live_jobs, struct buf *out)
{
    print_jobs(m, out);
    plain(out, "created_pods_total", "counter", "Pods that were created.", (double)m->pods_created);
    plain(out, "deleted_pods_total", "counter", "Pods that were deleted by the operator.",
          (double)m->pods_deleted);
    plain(out, "succeeded_service_creation_total", "counter", "Services that were created.",
          (double)m->services_created);
    plain(out, "muster_operator_live_jobs", "gauge",
          "Jobs that are not finished, and finished ones with something under way.",
          (double)live_jobs);
    if (m->lease) {
        head(out, "leader_election_master_status", "gauge",
             "1: this operator is the one that works.");
        buf_format(out, "leader_election_master_status{name=\"%s\"} %d\n", m->lease, m->leads);
    }
    print_process(out);
}
