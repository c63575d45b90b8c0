/* muster version. It does not start a controller. */
#include "cli/command/verbs.h"

#include <stdio.h>

static json_t *controller_version(struct cli *cli)
{
    json_t *answer = NULL;
    if (cli_connect(cli, KUBE_RUNNING) < 0 ||
        kube_call(cli->kube, "GET", "/muster/v1/status", NULL, &answer, NULL) < 0) {
        return NULL;
    }
    return answer;
}

int cli_version(struct cli *cli)
{
    const char *format = NULL;
    int r = args_choice(&cli->args, "output", &format, &cli->err);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *status =
        args_flag(&cli->args, "client") ? NULL : controller_version(cli);
    muster_auto(doc) json_t *answer = json_pack("{s:{s:s}}", "client", "version", MUSTER_VERSION);
    if (status) {
        json_object_set_new(answer, "controller",
                            json_pack("{s:s, s:I}", "version", doc_text(status, "version", "?"),
                                      "pid", (json_int_t)doc_int(status, "pid", 0)));
    }
    if (format) {
        return cli_print_doc(answer, format, &cli->err);
    }
    printf("client      %s\n", MUSTER_VERSION);
    if (!args_flag(&cli->args, "client")) {
        printf("controller  %s\n", status ? doc_text(status, "version", "?") : "not running");
    }
    return 0;
}
