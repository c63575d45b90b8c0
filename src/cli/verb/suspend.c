/* muster suspend and muster resume: set the job's runPolicy.suspend. */
#include "cli/command/verbs.h"

#include "cli/pod/target.h"

#include <stdio.h>

static int set_suspend(struct cli *cli, struct target target, bool suspend)
{
    muster_auto(doc) json_t *job = NULL;
    int r = target_find(cli, cli_namespace(cli), false, &target, &job);
    if (r < 0) {
        return r;
    }
    struct kube_ref ref = {target.resource, cli_namespace(cli), target.name, NULL};
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:{s:b}}}", "spec", "runPolicy", "suspend", (int)suspend);
    r = kube_patch(cli->kube, &ref, patch, NULL, &cli->err);
    if (r == 0) {
        printf("pytorchjob.kubeflow.org/%s %s\n", target.name, suspend ? "suspended" : "resumed");
        target_say_over(&target, job);
    }
    return r;
}

static int each(struct cli *cli, bool suspend)
{
    struct targets targets;
    int r = targets_read_named(cli, TARGETS_MAX, &targets);
    r = r < 0 ? r : targets_are_jobs(cli, &targets, suspend ? "suspended" : "resumed");
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    for (size_t i = 0; r == 0 && i < targets.count; i++) {
        r = set_suspend(cli, targets.list[i], suspend);
    }
    return r;
}

int cli_suspend(struct cli *cli)
{
    return each(cli, true);
}

int cli_resume(struct cli *cli)
{
    return each(cli, false);
}
