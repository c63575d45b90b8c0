/* muster kubeconfig: prints the kubeconfig for kubectl and the SDK. */
#include "cli/command/verbs.h"

#include "api/kubeconfig.h"
#include "base/file.h"
#include "cli/verb/up.h"

#include <stdlib.h>
#include <string.h>

int cli_kubeconfig(struct cli *cli)
{
    muster_auto(doc) json_t *status = NULL;
    muster_auto(free) char *text = NULL;
    const char *path = args_value(&cli->args, "write");
    int r = cli_expect_operands(cli, 0, 0);
    r = r < 0 ? r : up_keep(cli, &status);
    if (r == 0 && !*doc_text(status, "server", "")) {
        r = muster_fail(&cli->err, MUSTER_EUNAVAIL, "%s",
                        doc_text(status, "serverError", "kubectl cannot be served"));
    }
    r = r < 0 ? r
              : api_kubeconfig(kube_home(cli->kube), args_value(&cli->args, "namespace"), &text,
                               &cli->err);
    if (r < 0) {
        return r;
    }
    return path ? file_write_through(path, text, strlen(text), 0600, FILE_SYNC, &cli->err)
                : cli_print(text, &cli->err);
}
