/* muster scale: sets the number of a job's workers, through the scale subresource. */
#include "cli/command/verbs.h"

#include "cli/pod/target.h"

#include <limits.h>
#include <stdio.h>

static int read_workers(struct cli *cli, int64_t *ret)
{
    int64_t replicas = -1;
    int64_t workers = -1;
    int r = args_number(&cli->args, "replicas", 0, INT_MAX, &replicas, &cli->err);
    r = r < 0 ? r : args_number(&cli->args, "workers", 0, INT_MAX, &workers, &cli->err);
    if (r == 0 && replicas < 0 && workers < 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "scale: the number of workers is required: --workers N, or --replicas=N");
    }
    if (r == 0 && replicas >= 0 && workers >= 0 && replicas != workers) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "scale: --workers and --replicas are the same: give one");
    }
    *ret = workers >= 0 ? workers : replicas;
    if (r == 0 && *ret == 0) {
        r = muster_fail(
            &cli->err, MUSTER_EINVAL,
            "scale: a job has 1 worker at least; muster suspend ends its pods and keeps "
            "the job");
    }
    return r;
}

int cli_scale(struct cli *cli)
{
    struct targets targets;
    int64_t replicas = -1;
    int r = read_workers(cli, &replicas);
    r = r < 0 ? r : targets_read_named(cli, 1, &targets);
    r = r < 0 ? r : targets_are_jobs(cli, &targets, "scaled");
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    muster_auto(doc) json_t *job = NULL;
    r = r < 0 ? r : target_find(cli, cli_namespace(cli), false, &targets.list[0], &job);
    if (r < 0) {
        return r;
    }
    const struct target target = targets.list[0];
    struct kube_ref ref = {target.resource, cli_namespace(cli), target.name, "scale"};
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)replicas);
    r = kube_patch(cli->kube, &ref, patch, NULL, &cli->err);
    if (r == 0) {
        printf("pytorchjob.kubeflow.org/%s scaled\n", target.name);
        target_say_over(&target, job);
    }
    return r;
}
