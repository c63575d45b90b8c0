/* muster deploy: prints the objects that a cluster needs to run muster. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "deploy/overlay.h"

#include <string.h>

static int print_yaml(const json_t *objects, struct muster_err *err)
{
    size_t i;
    json_t *object;
    int r = 0;
    json_array_foreach (objects, i, object) {
        r = r < 0 ? r : cli_print_next(object, i, "yaml", err);
    }
    return r;
}

static int print_json(const json_t *objects, struct muster_err *err)
{
    muster_auto(doc) json_t *list =
        json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", objects);
    return list ? cli_print_doc(list, "json", err) : err_no_memory(err);
}

int cli_deploy(struct cli *cli)
{
    muster_auto(doc) json_t *objects = NULL;
    struct overlay_choice choice = {.namespace = args_value(&cli->args, "namespace"),
                                    .image = args_value(&cli->args, "image"),
                                    .pull_secret = args_value(&cli->args, "image-pull-secret")};
    const char *format = NULL;
    int r = cli_expect_operands(cli, 0, 0);
    r = r < 0 ? r : args_choice(&cli->args, "overlay", &choice.overlay, &cli->err);
    r = r < 0 ? r : args_choice(&cli->args, "output", &format, &cli->err);
    if (r == 0 && !args_flag(&cli->args, "print")) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "deploy only prints; to change a cluster: muster deploy --print | kubectl "
                        "apply --server-side -f -");
    }
    r = r < 0 ? r : overlay_objects(&choice, &objects, &cli->err);
    if (r < 0) {
        return r;
    }
    return strcmp(format, "json") == 0 ? print_json(objects, &cli->err)
                                       : print_yaml(objects, &cli->err);
}
