/* How much memory a controller of many jobs needs: 2,500 jobs of 4 pods, each pod as large as
 * kubelets and API servers make them, are listed, worked off, and listed again (as after 410). Only
 * one object at a time is complete, as a watch delivers them; the memory that a client needs to
 * read them is not measured here. */
#include "base/doc.h"
#include "base/testing/test.h"
#include "base/testing/test_doc.h"
#include "controller/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 2500, WORKERS = 3, NAME_BYTES = 64, LIMIT_KIB = 64 << 10, FILLER_BYTES = 6000 };
enum { TURNS_MAX = 1000000, EPOCH_S = 1767225600 };

static struct {
    struct cluster cluster; /* must be first */
    struct watch {
        const struct cluster_resource *resource;
        cluster_watch_fn *fn;
        void *arg;
    } watches[CONTROL_RESOURCES];
    size_t watch_count;
    struct request {
        cluster_done_fn *done;
        void *arg;
        json_t *object;
        bool status;
    } requests[4096];
    size_t request_count, answered;
    int64_t now_ms, wake_ms, version;
    size_t written, created;
} world;

/* ---- the cluster: everything is there, the status is taken ---- */

static int take_request(struct cluster *cluster, const struct cluster_request *q,
                        cluster_done_fn *done, void *arg, struct cluster_call **ret,
                        struct muster_err *err)
{
    (void)cluster;
    (void)ret;
    (void)err;
    assert_true(world.request_count < sizeof world.requests / sizeof world.requests[0]);
    bool status = q->verb == CLUSTER_REPLACE;
    world.written += status;
    world.created += q->verb == CLUSTER_CREATE && strcmp(q->resource->plural, "events") != 0;
    json_t *object = json_deep_copy(q->body);
    if (object) {
        doc_set(object, "metadata.resourceVersion",
                json_sprintf("%lld", (long long)++world.version));
    }
    world.requests[world.request_count++] = (struct request){done, arg, object, status};
    return 0;
}

static void cancel(struct cluster_call *call)
{
    (void)call;
}

static int take_watch(struct cluster *cluster, const struct cluster_scope *scope,
                      cluster_watch_fn *fn, void *arg, struct cluster_watch **ret,
                      struct muster_err *err)
{
    (void)cluster;
    (void)err;
    world.watches[world.watch_count] = (struct watch){scope->resource, fn, arg};
    *ret = (struct cluster_watch *)&world.watches[world.watch_count++];
    return 0;
}

static void drop_watch(struct cluster_watch *watch)
{
    (void)watch;
}

static void tell(const struct watch *w, enum cluster_news news, json_t *object)
{
    char version[32];
    snprintf(version, sizeof version, "%lld", (long long)world.version);
    const struct cluster_change change = {.news = news, .object = object, .version = version};
    w->fn(w->arg, &change);
}

static void answer_all(void)
{
    for (; world.answered < world.request_count; world.answered++) {
        struct request r = world.requests[world.answered];
        const struct cluster_answer answer = {.reason = "", .message = "", .object = r.object};
        r.done(r.arg, &answer);
        if (r.status) {
            tell(&world.watches[CONTROL_JOB], CLUSTER_OBJECT, r.object);
        }
        json_decref(r.object);
    }
    world.answered = world.request_count = 0;
}

/* ---- objects ---- */

static json_t *make_job(int number)
{
    char name[NAME_BYTES];
    json_t *job = parse(
        "{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'namespace': "
        "'default'}, 'spec': {'pytorchReplicaSpecs': {'Master': {'replicas': 1, 'template': "
        "{'spec': {'containers': [{'name': 'pytorch', 'image': 'registry.example/team/train:1', "
        "'command': ['python', 'train.py', '--epochs', '90'], 'resources': {'limits': {'cpu': 4, "
        "'memory': '16Gi', 'nvidia.com/gpu': 1}}}]}}}}}}");
    json_t *specs = doc_at(job, "spec.pytorchReplicaSpecs");
    json_object_set_new(specs, "Worker", json_deep_copy(json_object_get(specs, "Master")));
    doc_set_int(specs, "Worker.replicas", WORKERS);
    snprintf(name, sizeof name, "training-of-a-model-%d", number);
    doc_set_text(job, "metadata.name", name);
    doc_set(job, "metadata.uid", json_sprintf("00000000-0000-4000-8000-%012d", number));
    doc_set(job, "metadata.resourceVersion", json_sprintf("%lld", (long long)++world.version));
    return job;
}

