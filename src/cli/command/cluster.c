/* --context and --kubeconfig: opens the connection of a verb to a cluster. See cli.h. */
#include "cli/command/cli.h"

#include "base/err.h"
#include "cli/command/elasticdl.h"

#include <string.h>

/* Options for what the controller of this machine can do and a cluster cannot. */
static const struct {
    const char *option, *why;
} only_here[] = {
    {"network", "a pod of a cluster has an address of its own"},
    {"runtime", "the nodes of a cluster run its containers"},
    {"backend",
     "a script on a cluster asks for the backend itself: init_process_group(\"muster\")"},
    {"share-gpu", "a cluster's scheduler hands out its GPUs"},
    {"no-gpu", "a cluster's scheduler hands out its GPUs"},
    {"stall", "nobody looks into the ranks there"},
    {"stdin", "kubectl attach -i gives a pod its standard input"},
    {"results", "mount a claim, and copy from it with muster cp"},
    {"run", "a cluster keeps no earlier runs"},
    {"as-written", "logs of a cluster are as they were written"},
};

static int check_options(struct cli *cli)
{
    const struct args *args = &cli->args;
    for (size_t i = 0; i < sizeof only_here / sizeof only_here[0]; i++) {
        if (args_has_flag(args, only_here[i].option)) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "%s: --%s is for jobs of this machine, not of a cluster: %s",
                               args->command->name, only_here[i].option, only_here[i].why);
        }
    }
    size_t at = 0;
    for (const char *image;
         args_has_flag(args, "image") && (image = args_each(args, "image", &at));) {
        if (strchr(image, '=')) {
            return muster_fail(&cli->err, MUSTER_EINVAL,
                               "%s: --image IMAGE=COMMAND is for jobs of this machine: on a "
                               "cluster the image or the file says what it runs",
                               args->command->name);
        }
    }
    return 0;
}

/* Whether ElasticDL's flag chooses the current context of the usual file. A wrong value is refused
 * later. */
static bool takes_kubeconfig(const struct args *args)
{
    static const char flag[] = "force_use_kube_config_file";
    return args_has_flag(args, flag) && elasticdl_boolean(args_value(args, flag)) > 0;
}

int cli_choose_cluster(struct cli *cli)
{
    const struct args *args = &cli->args;
    const char *file = args_has_flag(args, "kubeconfig") ? args_value(args, "kubeconfig") : NULL;
    const char *context = args_has_flag(args, "context") ? args_value(args, "context") : NULL;
    if (!file && !context && !takes_kubeconfig(args)) {
        return 0;
    }
    int r = check_options(cli);
    return r < 0 ? r : kube_open_cluster(&cli->loop, file, context, &cli->kube, &cli->err);
}

bool cli_on_cluster(const struct cli *cli)
{
    return cli->kube && kube_is_cluster(cli->kube);
}
