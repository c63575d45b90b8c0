/* muster exec: runs one more command in a rank. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "cli/pod/rank_pod.h"
#include "cli/pod/ranks.h"
#include "cli/pod/session.h"

#include <stdlib.h>
#include <string.h>

/* The request: the command and its options, as docs/api.md describes it; new reference. */
static json_t *request_of(const struct cli *cli, const json_t *pod)
{
    const struct args *args = &cli->args;
    const char *container = args_value(args, "container");
    bool tty = args_flag(args, "tty");
    json_t *words = json_array();
    for (size_t i = 1; i < args->operand_count; i++) {
        json_array_append_new(words, json_string(args->operands[i]));
    }
    if (json_array_size(words) + 1 != args->operand_count) {
        json_decref(words);
        return NULL; /* not UTF-8 */
    }
    json_t *doc = json_pack("{s:o, s:s, s:b, s:b}", "command", words, "container",
                            container ? container : ranks_main_container(pod), "stdin",
                            (int)args_flag(args, "stdin"), "tty", (int)tty);
    int rows, columns;
    if (doc && tty && session_window(&rows, &columns)) {
        json_object_set_new(doc, "rows", json_integer(rows));
        json_object_set_new(doc, "columns", json_integer(columns));
    }
    const char *term = getenv("TERM");
    if (doc && tty && term) {
        json_object_set_new(doc, "term", json_string(term));
    }
    return doc;
}

static int open_session(struct cli *cli, const json_t *pod, int *ret_fd)
{
    muster_auto(doc) json_t *request = request_of(cli, pod);
    muster_auto(free) char *path =
        kube_muster_path("namespaces", doc_text(pod, "metadata.namespace", "default"), "pods",
                         doc_text(pod, "metadata.name", ""), "exec", NULL);
    if (!request) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "exec: an argument of the command is not valid UTF-8");
    }
    if (!path) {
        return err_no_memory(&cli->err);
    }
    return kube_upgrade(cli->kube, path, "muster-exec", request, ret_fd, &cli->err);
}

int cli_exec(struct cli *cli)
{
    const struct args *args = &cli->args;
    muster_auto(doc) json_t *pod = NULL;
    muster_auto(close) int fd = -1;
    if (args->operand_count < 2 || (args->separated && args->separated_after != 1)) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "exec: a job and a command are needed: muster exec %s",
                           args->command->operands);
    }
    int r = cli_connect(cli, KUBE_START);
    r = r < 0 ? r : rank_pod_find(cli, args->operands[0], &pod);
    r = r < 0 ? r : open_session(cli, pod, &fd);
    return r < 0 ? r
                 : session_follow(fd, args_flag(args, "stdin"), args_flag(args, "tty"), &cli->err);
}
