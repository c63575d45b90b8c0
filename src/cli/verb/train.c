/* muster train, and elasticdl train, evaluate and predict. */
#include "cli/command/verbs.h"

#include "base/cleanup.h"
#include "cli/elasticdl/request.h"
#include "cli/follow/replace.h"
#include "cli/submit/owner.h"
#include "cli/submit/preflight.h"
#include "cli/submit/run_objects.h"
#include "cli/verb/run.h"

#include <stdio.h>

/* --- muster train: to the end --- */

static int read_objects(struct cli *cli, struct objects *ret, size_t *ret_jobs)
{
    int r = request_objects(cli, ret, ret_jobs);
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        r = objects_is_job(ret->list[i]) ? run_objects_set_deadline(cli, ret->list[i]) : 0;
    }
    return r;
}

int cli_train(struct cli *cli)
{
    bool written = false;
    int r = request_write(cli, &written);
    return r < 0 || written ? r : run_and_follow(cli, read_objects);
}

/* --- elasticdl train: submit and return --- */

static int create(struct cli *cli, const struct objects *objects, json_t *job)
{
    muster_auto(doc) json_t *created = NULL;
    if (!objects_is_job(job)) {
        return run_put_support(cli, job);
    }
    int r = objects_annotate(cli, job, NULL);
    r = r < 0 ? r : objects_create(cli, job, &created);
    if (r == MUSTER_EEXIST) {
        r = replace_finished(cli, job);
        r = r < 0 ? r : objects_create(cli, job, &created);
    }
    if (r == 0) {
        owner_note(cli, objects, created);
    }
    return r;
}

static void say_submitted(const struct cli *cli, const json_t *job)
{
    const char *name = doc_text(job, "metadata.name", "");
    long long workers = doc_int(job, "spec.pytorchReplicaSpecs.Worker.replicas", 0);
    char last[32] = "";
    if (workers > 1) {
        (void)snprintf(last, sizeof last, " to %lld", workers - 1);
    }
    request_say(cli,
                "job %s is submitted: pods elasticdl-%s-master and %s-edljob-worker-0%s; muster "
                "get pods shows them, muster logs %s -f follows them%s",
                name, name, name, last, name,
                cli_on_cluster(cli) ? ", with this cluster's --context or --kubeconfig" : "");
}

static int submit(struct cli *cli)
{
    struct objects objects = {0};
    size_t jobs = 0;
    bool written = false;
    int r = request_write(cli, &written);
    if (r < 0 || written) {
        return r;
    }
    r = request_objects(cli, &objects, &jobs);
    r = r < 0 || cli->kube ? r : cli_connect(cli, KUBE_START);
    r = r < 0 ? r : preflight_objects(cli, &objects, run_try, cli);
    for (size_t i = 0; r == 0 && i < objects.count; i++) {
        r = create(cli, &objects, objects.list[i]);
        if (r == 0 && objects_is_job(objects.list[i])) {
            say_submitted(cli, objects.list[i]);
        }
    }
    objects_done(&objects);
    return r;
}

int elasticdl_train(struct cli *cli)
{
    return submit(cli);
}

int elasticdl_evaluate(struct cli *cli)
{
    return submit(cli);
}

int elasticdl_predict(struct cli *cli)
{
    return submit(cli);
}
