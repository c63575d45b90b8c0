/* How fast pods and their Services can be made through the client of src/kube: the floor under
 * every operator that uses it.
 *
 *     kubernetes_pairs KUBECONFIG NAMESPACE PAIRS UNDER_WAY QPS [BODIES]
 *
 * All requests are queued at once; the client has UNDER_WAY of them on connections. BODIES is a
 * file with a list of a pod and a Service: those are made, each under a name of its own; without
 * it, the smallest that name a command and a port. PyTorchJobs may follow in the list: the status
 * of each is written, one before each part of the pairs. Prints one JSON object.
 */
#include "base/doc.h"
#include "base/time/clock.h"
#include "controller/fair_share.h"
#include "kube/cluster/kube_cluster.h"
#include "kube/config/kubeconfig.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 600000, MS_PER_S = 1000, BURST = 10 };

static const struct cluster_resource kinds[] = {{"", "v1", "pods", "Pod", true},
                                                {"", "v1", "services", "Service", true}};
static const struct cluster_resource job_kind = {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob",
                                                 true};

static struct {
    struct cluster *cluster;
    json_t *bodies; /* NULL for the smallest bodies */
    int left, failed;
} bench;

static void die(const char *why)
{
    fprintf(stderr, "kubernetes_pairs: %s\n", why);
    exit(1);
}

static void on_done(void *arg, const struct cluster_answer *answer)
{
    (void)arg;
    if (answer->code < 0) {
        fprintf(stderr, "kubernetes_pairs: %d %s\n", answer->http_status, answer->message);
        bench.failed++;
    }
    if (--bench.left == 0) {
        kube_cluster_close(bench.cluster);
    }
}

static json_t *make_pod(const char *name)
{
    return json_pack("{s:{s:s, s:{s:s}}, s:{s:s, s:[{s:s, s:s, s:[s, s], s:[{s:s, s:i}]}]}}",
                     "metadata", "name", name, "labels", "pair", name, "spec", "restartPolicy",
                     "Never", "containers", "name", "pytorch", "image", "none", "command", "python",
                     "train.py", "ports", "name", "pytorchjob-port", "containerPort", 23456);
}

static json_t *make_service(const char *name)
{
    return json_pack("{s:{s:s, s:{s:s}}, s:{s:s, s:{s:s}, s:[{s:s, s:i}]}}", "metadata", "name",
                     name, "labels", "pair", name, "spec", "clusterIP", "None", "selector", "pair",
                     name, "ports", "name", "pytorchjob-port", "port", 23456);
}

/* Returns a copy of body number `kind` of BODIES, with this name. */
static json_t *make_given(size_t kind, const char *name)
{
    json_t *body = json_deep_copy(json_array_get(bench.bodies, kind));
    doc_set(json_object_get(body, "metadata"), "name", json_string(name));
    return body;
}

static void queue(const struct cluster_request *request)
{
    struct muster_err err = MUSTER_ERR_INIT;
    bench.left++;
    if (bench.cluster->backend->send(bench.cluster, request, on_done, NULL, NULL, &err) < 0) {
        die(err.text);
    }
}

/* Sends it in the lane of the pairs, so that it keeps its place in the order. */
static void send_status(json_t *job)
{
    const struct cluster_request request = {
        .verb = CLUSTER_REPLACE,
        .lane = CLUSTER_LANE_PARTS,
        .resource = &job_kind,
        .namespace = doc_text(job, "metadata.namespace", ""),
        .name = doc_text(job, "metadata.name", ""),
        .subresource = "status",
        .body = job,
        .timeout_ms = TIMEOUT_MS,
    };
    queue(&request);
}

static void send_pair(const char *namespace, int number)
{
    char name[32];
    snprintf(name, sizeof name, "pair-%05d", number);
    json_t *const bodies[] = {bench.bodies ? make_given(0, name) : make_pod(name),
                              bench.bodies ? make_given(1, name) : make_service(name)};
    for (size_t i = 0; i < 2; i++) {
        const struct cluster_request request = {
            .verb = CLUSTER_CREATE,
            .lane = CLUSTER_LANE_PARTS,
            .resource = &kinds[i],
            .namespace = namespace,
            .body = bodies[i],
            .timeout_ms = TIMEOUT_MS,
        };
        queue(&request);
        json_decref(bodies[i]);
    }
}

static void send_all(const char *namespace, int pairs)
{
    int bodies = (int)json_array_size(bench.bodies);
    int jobs = bodies > 2 ? bodies - 2 : 0;
    for (int i = 0, job = 0; i < pairs; i++) {
        for (; (int64_t)job * pairs < (int64_t)(i + 1) * jobs; job++) {
            send_status(json_array_get(bench.bodies, (size_t)job + 2));
        }
        send_pair(namespace, i);
    }
}

int main(int argc, char **argv)
{
    uv_loop_t loop;
    struct target target = {0};
    struct muster_err err = MUSTER_ERR_INIT;
    if (argc < 6) {
        die("usage: kubernetes_pairs KUBECONFIG NAMESPACE PAIRS UNDER_WAY QPS [BODIES]");
    }
    bench.bodies = argc > 6 ? json_load_file(argv[6], 0, NULL) : NULL;
    if (argc > 6 && json_array_size(bench.bodies) < 2) {
        die("BODIES is no list of a pod and a Service");
    }
    int pairs = (int)strtol(argv[3], NULL, 10);
    int under_way = (int)strtol(argv[4], NULL, 10);
    const struct kube_cluster_options options = {.qps = strtod(argv[5], NULL),
                                                 .burst = BURST,
                                                 .under_way_max =
                                                     (int)fair_share_places((size_t)under_way)};
    uv_loop_init(&loop);
    if (kubeconfig_load(argv[1], NULL, &target, &err) < 0 ||
        kube_cluster_open(&loop, &target, &options, &bench.cluster, &err) < 0) {
        die(err.text);
    }
    int64_t began_ms = clock_ms();
    send_all(argv[2], pairs);
    uv_run(&loop, UV_RUN_DEFAULT);
    json_decref(bench.bodies);
    double seconds = (double)(clock_ms() - began_ms) / MS_PER_S;
    printf("{\"pairs\": %d, \"under_way\": %d, \"seconds\": %.3f, \"pairs_per_second\": %.1f, "
           "\"failed\": %d}\n",
           pairs, under_way, seconds, pairs / seconds, bench.failed);
    return uv_loop_close(&loop) < 0 || bench.failed > 0;
}
