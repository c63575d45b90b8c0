/* muster cp: copies files out of a pod, through its mounts and working directory on this machine;
 * on a cluster out of its volumes. */
#include "cli/command/verbs.h"

#include "base/err.h"
#include "base/file.h"
#include "cli/copy/fetch.h"
#include "cli/pod/copy.h"
#include "cli/pod/place.h"
#include "cli/pod/pod_set.h"
#include "cli/pod/ranks.h"
#include "control/control.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Makes the first rank's pod of a job whose pods are gone. */
static int render_pod(struct cli *cli, json_t *job, json_t **ret)
{
    muster_auto(doc) json_t *service = NULL;
    muster_auto(doc) json_t *claims = NULL;
    const char *role = doc_at(job, "spec.pytorchReplicaSpecs.Master") ? "Master" : "Worker";
    return control_render(job, role, 0, ret, &service, &claims, &cli->err);
}

/* Finds the pod, or the pod of the job's first rank, also if it was cleaned up. *ret_owner is the
 * job, or the pod if a pod is meant. */
static int find_pod(struct cli *cli, const char *word, json_t **ret, json_t **ret_owner)
{
    struct pod_set set = {0};
    muster_auto(doc) json_t *job = NULL;
    int r = pod_set_find(cli, word, false, &set, &job);
    if (r < 0) {
        return r;
    }
    muster_auto(doc) json_t *first = json_incref(json_array_get(set.pods, 0));
    pod_set_done(&set);
    if (!first && job && cli_on_cluster(cli)) {
        r = render_pod(cli, job, &first);
    } else if (!first) {
        r = muster_fail(&cli->err, MUSTER_ENOENT, "no pod of job %s has started", word);
    }
    if (r == 0) {
        *ret_owner = json_incref(job ? job : first);
        *ret = muster_take(first);
    }
    return r;
}

/* The destination by cp's rule: in DEST under the source's own name if DEST is an existing folder,
 * else DEST itself. */
static char *destination(const char *from, const char *to)
{
    struct stat info;
    const char *slash = strrchr(from, '/');
    bool folder = stat(to, &info) == 0 && S_ISDIR(info.st_mode);
    return folder ? file_join(to, slash ? slash + 1 : from) : strdup(to);
}

static void cut_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) {
        path[n - 1] = '\0';
    }
}

static int copy_here(struct cli *cli, const json_t *pod, const char *container, const char *path,
                     const char *to)
{
    muster_auto(doc) json_t *place = NULL;
    int r = place_get(cli, pod, container, &place);
    if (r < 0) {
        return r;
    }
    muster_auto(free) char *from = place_resolve(place, path);
    if (from) {
        cut_slashes(from);
    }
    if (from && !file_exists(from)) {
        return muster_fail(
            &cli->err, MUSTER_ENOENT, "%s has no %s (looked for %s; its working directory is %s)",
            doc_text(pod, "metadata.name", ""), path, from, doc_text(place, "cwd", "unknown"));
    }
    muster_auto(free) char *dest = from ? destination(from, to) : NULL;
    return dest ? copy_tree(from, dest, &cli->err) : err_no_memory(&cli->err);
}

static int copy_from_cluster(struct cli *cli, const json_t *pod, const json_t *owner,
                             const char *container, const char *path, const char *to)
{
    muster_auto(free) char *from = strdup(path);
    if (from) {
        cut_slashes(from);
    }
    muster_auto(free) char *dest = from ? destination(from, to) : NULL;
    const struct fetch_order order = {.pod = pod,
                                      .container = container,
                                      .owner = owner,
                                      .image = args_value(&cli->args, "image"),
                                      .path = from,
                                      .to = dest};
    return dest ? fetch_run(cli, &order) : err_no_memory(&cli->err);
}

static int copy_out(struct cli *cli, const char *name, const char *path, const char *to)
{
    muster_auto(doc) json_t *pod = NULL;
    muster_auto(doc) json_t *owner = NULL;
    int r = find_pod(cli, name, &pod, &owner);
    if (r < 0) {
        return r;
    }
    const char *container = args_value(&cli->args, "container");
    container = container ? container : ranks_main_container(pod);
    return cli_on_cluster(cli) ? copy_from_cluster(cli, pod, owner, container, path, to)
                               : copy_here(cli, pod, container, path, to);
}

int cli_cp(struct cli *cli)
{
    int r = cli_expect_operands(cli, 2, 2);
    if (r < 0) {
        return r;
    }
    const char *source = cli->args.operands[0];
    const char *colon = strchr(source, ':');
    if (!colon || colon == source || !colon[1]) {
        return muster_fail(&cli->err, MUSTER_EINVAL,
                           "cp: the source must be JOB:PATH or POD:PATH, not '%s'", source);
    }
    r = cli_connect(cli, KUBE_START);
    if (r == 0 && args_value(&cli->args, "image") && !cli_on_cluster(cli)) {
        r = muster_fail(&cli->err, MUSTER_EINVAL,
                        "cp: --image is of the pod that serves the files on a cluster; here none "
                        "is needed");
    }
    muster_auto(free) char *name = strndup(source, (size_t)(colon - source));
    return r < 0 ? r : copy_out(cli, name, colon + 1, cli->args.operands[1]);
}
