/* muster up: starts a controller that keeps running. */
#include "cli/verb/up.h"

#include "cli/command/verbs.h"

#include <stdio.h>

int up_keep(struct cli *cli, json_t **ret_status)
{
    int r = cli_connect(cli, KUBE_START);
    muster_auto(doc) json_t *body = json_pack("{s:b}", "keep", 1);
    r = r < 0 ? r : kube_call(cli->kube, "PUT", "/muster/v1/keep", body, NULL, &cli->err);
    return r < 0 ? r
                 : kube_call(cli->kube, "GET", "/muster/v1/status", NULL, ret_status, &cli->err);
}

int cli_up(struct cli *cli)
{
    const char *format = NULL;
    muster_auto(doc) json_t *status = NULL;
    int r = args_choice(&cli->args, "output", &format, &cli->err);
    r = r < 0 ? r : cli_expect_operands(cli, 0, 0);
    r = r < 0 ? r : up_keep(cli, &status);
    if (r < 0) {
        return r;
    }
    if (format) {
        return cli_print_doc(status, format, &cli->err);
    }
    printf("The controller runs (process %lld) and stays until muster down.\n",
           (long long)doc_int(status, "pid", 0));
    printf("  state  %s\n", doc_text(status, "home", kube_home(cli->kube)));
    const char *server = doc_text(status, "server", "");
    if (*server) {
        printf("  API    %s (muster kubeconfig --write FILE, for kubectl)\n", server);
    } else {
        cli_say("warning: %s", doc_text(status, "serverError", "kubectl cannot be served"));
    }
    return 0;
}
