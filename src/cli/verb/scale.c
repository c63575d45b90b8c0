/* muster scale: the number of a job's workers, through the scale subresource. */
#include "cli/command/verbs.h"

#include "cli/pod/target.h"

#include <limits.h>
#include <stdio.h>

int cli_scale(struct cli *cli)
{
    int64_t replicas = -1;
    struct target target;
    int r = args_number(&cli->args, "replicas", 0, INT_MAX, &replicas, &cli->err);
    if (r == 0 && replicas < 0) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "scale: the number of workers is required: --replicas=N");
    }
    r = r < 0 ? r : cli_expect_operands(cli, 1, 1);
    r = r < 0 ? r : target_read(cli, cli->args.operands[0], &target);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    r = r < 0 ? r : target_find(cli, cli_namespace(cli), false, &target, NULL);
    if (r < 0) {
        return r;
    }
    struct kube_ref ref = {target.resource, cli_namespace(cli), target.name, "scale"};
    muster_auto(doc) json_t *patch =
        json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)replicas);
    r = kube_patch(cli->kube, &ref, patch, NULL, &cli->err);
    if (r == 0) {
        printf("pytorchjob.kubeflow.org/%s scaled\n", target.name);
    }
    return r;
}