/* Adds what API servers and kubelets add to a pod: managedFields, tolerations, conditions … */
static void make_large(json_t *object, int number)
{
    char filler[FILLER_BYTES];
    memset(filler, 'f', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    doc_set(object, "metadata.uid", json_sprintf("00000000-0000-4000-9000-%012d", number));
    doc_set(object, "metadata.resourceVersion", json_sprintf("%lld", (long long)++world.version));
    doc_set(object, "metadata.managedFields", json_pack("[{s:s}]", "fieldsV1", filler));
    doc_set(
        object, "status",
        parse("{'phase': 'Running', 'hostIP': '10.0.0.1', 'podIP': '10.244.0.17', 'conditions': "
              "[{'type': 'Ready', 'status': 'True'}], 'containerStatuses': [{'name': 'pytorch', "
              "'restartCount': 0, 'image': 'registry.example/team/train:1', 'containerID': "
              "'containerd://0123456789abcdef', 'state': {'running': {'startedAt': "
              "'2026-01-01T00:00:00Z'}}}]}"));
}

static void tell_replica(json_t *job, const char *role, int index, int number, int resource)
{
    json_t *pod = NULL, *service = NULL, *claims = NULL;
    assert_int_equal(control_render(job, role, index, &pod, &service, &claims, NULL), 0);
    make_large(pod, number);
    make_large(service, number);
    tell(&world.watches[resource], CLUSTER_OBJECT, resource == CONTROL_POD ? pod : service);
    json_decref(pod);
    json_decref(service);
    json_decref(claims);
}

static void list(int resource, bool jobs_too)
{
    tell(&world.watches[resource], CLUSTER_BEGIN, NULL);
    for (int i = 0; i < JOBS && resource < CONTROL_CLAIM; i++) {
        json_t *job = make_job(i);
        if (resource == CONTROL_JOB && jobs_too) {
            tell(&world.watches[resource], CLUSTER_OBJECT, job);
        } else if (resource != CONTROL_JOB) {
            tell_replica(job, "Master", 0, i * (WORKERS + 1), resource);
            for (int w = 0; w < WORKERS; w++) {
                tell_replica(job, "Worker", w, i * (WORKERS + 1) + w + 1, resource);
            }
        }
        json_decref(job);
    }
    tell(&world.watches[resource], CLUSTER_SYNCED, NULL);
}

/* ---- the clock, and the weight ---- */

static int64_t now_ms(void *arg)
{
    (void)arg;
    return world.now_ms;
}

static int64_t now_unix_ms(void *arg)
{
    return (int64_t)EPOCH_S * 1000 + now_ms(arg);
}

static void call_at(void *arg, int64_t at_ms)
{
    (void)arg;
    world.wake_ms = at_ms;
}

static void work_off(struct driver *driver)
{
    for (int i = 0; i < TURNS_MAX && (world.wake_ms <= world.now_ms || world.request_count); i++) {
        driver_turn(driver);
        answer_all();
    }
}

static long status_kib(const char *field)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtol(line + strlen(field) + 1, NULL, 10);
        }
    }
    fclose(file);
    return kib;
}

static void ten_thousand_pods_weigh_less_than_64_mb(void **state)
{
    (void)state;
    static const struct cluster_backend backend = {take_request, cancel, take_watch, drop_watch};
    world.cluster.backend = &backend;
    const struct driver_options options = {.cluster = &world.cluster,
                                           .clock = {now_ms, now_unix_ms, call_at, NULL},
                                           .target = CONTROL_TARGET_CLUSTER,
                                           .namespace = "",
                                           .labels = "",
                                           .autoscalers = true};
    struct driver *driver = NULL;
    assert_int_equal(driver_new(&options, &driver, NULL), 0);
    for (size_t i = 0; i < world.watch_count; i++) { /* no PodGroups: no gang is requested */
        list((int)i, true);
    }
    work_off(driver);
    assert_int_equal(driver_live_jobs(driver), JOBS);
    assert_int_equal(world.written, JOBS); /* all jobs are Running */
    print_message("listed and worked off: VmHWM %ld KiB\n", status_kib("VmHWM"));
    list(CONTROL_POD, false);
    list(CONTROL_SERVICE, false);
    work_off(driver);
    assert_int_equal(world.created, 0);
    assert_int_equal(world.written, JOBS);
    long peak = status_kib("VmHWM");
    print_message("listed again: VmHWM %ld KiB, VmRSS %ld KiB\n", peak, status_kib("VmRSS"));
    driver_free(driver);
    assert_in_range(peak, 1, LIMIT_KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_pods_weigh_less_than_64_mb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
