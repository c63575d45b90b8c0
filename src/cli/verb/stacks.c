/* muster stacks: shows what each rank of a job is doing now. */
#include "cli/command/verbs.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/py_spy.h"
#include "cli/pod/rank_pod.h"
#include "cli/pod/ranks.h"
#include "cli/pod/stack_view.h"
#include "process/stack/collectives.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_BYTES_MAX = 64 << 20 };

/* Gets the attempts of the pod's whole job. */
static int get_attempts(struct cli *cli, const json_t *pod, json_t **ret)
{
    muster_auto(free) char *pods =
        kube_muster_path("namespaces", doc_text(pod, "metadata.namespace", "default"), "pods",
                         doc_text(pod, "metadata.name", ""), "stacks", NULL);
    muster_auto(free) char *path = NULL;
    if (!pods || asprintf(&path, "%s?uid=%s", pods, doc_text(pod, "metadata.uid", "")) < 0) {
        path = NULL;
        return err_no_memory(&cli->err);
    }
    muster_auto(doc) json_t *answer = NULL;
    int r = kube_call(cli->kube, "GET", path, NULL, &answer, &cli->err);
    if (r == 0) {
        *ret = json_incref(doc_at(answer, "attempts"));
    }
    return r;
}

static int list_ranks(struct cli *cli, const struct pod_set *set, long rank, json_t *attempts,
                      json_t *ranks)
{
    size_t i;
    json_t *pod;
    json_array_foreach (set->pods, i, pod) {
        if (rank < 0 || ranks_number(pod) == rank) {
            json_t *doc = stack_view_rank(pod, attempts);
            py_spy_add(json_object_get(doc, "processes"));
            json_array_append_new(ranks, doc);
        }
    }
    if (json_array_size(ranks) > 0) {
        return 0;
    }
    return rank < 0 ? muster_fail(&cli->err, MUSTER_ENOENT, "stacks: %s has no pods",
                                  cli->args.operands[0])
                    : muster_fail(&cli->err, MUSTER_ENOENT,
                                  "stacks: there is no rank %ld; the job has %zu pod%s", rank,
                                  json_array_size(set->pods),
                                  json_array_size(set->pods) == 1 ? "" : "s");
}

static int print(struct cli *cli, const char *format, json_t *ranks, json_t *collectives)
{
    if (format) {
        muster_auto(doc) json_t *doc =
            json_pack("{s:O, s:O}", "collectives", collectives, "ranks", ranks);
        return cli_print_doc(doc, format, &cli->err);
    }
    struct buf out;
    buf_init(&out, TEXT_BYTES_MAX);
    stack_view_print(ranks, collectives, &out);
    int r = cli_print(buf_str(&out), &cli->err);
    buf_done(&out);
    return r;
}

static int show(struct cli *cli, const struct pod_set *set, const char *format, long rank)
{
    muster_auto(doc) json_t *attempts = NULL;
    muster_auto(doc) json_t *ranks = json_array();
    int r =
        json_array_size(set->pods) ? get_attempts(cli, json_array_get(set->pods, 0), &attempts) : 0;
    r = r < 0 ? r : list_ranks(cli, set, rank, attempts, ranks);
    muster_auto(doc) json_t *collectives = collectives_describe(attempts);
    return r < 0 ? r : print(cli, format, ranks, collectives);
}

int cli_stacks(struct cli *cli)
{
    muster_auto(free) char *name = NULL;
    muster_auto(doc) json_t *job = NULL;
    struct pod_set set = {0};
    const char *format = NULL;
    long rank = -1;
    int r = cli_expect_operands(cli, 1, 1);
    r = r < 0 ? r : args_choice(&cli->args, "output", &format, &cli->err);
    r = r < 0 ? r : rank_pod_split(cli, cli->args.operands[0], &name, &rank);
    r = r < 0 ? r : cli_connect(cli, KUBE_START);
    r = r < 0 ? r : pod_set_find(cli, name, false, &set, &job);
    r = r < 0 ? r : show(cli, &set, format, rank);
    pod_set_done(&set);
    return r;
}
